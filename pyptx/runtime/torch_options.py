"""Writes the keywords of a call as the text that a PyTorch operator takes, and reads them back.

`scale=2, dtype=f32, p=memory[0]` reads like the call: numbers, strings, types by name, tuples, lists and dicts.
`torch.compile` traces `encode`, so it is plain Python.
"""

from __future__ import annotations

import ast
import operator
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.runtime.arrays import get_numpy_dtype
from pyptx.runtime.rules import TRANSFORMS
from pyptx.types import PtxType, from_name

torch: Any = import_module("torch")

_PROCESS = secrets.token_hex(4)
_OBJECTS: list[object] = []
"""Values that have no text, such as functions. Graphs refer to them for as long as the process lives."""
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


def encode(value: Any) -> str:
    """Return a value as text. A symbolic integer becomes constant: what is compiled holds for this value only."""
    if isinstance(value, np.generic) and not isinstance(value, str | bytes):
        return _encode_number(value)
    if value is None or isinstance(value, bool | float | str | bytes):
        return repr(value)
    if isinstance(value, int):
        return repr(operator.index(value))
    if isinstance(value, PtxType):
        return value.name
    if isinstance(value, tuple):
        return "(" + "".join([encode(item) + ", " for item in cast("tuple[Any, ...]", value)]) + ")"
    if isinstance(value, list):
        return "[" + ", ".join([encode(item) for item in cast("list[Any]", value)]) + "]"
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return "{" + ", ".join([f"{encode(key)}: {encode(item)}" for key, item in items]) + "}"
    return remember(value)


def _encode_number(value: Any) -> str:
    return f"number({value.dtype.name!r}, {value.tobytes()!r})"


@torch.compiler.assume_constant_result
def remember(value: object) -> str:
    """Return text that refers to an object of this process."""
    index = next((index for index, known in enumerate(_OBJECTS) if known is value), len(_OBJECTS))
    if index == len(_OBJECTS):
        _OBJECTS.append(value)
    return f"object({index}, {_PROCESS!r}, {type(value).__name__!r})"


def decode(text: str, memory: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the keywords that a text holds. `memory` are the tensors that raw parameters point to."""
    return {name: _read(value, name, memory) for name, value in _parse(text)}


@lru_cache(maxsize=4096)
def _parse(text: str) -> tuple[tuple[str, ast.expr], ...]:
    match ast.parse(f"f({text})", mode="eval").body:
        case ast.Call(ast.Name("f"), [], keywords):
            return tuple((word.arg or "**", word.value) for word in keywords)
        case _:
            raise ValueError(f"not options: {text}")


def _read(node: ast.expr, name: str, memory: Sequence[Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp(op=ast.USub()):
            return -_read(node.operand, name, memory)
        case ast.Name():
            return _NUMBERS[node.id] if node.id in _NUMBERS else from_name(node.id)
        case ast.Tuple():
            return tuple(_read(item, name, memory) for item in node.elts)
        case ast.List():
            return [_read(item, name, memory) for item in node.elts]
        case ast.Dict():
            pairs = zip(cast("list[ast.expr]", node.keys), node.values, strict=True)
            return {_read(key, name, memory): _read(value, name, memory) for key, value in pairs}
        case ast.Subscript(value=ast.Name("memory")):
            return memory[_read(node.slice, name, memory)]
        case ast.Call(ast.Name("number"), [ast.Constant(str(dtype)), ast.Constant(bytes(data))]):
            return np.frombuffer(data, get_numpy_dtype(dtype))[0]
        case ast.Call(
            ast.Name("object"), [ast.Constant(int(index)), ast.Constant(str(process)), ast.Constant(str(kind))]
        ):
            return _find_object(name, index, process, kind)
        case _:
            raise ValueError(f"not an option: {ast.unparse(node)}")


def _find_object(name: str, index: int, process: str, kind: str) -> object:
    if process != _PROCESS:
        text = f"this program refers to `{name}`, an object of type {kind} in another process"
        raise PtxError([TRANSFORMS.report(
            None, text, help="export it with numbers, strings, types, or tuples of these as template parameters",
        )])  # fmt: skip
    return _OBJECTS[index]


def join(options: Mapping[str, Any]) -> str:
    """Return keywords as one text."""
    return ", ".join([f"{name}={encode(value)}" for name, value in options.items()])
