"""Graphs of operations, the copies of them that can be launched, and objects that they keep alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.operations import HOST_FUNCTION, Allocate, Empty, Operation
from pyptx.driver.process import Driver

EDGE_SIZE = 8
PLAIN_EDGE = bytes(EDGE_SIZE)
"""The data of an edge that is an ordinary dependency, of the type `CUgraphEdgeData`."""
AUTO_FREE = 1
"""The flag of an executable graph that frees its memory before the next launch."""


class Change(IntEnum):
    """Why an executable graph cannot be updated, by its number in the enum `CUgraphExecUpdateResult`."""

    NONE = 0
    TOPOLOGY = 2
    NODE_TYPE = 3


@dataclass(eq=False)
class UserObject:
    """Memory of the program that is destroyed when nobody refers to it."""

    handle: int
    address: int
    destroy: int
    references: int

    def release(self, driver: Driver, count: int) -> None:
        """Drop references; without any left, destroy the object."""
        self.references -= count
        if self.references <= 0:
            driver.handles.remove(self.handle, UserObject)
            HOST_FUNCTION(self.destroy)(self.address)


@dataclass(eq=False)
class Node:
    """A node of a graph: its operation, and the nodes on which it depends with the data of these edges."""

    handle: int
    graph: Graph
    operation: Operation
    number: int
    dependencies: dict[Node, bytes] = field(default_factory=dict["Node", bytes])
    original: Node | None = None
    """The node of which it is a copy."""
    answers: Any = None
    """Memory of the last answer about the node, which the program may still read."""

    def list_dependents(self) -> dict[Node, bytes]:
        """Return the nodes that depend on it, with the data of the edges."""
        return {node: node.dependencies[self] for node in self.graph.nodes if self in node.dependencies}


@dataclass(eq=False)
class Graph:
    """A graph under construction."""

    handle: int
    nodes: list[Node] = field(default_factory=list[Node])
    objects: dict[UserObject, int] = field(default_factory=dict[UserObject, int])
    """The references to objects of the program."""
    count: int = 0
    is_child: bool = False

    def add(self, driver: Driver, operation: Operation, dependencies: dict[Node, bytes]) -> Node:
        """Add a node after others of this graph."""
        if any(node.graph is not self for node in dependencies):
            raise DriverError(Code.ERROR_INVALID_VALUE)
        node = driver.handles.add(lambda handle: Node(handle, self, operation, self.count, dict(dependencies)))
        self.count += 1
        self.nodes.append(node)
        return node

    def remove(self, driver: Driver, node: Node) -> None:
        """Remove a node and its edges."""
        self.nodes.remove(node)
        for other in self.nodes:
            other.dependencies.pop(node, None)
        _forget(driver, node)

    def list_in_order(self) -> list[Node]:
        """Return the nodes so that each follows those on which it depends. DriverError for a cycle."""
        order: dict[Node, None] = {}
        rest = list(self.nodes)
        while rest:
            # The first in order of creation, so that a captured graph runs in the order of its capture.
            ready = next((node for node in rest if all(other in order for other in node.dependencies)), None)
            if ready is None:
                raise DriverError(Code.ERROR_INVALID_VALUE, "the graph has a cycle")
            order[ready] = None
            rest.remove(ready)
        return list(order)

    def destroy(self, driver: Driver) -> None:
        """Forget the nodes, and release the objects."""
        driver.handles.remove(self.handle, Graph)
        for node in self.nodes:
            _forget(driver, node)
        for item, count in self.objects.items():
            item.release(driver, count)


@dataclass(frozen=True, slots=True)
class ChildGraph(Operation):
    """A whole graph as a node of another, which owns it."""

    kind: ClassVar[int] = 4
    graph: Graph

    def describe(self) -> str:
        return f"graph of {len(self.graph.nodes)} nodes"


def _forget(driver: Driver, node: Node) -> None:
    driver.handles.remove(node.handle, Node)
    if isinstance(node.operation, ChildGraph):
        node.operation.graph.destroy(driver)


def create(driver: Driver) -> Graph:
    """Create an empty graph."""
    return driver.handles.add(Graph)


def clone(driver: Driver, graph: Graph) -> Graph:
    """Copy a graph and the graphs in it."""
    copy = create(driver)
    copies: dict[Node, Node] = {}
    for node in graph.nodes:
        operation = node.operation
        if isinstance(operation, ChildGraph):
            operation = own(clone(driver, operation.graph))
        copies[node] = copy.add(driver, operation, {})
        copies[node].original = node
    for node, other in copies.items():
        other.dependencies = {copies[item]: data for item, data in node.dependencies.items()}
    for item, count in graph.objects.items():
        item.references += count
        copy.objects[item] = count
    return copy


def own(graph: Graph) -> ChildGraph:
    """Return the operation of a node that owns a graph."""
    graph.is_child = True
    return ChildGraph(graph)


@dataclass(frozen=True, slots=True)
class Step:
    """A node that does work, and the numbers of the steps that it follows."""

    node: Node
    before: set[int]


@dataclass(eq=False)
class Executable:
    """A graph that can be launched: a copy of its own, and the nodes of it that are disabled."""

    handle: int
    graph: Graph
    flags: int
    disabled: set[Node] = field(default_factory=set[Node])
    steps: list[Step] = field(init=False)

    def __post_init__(self) -> None:
        self.sort()

    def sort(self) -> None:
        """Put the nodes in the order in which they run."""
        self.steps = []
        _flatten(self.graph, set(), self.steps)

    def find(self, original: Node) -> Node:
        """Return the copy of a node. DriverError if there is none."""
        for node in _list_all(self.graph):
            if node.original is original:
                return node
        raise DriverError(Code.ERROR_INVALID_VALUE)

    def update(self, graph: Graph) -> tuple[Change, Node | None]:
        """Take over the operations of a graph with the same structure; otherwise, return the change and its node."""
        pairs: list[tuple[Node, Node]] = []
        change = _pair(self.graph, graph, pairs)
        if change[0] is Change.NONE:
            for node, other in pairs:
                node.operation = other.operation
        return change

    def begin(self, driver: Driver) -> None:
        """Prepare a launch. DriverError if memory of an earlier one is still allocated."""
        for step in self.steps:
            allocation = step.node.operation
            if isinstance(allocation, Allocate) and allocation.address in driver.heap.allocations:
                if not self.flags & AUTO_FREE:
                    raise DriverError(Code.ERROR_INVALID_VALUE)
                driver.heap.free(allocation.address, (allocation.pool.kind,))


def _list_all(graph: Graph) -> Iterator[Node]:
    """Return the nodes of a graph and of the graphs in it."""
    for node in graph.nodes:
        yield node
        if isinstance(node.operation, ChildGraph):
            yield from _list_all(node.operation.graph)


def _flatten(graph: Graph, before: set[int], steps: list[Step]) -> set[int]:
    """Add the nodes that do work, in order, after some steps. Return the steps that end last."""
    ends: dict[Node, set[int]] = {}
    for node in graph.list_in_order():
        previous = before.union(*(ends[other] for other in node.dependencies))
        if isinstance(node.operation, ChildGraph):
            ends[node] = _flatten(node.operation.graph, previous, steps)
        elif isinstance(node.operation, Empty):
            ends[node] = previous
        else:
            ends[node] = {len(steps)}
            steps.append(Step(node, previous))
    return before.union(*ends.values())


def _pair(old: Graph, new: Graph, pairs: list[tuple[Node, Node]]) -> tuple[Change, Node | None]:
    """Pair the working nodes of two graphs with the same structure; return the first difference."""
    mates: dict[Node, Node] = {}
    ours, theirs = old.list_in_order(), new.list_in_order()
    for node, other in zip(ours, theirs, strict=False):
        mates[node] = other
        if node.operation.kind != other.operation.kind:
            return Change.NODE_TYPE, other
        if {mates[item] for item in node.dependencies} != set(other.dependencies):
            return Change.TOPOLOGY, other
        if isinstance(node.operation, ChildGraph) and isinstance(other.operation, ChildGraph):
            change = _pair(node.operation.graph, other.operation.graph, pairs)
            if change[0] is not Change.NONE:
                return change
        else:
            pairs.append((node, other))
    return (Change.NONE, None) if len(ours) == len(theirs) else (Change.TOPOLOGY, None)


def find_ancestors(nodes: Iterable[Node]) -> set[Node]:
    """Return nodes and all on which they depend."""
    ancestors: set[Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in ancestors:
            ancestors.add(node)
            pending += node.dependencies
    return ancestors


def draw(graph: Graph) -> str:
    """Return a graph in the language of Graphviz."""
    lines = ["digraph {"]
    for node in graph.nodes:
        text = f"{node.number}: {node.operation.describe()}".replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'    n{node.number} [shape=box, label="{text}"];')
    edges = [(item.number, node.number) for node in graph.nodes for item in node.dependencies]
    lines += [f"    n{start} -> n{end};" for start, end in edges]
    return "\n".join([*lines, "}", ""])
