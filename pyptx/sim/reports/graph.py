"""The wait-for graph of a stopped run, as text and as plain values.

The runner supplies the waits (`Waiting`), the places of all other threads (`Standing`), and its knowledge of each
awaited event (`Knowledge`). Knows neither the machine nor the hazard engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from pyptx.diagnostics import Diagnostic, PtxError
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.reports.findings import Finding
from pyptx.sim.rules import advice

_MOST_SHOWN, _MOST_WAITING = 6, 3
"""The most barriers, and the most waiting places of each, that a hang shows without its report."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Threads that cannot continue. `kind`: mbarrier, bar, cluster, warp, group, memory, registers or columns.

    `key` is the mbarrier's address, the barrier's number, or the polled address; `parity` is that of an mbarrier wait.
    """

    threads: tuple[int, ...]
    place: Place
    kind: str
    key: int = 0
    parity: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Threads that have exited (`place` is their last instruction) or are somewhere without waiting."""

    threads: tuple[int, ...]
    place: Place
    exited: bool


@dataclass(frozen=True, slots=True)
class Subject:
    """One awaited event. `key` identifies it, `place` is where it was declared or began; `helpers` are the warps that
    could cause it, `exact` if the others certainly cannot; `begun` if part of it has occurred, `advice` may complete
    it; `signals` are the instructions that would cause it and that waiting threads can still reach."""

    key: tuple[object, ...]
    what: str
    missing: str
    history: tuple[str, ...] = ()
    place: Place | None = None
    helpers: frozenset[int] = frozenset()
    exact: bool = False
    begun: bool = False
    advice: str = ""
    signals: tuple[Place, ...] = ()


class Knowledge(Protocol):
    """The runner's knowledge of awaited events."""

    def subject(self, wait: Waiting) -> Subject:
        """Describe the event that these threads wait for."""
        ...

    def who(self, threads: Sequence[int]) -> str:
        """Name threads by CTA, warp and lane."""
        ...


@dataclass(slots=True)
class Node:
    """One awaited event, with its waiters."""

    what: str
    kind: str
    missing: str
    waiting: list[tuple[str, Place]]
    could: list[str]
    history: list[str] = field(default_factory=list[str])
    waits_for: list[str] = field(default_factory=list[str])
    place: Place | None = None
    begun: bool = False
    advice: str = ""
    signals: list[str] = field(default_factory=list[str])

    def as_json(self) -> dict[str, object]:
        return {
            "what": self.what,
            "kind": self.kind,
            "missing": self.missing,
            "advice": self.advice,
            "declared": self.place.origin.line if self.place and self.place.origin else 0,
            "waiting": [
                {"who": who, "line": p.origin.line if p.origin else 0, "at": str(p)} for who, p in self.waiting
            ],
            "could_have": self.could,
            "signaled_by": self.signals,
            "history": self.history,
            "waits_for": self.waits_for,
        }


@dataclass(slots=True)
class HangReport:
    """The wait-for graph of a stopped run."""

    nodes: list[Node]
    guilty: Node | None
    cycle: list[str]

    def as_json(self) -> dict[str, object]:
        return {
            "guilty": self.guilty.what if self.guilty else None,
            "cycle": self.cycle,
            "nodes": [node.as_json() for node in self.nodes],
        }

    def ordered(self) -> list[Node]:
        """Return the nodes: the guilty one, the others of the cycle, the rest."""
        rank = {name: at for at, name in reversed(list(enumerate(self.cycle)))}
        return sorted(self.nodes, key=lambda node: (node is not self.guilty, rank.get(node.what, len(rank))))

    def circle(self) -> str:
        """Return the circular wait as text, empty if there is none."""
        return " → ".join(name.rpartition(", phase ")[0] or name for name in self.cycle)

    def summary(self) -> list[str]:
        """Return two lines for each awaited event: what is missing, and who waits where."""
        lines: list[str] = []
        nodes, names = self.ordered(), {node.what: node for node in self.nodes}
        behind = {name: names[after] for name, after in pairwise(self.cycle)}
        for node in nodes[:_MOST_SHOWN]:
            who = "; ".join(f"{who} at {place}" for who, place in node.waiting[:_MOST_WAITING])
            more = len(node.waiting) - _MOST_WAITING
            lines += [
                f"{node.what}: {node.missing}",
                f"  waiting: {who}" + (f" and at {more} more" if more > 0 else ""),
            ]
            if node.what in behind and node.signals:
                lines.append(f"  signaled by: {_describe_signals(node, behind[node.what])}")
            lines += [f"  {line}" for line in node.history[:2] if node.kind == "grid"]
        if len(nodes) > _MOST_SHOWN:
            lines.append(f"and {len(nodes) - _MOST_SHOWN} more barriers")
        return lines

    def lines(self) -> list[str]:
        """Return the graph as text, the guilty node first, with past events and the threads that could still help."""
        rows = [f"circular wait: {' → '.join(self.cycle)}"] if self.cycle else []
        for node in self.ordered():
            who = "; ".join(f"{who} at {place}" for who, place in node.waiting)
            rows.append(f"{node.what}: {node.missing}. Waiting: {who}")
            if node.place is not None:
                rows.append(f"  declared: {node.place}")
            rows += [f"  so far: {line}" for line in node.history[-6:]]
            rows += [f"  could complete it: {line}" for line in node.could[:8]]
        return rows

    def finding(self) -> Finding | None:
        """Return the deadlock as a finding at the guilty wait."""
        if self.guilty is None:
            return None
        who, place = self.guilty.waiting[0]
        verb = "wait" if who.count("warp") > 1 else "waits"
        message = f"circular wait: {self.circle()}; " if self.cycle else ""
        message += f"{who} {verb} for {self.guilty.what}: {self.guilty.missing}"
        remedy, circle = self.guilty.advice, [node for node in self.nodes if node.what in self.cycle]
        if remedy in (advice.PHASES, advice.BARS) and all(node.signals for node in circle):
            remedy = advice.advise_cycle({node.kind for node in circle}) or remedy
        return Finding(
            rules.DEADLOCK, place, None, message, self.guilty.place, None, self.guilty.what, help=remedy,
            details=tuple(self.summary()),
        )  # fmt: skip

    def accuse(self, node: Node, remedy: str) -> None:
        """Blame another node: a known error there may have caused the hang."""
        self.guilty, node.advice = node, remedy

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _describe_signals(node: Node, after: Node) -> str:
    """Say which instructions would cause an event, and what their threads wait for first."""
    who = "; ".join(who for who, _ in after.waiting[:_MOST_WAITING])
    return f"{', '.join(node.signals[:_MOST_WAITING])}, after the wait of {who} for {after.what}"


class Hang(PtxError):
    """Raised if a run cannot continue or makes no progress; `report` is its wait-for graph."""

    def __init__(self, diagnostics: Iterable[Diagnostic], report: HangReport) -> None:
        super().__init__(diagnostics)
        self.report = report


def explain(waiting: Sequence[Waiting], standing: Sequence[Standing], known: Knowledge) -> HangReport:
    """Return who waits for what, what is missing, and who could cause it."""
    subjects = [known.subject(wait) for wait in waiting]
    nodes: dict[tuple[object, ...], Node] = {}
    for wait, subject in zip(waiting, subjects, strict=True):
        node = nodes.get(subject.key)
        if node is None:
            could = _list_helpers(subject, waiting, subjects, standing, known)
            node = nodes[subject.key] = Node(
                subject.what, wait.kind, subject.missing, [], could, list(subject.history), [], subject.place,
                subject.begun, subject.advice, list(map(str, subject.signals)),
            )  # fmt: skip
        node.waiting.append((known.who(wait.threads), wait.place))
    members: dict[tuple[object, ...], set[int]] = {key: set() for key in nodes}
    helpers: dict[tuple[object, ...], set[int]] = {key: set() for key in nodes}
    for wait, subject in zip(waiting, subjects, strict=True):
        members[subject.key] |= _collect_warps(wait.threads)
        helpers[subject.key] |= subject.helpers
    for key, node in nodes.items():
        # A warp that waits here as a whole does not block itself; one with lanes that wait elsewhere does.
        elsewhere = {warp for other, warps in members.items() if other != key for warp in warps}
        absent = helpers[key] - (members[key] - elsewhere)
        # Lanes of one warp at different barriers are themselves at fault.
        apart = {other for other in nodes if node.kind == "warp" and nodes[other].kind == "bar"} | {key}
        node.waits_for = [
            nodes[other].what for other, warps in members.items() if other not in apart and absent & warps
        ]
    guilty, cycle = blame(list(nodes.values()))
    return HangReport(list(nodes.values()), guilty, cycle)


def _list_helpers(
    subject: Subject, waiting: Sequence[Waiting], subjects: Sequence[Subject], standing: Sequence[Standing],
    known: Knowledge,
) -> list[str]:  # fmt: skip
    """Say where the threads are that could have caused the event."""
    lines: list[str] = []
    for wait, other in zip(waiting, subjects, strict=True):
        if other.key != subject.key and (not subject.exact or _collect_warps(wait.threads) & subject.helpers):
            lines.append(f"{known.who(wait.threads)} waits at {wait.place}")
    for stand in standing:
        lines.append(f"{known.who(stand.threads)} {'exited after' if stand.exited else 'is at'} {stand.place}")
    return lines


def _collect_warps(threads: Sequence[int]) -> set[int]:
    return {thread >> 5 for thread in threads}


def blame(nodes: list[Node]) -> tuple[Node | None, list[str]]:
    """Choose the node to look at first: one that waits for no waiting thread, else in a cycle one that has partly
    occurred, else the first."""
    if not nodes:
        return None, []
    lost = [node for node in nodes if "bytes" in node.missing or "not initialized" in node.missing]
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
    cycle = path[path.index(node.what) :]
    first = next((at for at, name in enumerate(cycle) if by_name[name].begun), 0)
    return by_name[cycle[first]], [*cycle[first:], *cycle[: first + 1]]
