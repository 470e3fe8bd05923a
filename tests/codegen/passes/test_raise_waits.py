"""Wait loops become a call, with what differs from the usual loop; other loops stay."""

from __future__ import annotations

import pytest

from pyptx.codegen import ptx_to_python
from tests.codegen.sugared import REGISTERS, find_difference, statements
from tests.codegen.transcripts import kernel

LOOP = "W:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;\n@!%p1 bra W;\n"
BLOCK = """{
.reg .pred P1;
LAB_WAIT:
mbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], %r2;
@P1 bra DONE;
bra LAB_WAIT;
DONE:
}
"""
SHORT_BLOCK = BLOCK.replace("@P1 bra DONE;\nbra", "@!P1 bra").replace("DONE:\n", "")


@pytest.mark.parametrize(
    ("old", "new", "keywords"),
    [
        ("", "", 'labels=("W",)'),
        ("shared", "shared::cta", 'labels=("W",), space="shared::cta"'),
        ("shared", "acquire.cta.shared::cta", 'labels=("W",), space="shared::cta", sem="acquire", scope="cta"'),
        ("shared", "relaxed.cluster.shared", 'labels=("W",), sem="relaxed", scope="cluster"'),
        ("%r2", "%r2, 1000", 'suspend_hint=1000, labels=("W",)'),
        ("%r2", "%r2, %r5", 'suspend_hint=r[5], labels=("W",)'),
        ("bra", "bra.uni", 'labels=("W",), uni=True'),
    ],
)
def test_a_loop_of_two_instructions_is_a_wait(old: str, new: str, keywords: str) -> None:
    ptx = LOOP.replace(old, new) if old else LOOP
    assert statements(ptx)[-1] == f"ptx.mbarrier.wait(mbar, phase, {keywords})"
    assert find_difference(ptx) is None


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("!%p1", "!%p2", "ptx.mbarrier.try_wait(mbar, phase)"),
        ("bra W;\n", "bra W;\nselp.b32 %r7, 1, 2, %p1;\n", "p1 = ptx.mbarrier.try_wait(mbar, phase)"),
        ("try_wait", "test_wait",
         'with ptx.names(p[1]), ptx.loop("W", pred=lambda: ~ptx.mbarrier.test_wait(mbar, phase)):'),
        (".parity.shared.b64 %p1, [%r1], %r2", ".shared.b64 %p1, [%r1], %rd2",
         'with ptx.names(p[1]), ptx.loop("W", pred=lambda: ~ptx.mbarrier.try_wait(mbar, rd[2], parity=False)):'),
    ],
    ids=["another predicate", "read afterwards", "test_wait", "a state"],
)  # fmt: skip
def test_loops_that_are_not_quite_a_wait(old: str, new: str, line: str) -> None:
    ptx = LOOP.replace(old, new)
    assert line in statements(ptx)
    assert find_difference(ptx) is None


@pytest.mark.parametrize(
    ("ptx", "style"),
    [
        (BLOCK, ""),
        (BLOCK.replace("shared", "acquire.cluster.shared"), 'sem="acquire", scope="cluster"'),
        (BLOCK.replace("LAB_WAIT", "again").replace("DONE", "over"), 'labels=("again", "over")'),
        (BLOCK.replace("P1", "complete"), 'predicate="complete"'),
        (BLOCK.replace("shared::cta", "shared"), 'space="shared"'),
        (BLOCK.replace("bra", "bra.uni"), "uni=True"),
        (BLOCK.replace("@P1", ".loc 1 1 1\n@P1"), ""),
        (SHORT_BLOCK, 'labels=("LAB_WAIT",)'),
        (SHORT_BLOCK.replace("P1", "waited").replace("bra", "bra.uni"),
         'labels=("LAB_WAIT",), predicate="waited", uni=True'),
        (SHORT_BLOCK.replace("shared", "relaxed.cta.shared"), 'labels=("LAB_WAIT",), sem="relaxed", scope="cta"'),
    ],
)  # fmt: skip
def test_the_style_of_a_loop_in_a_block_has_a_name(ptx: str, style: str) -> None:
    files = '.file 1 "a.cu"\n'
    text = ptx_to_python(kernel(REGISTERS + ptx, files), sugar=True)
    assert f"\nWAIT = ptx.mbarrier.WaitLoop({style})\n" in text
    assert "    ptx.mbarrier.wait(mbar, phase, loop=WAIT)\n" in text
    assert find_difference(ptx, files) is None


def test_equal_styles_share_a_name() -> None:
    ptx = BLOCK + BLOCK.replace("%r2", "1, 0x20") + SHORT_BLOCK + BLOCK.replace("[%r1]", "[%r1+8]")
    assert statements(ptx)[-4:] == [
        "ptx.mbarrier.wait(mbar, phase, loop=WAIT)",
        'ptx.mbarrier.wait(mbar, 1, suspend_hint=ptx.imm("0x20"), loop=WAIT)',
        "ptx.mbarrier.wait(mbar, phase, loop=WAIT_2)",
        "ptx.mbarrier.wait(ptx.addr(mbar, 8), phase, loop=WAIT)",
    ]
    assert find_difference(ptx) is None


@pytest.mark.parametrize(
    "ptx",
    [
        BLOCK.replace("@P1 bra", "@P1 bra.uni"),
        BLOCK.replace("bra LAB", "bra.uni LAB"),
        BLOCK.replace("@P1", "@!P1"),
        BLOCK.replace("P1,", "%p1,"),
        BLOCK.replace("P1;", "P1, P2;"),
        BLOCK.replace("P1;", "P1<2>;").replace("P1,", "P10,").replace("@P1", "@P10"),
        BLOCK.replace("try_wait", "test_wait"),
        BLOCK.replace("mbarrier", "@%p1 mbarrier"),
        BLOCK.replace("bra DONE", "bra LAB_WAIT"),
        SHORT_BLOCK.replace("@!P1", "@P1"),
        SHORT_BLOCK.replace("@!P1", "@!%p1"),
    ],
)
def test_blocks_that_are_not_quite_a_wait(ptx: str) -> None:
    assert "ptx.mbarrier.wait(" not in "\n".join(statements(ptx))
    assert find_difference(ptx) is None
