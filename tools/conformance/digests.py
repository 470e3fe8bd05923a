"""Holds the simulator to GPUs, by digests of their answers: `python -m tools.conformance.digests [NAME …]`.

`recorded/NAME.txt` has a line per form: its identity and a digest of its operands and results, or for an approximation
whether all results are within the manual's bound. `--make FOLDER NAME` writes it from a recording of
`python -m tools.conformance --gpu --record FOLDER`. A form that another target or a newer table adds has no line.
"""

from __future__ import annotations

import argparse
import sys
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

from tools.conformance import recording, simulated
from tools.conformance.agreement import canonicalize
from tools.conformance.device import Device
from tools.conformance.forms import Array, Case, cases
from tools.conformance.memory_forms import memory_cases
from tools.conformance.recording import Recording
from tools.conformance.references.bounded import judge, within_of

FOLDER = Path(__file__).parent / "recorded"
WITHIN, BEYOND = "within", "beyond"
"""What stands for the results of an approximation."""
_IDENTITY, _DIGEST = 6, 9
"""Bytes, which base64 writes without padding."""


@dataclass(frozen=True)
class Record:
    """The digests of a device's answers to operands of a seed, by the short identities of the forms."""

    device: Device
    seed: int
    digests: Mapping[str, str]


def list_records() -> list[str]:
    """Return the names of the records."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def read(name: str) -> Record:
    """Return a record by its name."""
    head, *parts = (FOLDER / f"{name}.txt").read_text("ascii").split("\n[")
    values = dict(line.split(": ", 1) for line in head.splitlines())
    lines = [line for part in parts for line in part.splitlines()[1:]]
    digests = dict(line.split(" ") for line in lines)
    return Record(Device(values["device"], values["target"]), int(values["seed"]), digests)


def make(answers: Recording) -> str:
    """Return the text of the record of a recording."""
    lines = [f"device: {answers.device.description}", f"target: {answers.device.target}", f"seed: {answers.seed}"]
    answered = sorted((case for case in list_cases(answers.device.target) if case in answers), key=lambda c: c.opcode)
    for opcode, group in groupby(answered, key=lambda case: case.opcode):
        lines.append(f"[{opcode}]")
        for case in group:
            operands = simulated.draw_operands(case, answers.seed)
            results = answers.find(case, operands)
            if results is not None:
                lines.append(f"{shorten(case)} {digest(case, operands, results)}")
    return "\n".join(lines) + "\n"


@cache
def list_cases(target: str) -> tuple[Case, ...]:
    """Return the cases that a device with this target runs."""
    both = [*cases(arch=target), *memory_cases(arch=target)]
    return tuple(case for case in both if case.target.name == target)


def shorten(case: Case) -> str:
    """Return the identity of a case in a record."""
    return urlsafe_b64encode(bytes.fromhex(recording.identify(case))[:_IDENTITY]).decode()


def digest(case: Case, operands: Array, results: Array) -> str:
    """Return what stands for results in a record."""
    within = judge(case, operands, results)
    if within is not None:
        return WITHIN if all(within) else BEYOND
    data = operands.tobytes() + canonicalize(case, results).tobytes()
    return urlsafe_b64encode(blake2b(data, digest_size=_DIGEST).digest()).decode()


def find_differences(record: Record, selection: Iterable[Case]) -> Iterator[Case]:
    """Yield the cases, all in the record, whose results on the simulator are others."""
    for case, operands, results in simulated.run(list(selection), record.seed):
        if isinstance(results, Exception) or digest(case, operands, results) != record.digests[shorten(case)]:
            yield case


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "names", nargs="*", metavar="NAME", help=f"records to compare with: {', '.join(list_records())}"
    )
    options.add_argument("--make", type=Path, metavar="FOLDER", help="make the record NAME of this recording")
    arguments = options.parse_args(argv)
    if arguments.make:
        (name,) = arguments.names
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.txt").write_text(make(recording.load(arguments.make)), "ascii")
    passed = [_compare(name) for name in arguments.names or list_records()]
    return 0 if all(passed) else 1


def _compare(name: str) -> bool:
    """Compare the simulator with a record; print a line per opcode, and what differs."""
    record = read(name)
    forms = list_cases(record.device.target)
    answered = [case for case in forms if shorten(case) in record.digests]
    differing = list(find_differences(record, answered))
    columns = {
        "forms": Counter(case.opcode for case in forms),
        "answered": Counter(case.opcode for case in answered),
        "bounded": Counter(case.opcode for case in answered if within_of(case) is not None),
        "differing": Counter(case.opcode for case in differing),
    }
    print(record.device.description)
    print(f"{'opcode':<14}" + "".join(f"{column:>10}" for column in columns))
    for opcode in sorted(columns["forms"]):
        print(f"{opcode:<14}" + "".join(f"{count[opcode]:>10}" for count in columns.values()))
    print(f"{'all':<14}" + "".join(f"{count.total():>10}" for count in columns.values()))
    for case in differing:
        print(f"  {case.text}")
    return not differing


if __name__ == "__main__":
    sys.exit(main())
