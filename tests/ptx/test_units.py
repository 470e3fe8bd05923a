"""Docstrings state the units of offsets, sizes, strides and counts."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import pyptx.ptx
from pyptx import reg, smem

_NAMES = re.compile(r"(offset|size|stride|count|bytes|align|ncols|delta|width|n_stages)s?$")
_UNITS = re.compile(
    r"\b(bytes|elements|threads|lanes|columns|registers|bits|arrivals|buffers|barriers|repetitions|lines)\b"
)


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return every public function and method of `ptx`, `reg` and `smem`."""
    families = [f"pyptx.ptx.{m.name.removeprefix('pyptx.ptx.')}" for m in pkgutil.walk_packages(pyptx.ptx.__path__)]
    for module in (*map(import_module, families), reg, smem):
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
                continue
            for member, function in vars(value).items() if inspect.isclass(value) else [(name, value)]:
                if inspect.isfunction(function) and (not member.startswith("_") or member == "__call__"):
                    yield f"{module.__name__}.{function.__qualname__}", function


FUNCTIONS = [
    (site, function, names)
    for site, function in _functions()
    if (names := [name for name in inspect.signature(function).parameters if _NAMES.search(name)])
]


@pytest.mark.parametrize(("function", "names"), [case[1:] for case in FUNCTIONS], ids=[case[0] for case in FUNCTIONS])
def test_a_docstring_names_the_unit_of_its_arguments(function: Callable[..., Any], names: list[str]) -> None:
    text = inspect.getdoc(function) or ""
    # The spelling of an instruction does not explain an argument: `[m], bytes` is not enough.
    words = re.sub(r"`[^`]*`", "", text)
    elsewhere = re.match(r"Emit what [`c]", text) or "as of `" in text
    assert _UNITS.search(words) or elsewhere, f"{names} are in which units? {text}"
