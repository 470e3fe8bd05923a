"""Reads the `//!` lines of a corpus source: how to build it, and how its kernels run.

//! build nvcc 13.0.88 sm_80 -O3           one PTX file; `as=NAME` distinguishes a second one
//! kernel saxpy axpy                      an entry (or the part of a mangled name before `(`) and its algorithm
//! launch 4 64x1 cluster=2 smem=512 seed=3 cooperative
//! args n=i32:250 x=f32[250]:normal c=i32[4,8]:integers(low=0,high=9) t=map(c,dims=8x4,box=8x2)
//! out y:1e-6:1e-6 z -> vector.saxpy      outputs with their relative and absolute tolerance, and the reference
//! norun reads a texture                  instead of launch, args and out
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.corpus.manifest import Argument, Array, Dim3, Entry, Output, Run, Scalar, TensorMap

DTYPES = {
    **{f"{short}{bits}": f"{name}{bits}" for short, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}


@dataclass(frozen=True)
class Build:
    """One PTX file to build from a source."""

    producer: str
    version: str
    target: str
    flags: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Source:
    """A source's builds and its kernels by name."""

    path: Path
    builds: tuple[Build, ...]
    kernels: tuple[Entry, ...]

    def entries(self, names: list[str]) -> tuple[Entry, ...]:
        """Return the kernels in the order of the entries of a PTX text."""
        return tuple(self._entry(name) for name in names)

    def _entry(self, name: str) -> Entry:
        matches = [kernel for kernel in self.kernels if kernel.name == name]
        matches = matches or [kernel for kernel in self.kernels if kernel.name in name]
        if len(matches) != 1:
            raise ValueError(f"{self.path.name}: entry {name} matches {[kernel.name for kernel in matches]}")
        return Entry(name, matches[0].algorithm, matches[0].run, matches[0].reason)


def read(path: Path) -> Source:
    """Read one source's declarations."""
    builds: list[Build] = []
    kernels: list[tuple[str, str, dict[str, str]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//! "):
            continue
        word, _, arguments_text = line[4:].partition(" ")
        if word == "build":
            builds.append(_build(arguments_text.split()))
        elif word == "kernel":
            name, algorithm = arguments_text.split()
            kernels.append((name, algorithm, {}))
        else:
            clauses = kernels[-1][2]
            clauses[word] = f"{clauses[word]} {arguments_text}" if word in clauses else arguments_text
    return Source(path, tuple(builds), tuple(_kernel(*kernel) for kernel in kernels))


def _build(words: list[str]) -> Build:
    producer, version, target, *flags = words
    labels = [flag[3:] for flag in flags if flag.startswith("as=")]
    return Build(producer, version, target, tuple(f for f in flags if not f.startswith("as=")), "".join(labels))


def _kernel(name: str, algorithm: str, clauses: dict[str, str]) -> Entry:
    if "norun" in clauses:
        return Entry(name, algorithm, None, clauses["norun"])
    grid, block, *options = clauses["launch"].split()
    pairs = dict(option.split("=") for option in options if "=" in option)
    outputs, _, reference = clauses["out"].partition(" -> ")
    run = Run(
        grid=_dim3(grid),
        block=_dim3(block),
        arguments=tuple(_argument(word) for word in re.findall(r"\S+", clauses["args"])),
        outputs=tuple(_output(word) for word in outputs.split()),
        reference=f"references.{reference}",
        cluster=_dim3(pairs.get("cluster", "1")),
        smem=int(pairs.get("smem", "0")),
        seed=int(pairs.get("seed", "0")),
        cooperative="cooperative" in options,
    )
    return Entry(name, algorithm, run)


def _argument(word: str) -> Argument:
    name, _, arguments_text = word.partition("=")
    if arguments_text.startswith("map("):
        array, *options = arguments_text[4:-1].split(",")
        pairs = dict(option.split("=") for option in options)
        dims, box = (tuple(int(n) for n in pairs[key].split("x")) for key in ("dims", "box"))
        return TensorMap(name, array, DTYPES[pairs.get("type", "f32")], dims, box, pairs.get("swizzle", "none"))
    match = re.fullmatch(r"(\w+)\[([\d,]+)\]:(\w+)(?:\((.*)\))?(!?)", arguments_text)
    if match is None:
        kind, _, value = arguments_text.partition(":")
        return Scalar(name, DTYPES[kind], ast.literal_eval(value))
    shape = tuple(int(n) for n in match[2].split(","))
    return Array(name, DTYPES[match[1]], shape, match[3], _parameters(match[4]), match[5] == "!")


def _parameters(text: str | None) -> dict[str, Any] | None:
    if not text:
        return None
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call):
        raise ValueError(text)
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}


def _output(word: str) -> Output:
    name, _, tolerances = word.partition(":")
    rtol, _, atol = tolerances.partition(":")
    return Output(name, float(rtol or 0), float(atol or 0))


def _dim3(text: str) -> Dim3:
    x, y, z = (*(int(n) for n in text.split("x")), 1, 1)[:3]
    return x, y, z
