"""Compare the parameters that an entry declares with the arguments that the manifest passes, by count and size."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.corpus.manifest import Argument, Array, Entry, Scalar, Struct

SIZES = {"float16": 2, "bfloat16": 2, "complex64": 8, "complex128": 16}


def mismatches(text: bytes, entries: tuple[Entry, ...]) -> Iterator[str]:
    """A sentence for every runnable entry whose arguments do not fill its parameters."""
    for entry in entries:
        if entry.run is None:
            continue
        declared = parameters(text.decode("latin-1"), entry.name)
        passed = [size(argument) for argument in entry.run.arguments if not getattr(argument, "hidden", False)]
        if declared != passed:
            yield f"{entry.name}: declares parameters of {declared} bytes, the manifest passes {passed}"


def parameters(text: str, name: str) -> list[int]:
    """The size in bytes of every parameter of an entry."""
    found = re.search(rf"\.entry\s+{re.escape(name)}\s*\((.*?)\)", text, re.S)
    if found is None:
        return []
    sizes: list[int] = []
    for line in found[1].split(","):
        item = re.search(r"\.param\s+(?:\.align\s+\d+\s+)?\.[a-z](\d+)\b[^\[]*(?:\[(\d+)\])?", line)
        if item is not None:
            sizes.append(int(item[1]) // 8 * int(item[2] or 1))
    return sizes


def size(argument: Argument) -> int:
    """The bytes that an argument takes as a parameter."""
    if isinstance(argument, Array):
        return 8
    if isinstance(argument, Struct):
        return argument.size
    if isinstance(argument, Scalar):
        digits = re.sub(r"\D", "", argument.dtype.split("_")[0])
        return SIZES.get(argument.dtype) or int(digits or 8) // 8
    return 128
