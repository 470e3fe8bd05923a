"""Edges of graphs with their data, and lists of nodes and edges."""

from __future__ import annotations

import random
import struct

import pytest

from tests.driver.direct import Direct, make_room

EMPTY = struct.pack("<i12x", 5) + bytes(240)
"""The parameters of a node without work."""
UNUSED = 0xEEEE_EEEE_EEEE_EEEE


def pack(values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def add_empty(direct: Direct, graph: int, nodes: list[int], data: bytes | int = 0) -> int:
    return direct.ask("cuGraphAddNode_v2", graph, pack(nodes), data, len(nodes), EMPTY)


def check_list(draw: random.Random, direct: Direct, name: str, handle: int, expected: list[tuple[int, ...]]) -> None:
    """Read a list with room for some of it, for all or for more, into some of its columns; or its length only."""
    width = len(expected[0]) if expected else 1 + ("Edges" in name) + ("_v2" in name)
    room, shown = draw.randrange(10), [draw.random() < 0.7 for _ in range(width)]
    columns, count = [make_room(12, UNUSED) for _ in range(width)], make_room(1, room)
    direct.call(name, handle, *(column if keep else 0 for column, keep in zip(columns, shown, strict=True)), count)
    assert count[0] == (min(len(expected), room) if any(shown) else len(expected))
    for index, (column, keep) in enumerate(zip(columns, shown, strict=True)):
        values = [row[index] for row in expected[:room]] + [0] * (room - len(expected))
        assert list(column) == (values if keep else []) + [UNUSED] * (12 - len(values) * keep)


def test_edges_are_added_and_removed_and_keep_their_data(seed: int) -> None:
    draw, direct = random.Random(seed), Direct()
    graph = direct.ask("cuGraphCreate", 0)
    nodes = [add_empty(direct, graph, []) for _ in range(5)]
    model: dict[int, dict[int, bytes]] = {node: {} for node in nodes}
    for _ in range(80):
        pairs = [(draw.choice(nodes), draw.choice(nodes)) for _ in range(draw.choice((1, 1, 1, 2)))]
        words = graph, pack([start for start, _ in pairs]), pack([end for _, end in pairs])
        kind, data = draw.choice(("", "_v2", "none")), draw.randbytes(16)
        suffix, edges = ("", ()) if kind == "" else ("_v2", (data if kind == "_v2" else 0,))
        if draw.random() < 0.6:
            code = direct.try_call(f"cuGraphAddDependencies{suffix}", *words, *edges, len(pairs))
            is_wrong = any(start == end or start in model[end] for start, end in pairs)
            if not is_wrong:
                for index, (start, end) in enumerate(pairs):
                    model[end][start] = data[8 * index : 8 * index + 8] if kind == "_v2" else bytes(8)
        else:
            code = direct.try_call(f"cuGraphRemoveDependencies{suffix}", *words, *edges, len(pairs))
            is_wrong = any(start not in model[end] for start, end in pairs)
            if not is_wrong:
                for start, end in pairs:
                    model[end].pop(start, None)
        assert code == is_wrong
        rows = [(start, end, *struct.unpack("<Q", data)) for end in nodes for start, data in model[end].items()]
        check_list(draw, direct, "cuGraphGetEdges", graph, [row[:2] for row in rows])
        check_list(draw, direct, "cuGraphGetEdges_v2", graph, rows)
        for node in nodes:
            before = [(start, data) for start, end, data in rows if end == node]
            after = [(end, data) for start, end, data in rows if start == node]
            for suffix, width in (("", 1), ("_v2", 2)):
                name = f"cuGraphNodeGetDependencies{suffix}"
                check_list(draw, direct, name, node, [row[:width] for row in before])
                check_list(draw, direct, f"cuGraphNodeGetDependentNodes{suffix}", node, [row[:width] for row in after])
    roots = [(node,) for node in nodes if not model[node]]
    for _ in range(20):
        check_list(draw, direct, "cuGraphGetRootNodes", graph, roots)
        check_list(draw, direct, "cuGraphGetNodes", graph, [(node,) for node in nodes])


def test_edges_join_nodes_of_their_graph_only(capsys: pytest.CaptureFixture[str]) -> None:
    direct = Direct()
    first, second = (direct.ask("cuGraphCreate", 0) for _ in range(2))
    nodes = [add_empty(direct, first, []) for _ in range(2)]
    others = [add_empty(direct, second, []) for _ in range(2)]
    mixed = (nodes[0], others[1]), (others[0], nodes[1]), (nodes[0], first), (0, nodes[1])
    for start, end in (*mixed, (others[0], others[1])):
        assert direct.try_call("cuGraphAddDependencies", first, pack([start]), pack([end]), 1) == 1
    direct.call("cuGraphAddDependencies", second, pack(others[:1]), pack(others[1:]), 1)
    assert direct.try_call("cuGraphRemoveDependencies", first, pack(others[:1]), pack(others[1:]), 1) == 1
    # Of several edges, one that is wrong leaves the others.
    twice = pack([nodes[0], nodes[0]]), pack([nodes[1], nodes[0]])
    assert direct.try_call("cuGraphAddDependencies", first, *twice, 2) == 1
    assert direct.tell("cuGraphGetEdges", first, 0, 0) == 0
    assert direct.try_call("cuGraphAddDependencies", first, *twice, 1 << 30) == 1
    assert capsys.readouterr().err == ""


def test_a_node_is_added_after_others_with_the_data_of_its_edges() -> None:
    direct = Direct()
    graph, other = (direct.ask("cuGraphCreate", 0) for _ in range(2))
    before = [add_empty(direct, graph, []) for _ in range(2)]
    for data in (0, bytes(range(1, 17))):
        node = add_empty(direct, graph, before, data)
        nodes, edges, count = make_room(2), make_room(2), make_room(1, 2)
        direct.call("cuGraphNodeGetDependencies_v2", node, nodes, edges, count)
        assert (list(nodes), bytes(edges), count[0]) == (before, data or bytes(16), 2)
    out, stranger = make_room(1), add_empty(direct, other, [])
    for wrong in ([before[0], before[0]], [before[0], stranger], [7]):
        assert direct.try_call("cuGraphAddNode_v2", out, graph, pack(wrong), 0, len(wrong), EMPTY) == 1
    assert direct.tell("cuGraphGetNodes", graph, 0) == 4


def test_a_list_needs_the_room_that_the_program_says_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    direct = Direct()
    graph = direct.ask("cuGraphCreate", 0)
    nodes, count = make_room(2), make_room(1, 1 << 44)
    assert direct.try_call("cuGraphGetNodes", graph, nodes, count) == 1
    assert "the program has no" in capsys.readouterr().err
    assert (list(nodes), count[0]) == ([0, 0], 1 << 44)
