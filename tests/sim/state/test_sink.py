"""The events of a run: which listeners receive them, in which order, and how several listeners combine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx.check.body import Step
from pyptx.parser import parse
from pyptx.sim.base.events import Bytes
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.launch.prepared import Options, prepare_launch
from pyptx.sim.observers.observer import Observer
from pyptx.sim.program.blocks import Block
from pyptx.sim.state.memory import Site
from pyptx.sim.state.regions import Region
from pyptx.sim.state.sink import Landing, Sink, fan_out
from pyptx.sim.state.tracing import Trace
from tests.sim.kernels import kernel

BODY = """
st.shared.u32 [box], %t;
bar.sync 3, 64;
mbarrier.init.shared.b64 [bar], 1;
@!%p1 ld.shared.u32 %r1, [box];
st.global.u32 [%o], %r1;
"""
MODULE = parse(kernel(BODY, module=".shared .u32 box; .shared .u64 bar;"))


class Log(Observer):
    """Records the events it receives."""

    def __init__(self, name: str = "", log: list[str] | None = None) -> None:
        self.name, self.log = name, [] if log is None else log

    def on_begin(self, numbers: Array) -> None:
        self.log.append(f"{self.name}begin {numbers.tolist()}")

    def on_finish(self) -> None:
        self.log.append(f"{self.name}finish")

    def on_access(self, site: Site, lanes: Lanes, region: Region, offsets: Array, size: int, kind: str) -> None:
        self.log.append(f"{self.name}{site.instruction.opcode} {region.space} {kind} {size} x {lanes.n}")

    def on_barrier_arrive(self, step: Step, lanes: Lanes, number: int, count: int | None) -> None:
        self.log.append(f"{self.name}arrive {number} of {count} x {lanes.n}")

    def on_barrier_wait(self, step: Step, lanes: Lanes, number: int) -> None:
        self.log.append(f"{self.name}wait {number} x {lanes.n}")

    def on_barrier_complete(self, number: int, ctas: Array) -> None:
        self.log.append(f"{self.name}complete {number} {ctas.tolist()}")

    def on_mbarrier_init(self, rows: Array) -> None:
        self.log.append(f"{self.name}init {rows.tolist()[:1]}")

    def on_exit(self, step: Step, lanes: Lanes) -> None:
        self.log.append(f"{self.name}exit x {lanes.n}")


def _run(*observers: Observer) -> Array:
    out = np.full(64, -1, np.int32)
    launch = prepare_launch(MODULE, None, Options(block=64, args=[out]))
    for batch in launch.batches(observers):
        batch.run()
    launch.write_back()
    return out


def test_a_listener_hears_a_run_in_order() -> None:
    log = Log()
    assert (_run(log) == 63).all()
    assert log.log == [
        "begin [0]",
        "ld param r 8 x 64",
        "st shared w 4 x 64",
        "arrive 3 of 64 x 64",
        "wait 3 x 64",
        "complete 3 [0]",
        "mbarrier shared b 8 x 64",
        "init [0]",
        "ld shared r 4 x 64",
        "st global w 4 x 64",
        "exit x 64",
        "finish",
    ]


def test_several_listeners_hear_the_same_one_after_the_other() -> None:
    alone, log = Log(), list[str]()
    _run(alone)
    _run(Log("a ", log), Log("b ", log))
    assert log == [f"{name}{line}" for line in alone.log for name in ("a ", "b ")]


def test_nobody_is_no_sink_and_one_is_the_sink_itself() -> None:
    log = Log()
    assert fan_out([]) is None
    assert fan_out([log]) is log


SHIFT = """
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [box], 32;
ld.shared.u32 %r1, [box];
setp.eq.u32 %p1, %t, 0;
@%p1 tcgen05.shift.cta_group::1.down [%r1];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
"""


class Tracer(Observer):
    """Records the columns that `tcgen05` operations write, by CTA."""

    def __init__(self, traces: bool) -> None:
        self.traces = traces
        self.columns: list[tuple[list[int], set[int]]] = []

    def on_tensor_operation(self, site: Site, lanes: Lanes, trace: Trace) -> None:
        (ctas, granules), *others = trace.writes
        assert not others
        self.columns.append((ctas.tolist(), set((granules // 8).tolist())))


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_listener_that_traces_hears_what_each_lane_accesses_in_tensor_memory(schedule: str) -> None:
    text = kernel(SHIFT, module=".shared .u32 box;").replace("sm_90a", "sm_100a")
    for traces in (True, False):
        tracer, out = Tracer(traces), np.zeros(32, np.int32)
        options = Options(grid=2, block=32, args=[out], schedule=schedule)
        for batch in prepare_launch(parse(text), None, options).batches([Log(), tracer]):
            batch.run()
        assert tracer.columns == [([cta], set(range(8))) for cta in range(2) if traces]


class Wrapper(Sink[Any]):
    detailed = True
    hasty = frozenset(("wgmma",))

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def wrap_effect(self, agent: str, lanes: Array, land: Landing, in_group: bool, size: int) -> Landing:
        def run_effect() -> None:
            self.log.append(self.name)
            land()

        return run_effect

    def on_load(
        self, site: Any, lane: Lanes, source: Bytes, targets: list[tuple[Bytes, int]], tensor_map: Any
    ) -> Landing:
        return lambda: self.log.append(f"{self.name} landed")

    def on_unwritten_register(self, step: Step, lanes: Lanes, name: str) -> bool:
        self.log.append(f"{self.name} reads {name}")
        return self.name == "inner"


def test_what_listeners_wrap_runs_through_all_of_them() -> None:
    log = list[str]()
    sink = fan_out([Wrapper("inner", log), Wrapper("outer", log), Log()])
    assert sink is not None
    sink.wrap_effect("bulk", np.zeros(1), lambda: log.append("lands"), False, 0)()
    assert log == ["outer", "inner", "lands"]
    log.clear()
    placeholder: Any = None
    sink.on_load(placeholder, placeholder, placeholder, [], None)()
    assert log == ["inner landed", "outer landed"]
    log.clear()
    assert sink.on_unwritten_register(placeholder, placeholder, "%r1") is True
    assert log == ["inner reads %r1", "outer reads %r1"]
    assert sink.on_loads(placeholder, placeholder, placeholder, placeholder, placeholder, 0, None) is None
    assert sink.on_write_backs(placeholder, placeholder, placeholder, 0, placeholder, None) is False
    assert (sink.detailed, sink.hasty, sink.continues) == (True, {"wgmma"}, False)
    assert isinstance(sink.find_listener(Log), Log)


def test_only_listeners_that_override_an_event_are_called() -> None:
    events: list[str] = []

    class Deaf(Sink[Any]):
        pass

    class Ears(Sink[Any]):
        def on_block(self, block: Block, lanes: Lanes) -> None:
            events.append("block")

    ears = Ears()
    sink = fan_out([Deaf(), ears])
    assert sink is not None
    assert sink.on_block == ears.on_block
    placeholder: Any = None
    sink.on_block(placeholder, placeholder)
    sink.on_finish()
    assert events == ["block"]
