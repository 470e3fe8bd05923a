"""Compares recorded answers with the simulator's, byte by byte."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.conformance.engines import simulated
from tools.conformance.engines.answers import Answer, read_answers
from tools.conformance.engines.cases import Case
from tools.conformance.engines.selection import select_cases


@dataclass(frozen=True)
class Difference:
    """How the simulator differs from the device in a case."""

    name: str
    about: str


def compare(arguments: argparse.Namespace) -> int:
    """Compare the selected cases; print counts and differences. Return 1 if there are any."""
    about, answers = read_answers(Path(arguments.answers))
    cases = select_cases(arguments.family, arguments.sample, arguments.seed)
    counts, differences, unknown = Counter[str](), list[Difference](), 0
    for case in cases:
        if case.name not in answers:
            unknown += 1
            continue
        counts[case.family] += 1
        differences += find_differences(case, answers[case.name], arguments.seed)
    print(f"{about}: {counts.total()} cases compared, {unknown} without an answer")
    by_family = Counter(difference.name.split("/", 1)[0] for difference in differences)
    for family, count in sorted(counts.items()):
        print(f"  {family}: {count} cases, {by_family[family]} differences")
    for difference in differences[: arguments.show]:
        print(f"  {difference.name}: {difference.about}")
    return 1 if differences or not counts else 0


def find_differences(case: Case, theirs: Answer, seed: int) -> Iterator[Difference]:
    """Yield the differences of a case: of its map, of what is refused, and of its output."""
    ours = simulated.run(case, seed, theirs.address)
    if ours.key != theirs.key:
        yield Difference(case.name, "recorded with other inputs: record it again")
        return
    if theirs.map and ours.map != theirs.map:
        words = np.flatnonzero(np.frombuffer(ours.map.ljust(128, b"\0"), "u4") != np.frombuffer(theirs.map, "u4"))
        pairs = [
            f"word {w}: {ours.map[4 * w : 4 * w + 4][::-1].hex()}, device {theirs.map[4 * w : 4 * w + 4][::-1].hex()}"
            for w in words
        ]
        yield Difference(case.name, "map: " + "; ".join(pairs))
    if bool(ours.error) != bool(theirs.error):
        yield Difference(case.name, f"simulator: {ours.error or 'runs'}; device: {theirs.error or 'runs'}")
    elif ours.data != theirs.data:
        mine, other = np.frombuffer(ours.data, "u1"), np.frombuffer(theirs.data, "u1")
        places = np.flatnonzero(mine != other) if len(mine) == len(other) else np.zeros(0, int)
        first = int(places[0]) // 4 * 4 if len(places) else 0
        text = f"{len(places)} of {len(mine)} bytes, first word at {first}"
        words = [data[first : first + 4][::-1].hex() for data in (ours.data, theirs.data)]
        yield Difference(case.name, f"{text}: {words[0]}, device {words[1]}")
