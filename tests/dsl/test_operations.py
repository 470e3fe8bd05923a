"""What each operation on each object of the front end emits, returns or says is the reviewed text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pyptx import PtxError, ptx, reg, smem
from pyptx.types import ALL, PtxType, bf16, f32, from_name, pred, s32, u16, u32, u64
from tests.digests import assert_digest

from .tracing import make_kernel

Maker = Callable[[], Any]
OBJECTS: dict[str, Maker] = {
    **{t.name: lambda t=t: reg.alloc(t) for t in ALL if t.kind != "opaque" and t.name != "e2m1x2"},
    "not pred": lambda: ~reg.alloc(pred), "pipe": lambda: reg.alloc(pred) | reg.alloc(pred),
    "range": lambda: reg.array(u32, 4, name="range"), "tile": lambda: smem.alloc(f32, (4, 8), name="tile"),
    "line": lambda: smem.alloc(u16, 6, name="line"), "large": lambda: smem.alloc(f32, (128, 128), name="large"),
    "swizzled tile": lambda: smem.alloc(bf16, (8, 64), "128B", name="tile"),
    "wgmma tile": lambda: smem.wgmma_tile(bf16, (64, 64), name="tile"),
    "slice": lambda: smem.alloc(f32, (4, 8, 2), name="tile")[1],
    "slice by register": lambda: smem.alloc(f32, (4, 8, 2), name="tile")[reg.alloc(u32)],
    "address": lambda: smem.alloc(f32, (4, 8), name="tile") + 8,
    "address by register": lambda: smem.alloc(f32, (4, 8), name="tile") + reg.alloc(s32),
    "element": lambda: smem.alloc(bf16, (8, 64), "128B", name="tile").swizzled(1, 2),
    "element by register": lambda: smem.alloc(bf16, (8, 64), "128B", name="tile").swizzled(reg.alloc(u32), 2),
    "barriers": lambda: smem.mbarrier(3, name="bars"), "barrier": lambda: smem.mbarrier(3, name="bars")[1],
    "barrier by register": lambda: smem.mbarrier(3, name="bars")[reg.alloc(u32)],
    "ring": lambda: ptx.mbarrier.array(reg.alloc(u32), 8, 2), "slot": lambda: ptx.mbarrier.array("bars", 8, 2)[1],
    "base": smem.base, "special": lambda: ptx.special.tid,
    "special register": lambda: ptx.special.tid.x(),
    "dynamic": lambda: smem.alloc(f32, 4, align=1024), "fragment": lambda: reg.wgmma_frag(m=64, n=8, dtype=f32),
}  # fmt: skip
OTHERS: dict[str, Maker] = {
    "0": lambda: 0, "1": lambda: 1, "3": lambda: 3, "-1": lambda: -1, "8": lambda: 8, "32": lambda: 32,
    "2**31": lambda: 1 << 31, "2**33": lambda: 1 << 33, "1.5": lambda: 1.5, "True": lambda: True, "text": lambda: "x",
    "None": lambda: None, "u32": lambda: reg.alloc(u32), "s32": lambda: reg.alloc(s32), "u16": lambda: reg.alloc(u16),
    "u64": lambda: reg.alloc(u64), "f32": lambda: reg.alloc(f32), "pred": lambda: reg.alloc(pred),
    "not pred": lambda: ~reg.alloc(pred), "tile": lambda: smem.alloc(f32, 4, name="other"),
    "a type": lambda: from_name("s64"), "indices": lambda: (1, reg.alloc(u32)), "slice": lambda: slice(1, 3),
}  # fmt: skip
BINARY = (
    "add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "eq", "ne",
    "lt", "ge", "getitem",
)  # fmt: skip
REFLECTED = ("add", "sub", "mul", "floordiv", "lshift", "and_", "xor", "gt", "getitem")
UNARY: tuple[Callable[[Any], Any], ...] = (
    repr, str, len, bool, int, iter, operator.neg, operator.pos, operator.invert, abs, "{:d}".format,
)  # fmt: skip
METHODS = ("load", "store", "address", "max", "min", "view", "swizzled", "k_offset", "to", "cast", "__call__")


def operate(make: Maker) -> Iterator[tuple[str, Maker]]:
    """Yield operations on an object, each with a description."""
    for function in UNARY:
        yield function.__name__, lambda function=function: function(make())
    for method in METHODS:
        yield method, lambda method=method: getattr(make(), method)()
    for name, other in OTHERS.items():
        for word in BINARY:
            yield f"{word} {name}", lambda word=word, other=other: getattr(operator, word)(make(), other())
        for word in REFLECTED:
            yield f"{name} {word}", lambda word=word, other=other: getattr(operator, word)(other(), make())
        for method in METHODS:
            yield f"{method} {name}", lambda method=method, other=other: getattr(make(), method)(other())
        yield f"setitem {name}", lambda other=other: operator.setitem(make(), other(), 1)
        yield f"setitem of {name}", lambda other=other: operator.setitem(make(), 0, other())


def describe_operation(operation: Maker) -> str:
    """Return the statements of a kernel with an operation and its result, or the error."""
    results: list[Any] = []

    def body() -> None:
        results.append(operation())

    try:
        text = make_kernel(body).ptx()
    except PtxError as error:
        return "\n".join(f"{found.code} {found.message} {found.help} {found.notes}" for found in error.diagnostics)
    except (AttributeError, TypeError, IndexError, ValueError) as error:
        return type(error).__name__
    return f"{_describe_result(results[0])}\n{text[text.index('{') :]}"


def _describe_result(result: Any) -> str:
    is_shown = isinstance(result, reg.Reg | bool | int | str | PtxType) or type(result).__module__.startswith("pyptx.")
    return f"{result!r}" if is_shown else type(result).__name__


@pytest.mark.parametrize("name", OBJECTS)
def test_every_operation_on(name: str) -> None:
    texts = [f"{words}: {describe_operation(operation)}" for words, operation in operate(OBJECTS[name])]
    assert_digest("operations", name, "\n".join(texts))
