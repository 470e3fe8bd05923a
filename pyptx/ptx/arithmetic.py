"""Arithmetic and logic, one instruction each: `ptx.add(u32, a, b)` creates a register, `ptx.add(u32, x, a, b)` writes
`x`. The functions are built from the table; arithmetic.pyi declares them for editors."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.computing import compute
from pyptx.dsl.emit import describe
from pyptx.dsl.registers import Pred, Reg
from pyptx.dsl.trace import fail
from pyptx.isa.computations import Computation, computations
from pyptx.isa.table import meanings


def _make_function(name: str, computation: Computation) -> Callable[..., Reg]:
    """Return the function for an instruction, with its operands and modifiers as arguments."""
    longest = "dst", *computation.sources[-1]

    def emit_computation(dtype: Any, *operands: Any, pred: Pred | None = None, **keywords: Any) -> Reg:
        words: list[str] = []
        for position, choices in computation.positions.items():
            word = keywords.pop(position, None)
            if word is not None and not isinstance(word, str):
                fail(rules.ARGUMENT, f"`{position}` of `ptx.{name}` must be a string, found {describe(word)}",
                     help=f"use one of {', '.join(map(repr, choices))}")  # fmt: skip
            words += [] if word is None else [word]
        words += [word for word in computation.flags if keywords.pop(word, False)]
        if keywords:
            operands = _arrange(name, computation, operands, keywords)
        return compute(computation.opcode, dtype, operands, tuple(words), pred)

    emit_computation.__name__ = emit_computation.__qualname__ = name
    emit_computation.__doc__ = f"{meanings()[computation.opcode]} Writes `dst` or a fresh register, and returns it."
    empty, keyword = Parameter.empty, Parameter.KEYWORD_ONLY
    emit_computation.__signature__ = Signature([  # pyright: ignore[reportFunctionMemberAccess]
        *(Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in ("dtype", "dst", *computation.sources[0][:-1])),
        *(Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=...) for n in longest[len(computation.sources[0]) :]),
        *(Parameter(n, keyword, default=None) for n in computation.positions),
        *(Parameter(n, keyword, default=False) for n in computation.flags),
        Parameter("pred", keyword, default=None),
    ], return_annotation=empty)  # fmt: skip
    return emit_computation


def _arrange(
    name: str, computation: Computation, operands: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the operands, some of them passed by name, in the instruction's order."""
    total = len(operands) + len(keywords)
    first = ("dst",) if "dst" in keywords or total > len(computation.sources[0]) else ()
    places = (*first, *next((s for s in computation.sources if len(s) + len(first) == total), computation.sources[-1]))
    values = dict(zip(places, operands, strict=False)) | keywords
    if len(values) != total or set(values) - set(places):
        wrong = next(n for n in keywords if n not in places[len(operands) :])
        operands_, words = (
            ", ".join(("dst", *computation.sources[-1])),
            ", ".join((*computation.positions, *computation.flags, "pred")),
        )
        fail(rules.ARGUMENT, f"`ptx.{name}` has no operand `{wrong}`",
             help=f"its operands are {operands_}; keyword arguments: {words}")  # fmt: skip
    return tuple(values[place] for place in places if place in values)


def __getattr__(name: str) -> Callable[..., Reg]:
    computation = computations().get(name.rstrip("_"))
    if computation is None or name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = globals()[name] = _make_function(name, computation)
    return function
