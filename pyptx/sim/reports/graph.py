"""The wait-for graph of a stopped run, as text and as plain values.

The runner supplies the waits (`Waiting`), the exited threads (`Exited`), and its knowledge of each
awaited event (`Knowledge`). Knows neither the machine nor the hazard engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from pyptx.diagnostics import Diagnostic, PtxError, format_count
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.reports.findings import Finding
from pyptx.sim.rules import advice

_MOST_SHOWN, _MOST_WAITING = 6, 3
"""The most barriers, and the most waiting places of each, that a hang shows without its report."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Threads that cannot continue. `kind`: mbarrier, bar, cluster, warp, group, memory, registers or columns.

    `key` is the mbarrier's address, the barrier's number, or the polled address.
    """

    threads: tuple[int, ...]
    place: Place
    kind: str
    key: int


@dataclass(frozen=True, slots=True)
class Exited:
    """Threads that have exited; `place` is their last instruction."""

    threads: tuple[int, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Subject:
    """One awaited event. `key` identifies it, `place` is where it was declared or began; `helpers` are the warps that
    could cause it; `has_begun` if part of it has occurred; `advice` says how to complete it; `signals` are the
    instructions that would cause it and that waiting threads can still reach; `is_broken` if it lacks what no arrival
    supplies: initialization, or bytes of a copy; `expect` is where wrong bytes were expected."""

    key: tuple[object, ...]
    what: str
    missing: str
    history: tuple[str, ...] = ()
    place: Place | None = None
    helpers: frozenset[int] = frozenset()
    has_begun: bool = False
    advice: str = ""
    signals: tuple[Place, ...] = ()
    is_broken: bool = False
    expect: Place | None = None


class Knowledge(Protocol):
    """The runner's knowledge of awaited events."""

    def describe(self, wait: Waiting) -> Subject:
        """Describe the event that these threads wait for."""
        ...

    def name_threads(self, threads: Sequence[int]) -> str:
        """Name threads by CTA, warp and lane."""
        ...


@dataclass(slots=True)
class Node:
    """One awaited event, with its waiters."""

    what: str
    kind: str
    missing: str
    waiters: list[tuple[str, Place]]
    could: list[str]
    history: list[str] = field(default_factory=list[str])
    waits_for: list[str] = field(default_factory=list[str])
    place: Place | None = None
    has_begun: bool = False
    advice: str = ""
    signals: list[str] = field(default_factory=list[str])
    is_broken: bool = False
    expect: Place | None = None

    def as_json(self) -> dict[str, object]:
        return {
            "what": self.what,
            "kind": self.kind,
            "missing": self.missing,
            "advice": self.advice,
            "declared": self.place.line if self.place else 0,
            "waiting": [{"who": agents, "line": p.line, "at": str(p)} for agents, p in self.waiters],
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

    def order_nodes(self) -> list[Node]:
        """Return the guilty node, then the others of the cycle, then the rest."""
        rank = {name: position for position, name in reversed(list(enumerate(self.cycle)))}
        return sorted(self.nodes, key=lambda node: (node is not self.guilty, rank.get(node.what, len(rank))))

    def format_cycle(self) -> str:
        """Return the circular wait as text, empty if there is none."""
        return " → ".join(name.rpartition(", phase ")[0] or name for name in self.cycle)

    def summarize(self) -> list[str]:
        """Return two lines for each awaited event: what is missing, and who waits where."""
        lines: list[str] = []
        nodes, names = self.order_nodes(), {node.what: node for node in self.nodes}
        behind = {name: names[after] for name, after in pairwise(self.cycle)}
        for node in nodes[:_MOST_SHOWN]:
            waiter_names = "; ".join(f"{agents} at {place}" for agents, place in node.waiters[:_MOST_WAITING])
            extra = len(node.waiters) - _MOST_WAITING
            lines += [
                f"{node.what}: {node.missing}",
                f"  waiting: {waiter_names}" + (f" and at {extra} more" if extra > 0 else ""),
            ]
            if node.what in behind and node.signals:
                lines.append(f"  signaled by: {_describe_signals(node, behind[node.what])}")
            is_stranded = node is self.guilty and node.kind == "mbarrier" and not node.signals and not node.is_broken
            lines += [f"  {line}" for line in node.history[:2] if is_stranded or node.kind == "grid"]
        if len(nodes) > _MOST_SHOWN:
            lines.append(f"and {format_count('more barrier', len(nodes) - _MOST_SHOWN)}")
        return lines

    def format_lines(self) -> list[str]:
        """Return the graph as text, the guilty node first, with past events and the threads that could still help."""
        rows = [f"circular wait: {' → '.join(self.cycle)}"] if self.cycle else []
        for node in self.order_nodes():
            names = "; ".join(f"{agents} at {place}" for agents, place in node.waiters)
            rows.append(f"{node.what}: {node.missing}. Waiting: {names}")
            if node.place is not None:
                rows.append(f"  declared: {node.place}")
            rows += [f"  so far: {line}" for line in node.history[-6:]]
            rows += [f"  could complete it: {line}" for line in node.could[:8]]
        return rows

    def make_finding(self) -> Finding | None:
        """Return the deadlock as a finding at the guilty wait."""
        if self.guilty is None:
            return None
        agents, place = self.guilty.waiters[0]
        message = f"circular wait: {self.format_cycle()}; " if self.cycle else ""
        message += f"{agents} {choose_verb(agents, 'waits', 'wait')} for {self.guilty.what}: {self.guilty.missing}"
        remedy, circle = self.guilty.advice, [node for node in self.nodes if node.what in self.cycle]
        if remedy in (advice.PHASES, advice.BARS) and all(node.signals for node in circle):
            remedy = advice.advise_cycle({node.kind for node in circle}) or remedy
        return Finding(
            rules.DEADLOCK, place, None, message, self.guilty.expect or self.guilty.place, None, self.guilty.what,
            help=remedy, details=tuple(self.summarize()),
        )  # fmt: skip

    def accuse(self, node: Node, remedy: str) -> None:
        """Blame another node: a known error there may have caused the hang."""
        self.guilty, node.advice = node, remedy

    def __str__(self) -> str:
        return "\n".join(self.format_lines())


def choose_verb(agents: str, singular: str, plural: str) -> str:
    """Return the verb that agrees with the names of some threads, which give each warp."""
    return plural if agents.count("warp") > 1 else singular


def _describe_signals(node: Node, after: Node) -> str:
    """Say which instructions would cause an event, and what their threads wait for first."""
    names = "; ".join(agents for agents, _ in after.waiters[:_MOST_WAITING])
    return f"{', '.join(node.signals[:_MOST_WAITING])}, after the wait of {names} for {after.what}"


class Hang(PtxError):
    """Raised if a run cannot continue or makes no progress; `report` is its wait-for graph."""

    def __init__(self, diagnostics: Iterable[Diagnostic], report: HangReport) -> None:
        super().__init__(diagnostics)
        self.report = report


def explain(waits: Sequence[Waiting], exits: Sequence[Exited], knowledge: Knowledge) -> HangReport:
    """Return who waits for what, what is missing, and who could cause it."""
    subjects = [knowledge.describe(wait) for wait in waits]
    nodes: dict[tuple[object, ...], Node] = {}
    for wait, subject in zip(waits, subjects, strict=True):
        node = nodes.get(subject.key)
        if node is None:
            could = _list_helpers(subject, waits, subjects, exits, knowledge)
            node = nodes[subject.key] = Node(
                subject.what, wait.kind, subject.missing, [], could, list(subject.history), [], subject.place,
                subject.has_begun, subject.advice, list(map(str, subject.signals)), subject.is_broken, subject.expect,
            )  # fmt: skip
        node.waiters.append((knowledge.name_threads(wait.threads), wait.place))
    members: dict[tuple[object, ...], set[int]] = {key: set() for key in nodes}
    helpers: dict[tuple[object, ...], set[int]] = {key: set() for key in nodes}
    for wait, subject in zip(waits, subjects, strict=True):
        members[subject.key] |= _collect_warps(wait.threads)
        helpers[subject.key] |= subject.helpers
    for key, node in nodes.items():
        # Lanes of one warp at different barriers are themselves at fault.
        apart = {other_key for other_key in nodes if node.kind == "warp" and nodes[other_key].kind == "bar"} | {key}
        node.waits_for = [
            nodes[other_key].what
            for other_key, warps in members.items()
            if other_key not in apart and helpers[key] & warps
        ]
    guilty, cycle = blame(list(nodes.values()))
    return HangReport(list(nodes.values()), guilty, cycle)


def _list_helpers(
    subject: Subject, waits: Sequence[Waiting], subjects: Sequence[Subject], exits: Sequence[Exited],
    knowledge: Knowledge,
) -> list[str]:  # fmt: skip
    """Say where the threads are that could have caused the event."""
    lines: list[str] = []
    for wait, other_subject in zip(waits, subjects, strict=True):
        if other_subject.key != subject.key and _collect_warps(wait.threads) & subject.helpers:
            agents = knowledge.name_threads(wait.threads)
            lines.append(f"{agents} {choose_verb(agents, 'waits', 'wait')} at {wait.place}")
    for exited in exits:
        agents = knowledge.name_threads(exited.threads)
        lines.append(f"{agents} exited after {exited.place}")
    return lines


def _collect_warps(threads: Sequence[int]) -> set[int]:
    return {thread >> 5 for thread in threads}


def blame(nodes: list[Node]) -> tuple[Node | None, list[str]]:
    """Choose the node to look at first, and the circular wait that contains it: a broken node, else one that waits for
    no waiting thread, else the node of a cycle that has partly occurred, else the first."""
    if not nodes:
        return None, []
    broken = next((node for node in nodes if node.is_broken), None)
    if broken is not None:
        return broken, []
    roots = [node for node in nodes if not node.waits_for]
    if roots:
        return max(roots, key=lambda node: len(node.waiters)), []
    by_name = {node.what: node for node in nodes}
    path: list[str] = []
    node = nodes[0]
    while node.what not in path:
        path.append(node.what)
        node = by_name[node.waits_for[0]]
    cycle = path[path.index(node.what) :]
    first = next((position for position, name in enumerate(cycle) if by_name[name].has_begun), 0)
    return by_name[cycle[first]], [*cycle[first:], *cycle[: first + 1]]
