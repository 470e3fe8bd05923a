"""Where a statement was written in the user's Python: frames as (code, f_lasti), with the chain of calling helpers.

Reading `f_lineno` takes time proportional to the function, so lines are resolved only on demand.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from pyptx.diagnostics import PythonFrame

PACKAGE = str(Path(__file__).parent.parent) + "/"

Key = tuple[int, ...]
Memo = dict[Key, PythonFrame]
"""Cached frames. Codes are keyed by identity (hashing them is slow); the frames keep them alive."""


_OURS: dict[int, CodeType] = {}
"""Code objects of this package among the callers, by identity, held so that the identity stays unique."""


def is_ours(code: CodeType) -> bool:
    """Tell whether a code object belongs to this package."""
    return code.co_filename.startswith(PACKAGE) or code.co_filename.endswith("/contextlib.py")


def find_user_frame(root: CodeType | None, memo: Memo) -> PythonFrame | None:
    """Return the user's place, with its callers up to the kernel function; `root` is the code that called the kernel
    function."""
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        if frame.f_code is root:
            return None
        frame = frame.f_back
    if frame is None:
        return None
    back = frame.f_back
    key: Key = (id(frame.f_code), frame.f_lasti)
    if root is None or (back is not None and back.f_code is root):
        place = memo.get(key)
        if place is None:
            place = memo[key] = PythonFrame(frame.f_code, frame.f_lasti)
        return place
    return _build_chain(frame, root, memo)


def find_caller() -> PythonFrame | None:
    """Return the place of the user's call into this package, which PyTorch or JAX may have passed on."""
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and (is_ours(frame.f_code) or _is_relayed(frame)):
        frame = frame.f_back
    return None if frame is None else PythonFrame(frame.f_code, frame.f_lasti)


def _is_relayed(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("torch", "jax")


def _build_chain(frame: FrameType, root: CodeType | None, memo: Memo) -> PythonFrame:
    key: list[int] = []
    cursor: FrameType | None = frame
    while cursor is not None:
        code = cursor.f_code
        if code is root:
            break
        number = id(code)
        if number not in _OURS:
            if code.co_filename.startswith(PACKAGE):
                _OURS[number] = code
            else:
                key += (number, cursor.f_lasti)
        cursor = cursor.f_back
    place = memo.get(tuple(key))
    if place is not None:
        return place
    places: list[tuple[CodeType, int]] = []
    cursor = frame
    while cursor is not None and cursor.f_code is not root:
        if not is_ours(cursor.f_code):
            places.append((cursor.f_code, cursor.f_lasti))
        cursor = cursor.f_back
    for code, lasti in reversed(places):
        place = PythonFrame(code, lasti, place)
    assert place is not None
    memo[tuple(key)] = place
    return place


def find_definition(function: Callable[..., Any]) -> PythonFrame | None:
    """Return the place of the user's `def`, behind decorators."""
    code = _get_code(function)
    return None if code is None else PythonFrame.of_definition(code)


def end_of(function: Callable[..., Any]) -> PythonFrame | None:
    """Return the place of the last statement of a function."""
    code = _get_code(function)
    if code is None:
        return None
    places = (
        (end or 0, line or 0, -(col or 0), -index) for index, (line, end, col, _) in enumerate(code.co_positions())
    )
    return PythonFrame(code, -max(places)[-1] * 2)


def _get_code(function: Callable[..., Any]) -> CodeType | None:
    return getattr(inspect.unwrap(function), "__code__", None)


def list_lines(code: CodeType) -> list[tuple[int, int]]:
    """Return (line, column) of every instruction of a code object; columns start at 1."""
    first = code.co_firstlineno
    return [(line or first, (col or 0) + 1) for line, _, col, _ in code.co_positions()]
