"""Static shared memory: every variable that a kernel names counts once."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.parser import parse

KERNEL = """\
.version 8.6
.target {target}
.address_size 64
.shared .align 16 .b8 used[30000];
.shared .align 16 .b8 unused[30000];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k()
{{
    .reg .b32 %r<4>;
    .shared .align 16 .v4 .b32 %own[{own}];
    ld.shared.b32 %r0, [used];
    ld.shared.b32 %r0, [used + 4];
    mov.b32 %r1, dynamic;
    mov.b32 %r2, %own;
    ret;
}}
"""


@pytest.mark.parametrize(
    ("target", "static_bytes", "lines"),
    [("sm_90", 1197, []), ("sm_90", 1198, [4]), ("sm_90", 2000, [10]), ("sm_90a", 1198, []), ("sm_90a", 20000, [10])],
)
def test_the_bytes_of_what_a_kernel_names(target: str, static_bytes: int, lines: list[int]) -> None:
    findings = [d for d in check(parse(KERNEL.format(target=target, own=static_bytes))) if d.code == "PTX0620"]
    assert [d.line for d in findings] == lines


@pytest.mark.parametrize(("kind", "size"), [("b8", 1), ("u16", 2), ("f32", 4), ("b64", 8), ("b128", 16)])
def test_elements_have_the_size_of_their_type(kind: str, size: int) -> None:
    count = 49152 // size
    text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n"
    text += ".shared .align 16 .{} tile[{}]; .reg .b32 %r; mov.b32 %r, tile; ret;\n}}\n"
    codes = [[d.code for d in check(parse(text.format(kind, number)))] for number in (count, count + 1)]
    assert codes == [[], ["PTX0620"]]
