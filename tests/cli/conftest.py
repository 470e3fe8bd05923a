"""`pyptx sim` through `main`, in a folder with a few PTX files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyptx.cli import main

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


SCALE = f"""{HEAD}
.visible .entry scale(.param .u64 data, .param .f32 factor)
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [data];
    ld.param.f32 %f1, [factor];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r1, %r2, %r3, %r1;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.f32 %f2, [%rd2];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%rd2], %f3;
    ret;
}}
"""


RACY = f"""{HEAD}
.visible .entry racy(.param .u64 out)
{{
    .reg .b32 %t, %a;
    .shared .align 4 .b32 box[64];
    mov.u32 %t, %tid.x;
    mov.u32 %a, box;
    mad.lo.u32 %a, %t, 4, %a;
    st.shared.u32 [%a], %t;
    xor.b32 %a, %a, 128;
    ld.shared.u32 %t, [%a];
    st.shared.u32 [%a], %t;
    ret;
}}
"""


HANGS = f"""{HEAD}
.visible .entry stuck(.param .u64 out)
{{
    .reg .b32 %t;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    setp.lt.u32 %p, %t, 32;
    @%p bar.sync 1, 64;
    bar.sync 0;
    ret;
}}
"""


LOOPS = f"{HEAD}.visible .entry on()\n{{\n$a: bra $a;\n}}\n"


COPY = f"""{HEAD}
.visible .entry copy(.param .u64 from, .param .u64 to)
{{
    .reg .b32 %t, %x;
    .reg .b64 %a, %b;
    mov.u32 %t, %tid.x;
    ld.param.u64 %a, [from];
    ld.param.u64 %b, [to];
    mad.wide.u32 %a, %t, 4, %a;
    mad.wide.u32 %b, %t, 4, %b;
    ld.global.b32 %x, [%a];
    st.global.b32 [%b], %x;
    ret;
}}
"""


class Run:
    """The output of a command and its status."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


Command = Callable[..., Run]


@pytest.fixture
def pyptx(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    texts = {"scale": SCALE, "racy": RACY, "hangs": HANGS, "loops": LOOPS, "copy": COPY}
    for name, text in texts.items():
        (tmp_path / f"{name}.ptx").write_text(text)

    def run(*words: str) -> Run:
        try:
            status = main(["sim", *words])
        except SystemExit as stop:
            status = int(stop.code or 0)
        output = capsys.readouterr()
        return Run(status, output.out, output.err)

    return run
