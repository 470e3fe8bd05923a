"""The events that a machine reports to its listeners during a run.

A machine has one sink or none; `fan_out` combines several listeners into one. A listener overrides the events that it
needs. An event whose name starts with `wrap_` returns a replacement for its argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from pyptx.check.body import Step
from pyptx.sim.base.events import Bytes, Runs
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.state.regions import Region
from pyptx.sim.state.tracing import Trace
from pyptx.tensormap import TensorMap

S = TypeVar("S")
"""The type of `site`, which represents the running instruction."""
T = TypeVar("T")
Landing = Callable[[], None]
LandingOf = Callable[[Array], None]
"""Takes the positions of the lanes for which an effect lands."""


class Sink(Generic[S]):
    """A listener that ignores every event."""

    detailed = False
    """Whether the machine must report each copy and arrival separately, even if it could process many at once."""
    compares_values = False
    """Whether reducing copies keep the old values for `on_sum`."""
    traces = False
    """Whether the machine must record the memory that `tcgen05` operations access, for `on_tensor_operation`."""
    continues = False
    """Whether a run continues after an error that the listener reports."""
    hasty: frozenset[str] = frozenset()
    """Agents whose effects must land at once."""

    def find_listener(self, kind: type[T]) -> T:
        """Return the listener of a type."""
        assert isinstance(self, kind)
        return self

    # The batch and its blocks

    def on_begin(self, numbers: Array) -> None:
        """A batch of CTAs with these numbers begins."""

    def on_finish(self) -> None:
        """The grid has ended."""

    def on_block(self, block: Block, lanes: Lanes) -> None:
        """Lanes have run a block."""

    def wrap_calls(self, constants: dict[str, Any]) -> dict[str, Any]:
        """Return the constants of a compiled block, with the functions that the listener intercepts replaced."""
        return constants

    # Lanes and memory

    def on_access(self, site: S, lanes: Lanes, region: Region, offsets: Array, size: int, kind: str) -> None:
        """Lanes are about to access `size` bytes each: `kind` is `r`, `w` or both. Other kinds are accesses of engines,
        which have their own events."""

    def on_store(self, lanes: Lanes, values: tuple[Value | None, ...]) -> None:
        """The next access of these lanes will store these values."""

    def on_unwritten_register(self, step: Step, lanes: Lanes, name: str) -> bool:
        """Lanes read a register that they have not written. Return whether that is reported."""
        return False

    # Warps, barriers, grids

    def on_come(self, block: Block, depth: int, lanes: Lanes) -> None:
        """Lanes reach the barrier that ends a block, at a call depth."""

    def on_stuck(self) -> None:
        """Nothing can run: lanes that wait at barriers without the others cannot be joined by them."""

    def on_split(self, step: Step, lanes: Lanes, passing_lanes: Lanes) -> None:
        """The guard of a barrier is true for some lanes and false for others, which pass it."""

    def on_exit(self, step: Step, lanes: Lanes) -> None:
        """Lanes exit."""

    def on_warp_barrier(self, step: Step, lanes: Lanes, masks: Array) -> None:
        """Lanes continue after a `bar.warp.sync`."""

    def on_warp_barriers(self, parts: list[tuple[Step, Lanes, Array]]) -> None:
        """Lanes continue after different `bar.warp.sync` instructions at which they met."""

    def on_barrier_arrive(self, step: Step, lanes: Lanes, number: int, count: int | None) -> None:
        """Lanes arrive at a barrier of their CTA."""

    def on_barrier_numbers(self, step: Step, lanes: Lanes, numbers: Array) -> None:
        """Lanes of one instruction arrive at barriers with different numbers."""

    def on_barrier_wait(self, step: Step, lanes: Lanes, number: int) -> None:
        """Lanes continue after a barrier of their CTA."""

    def on_barrier_complete(self, number: int, ctas: Array) -> None:
        """A barrier has completed in these CTAs of the batch."""

    def on_cluster_arrive(self, step: Step, lanes: Lanes, phases: Array) -> None:
        """Lanes arrive at the barrier of their cluster; `phases` are those of all clusters."""

    def on_cluster_wait(self, step: Step, lanes: Lanes, phases: Array) -> None:
        """Lanes continue after the barrier of their cluster."""

    def on_grid_wait(self, lanes: Lanes) -> None:
        """Lanes continue after the previous grids have completed."""

    def on_grid_launch(self, lanes: Lanes, first: Sequence[bool]) -> None:
        """Lanes let dependent grids start; `first` says per CTA whether these are its first lanes to do so."""

    # mbarrier objects, by row

    def on_mbarrier_init(self, rows: Array) -> None:
        """Objects were initialized."""

    def on_mbarrier_arrive(self, rows: Array, amounts: Array | None) -> None:
        """Arrivals are about to be counted, or with `amounts`, bytes: expected (positive) or arrived (negative)."""

    def on_mbarrier_phase(self, rows: Array, phases: Array) -> None:
        """These phases of objects have completed."""

    def on_mbarrier_test(self, rows: Array, tokens: Array, parity: bool, is_complete: Array) -> None:
        """Lanes test whether phases have completed."""

    # Engines

    def wrap_effect(self, agent: str, lanes: Array, land: Landing, in_group: bool, size: int) -> Landing:
        """Lanes issue work to an engine, `size` bytes for all of them together. Return the function that lands it."""
        return land

    def wrap_effects(self, land: LandingOf) -> LandingOf:
        """Lanes issue work to an engine that lands lane by lane. Return the function that lands it."""
        return land

    def on_commit(self, agent: str, lanes: Array) -> None:
        """Lanes commit a group of work."""

    def on_wait(self, agent: str, lanes: Array, newest: int | None) -> None:
        """Lanes wait for all but their `newest` groups, or for all work if it is None."""

    def on_tensor_operation(self, site: S, lanes: Lanes, trace: Trace) -> None:
        """A lane has issued a `tcgen05` product, copy or shift that accesses this memory, or lanes have issued equal
        products."""

    def on_peer_copy(self, site: S, lane: Lanes, target: int) -> None:
        """A lane copies shared memory to another CTA's, at an offset in the batch's shared memory."""

    def on_load(
        self, site: S, lane: Lanes, source: Bytes, targets: list[tuple[Bytes, int]], tensor_map: Any
    ) -> Landing:
        """A lane issues a bulk copy to shared memory; each target has an mbarrier. Return a function to call when the
        copy has landed."""
        return _ignore

    def on_loads(
        self, site: S, lanes: Lanes, source: Runs, targets: Array, barriers: Array, size: int, tensor_map: Any
    ) -> LandingOf | None:
        """Lanes each issue a bulk copy to shared memory. Return a function to call when copies have landed, or None to
        receive an `on_load` event for each."""
        return _ignore_lanes

    def on_write_back(
        self,
        site: S,
        lane: Lanes,
        source: Bytes,
        target: Bytes,
        reduces: int,
        earlier_copies: set[bytes],
        tensor_map: Any,
    ) -> None:
        """A lane issues a bulk copy to global memory. `reduces` is the element size of a reduction, 0 for a copy. The
        lanes of one instruction share `earlier_copies`."""

    def on_write_backs(self, site: S, lanes: Lanes, sources: Array, size: int, target: Runs, tensor_map: Any) -> bool:
        """Lanes each issue a bulk copy to global memory. Return False to receive an `on_write_back` event for each."""
        return True

    def on_box(self, site: S, lanes: Lanes, tensor: TensorMap, start: Sequence[Any], inside: Array | None) -> None:
        """Lanes copy boxes of a tensor at these coordinates. `inside` are the units of a single box that lie in the
        tensor, None if all do."""

    def on_fill(self, site: S, starts: list[int], size: int, tensor: TensorMap) -> None:
        """Boxes of a tensor fill shared memory at these offsets."""

    def on_bring(self, site: S, lane: Lanes, cells: Array, size: int) -> None:
        """A copy of `size` bytes writes these bytes of shared memory."""

    def on_bring_box(self, site: S, lane: Lanes, units: Array, unit: int, ends: list[int], size: int) -> None:
        """A copy of a box writes these units of `unit` bytes to several destinations."""

    def on_bring_boxes(self, site: S, lanes: Lanes, units: Array, unit: int, ends: list[Array], size: int) -> None:
        """Lanes each copy a box to one or several destinations."""

    def on_sum(self, site: S, lane: Lanes, kind: str, old: Array, new: Array, total: Array) -> None:
        """A reducing copy has added floating-point numbers of a kind."""


class _FanOut(Sink[Any]):
    """Forwards events to several listeners."""

    def __init__(self, listeners: Sequence[Sink[Any]]) -> None:
        self._listeners = listeners
        self.detailed = any(listener.detailed for listener in listeners)
        self.compares_values = any(listener.compares_values for listener in listeners)
        self.traces = any(listener.traces for listener in listeners)
        self.continues = any(listener.continues for listener in listeners)
        self.hasty = frozenset(agent for listener in listeners for agent in listener.hasty)
        for name in _NOTICES:
            setattr(
                self, name, _each([getattr(listener, name) for listener in listeners if _overrides(listener, name)])
            )

    def find_listener(self, kind: type[T]) -> T:
        return next(listener for listener in self._listeners if isinstance(listener, kind))

    def on_unwritten_register(self, step: Step, lanes: Lanes, name: str) -> bool:
        results = [listener.on_unwritten_register(step, lanes, name) for listener in self._listeners]
        return any(results)

    def wrap_calls(self, constants: dict[str, Any]) -> dict[str, Any]:
        for listener in self._listeners:
            constants = listener.wrap_calls(constants)
        return constants

    def wrap_effect(self, agent: str, lanes: Array, land: Landing, in_group: bool, size: int) -> Landing:
        for listener in self._listeners:
            land = listener.wrap_effect(agent, lanes, land, in_group, size)
        return land

    def wrap_effects(self, land: LandingOf) -> LandingOf:
        for listener in self._listeners:
            land = listener.wrap_effects(land)
        return land

    def on_load(
        self, site: Any, lane: Lanes, source: Bytes, targets: list[tuple[Bytes, int]], tensor_map: Any
    ) -> Landing:
        return _each([listener.on_load(site, lane, source, targets, tensor_map) for listener in self._listeners])

    def on_loads(
        self, site: Any, lanes: Lanes, source: Runs, targets: Array, barriers: Array, size: int, tensor_map: Any
    ) -> LandingOf | None:
        return None

    def on_write_backs(self, site: Any, lanes: Lanes, sources: Array, size: int, target: Runs, tensor_map: Any) -> bool:
        return False


SILENT: Sink[Any] = Sink()
"""A sink that ignores all events."""


def fan_out(listeners: Sequence[Sink[S]]) -> Sink[S] | None:
    """Return one sink for several listeners, None for none."""
    return (listeners[0] if len(listeners) == 1 else _FanOut(listeners)) if listeners else None


_NOTICES = tuple(name for name in vars(Sink) if name.startswith("on_") and name not in vars(_FanOut))
"""The names of the events that return nothing."""


def _overrides(listener: Sink[Any], name: str) -> bool:
    return getattr(type(listener), name) is not getattr(Sink, name)


def _each(functions: Sequence[Callable[..., None]]) -> Callable[..., None]:
    if len(functions) == 1:
        return functions[0]

    def call(*args: Any) -> None:
        for function in functions:
            function(*args)

    return call


def _ignore() -> None:
    pass


def _ignore_lanes(_: Array) -> None:
    pass
