"""The list of checks: functions of the machine that raise AssertionError or PtxError if something is wrong."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from pyptx.runtime.bindings import call

T = TypeVar("T")
Function = Callable[["Machine"], str]
"""Returns what was compared, in a few words."""


@dataclass(frozen=True)
class Machine:
    """Where the checks run: the target of the GPU, and whether the driver simulates it; which runs of the kernels, None
    for all; the part of a check to run, "" for all; and a folder to store results in."""

    target: str
    is_simulated: bool
    sample: int | None = None
    seed: int = 0
    part: str = ""
    folder: Path | None = None
    is_recorded: bool = False
    """Whether the folder has the results of a GPU, and there is none."""
    device: str = ""
    """The simulated device, if any."""

    def choose(self, runs: Sequence[T]) -> list[T]:
        """Return the runs to compare."""
        count = len(runs) if self.sample is None else min(self.sample, len(runs))
        return random.Random(self.seed).sample(runs, count)


ListParts = Callable[[Machine], list[str]]


@dataclass(frozen=True)
class Check:
    """A check, what it compares, and what it needs besides a driver, by the names of `NEEDS`.

    On a GPU, each of its `parts` runs in a process of its own for at most `limit` seconds, or with `alone` while
    nothing else runs."""

    name: str
    about: str
    needs: tuple[str, ...]
    run: Function
    parts: ListParts | None = None
    limit: float = 120.0
    alone: bool = False

    def find_missing(self, machine: Machine) -> list[str]:
        """Return what this machine lacks."""
        return [need for need in self.needs if not NEEDS[need](machine)]


def _has_torch(machine: Machine) -> bool:
    if machine.is_simulated or find_spec("torch") is None:
        return False
    torch: Any = import_module("torch")
    return bool(torch.cuda.is_available())


def _can_hold_tensors(machine: Machine) -> bool:
    """PyTorch's tensors: of the simulated driver in the CPU's memory, else CUDA tensors."""
    return find_spec("torch") is not None if machine.is_simulated else _has_torch(machine)


def _has_jax(machine: Machine) -> bool:
    if machine.is_simulated or find_spec("jax") is None:
        return False
    jax: Any = import_module("jax")
    return bool(jax.default_backend() == "gpu")


def _has_two_devices(machine: Machine) -> bool:
    return int(call("cuDeviceGetCount")) > 1


NEEDS: dict[str, Callable[[Machine], bool]] = {
    "a GPU": lambda machine: not machine.is_simulated,
    "two GPUs": _has_two_devices,
    "PyTorch": _can_hold_tensors,
    "PyTorch with CUDA": _has_torch,
    "JAX with CUDA": _has_jax,
    "compute-sanitizer": lambda machine: shutil.which("compute-sanitizer") is not None,
    "CuPy": lambda machine: not machine.is_simulated and find_spec("cupy") is not None,
}
CHECKS: list[Check] = []


def check(
    about: str, *needs: str, parts: ListParts | None = None, limit: float = 120.0, alone: bool = False
) -> Callable[[Function], Function]:
    """Add a function to the list; its name is the name of the check."""
    unknown = [need for need in needs if need not in NEEDS]
    if unknown:
        raise ValueError(f"no such need: {', '.join(unknown)}")

    def add(function: Function) -> Function:
        CHECKS.append(Check(function.__name__.replace("_", "-"), about, needs, function, parts, limit, alone))
        return function

    return add
