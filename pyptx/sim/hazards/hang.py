"""What the hazard engine knows about awaited events, for the wait-for graph of a hang."""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.diagnostics import format_count
from pyptx.sim import rules
from pyptx.sim.base.events import Ints, Place, Space
from pyptx.sim.hazards.barriers import Barriers
from pyptx.sim.hazards.mbarriers import MBarriers
from pyptx.sim.hazards.state import State
from pyptx.sim.reports.graph import HangReport, Standing, Subject, Waiting, explain
from pyptx.sim.rules import advice

_NAMES = {
    "warp": ("bar.warp.sync", "lanes 0x{0:08x} have not arrived"),
    "group": ("its own asynchronous operations", "they have not completed"),
    "memory": ("a change at 0x{0:x}", "no thread that can still run writes it"),
    "registers": ("registers of the CTA's pool", "no warpgroup releases enough of them by setmaxnreg.dec"),
}


class Hangs:
    """Explains states in which nothing can run."""

    def __init__(self, state: State, barriers: Barriers, mbarriers: MBarriers) -> None:
        self.state, self.barriers, self.mbarriers = state, barriers, mbarriers

    def explain(self, waiting: Sequence[Waiting], standing: Sequence[Standing] = ()) -> HangReport:
        """Return the wait-for graph, and report a deadlock at the guilty wait."""
        report = explain(waiting, standing, self)
        finding = report.make_finding()
        if finding is not None:
            self.state.ledger.add(finding)
        return report

    def report_livelock(self, threads: Ints, place: Place, detail: str) -> None:
        """Report that threads keep running without progress."""
        self.state.report(rules.LIVELOCK, place, detail, thread=int(threads[0]), count=len(threads))

    def name_threads(self, threads: Sequence[int]) -> str:
        """Name threads by CTA, warp and lane."""
        warps: dict[int, int] = {}
        for thread in threads:
            warps[thread >> 5] = warps.get(thread >> 5, 0) + 1
        parts: list[str] = []
        for warp, count in list(warps.items())[:4]:
            agent = self.state.describe_thread(next(thread for thread in threads if thread >> 5 == warp))
            lanes = f" lane {agent.lane}" if count == 1 else "" if count == 32 else f" ({count} lanes)"
            parts.append(f"CTA {agent.cta} warp {agent.warp}{lanes}")
        return ", ".join(parts) + (f" and {format_count('more warp', len(warps) - 4)}" if len(warps) > 4 else "")

    def describe(self, wait: Waiting) -> Subject:
        """Describe the event that some threads wait for."""
        key, helpers = self._make_key(wait), self._find_helpers(wait)
        if wait.kind == "mbarrier":
            return self._describe_mbarrier(wait, key, helpers)
        if wait.kind == "bar":
            return self._describe_bar(wait, key, helpers)
        if wait.kind == "cluster":
            return self._describe_cluster(wait, key, helpers)
        name, missing = _NAMES.get(wait.kind, (wait.kind, "it never happens"))
        return Subject(key, name.format(wait.key), missing.format(wait.key), helpers=helpers)

    def _make_key(self, wait: Waiting) -> tuple[object, ...]:
        thread = wait.threads[0]
        grid = self.state.find_grid(thread)
        if wait.kind == "cluster":
            return (wait.kind, self.state.find_domain(thread).number)
        if wait.kind in ("mbarrier", "memory"):
            return (wait.kind, grid.number, wait.key, wait.parity)
        if wait.kind == "warp":
            return (wait.kind, thread >> 5)
        return (wait.kind, grid.number, grid.find_slot(thread), wait.key)

    def _describe_mbarrier(self, wait: Waiting, key: tuple[object, ...], helpers: frozenset[int]) -> Subject:
        grid = self.state.find_grid(wait.threads[0])
        location = self.state.describe_bytes(Space.SHARED, grid, wait.key, 8).removeprefix("8 bytes at ")
        barrier = self.mbarriers.live.get((grid.number, wait.key))
        if barrier is None:
            return Subject(key, f"mbarrier at {location}", "it is not initialized", helpers=helpers, is_broken=True)
        missing = advice.describe_phase(barrier.phase, barrier.pending, barrier.count, barrier.tx, wait.parity)
        history = tuple(
            f"{doing} by {self.state.describe_thread(thread)} at {place}" for place, thread, doing in barrier.history
        )
        name = f"mbarrier at {location}, phase {barrier.phase}"
        lacks = barrier.pending, barrier.count, barrier.tx
        return Subject(key, name, missing, history, barrier.place, helpers, has_begun=advice.has_begun(*lacks),
                       advice=advice.advise_phase(*lacks), is_broken=barrier.tx != 0)  # fmt: skip

    def _describe_bar(self, wait: Waiting, key: tuple[object, ...], helpers: frozenset[int]) -> Subject:
        thread = wait.threads[0]
        grid = self.state.find_grid(thread)
        slot = grid.find_slot(thread)
        barrier_round = self.barriers.rounds.get((grid.number, slot, wait.key))
        name = f"barrier {wait.key} of CTA {self.state.describe_thread(thread).cta}"
        if barrier_round is None:
            return Subject(key, name, "no round has begun", helpers=helpers)
        threads = grid.list_threads(slot)
        live = len({int(t) >> 5 for t in threads[self.state.live[threads]]})
        warp_count = barrier_round.count // 32 if barrier_round.count else live
        missing = f"{len(barrier_round.warps)} of {warp_count} warps have arrived"
        if barrier_round.count and warp_count > live:
            missing += f", only {format_count('warp', live)} {'is' if live == 1 else 'are'} live"
        history = tuple(
            f"{self.name_threads([warp * 32 + i for i in range(32)])} arrived at {p}"
            for warp, p in barrier_round.warps.items()
        )
        return Subject(
            key, name, missing, history, barrier_round.place, helpers - set(barrier_round.warps), advice=advice.BARS
        )

    def _describe_cluster(self, wait: Waiting, key: tuple[object, ...], helpers: frozenset[int]) -> Subject:
        domain = self.state.find_domain(wait.threads[0])
        cluster_round = self.barriers.clusters.get(domain.number)
        lacking = sorted(
            self.barriers.list_live_threads(domain) - (cluster_round.arrivals if cluster_round else set[int]())
        )
        missing = advice.describe_absent("thread", len(lacking)) + (
            f": {self.name_threads(lacking)}" if lacking else ""
        )
        place = next(iter(cluster_round.places.values()), None) if cluster_round else None
        return Subject(key, f"cluster barrier of CTAs {domain.ctas}", missing, place=place, helpers=helpers,
                       advice=advice.CLUSTERS)  # fmt: skip

    def _find_helpers(self, wait: Waiting) -> frozenset[int]:
        """Return the live warps that could cause the awaited event."""
        thread = wait.threads[0]
        warps = {member >> 5 for member in self.barriers.list_live_threads(self.state.find_domain(thread))}
        if wait.kind == "bar":
            grid = self.state.find_grid(thread)
            slot = grid.find_slot(thread)
            warps = {warp for warp in warps if grid.find_slot(warp * 32) == slot}
        return frozenset(warps)
