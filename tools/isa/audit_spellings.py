"""Audits the table against ptxas: every legal spelling assembles on its first target and version, and on none below.

    python -m tools.isa.audit_spellings [--opcode cp] [--section integer] [--sample 2000] [--below] [--show 40]

Prints counts and, for each disagreement, the instruction, the module's version and target, and ptxas's message.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

from pyptx.isa import lookup, table
from pyptx.isa.model import Form
from pyptx.isa.targets import FIRST_PTX, PTX_VERSIONS, Availability, Target, Version, find_target
from tools.isa.ptxas import OLDEST_PTX, Case, verdicts
from tools.isa.synthesize import instructions

TARGETS = tuple(name for name in FIRST_PTX if find_target(name).arch >= 20 and find_target(name).arch != 101)


@dataclass(frozen=True)
class Place:
    """A module header: a target and a PTX version."""

    target: Target
    version: Version


def list_first_places(needs: Iterable[Availability], removal: Availability | None = None) -> list[Place]:
    """Return the first place that meets the requirements, for each of their alternatives: lowest version, then lowest
    target. There is one place per suffix and family, so that every alternative of a row is tried. A form that was
    removed before the oldest version tried here is tried at an older one."""
    best: dict[tuple[str, int], Place] = {}
    for name in TARGETS:
        target = find_target(name)
        firsts = [n.find_first_version(target) for n in needs]
        if None in firsts:
            continue
        version = max([OLDEST_PTX, FIRST_PTX[name], *(f for f in firsts if f)])
        if removal and removal.on(target, version):
            continue
        key = (target.suffix, target.arch // 10 if target.suffix else 0)
        if key not in best or version < best[key].version:
            best[key] = Place(target, version)
    plain = [p for (suffix, _), p in best.items() if not suffix]
    return plain or list(best.values()) or _places_of_old(needs, removal)


def _places_of_old(needs: Iterable[Availability], removal: Availability | None) -> list[Place]:
    target = find_target("sm_13")
    versions = [
        v for v in PTX_VERSIONS if FIRST_PTX["sm_13"] <= v < OLDEST_PTX and not (removal and removal.on(target, v))
    ]
    return [Place(target, v) for v in versions if all(n.on(target, v) for n in needs)][:1]


def places_below(needs: Iterable[Availability], place: Place, removal: Availability | None = None) -> list[Place]:
    """Return the nearest places that lack the form: one PTX version lower, one target lower, and after its removal."""
    places_of_removal = [
        Place(place.target, v) for v in PTX_VERSIONS if v > place.version and removal and removal.on(place.target, v)
    ]
    below = places_of_removal[:1]
    lower_versions = [v for v in PTX_VERSIONS if max(OLDEST_PTX, FIRST_PTX[place.target.name]) <= v < place.version]
    if lower_versions:
        below.append(Place(place.target, lower_versions[-1]))
    lacking = [
        find_target(name)
        for name in TARGETS
        if FIRST_PTX[name] <= place.version and any(n.find_first_version(find_target(name)) is None for n in needs)
    ]
    older = [t for t in lacking if t.arch <= place.target.arch]
    if older:
        below.append(Place(max(older, key=lambda t: (t.arch, t.suffix != "")), place.version))
    return below


def cases(rows: Iterable[Form], below: bool) -> Iterator[Case]:
    """Yield every spelling with every operand list, at its first places or at the places below."""
    for row in rows:
        for binding in lookup.spellings(row):
            yield from cases_of(row, binding, below)


def cases_of(row: Form, binding: lookup.Bindings, below: bool) -> Iterator[Case]:
    """Yield the cases of one spelling."""
    match = lookup.match_of(row, binding)
    firsts = list_first_places(match.needs, row.removed)
    for place in [b for o in firsts for b in places_below(match.needs, o, row.removed)] if below else firsts:
        for text in list(instructions(match))[: 1 if below else None]:
            yield Case(text, place.target.name, place.version, f"{row.opcode}{match.chosen.get('cta_group', '')}")


def rows_of(section: str | None, opcode: str | None) -> tuple[Form, ...]:
    """Return the rows that the command line selects."""
    rows = import_module(f"pyptx.isa.table.{section}").FORMS if section else table.list_all_rows()
    return tuple(row for row in rows if opcode in (None, row.opcode))


def main() -> int:
    """Run the audit; exit 1 when ptxas disagrees."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--section")
    options.add_argument("--opcode")
    options.add_argument("--sample", type=int, help="try only this many, chosen by --seed")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument(
        "--below", action="store_true", help="try one version and one target lower, where ptxas must reject"
    )
    options.add_argument("--show", type=int, default=40, help="how many disagreements to print")
    arguments = options.parse_args()
    attempts = list(cases(rows_of(arguments.section, arguments.opcode), arguments.below))
    spelling_count = len({case.text.split(" ")[0] for case in attempts})
    if arguments.sample and arguments.sample < len(attempts):
        attempts = random.Random(arguments.seed).sample(attempts, arguments.sample)
    disagreements = [(case, why) for case, why in verdicts(attempts) if (why is None) == arguments.below]
    for case, why in disagreements[: arguments.show]:
        print(f"{case.text[:150]}   PTX {case.version[0]}.{case.version[1]} {case.target}: {why or 'accepted'}")
    reasons = Counter(why.split("'")[0] if why else "accepted" for _, why in disagreements)
    for reason, count in reasons.most_common(12):
        print(f"{count:8} {reason}")
    print(f"{spelling_count} spellings, {len(attempts)} cases, {len(disagreements)} disagreements with ptxas")
    return 1 if disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
