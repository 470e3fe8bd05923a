"""Why nothing runs: the wait-for graph in words and as plain values.

The machine says who waits for what and where everybody else is; the engine knows what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyptx.sim.hazards import rules
from pyptx.sim.hazards.barriers import Barriers
from pyptx.sim.hazards.events import Ints, Place, Space
from pyptx.sim.hazards.findings import Finding
from pyptx.sim.hazards.mbarriers import MBarriers
from pyptx.sim.hazards.state import State


@dataclass(frozen=True, slots=True)
class Waiting:
    """Threads that cannot go on. `kind`: mbarrier, bar, cluster, warp, group, memory or registers.

    `key` is the mbarrier's address, the barrier's number, or the address that is polled; `parity` of an mbarrier wait.
    """

    threads: tuple[int, ...]
    place: Place
    kind: str
    key: int = 0
    parity: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Threads that have exited (`place` is their last instruction) or stand somewhere without waiting."""

    threads: tuple[int, ...]
    place: Place
    exited: bool


@dataclass(slots=True)
class Node:
    """One thing that is waited for."""

    what: str
    kind: str
    missing: str
    waiting: list[tuple[str, Place]]
    could: list[str]
    history: list[str] = field(default_factory=list[str])
    waits_for: list[str] = field(default_factory=list[str])
    place: Place | None = None

    def as_json(self) -> dict[str, object]:
        return {
            "what": self.what,
            "kind": self.kind,
            "missing": self.missing,
            "declared": self.place.origin.line if self.place and self.place.origin else 0,
            "waiting": [
                {"who": who, "line": p.origin.line if p.origin else 0, "at": str(p)} for who, p in self.waiting
            ],
            "could_have": self.could,
            "history": self.history,
            "waits_for": self.waits_for,
        }


@dataclass(slots=True)
class HangReport:
    """The wait-for graph of a run that stopped."""

    nodes: list[Node]
    guilty: Node | None
    cycle: list[str]

    def as_json(self) -> dict[str, object]:
        return {
            "guilty": self.guilty.what if self.guilty else None,
            "cycle": self.cycle,
            "nodes": [node.as_json() for node in self.nodes],
        }

    def lines(self) -> list[str]:
        """Return the graph in words, the guilty one first."""
        found: list[str] = []
        for node in sorted(self.nodes, key=lambda node: node is not self.guilty):
            who = "; ".join(f"{who} at {place}" for who, place in node.waiting)
            found.append(f"{node.what}: {node.missing}. Waiting: {who}")
            found += [f"  so far: {line}" for line in node.history[-4:]]
            found += [f"  could have: {line}" for line in node.could[:8]]
        if self.cycle:
            found.append("circular wait: " + " → ".join(self.cycle))
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())


class Hangs:
    """Explains states in which nothing can run."""

    def __init__(self, state: State, barriers: Barriers, mbarriers: MBarriers) -> None:
        self.state, self.barriers, self.mbarriers = state, barriers, mbarriers

    def explain(self, waiting: Sequence[Waiting], standing: Sequence[Standing] = ()) -> HangReport:
        """Return the graph, and keep a deadlock finding at the guilty wait."""
        nodes: dict[tuple[object, ...], Node] = {}
        members: dict[tuple[object, ...], list[Waiting]] = {}
        for wait in waiting:
            key = self._key(wait)
            members.setdefault(key, []).append(wait)
            if key not in nodes:
                nodes[key] = self._node(wait, waiting, standing)
            nodes[key].waiting.append((self._who(wait.threads), wait.place))
        for key, node in nodes.items():
            absent = self._absent_warps(members[key])
            node.waits_for = [
                nodes[other].what
                for other, waits in members.items()
                if other != key and absent & {thread >> 5 for wait in waits for thread in wait.threads}
            ]
        guilty, cycle = _blame(list(nodes.values()))
        report = HangReport(list(nodes.values()), guilty, cycle)
        self._keep(report)
        return report

    def _keep(self, report: HangReport) -> None:
        if report.guilty is None:
            return
        who, place = report.guilty.waiting[0]
        what = f"{who} waits for {report.guilty.what}: {report.guilty.missing}"
        self.state.ledger.add(
            Finding(
                rules.DEADLOCK, place, None, what, report.guilty.place, None, report.guilty.what, tuple(report.lines())
            )
        )

    def livelock(self, threads: Ints, place: Place, what: str) -> None:
        """The step limit was reached while threads kept running."""
        self.state.report(rules.LIVELOCK, place, what, thread=int(threads[0]), count=len(threads))

    def _key(self, wait: Waiting) -> tuple[object, ...]:
        thread = wait.threads[0]
        grid = self.state.grid_of(thread)
        if wait.kind == "cluster":
            return (wait.kind, self.state.domain_of(thread).number)
        if wait.kind in ("mbarrier", "memory"):
            return (wait.kind, grid.number, wait.key, wait.parity)
        if wait.kind == "warp":
            return (wait.kind, thread >> 5)
        return (wait.kind, grid.number, grid.slot_of(thread), wait.key)

    def _who(self, threads: Sequence[int]) -> str:
        warps: dict[int, int] = {}
        for thread in threads:
            warps[thread >> 5] = warps.get(thread >> 5, 0) + 1
        parts: list[str] = []
        for warp, count in list(warps.items())[:4]:
            agent = self.state.agent(next(thread for thread in threads if thread >> 5 == warp))
            lanes = f" lane {agent.lane}" if count == 1 else "" if count == 32 else f" ({count} lanes)"
            parts.append(f"CTA {agent.cta} warp {agent.warp}{lanes}")
        return ", ".join(parts) + (f" and {len(warps) - 4} more warps" if len(warps) > 4 else "")

    def _node(self, wait: Waiting, waiting: Sequence[Waiting], standing: Sequence[Standing]) -> Node:
        thread = wait.threads[0]
        could = [
            *(
                f"{self._who(other.threads)} waits at {other.place}"
                for other in waiting
                if self._key(other) != self._key(wait)
            ),
            *(f"{self._who(s.threads)} {'exited after' if s.exited else 'stands at'} {s.place}" for s in standing),
        ]
        if wait.kind == "mbarrier":
            return self._mbarrier(wait, thread, could)
        if wait.kind == "bar":
            return self._bar(wait, thread, could)
        if wait.kind == "cluster":
            return self._cluster(thread, could)
        names = {
            "warp": "bar.warp.sync",
            "group": "its own asynchronous operations",
            "memory": f"a change at 0x{wait.key:x}",
            "registers": "registers of the CTA's pool",
        }
        missing = {
            "warp": f"lanes 0x{wait.key:08x} have not arrived",
            "group": "they have not completed",
            "memory": "nobody that can still run writes it",
            "registers": "no warpgroup gives enough back by setmaxnreg.dec",
        }
        what = names.get(wait.kind, wait.kind)
        return Node(what, wait.kind, missing.get(wait.kind, "it never happens"), [], could)

    def _mbarrier(self, wait: Waiting, thread: int, could: list[str]) -> Node:
        grid = self.state.grid_of(thread)
        where = self.state.location(Space.SHARED, grid, wait.key, 8).removeprefix("8 bytes at ")
        barrier = self.mbarriers.live.get((grid.number, wait.key))
        if barrier is None:
            return Node(f"mbarrier at {where}", wait.kind, "it is not initialised", [], could)
        what = f"mbarrier at {where}, phase {barrier.phase}"
        parts: list[str] = []
        if barrier.pending:
            parts.append(f"{barrier.pending} of {barrier.count} arrivals missing")
        if barrier.tx:
            parts.append(
                f"{barrier.tx} bytes expected and not copied"
                if barrier.tx > 0
                else f"{-barrier.tx} bytes copied that nobody expected"
            )
        if wait.parity is not None and barrier.phase & 1 != wait.parity:
            parts.append(f"parity {wait.parity} is that of the last phase, so this wait is already true")
        elif barrier.pending == barrier.count and not barrier.tx and barrier.phase:
            parts.append(f"phase {barrier.phase - 1} completed; nothing of phase {barrier.phase} has begun")
        history = [f"{doing} by {agent} at {place}" for place, agent, doing in barrier.history]
        return Node(what, wait.kind, ", ".join(parts) or "complete", [], could, history, [], barrier.place)

    def _bar(self, wait: Waiting, thread: int, could: list[str]) -> Node:
        grid = self.state.grid_of(thread)
        slot = grid.slot_of(thread)
        now = self.barriers.rounds.get((grid.number, slot, wait.key))
        what = f"barrier {wait.key} of CTA {self.state.agent(thread).cta}"
        if now is None:
            return Node(what, wait.kind, "no round has begun", [], could)
        threads = grid.all_threads(slot)
        live = len({int(t) >> 5 for t in threads[self.state.live[threads]]})
        needed = now.count // 32 if now.count else live
        missing = f"{len(now.warps)} of {needed} warps have arrived"
        if now.count and needed > live:
            missing += f", only {live} warps are alive"
        history = [f"{self._who([warp * 32 + i for i in range(32)])} arrived at {p}" for warp, p in now.warps.items()]
        return Node(what, wait.kind, missing, [], could, history, [], now.place)

    def _cluster(self, thread: int, could: list[str]) -> Node:
        domain = self.state.domain_of(thread)
        now = self.barriers.clusters.get(domain.number)
        live = self.barriers.live_of(domain)
        arrived = now.arrived if now else set[int]()
        lacking = sorted(live - arrived)
        missing = f"{len(lacking)} threads have not arrived" + (f": {self._who(lacking)}" if lacking else "")
        place = next(iter(now.places.values()), None) if now else None
        return Node(f"cluster barrier of CTAs {domain.ctas}", "cluster", missing, [], could, [], [], place)

    def _absent_warps(self, waits: list[Waiting]) -> set[int]:
        """Return the warps, other than those that wait, that could bring about what is waited for."""
        wait = waits[0]
        mine = {thread >> 5 for w in waits for thread in w.threads}
        thread = wait.threads[0]
        domain = self.state.domain_of(thread)
        threads = self.barriers.live_of(domain)
        absent = {one >> 5 for one in threads} - mine
        if wait.kind == "bar":
            grid = self.state.grid_of(thread)
            now = self.barriers.rounds.get((grid.number, grid.slot_of(thread), wait.key))
            slot = grid.slot_of(thread)
            absent = {warp for warp in absent if grid.slot_of(warp * 32) == slot} - set(now.warps if now else ())
        return absent


def _blame(nodes: list[Node]) -> tuple[Node | None, list[str]]:
    """Choose what to look at first: what waits for nobody that waits, else the first of a cycle."""
    if not nodes:
        return None, []
    lost = [node for node in nodes if "bytes" in node.missing or "not initialised" in node.missing]
    if lost:
        return lost[0], []
    roots = [node for node in nodes if not node.waits_for]
    if roots:
        return max(roots, key=lambda node: len(node.waiting)), []
    by_name = {node.what: node for node in nodes}
    path: list[str] = []
    node = nodes[0]
    while node.what not in path:
        path.append(node.what)
        node = by_name[node.waits_for[0]]
    return node, [*path[path.index(node.what) :], node.what]
