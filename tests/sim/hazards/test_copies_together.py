"""Equal tensor copies of many CTAs that are processed at once: the findings are those of single copies, and copies
without conflicts are no single copies."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import Span
from pyptx.parser import parse
from pyptx.sim.base.events import Runs
from pyptx.sim.hazards import Hazards, Place, copies_together
from pyptx.sim.hazards.copies import Copies
from pyptx.tensormap import ElementType, TensorMap
from tests.sim.kernels import HEAD

TENSOR = TensorMap(ElementType.U32, 0, (16, 32), (64,), (16, 8))
KERNEL = """.visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .u64 words)
{
.reg .b32 %t, %r<8>, %cta, %from, %to; .reg .b64 %a, %b, %words; .reg .pred %p<3>;
.shared .align 128 .b8 box[1024]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; mov.u32 %cta, %ctaid.x; setp.eq.u32 %p0, %t, 0;
mov.b64 %a, a; cvta.param.u64 %a, %a; mov.b64 %b, b; cvta.param.u64 %b, %b; ld.param.u64 %words, [words];
mad.wide.u32 %words, %cta, 512, %words;
mul.lo.u32 %from, %cta, 8; mul.lo.u32 %to, %cta, 8;
mov.u32 %r1, box; mad.lo.u32 %r1, %t, 16, %r1;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
// start
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
@%p0 LOAD [box], [%a, {0, %from}], [bar];
wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
@!%p1 bra wait;
ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
add.u32 %r2, %r2, 1;
st.shared.v4.u32 [%r1], {%r2, %r3, %r4, %r5};
fence.proxy.async.shared::cta;
bar.sync 0; // written
@%p0 STORE [%b, {0, %to}], [box];
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
// end
ret;
}
"""
WAIT = """wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
@!%p1 bra wait;
"""
AGAIN = """@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
@%p0 LOAD [box+AT], [FROM], [bar];
again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 1;
@!%p1 bra again;
"""
OPCODES = {
    "LOAD": "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
    "STORE": "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group",
}


def place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


def again(source: str, at: int) -> str:
    """Return a second load."""
    return AGAIN.replace("FROM", source).replace("AT", str(at))


WRONG = {
    "no wait before the loads": (WAIT, ""),
    "no fence before the store": ("fence.proxy.async.shared::cta;", ""),
    "no barrier before the store": ("bar.sync 0; // written", ""),
    "no wait for the store": ("@%p0 cp.async.bulk.wait_group 0;", ""),
    "one target for all": ("%to, %cta, 8", "%to, %cta, 0"),
    "targets that overlap": ("%to, %cta, 8", "%to, %cta, 7"),
    "a target that another CTA read": ("// start", "sub.u32 %to, 24, %to; mov.b64 %b, %a;"),
    "a load of what was stored": ("@%p0 cp.async.bulk.wait_group 0;", again("%b, {0, %to}", 512)),
    "a load of what all stored": ("// end", again("%b, {0, 4}", 512)),
    "a load over the source of a store": ("@%p0 cp.async.bulk.wait_group 0;", again("%a, {0, %from}", 256)),
    "a load over what lanes wrote": ("fence.proxy.async.shared::cta;", again("%a, {0, %from}", 0)),
    "a source that lanes wrote": ("// start", "st.global.u32 [%words+8], %t;"),
    "a source that another CTA wrote before a barrier of its own": (
        "// start",
        "and.b32 %r2, %cta, 1; mad.lo.s32 %r2, %r2, -1024, 512; mad.wide.s32 %words, %r2, 1, %words;\n"
        "mad.wide.u32 %words, %t, 16, %words; st.global.v4.u32 [%words], {%t, %t, %t, %t};\n"
        "fence.proxy.async; bar.sync 0;",
    ),
    "a box that lanes wrote": ("// start", "st.shared.u32 [box+8], %t;"),
    "fewer bytes expected than come": (
        WAIT,
        "@%p0 LOAD [box+512], [%a, {0, %from}], [bar];\n" + WAIT + "ld.shared.u32 %r6, [%r1+512];\n",
    ),
}
RIGHT = {
    "each its own": ("", ""),
    "one source for all": ("%from, %cta, 8", "%from, %cta, 0"),
    "sources that overlap in a written buffer": (
        "mad.wide.u32 %words, %cta, 512, %words;\nmul.lo.u32 %from, %cta, 8;",
        "mad.wide.u32 %words, %cta, 64, %words; @%p0 st.global.u32 [%words+1792], %cta;\nmul.lo.u32 %from, %cta, 4;",
    ),
    "in place": ("STORE [%b,", "STORE [%a,"),
    "a second round": ("// end", again("%a, {0, %from}", 0)),
    "beside the first": ("// end", again("%a, {0, %from}", 512)),
}


def find(change: tuple[str, str], schedule: str) -> list[str]:
    """Return the findings of four CTAs."""
    old, new = change
    assert old in KERNEL
    text = HEAD + KERNEL.replace(old, new, 1)
    for word, opcode in OPCODES.items():
        text = text.replace(word, opcode)
    source, out = np.arange(512, dtype=np.uint32).reshape(32, 16), np.zeros((32, 16), np.uint32)
    args = [sim.Tensor(source, TENSOR), sim.Tensor(out, TENSOR), source]
    result = sim.run(parse(text), grid=4, block=32, args=args, on_hazard="report", schedule=schedule)
    return [str(finding) for finding in result.hazards]


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_findings_are_those_of_single_copies(
    change: tuple[str, str], schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def skip(*_: object) -> None:
        return

    together = find(change, schedule)
    for name in ("bulk_load_all", "bulk_store_all"):
        monkeypatch.setattr(copies_together, name, skip)
    assert together == find(change, schedule)
    assert together


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT)
def test_copies_without_conflicts_are_processed_at_once(
    change: tuple[str, str], schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a copy is processed alone")

    for name in ("bulk_load", "bulk_store"):
        monkeypatch.setattr(Copies, name, refuse)
    assert find(change, schedule) == []


BUFFER = 1 << 20


@pytest.mark.parametrize(
    ("starts", "is_compared"),
    [
        ([BUFFER, BUFFER + 48], True),
        ([BUFFER + 48, BUFFER + 16], True),
        ([BUFFER - 32, BUFFER - 16], True),
        ([BUFFER + 64, BUFFER + 80], True),
        ([BUFFER - 16, BUFFER], False),
        ([BUFFER - 16, BUFFER + 48], False),
        ([BUFFER + 48, BUFFER + 64], False),
    ],
)
def test_copies_partly_outside_a_buffer_are_processed_one_by_one(starts: list[int], is_compared: bool) -> None:
    engine = Hazards()
    engine.state.add_buffer(BUFFER, 64)
    engine.finish(engine.launch(place(1), 96))
    grid = engine.launch(place(1), 32, slots=2, shared_bytes=64)
    engine.start(grid, [0, 1], [0, 1])
    threads, bases = (np.array([find(slot) for slot in (0, 1)]) for find in (grid.find_thread, grid.find_shared_base))
    source = Runs(np.array(starts)[:, None], 16, min(starts), max(starts) + 16)
    engine.mbarriers.init_all(threads.tolist(), place(2), bases.tolist(), 1)
    targets, barriers = bases[:, None] + 16, bases[:, None]
    numbers = copies_together.bulk_load_all(engine.copies, threads, place(3), source, targets, barriers, 16)
    assert (numbers is not None) == is_compared
    assert not engine.findings
