"""Compares recorded answers with the simulator's: byte by byte, or by the digests in the repository."""

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
from tools.conformance.engines.digests import make_digest, read_digests, read_known_differences, write_digests
from tools.conformance.engines.selection import select_cases

SEED, ADDRESS = 0, 1 << 20
"""The seed of the recording in the repository, and an address that every buffer could have."""


@dataclass(frozen=True)
class Difference:
    """How the simulator differs from the device in a case."""

    name: str
    about: str


def compare(arguments: argparse.Namespace) -> int:
    """Compare the selected cases; print counts and differences. Return 1 if there are any."""
    cases = select_cases(arguments.family, arguments.sample, arguments.seed)
    if arguments.answers:
        about, answers = read_answers(Path(arguments.answers))
        results = {case.name: list(find_differences(case, answers[case.name], arguments.seed))
                 for case in cases if case.name in answers}  # fmt: skip
        if arguments.digests:
            write_digests(
                Path(arguments.digests), about, (answers[case.name] for case in cases if case.name in results)
            )
    else:
        about, digests = read_digests()
        digests = {name: digest for name, digest in digests.items() if name not in read_known_differences()}
        results = {case.name: list(check_digest(case, digests[case.name])) for case in cases if case.name in digests}
    counts = Counter(name.split("/", 1)[0] for name in results)
    differences = [difference for differences in results.values() for difference in differences]
    by_family = Counter(difference.name.split("/", 1)[0] for difference in differences)
    print(f"{about}: {len(results)} cases compared, {len(cases) - len(results)} without an answer")
    for family, count in sorted(counts.items()):
        print(f"  {family}: {count} cases, {by_family[family]} differences")
    for difference in differences[: arguments.show]:
        print(f"  {difference.name}: {difference.about}")
    return 1 if differences or not results else 0


def check_digest(case: Case, digest: str) -> Iterator[Difference]:
    """Yield a difference if the simulator's answer has another digest than the device's."""
    if make_digest(simulated.run(case, SEED, ADDRESS)) != digest:
        yield Difference(case.name, "the simulator differs from the device; compare a whole recording to see where")


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
