"""Reachability in random programs, compared with definitions that search the whole graph for every question."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise, product

from pyptx.parser import parse
from pyptx.sim.program.blocks import Program, prepare
from pyptx.sim.scheduling.reach import Reach
from tests.sim.kernels import kernel

Graph = dict[str, set[str]]
"""The labels that may come next after each label."""
Edge = tuple[str, str]

ENDINGS = (
    ("add.u32 %r0, %r0, 1;", "next"), ("bar.sync 0;", "next"), ("call f;", "next f"),
    *[("bra {};", "first"), *[("@%p0 bra {};", "first next")] * 4] * 3, ("add.u32 %r0, %r0, 1; bra {};", "first"),
    ("{{ T: .branchtargets {}, {}; brx.idx %r0, T; }}", "first second"),
    ("ret;", "ret"), ("@%p0 ret;", "ret next"), ("add.u32 %r0, %r0, 1; ret;", "ret"),
    ("exit;", ""), ("@%p0 exit;", "next"), ("trap;", ""),
)  # fmt: skip
"""How a block may end, and what comes next: the following block, the named ones, `f`, or what follows calls."""
COUNT = 300


@dataclass(frozen=True)
class Sample:
    """A random program: what its blocks contain, the jumps inside functions, and all jumps, with calls and returns."""

    program: Program
    texts: dict[str, str]
    within: Graph
    across: Graph


def draw_body(chance: random.Random, letter: str) -> tuple[dict[str, str], Graph]:
    """Return a function's blocks, each with a label, and what comes next after each."""
    labels = [f"{letter}{index}" for index in range(chance.randint(1, 9) + 1)]
    texts, graph = dict.fromkeys(labels, "ret;"), {label: {"ret"} for label in labels}
    for label, after in pairwise(labels):
        (ending, words), targets = chance.choice(ENDINGS), chance.choices(labels, k=2)
        names = {"next": after, "first": targets[0], "second": targets[1]}
        texts[label], graph[label] = ending.format(*targets), {names.get(word, word) for word in words.split()}
    return texts, graph


def draw_sample(seed: int) -> Sample:
    """Return a program of an entry that calls a function."""
    chance = random.Random(seed)
    (entry, outer), (callee, inner) = draw_body(chance, "L"), draw_body(chance, "F")
    lines = ["\n".join(f"{label}: {text}" for label, text in texts.items()) for texts in (entry, callee)]
    module = f".func f() {{ .reg .b32 %r<2>; .reg .pred %p<2>;\n{lines[1]} }}\n"
    program = prepare(parse(kernel(f"call f;\n{lines[0]}", module=module, params="")), "k")
    words = outer | inner
    within = {label: after & set(words) for label, after in words.items()}
    after_calls = {"L0"}.union(*(within[label] for label, after in words.items() if "f" in after))
    across = dict(within)
    across |= {label: {*within[label], "F0"} for label, after in words.items() if "f" in after}
    across |= {label: {*within[label], *after_calls} for label, after in inner.items() if "ret" in after}
    return Sample(program, entry | callee, within, across)


def find_labels(sample: Sample) -> dict[str, int]:
    """Return the block that begins at each label."""
    return {label: block.pc for block in sample.program.blocks for label in block.labels if label in sample.texts}


def search(graph: Graph, start: str, without: Iterable[Edge] = (), avoided: str = "") -> set[str]:
    """Return the labels that can be reached, without some jumps and without passing through one label again."""
    labels, todo, skipped = {start}, [start], set(without)
    while todo:
        label = todo.pop()
        new = {after for after in graph[label] if (label, after) not in skipped} - labels - {avoided}
        labels |= new
        todo += new
    return labels


def find_loops(graph: Graph, entry: str) -> dict[Edge, set[str]]:
    """Return the jumps that close a loop, because every path to them leads through their target, with its blocks."""
    loops: dict[Edge, set[str]] = {}
    for source in search(graph, entry):
        for head in graph[source]:
            if source == head or head == entry or source not in search(graph, entry, avoided=head):
                loops[source, head] = {label for label in graph if source in search(graph, label, avoided=head)}
    return loops


def only_exits(texts: Mapping[str, str], label: str) -> bool:
    """Tell whether a thread at a label executes nothing but jumps before it exits."""
    visits = set[str]()
    while label not in visits:
        visits.add(label)
        opcode, _, target = texts[label].rstrip(";").partition(" ")
        if opcode != "bra":
            return opcode in ("ret", "exit")
        label = target
    return False


def test_reachability_equals_that_of_a_search(seed: int) -> None:
    for number in range(seed, seed + COUNT):
        sample = draw_sample(number)
        reach, pcs = Reach(sample.program), find_labels(sample)
        for start, pc in pcs.items():
            after = reach.find_reachable(pc)
            assert {label for label in pcs if pcs[label] in after} == search(sample.across, start), (number, start)


def test_a_block_only_exits_if_it_and_its_targets_contain_nothing_else(seed: int) -> None:
    for number in range(seed, seed + COUNT):
        sample = draw_sample(number)
        reach, pcs = Reach(sample.program), find_labels(sample)
        for label in sample.texts:
            if label.startswith("L"):
                assert reach.only_exits(pcs[label]) == only_exits(sample.texts, label), (number, label)


def test_a_block_precedes_those_reached_without_closing_a_loop_around_them(seed: int) -> None:
    for number in range(seed, seed + COUNT):
        sample = draw_sample(number)
        graph, reach, pcs = sample.within, Reach(sample.program), find_labels(sample)
        for entry in ("L0", "F0"):
            loops, labels = find_loops(graph, entry), search(graph, entry)
            for start, label in product(labels, labels):
                closing = {
                    (source, head) for (source, head), blocks in loops.items()
                    if pcs[source] >= pcs[start] and label in blocks
                }  # fmt: skip
                place = number, start, label
                assert reach.precedes(pcs[start], pcs[label], False) == (label in search(graph, start)), place
                is_before = label in search(graph, start, closing)
                assert reach.precedes(pcs[start], pcs[label], True) == is_before, place
