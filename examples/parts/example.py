"""What every example file declares: a kernel, its reference, and the runs that the tests make.

A file declares `EXAMPLE = Example(make=…, reference=…, …)`. `python examples/hopper/05_cluster_gemm.py` then simulates
and assembles it, and `--help` lists what else it does. Knows no particular kernel.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from examples.parts.tile_order import HeadOrder, TileOrder
from pyptx import Kernel, Tile, sim
from pyptx.numbers import FORMATS
from pyptx.runtime.arrays import get_numpy_dtype

Array = np.ndarray[Any, Any]
Shape = Mapping[str, Any]
"""Sizes of a kernel's dimensions, and its template parameters."""
EXAMPLES = Path(__file__).parents[1]
_NUMBER = re.compile(r"\d+_")
HALF = 2.0**-8
"""Half a unit in the last place of bf16."""
_SPECIAL = (np.nan, np.inf, -np.inf)


@dataclass(frozen=True, slots=True)
class Run:
    """A launch: inputs are normal numbers times `scale`, and results must be within `rtol` and `atol` of the reference.
    `special` puts NaN and infinities into the inputs, but not into a single number, which would spoil all results."""

    shape: Shape
    rtol: float = 0.0
    atol: float = 0.0
    scale: float = 1.0
    special: bool = False
    findings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Codes that the simulator reports with every class of checks, and why the kernel is right. NaN and infinities of a
    `special` run need no reason."""

    def __str__(self) -> str:
        values = (f"{name}={value}" for name, value in self.shape.items())
        return " ".join([*values, *(["special"] if self.special else [])]) or "fixed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outputs of a run, what they should be (None: any value, as of a workspace), and the simulator's report."""

    run: Run
    outputs: tuple[Array, ...]
    expected: tuple[Array | None, ...]
    report: sim.Result

    def verify(self) -> None:
        """Raise an AssertionError if an output is too far from what it should be."""
        verify(self.run, self.outputs, self.expected)


def verify(run: Run, outputs: Sequence[Array], expected: Sequence[Array | None]) -> None:
    """Raise an AssertionError if an output is too far from what it should be."""
    for actual, desired in zip(outputs, expected, strict=True):
        if desired is not None:
            assert actual.shape == desired.shape, f"{run}: shape {actual.shape}, expected {desired.shape}"
            np.testing.assert_allclose(widen(actual), widen(desired), run.rtol, run.atol, err_msg=str(run))


@dataclass(frozen=True, slots=True)
class Example:
    """A kernel with what is needed to test, describe and time it."""

    make: Callable[..., Kernel]
    """Makes the kernel for a target, the first of `targets` by default."""
    reference: Callable[..., Any]
    """Computes the outputs from the inputs in higher precision: an array, or a tuple with one per output, None for a
    workspace. Its keywords are the kernel's template parameters."""
    targets: tuple[str, ...]
    runs: tuple[Run, ...]
    """Small launches; the first is the smallest, and together they cover edges and special values."""
    large: Shape
    """A launch of real size: what is assembled, described and timed."""
    sass: tuple[str, ...] = ()
    """Instructions that the machine code must contain, of every target; `|` separates spellings of architectures."""
    draw: Callable[[Run, np.random.Generator], Sequence[Array]] | None = None
    """Draws the inputs, if random numbers of the declared types will not do."""
    outputs: Callable[[Shape], Sequence[Array]] | None = None
    """Makes arrays to write to, for a kernel that updates its outputs."""
    flops: Callable[[Shape], int] | None = None
    """Counts the floating-point operations of a launch from its shape."""
    traffic: Callable[[Shape], int] | None = None
    """Counts the bytes that a launch must move through global memory."""
    order: TileOrder | HeadOrder | None = None
    """The order of the tiles, if it decides what L2 keeps."""
    fixed: tuple[str, ...] = ()
    """Dimensions that choose tiles, as a head dimension does: the PTX may grow with these."""
    kept: tuple[str, ...] = ()
    """Dimensions that the kernel keeps in registers up to a limit, below which its code grows with them."""
    conflicts: str = ""
    """Why shared accesses conflict, if they do."""
    varies: str = ""
    """Why the last bits of the result depend on the order of the threads, if they do."""
    peer: str = ""
    """What the kernel is timed against on a GPU: names in `examples/parts/peers.py`, separated by spaces."""

    @property
    def module(self) -> ModuleType:
        """The example's module."""
        return sys.modules[self.make.__module__]

    @property
    def path(self) -> Path:
        """The example's file."""
        return Path(self.make.__code__.co_filename).resolve()

    @property
    def name(self) -> str:
        """The directory and the name without its number: "hopper/cluster_gemm"."""
        return name_example(self.path)

    @property
    def summary(self) -> str:
        """The first sentence of the file's docstring."""
        return " ".join((self.module.__doc__ or "").strip().split("\n\n")[0].split())

    def draw_inputs(self, run: Run, seed: int = 0) -> tuple[Array, ...]:
        """Return the inputs of a run."""
        random = np.random.default_rng(seed)
        if self.draw is not None:
            return tuple(self.draw(run, random))
        return tuple(draw_array(tile, run, random) for tile in self.make().in_specs)

    def compute(self, run: Run, inputs: Sequence[Array]) -> tuple[Array | None, ...]:
        """Return what the outputs should be."""
        names = {name for tile in list_tiles(self.make()) for name in tile.symbolic_dims}
        parameters = {name: value for name, value in run.shape.items() if name not in names}
        with np.errstate(invalid="ignore") if run.special else nullcontext():
            expected = self.reference(*inputs, **parameters)
        return cast("tuple[Array | None, ...]", expected if isinstance(expected, tuple) else (expected,))

    def simulate(self, run: Run, arch: str | None = None, *, kernel: Kernel | None = None, **options: Any) -> Outcome:
        """Run the kernel on the simulator; `options` are those of `Kernel.simulate`."""
        kernel = kernel or self.make(arch or self.targets[0])
        inputs = self.draw_inputs(run)
        keywords = list_keywords(kernel, run)
        if self.outputs is not None:
            arrays = tuple(self.outputs(run.shape))
            options["out"] = arrays[0] if len(arrays) == 1 else arrays
        report = kernel.simulate(*inputs, **keywords, **options)
        names = [name for name, _ in kernel.definition.tensors[len(inputs) :]]
        return Outcome(run, tuple(report.outputs[name] for name in names), self.compute(run, inputs), report)

    def list_absent(self, sass: str) -> list[str]:
        """Return the instructions of `sass` that machine code does not contain."""
        return [words for words in self.sass if not any(word in sass for word in words.split("|"))]

    def show(self) -> None:
        """Do what the command line asks for; without arguments, simulate and assemble the kernel and print results."""
        import_module("examples.parts.show").main(self)


def count_gemm_flops(shape: Shape) -> int:
    """Return the floating-point operations of a product."""
    return 2 * shape["m"] * shape["n"] * shape["k"]


def draw_array(tile: Tile, run: Run, random: np.random.Generator) -> Array:
    """Return random values of a tile's shape and type."""
    dims, dtype = tile.resolve_shape(dict(run.shape)), find_dtype(tile)
    if tile.dtype.kind in "usb":
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, dims, endpoint=True).astype(dtype)
    values = random.standard_normal(dims) * run.scale
    if run.special and values.size > 1:
        positions = random.choice(values.size, min(values.size, len(_SPECIAL)), replace=False)
        values.flat[positions] = _SPECIAL[: len(positions)]
    return values.astype(dtype)


def find_dtype(tile: Tile) -> np.dtype[Any]:
    """Return the type of a tile's arrays."""
    return get_numpy_dtype(FORMATS[tile.dtype.name].arrays[0])


def widen(array: Array) -> Array:
    """Return an array's values in f64."""
    return array.astype(np.float64)


def list_keywords(kernel: Kernel, run: Run) -> dict[str, Any]:
    """Return the keywords of a call: template parameters, and the dimensions that no input has."""
    bound = {name for tile in kernel.in_specs for name in tile.symbolic_dims}
    return {name: value for name, value in run.shape.items() if name not in bound}


def list_tiles(kernel: Kernel) -> tuple[Tile, ...]:
    """Return the tensors of a kernel."""
    return (*kernel.in_specs, *kernel.out_specs)


def name_example(path: Path) -> str:
    """Return the name of a file's example: its directory and its name without the number."""
    return f"{path.parent.name}/{_NUMBER.sub('', path.stem, count=1)}"


def list_paths() -> list[Path]:
    """Return the example files in the order of the ladders."""
    return sorted(path for path in EXAMPLES.glob("*/*.py") if _NUMBER.match(path.name))


def load_example(path: Path) -> Example:
    """Return what a file declares."""
    example = import_module(f"examples.{path.parent.name}.{path.stem}").EXAMPLE
    assert isinstance(example, Example)
    return example


def find_example(name: str) -> Example:
    """Return an example by its name, as "hopper/cluster_gemm"."""
    paths = [path for path in list_paths() if name_example(path) == name]
    if len(paths) != 1:
        known = ", ".join(name_example(path) for path in list_paths())
        raise LookupError(f"{len(paths)} examples are called {name!r}; expected one of {known}")
    return load_example(paths[0])


def load_examples() -> list[Example]:
    """Return all examples in the order of the ladders."""
    return [load_example(path) for path in list_paths()]
