"""Runs without progress: loops that never end, polls of what nobody changes, and loops that end at last."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.scheduling import stalls
from tests.messages import raises
from tests.sim.kernels import kernel
from tests.sim.scheduling.test_hang import HANGS, SHARED

ENDLESS = {
    "exit": "look: @%p1 exit;\nbra look;",
    "ret": "look: add.u32 %r2, %t, 1;\n@%p1 ret;\nbra look;",
    "trap": "look: @%p1 trap;\nbra look;",
    "poll": "look: ld.volatile.global.u32 %r1, [%o]; setp.eq.u32 %p1, %r1, 7;\n@%p1 exit;\nbra look;",
    "test_wait": "mbarrier.init.shared::cta.b64 [bar], 64;\n"
                 "look: mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@%p1 exit;\nbra look;",
    "call": "look: @%p1 call leaves;\nbra look;",
}  # fmt: skip
ENDING = {
    "a lane at a time": "look: add.u32 %r1, %r1, 1; setp.gt.u32 %p1, %r1, %t;\n@%p1 exit;\nbra look;",
    "after thousands of rounds": "look: add.u32 %r1, %r1, 1; setp.gt.u32 %p1, %r1, 5000;\n@%p1 exit;\nbra look;",
    "who is told": "setp.eq.u32 %p2, %t, 33; @%p2 st.relaxed.gpu.global.u32 [%o+-132], 7; ld.param.u64 %o, [out];\n"
                   "look: ld.relaxed.gpu.global.u32 %r1, [%o]; setp.eq.u32 %p1, %r1, 7;\n@%p1 exit;\nbra look;",
    "a clock": "mov.u32 %r2, %clock;\n"
               "look: mov.u32 %r1, %clock; sub.u32 %r1, %r1, %r2; setp.gt.u32 %p1, %r1, 9000;\n@%p1 exit;\nbra look;",
}  # fmt: skip
EVERY = [("eager", 0), ("lazy", 0), ("adversarial", 3), ("random", 0)]


def _loop(body: str) -> str:
    module = ".shared .b64 bar;\n.func leaves() { exit; }"
    return kernel("mov.u32 %r1, 0; setp.ne.u32 %p1, %t, %t;\n" + body, module=module)


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_a_loop_whose_guarded_exit_never_fires_makes_no_progress(body: str) -> None:
    for schedule, seed in EVERY:
        with raises(PtxError) as excinfo:
            sim.run(parse(_loop(body)), block=32, args=[np.zeros(64, "u4")], schedule=schedule, seed=seed,
                    max_steps=400_000, check="hangs")  # fmt: skip
        assert [finding.code for finding in excinfo.value.diagnostics] == ["PTX0991"], (schedule, seed)


@pytest.mark.parametrize("body", ENDING.values(), ids=ENDING)
def test_a_loop_whose_guarded_exit_fires_at_last_ends(body: str) -> None:
    for schedule, seed in EVERY:
        sim.run(parse(_loop(body)), block=64, args=[np.zeros(64, "u4")], schedule=schedule, seed=seed,
                max_steps=400_000, check="hangs")  # fmt: skip


LATE = """setp.eq.u32 %p0, %t, 0; mov.u32 %r1, 0;
@%p0 mbarrier.init.shared::cta.b64 [full], 1;
bar.sync 0;
look: ld.relaxed.gpu.global.u32 %r2, [flag]; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3000;
@%p1 bra look;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [source], 64, [full];
wait: ld.relaxed.gpu.global.u32 %r2, [flag]; setp.eq.u32 %p1, %r2, 0;
@%p1 bra wait;
"""
GIVES_UP = """setp.eq.u32 %p0, %t, 0; setp.lt.u32 %p1, %t, 32; mov.u32 %r1, 0;
@%p0 mbarrier.init.shared::cta.b64 [full], 1;
bar.sync 0;
@%p1 bra look;
wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 20;
@%p3 bra wait;
st.relaxed.gpu.global.u32 [flag], 1;
bra end;
look: ld.relaxed.gpu.global.u32 %r2, [flag]; setp.eq.u32 %p3, %r2, 0;
@%p3 bra look;
end:"""


def ended(body: str, runs: str, max_steps: int) -> str:
    """Return the code of the error of a kernel, empty if it ends."""
    module, args = parse(kernel(body, module=SHARED)), [np.zeros(64, np.uint32)]
    try:
        if runs == "alone":
            sim.run(module, block=64, args=args, max_steps=max_steps, check="none", schedule="lazy")
        else:
            sim.stream([sim.Launch(module, block=64, args=args)], max_steps=max_steps, check="none", schedule="lazy")
    except PtxError as error:
        return error.diagnostics[0].code
    return ""


@pytest.mark.parametrize("runs", ["alone", "stream"])
def test_a_livelock_behind_progress_is_found_after_few_rounds(runs: str) -> None:
    """Polls are counted from the last progress: the copy lands long after the first of the rounds."""
    assert ended(LATE, runs, 15_500) == "PTX0991"


@pytest.mark.parametrize("runs", ["alone", "stream"])
def test_waits_that_time_out_while_others_poll_are_progress(runs: str) -> None:
    assert ended(GIVES_UP, runs, 50_000) == ""


def test_a_state_too_large_to_compare_is_no_livelock(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = HANGS["flag in shared memory"].body
    assert ended(endless, "alone", 20_000) == "PTX0991"
    monkeypatch.setattr(stalls, "_MOST_BYTES", 1000)
    assert ended(endless, "alone", 20_000) == "PTX1122"


BEHIND = """setp.ge.u32 %p0, %t, 32;
@%p0 bra sets;
look: ld.relaxed.gpu.global.u32 %r1, [flag]; setp.eq.u32 %p1, %r1, 0;
@%p1 bra look;
bra end;
sets: bar.sync 1, 64;
st.relaxed.gpu.global.u32 [flag], 1;
end:"""


def test_the_error_of_a_poll_names_the_barrier_behind_it() -> None:
    """The guilty wait is no poll: the warp that would set the flag waits at a barrier first."""
    text = kernel(BEHIND, module=SHARED)
    with raises(sim.Hang) as excinfo:
        sim.run(parse(text), block=64, args=[np.zeros(64, np.uint32)])
    (finding,) = excinfo.value.diagnostics
    line = text[: text.index("look:")].count("\n") + 1
    assert finding.code == "PTX0991"
    assert finding.message.startswith(
        "no progress: CTA 0 warp 1 waits for barrier 1 of CTA 0: 1 of 2 warps have arrived; "
    )
    assert f"the loop at lines {line} to {line + 1} never ends" in finding.message
