"""A process that runs one batch and writes a line per case; `recording` starts it, and again after a fault."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TextIO

from tools.conformance.engines.answers import Answer
from tools.conformance.engines.cases import Case, find_key
from tools.conformance.engines.selection import list_entries, make_batches, select_cases

FAULT = 3
"""The exit status after a fault of the device."""


def add_selection(options: argparse.ArgumentParser) -> None:
    """Add the options that select cases."""
    options.add_argument("--family", action="append", default=[], help="only cases whose names begin with this word")
    options.add_argument("--sample", type=int, help="only this many cases, drawn by --seed")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--simulated", metavar="DEVICE", help="run on the simulated driver, as this device")


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    add_selection(options)
    options.add_argument("--batch", type=int, required=True)
    options.add_argument("--start", type=int, required=True, help="the first case of the batch")
    options.add_argument("--part", type=Path, required=True, help="the file to which to append")
    arguments = options.parse_args(argv)
    cases = select_cases(arguments.family, arguments.sample, arguments.seed)
    number, start = int(arguments.batch), int(arguments.start)
    batch = make_batches(cases)[number][start:]
    if arguments.simulated:
        import pyptx.driver

        pyptx.driver.activate(arguments.simulated, check="none")
    with arguments.part.open("a") as part:
        return _run(batch, arguments.seed, part, is_simulated=bool(arguments.simulated))


def _run(batch: list[Case], seed: int, part: TextIO, *, is_simulated: bool) -> int:
    from tools.conformance.engines.device import Device, FaultError  # loads the driver

    device = Device(is_simulated=is_simulated)
    device.load(list_entries(batch))
    print(json.dumps({"about": device.describe()}), file=part, flush=True)
    for case in batch:
        try:
            answer = device.run(case, seed)
        except FaultError as why:
            print(describe_failure(case, seed, f"fault: {why}").to_json(), file=part, flush=True)
            return FAULT
        print(answer.to_json(), file=part, flush=True)
    return 0


def describe_failure(case: Case, seed: int, error: str) -> Answer:
    """Return the answer of a case that did not end."""
    return Answer(case.name, find_key(case, case.make_inputs(seed)), error, b"", 0, b"")


if __name__ == "__main__":
    sys.exit(main())
