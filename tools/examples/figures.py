"""Figures of an example from its account, and those that the step table of examples/README.md shows.

These are stored, because accounts take minutes and the page is written often. The tests compare some of them with the
account in each run, and those of an example whose code has changed are an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from examples.parts.example import Example, find_example
from tools.examples.account import L2, Account, make_account
from tools.examples.machines import MACHINES, Machine
from tools.examples.times import identify_example
from tools.examples.waves import list_waves

STORED = Path("tests/examples/figures.json")
DIGITS = 6
"""Significant digits of a stored figure."""
SHARES = {"shared memory": "shared", L2: "l2", "special functions": "special", "memory": "memory"}
"""Resources whose clocks are a figure, in those of the tensor cores."""


@dataclass(frozen=True)
class Subject:
    """An example on a target, at its large shape or at a cube of `size`."""

    name: str
    target: str
    size: int = 0

    def __str__(self) -> str:
        return f"{self.name} {self.target}{f' {self.size}³' if self.size else ''}"

    def load_example(self) -> Example:
        """Return the example with the large shape of the subject."""
        example = find_example(self.name)
        if not self.size:
            return example
        return replace(example, large={**example.large, "m": self.size, "n": self.size, "k": self.size})


def measure_figures(subject: Subject) -> dict[str, float]:
    """Return the figures of a subject, from its account: those that it has."""
    example, machine = subject.load_example(), MACHINES[subject.target]
    account = make_account(example, subject.target)
    figures = {**measure_clocks(account, machine), **measure_loop(account), **measure_waves(example, machine, account)}
    if example.flops and account.clocks:
        seconds = max(account.clocks.values()) / (machine.clock * 1e6)
        figures["ceiling"] = example.flops(example.large) / seconds / 1e12
    return {name: float(f"{value:.{DIGITS}g}") for name, value in figures.items()}


def measure_clocks(account: Account, machine: Machine) -> dict[str, float]:
    """Return clocks of resources in those of the tensor cores, and the bytes that an SM receives and L2 reads for it in
    one of these."""
    tensor = account.clocks.get("tensor cores", 0.0)
    if not tensor:
        return {}
    figures = {short: account.clocks[name] / tensor for name, short in SHARES.items() if name in account.clocks}
    if machine.ingest and "loads into SMs" in account.clocks:
        figures["bytes"] = account.clocks["loads into SMs"] * machine.ingest / tensor
    if machine.l2 and L2 in account.clocks:
        figures["reads"] = account.clocks[L2] * machine.l2 / machine.sms / tensor
    return figures


def measure_loop(account: Account) -> dict[str, float]:
    """Return what the main loop does: operations per byte that arrives, and instructions beside each product."""
    figures, step = dict[str, float](), account.step
    if step is not None and step.loaded:
        figures |= {"intensity": step.flops / step.loaded, "stage": step.loaded, "flight": account.in_flight}
    if products := account.loop["tensor"]:
        figures["beside"] = (account.loop.total() - products) / products
    return figures


def measure_waves(example: Example, machine: Machine, account: Account) -> dict[str, float]:
    """Return the tiles in all and of the last wave, the number of waves, and the rows, columns and megabytes of tiles
    that the first one reads."""
    waves = list_waves(example, machine, account.ctas)
    if not waves:
        return {}
    first, last = waves[0], waves[-1]
    return {
        "tiles": sum(wave.tiles for wave in waves), "wave": first.tiles, "rounds": len(waves), "last": last.tiles,
        "rows": first.rows, "columns": first.columns, "megabytes": sum(wave.bytes for wave in waves) / 1e6,
    }  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """What is stored of a subject: a digest of the PTX of its example's golden, and figures by name."""

    code: str
    values: dict[str, float]


def store_figures(subjects: Mapping[Subject, Iterable[str]]) -> None:
    """Measure figures of subjects, and store them."""
    stored = {
        str(subject): {"code": identify_example(subject.name), "values": {name: measured[name] for name in names}}
        for subject, names in subjects.items()
        for measured in [measure_figures(subject)]
    }
    STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", "utf-8")
    read_figures.cache_clear()


@cache
def read_figures() -> dict[str, Figures]:
    """Return what is stored, by subject."""
    return {name: Figures(**entry) for name, entry in json.loads(STORED.read_text("utf-8")).items()}
