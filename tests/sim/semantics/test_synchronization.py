"""Warp-wide instructions, in whole warps and in parts of them."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# References are lambdas of any number of Python integers or fractions.

from __future__ import annotations

import pytest

from tests.sim.kernels import results

STORE = "st.global.u32 [%o], %r0;"
AS_NUMBER = "selp.u32 %r0, 1, 0, %p0;"


@pytest.mark.parametrize(
    ("code", "reference"),
    [
        ("shfl.sync.bfly.b32 %r0, %t, 3, 31, -1;", lambda t: t ^ 3),
        ("shfl.sync.down.b32 %r0, %t, 2, 31, -1;", lambda t: t + 2 if t % 32 < 30 else t),
        ("shfl.sync.up.b32 %r0, %t, 2, 0, -1;", lambda t: t - 2 if t % 32 >= 2 else t),
        ("shfl.sync.idx.b32 %r0, %t, 5, 0x181f, -1;", lambda t: t // 8 * 8 + 5),
        ("shfl.sync.down.b32 %r0|%p0, %t, 1, 0x181f, -1;\nselp.u32 %r0, 1, 0, %p0;", lambda t: int(t % 8 < 7)),
        (f"setp.gt.u32 %p0, %t, 40;\nvote.sync.any.pred %p0, %p0, -1;\n{AS_NUMBER}", lambda t: int(t >= 32)),
        ("and.b32 %r1, %t, 1;\nsetp.eq.u32 %p0, %r1, 1;\nvote.sync.ballot.b32 %r0, %p0, -1;", lambda _: -0x55555556),
        ("shr.u32 %r1, %t, 3;\nmatch.any.sync.b32 %r0, %r1, -1;\npopc.b32 %r0, %r0;", lambda t: 8),
        ("match.all.sync.b32 %r0|%p0, 7, -1;\nselp.u32 %r0, 1, 0, %p0;", lambda t: 1),
        ("redux.sync.add.u32 %r0, %t, -1;", lambda t: sum(range(t // 32 * 32, t // 32 * 32 + 32))),
        ("redux.sync.max.s32 %r0, %t, -1;", lambda t: t // 32 * 32 + 31),
        ("elect.sync %r1|%p0, 0xfffffff0;\nselp.u32 %r0, 1, 0, %p0;", lambda t: int(t % 32 == 4)),
        ("mov.u32 %r0, %lanemask_lt;\npopc.b32 %r0, %r0;", lambda t: t % 32),
    ],
)  # fmt: skip
def test_whole_warps(code: str, reference: object) -> None:
    assert callable(reference)
    if "elect" in code:
        code = f"and.b32 %r5, %t, 31;\nsetp.lt.u32 %p5, %r5, 4;\nmov.u32 %r0, 0;\n@%p5 bra $end;\n{code}\n$end:"
    assert results(f"{code}\n{STORE}") == [reference(t) for t in range(64)]


def test_halves_of_a_warp_with_their_own_masks() -> None:
    body = f"""setp.lt.u32 %p0, %t, 16;
selp.b32 %r1, 0xffff, 0xffff0000, %p0;
@%p0 bra $low;
redux.sync.add.u32 %r0, %t, %r1;
bra $end;
$low: redux.sync.min.u32 %r0, %t, %r1;
$end: {STORE}"""
    assert results(body, 32) == [0] * 16 + [sum(range(16, 32))] * 16


def test_two_masks_in_one_instruction() -> None:
    body = f"setp.lt.u32 %p0, %t, 8;\nselp.b32 %r1, 0xff, 0xffffff00, %p0;\nredux.sync.add.u32 %r0, 1, %r1;\n{STORE}"
    assert results(body, 32) == [8] * 8 + [24] * 24


def test_each_mask_elects_its_own_leader() -> None:
    body = f"""setp.lt.u32 %p0, %t, 4;
selp.b32 %r1, 0xf, 0xfffffff0, %p0;
elect.sync %r2|%p0, %r1;
{AS_NUMBER}
{STORE}"""
    assert results(body, 32) == [int(t in (0, 4)) for t in range(32)]
