"""Cases: kernels with four parameters (a tensor map, a table of numbers, input data, output), and their random inputs.

The same seed gives the same inputs on every machine and in every version of Python and NumPy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from pyptx.tensormap import TensorMap

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
ALIGNMENT = 1024


@dataclass(frozen=True)
class Entry:
    """A kernel: its name, its text, threads per CTA, and the CTAs of its only cluster."""

    name: str
    text: str
    threads: int = 128
    ctas: int = 1


@dataclass(frozen=True)
class Inputs:
    """What a launch gets. The address of the map is an offset in the output, or else in the data."""

    table: bytes
    data: bytes
    out: bytes
    map: TensorMap | None = None
    map_is_of_output: bool = False


@dataclass(frozen=True)
class Case:
    """One launch; without an entry, the driver only encodes the map. Inputs are drawn when they are needed."""

    name: str
    entry: Entry | None
    draw: Callable[[Random], Inputs]

    @property
    def family(self) -> str:
        """The first part of the name."""
        return self.name.split("/", 1)[0]

    def make_inputs(self, seed: int) -> Inputs:
        """Return the inputs of this case."""
        return self.draw(Random(f"{seed}/{self.name}"))


def find_key(case: Case, inputs: Inputs) -> str:
    """Return a digest of all that determines the answer of a case, so that no stale answer is compared."""
    text = case.entry.text if case.entry else ""
    parts = (text.encode(), inputs.table, inputs.data, inputs.out, repr(inputs.map).encode())
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:16]
