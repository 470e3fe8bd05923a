"""Shared by memory operations: the modifiers of a memory order, the spelling of types, and the emission of `atom` and
`red`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.arithmetic import to_unsigned, to_untyped
from pyptx.dsl.emit import emit, spell
from pyptx.dsl.ranges import RegArray
from pyptx.dsl.registers import Dtype, resolve_type

HALVES = frozenset(("f16", "bf16", "f16x2", "bf16x2"))
_BITWISE = frozenset(("and", "or", "xor", "exch", "cas"))
_EXCHANGES = frozenset(("exch", "cas"))


def spell_barrier_order(sem: str | None, scope: str | None, default: str) -> tuple[str, ...]:
    """Return the memory order of an mbarrier operation, or nothing if neither half is set."""
    return () if sem is None and scope is None else (sem or default, scope or "cta")


def keep_present(*words: str | None) -> tuple[str, ...]:
    """Return the modifiers that are present."""
    return tuple([word for word in words if word])


def choose_operand_type(op: str, dtype: Dtype) -> str:
    """Return the type that an atomic operation uses for values of this type.

    Exchanges use bit types. Bits count as unsigned; the two's complement sum of s64 is that of u64, the only name PTX
    has for it.
    """
    dtype = resolve_type(dtype)
    if dtype.kind not in ("b", "u", "s"):
        return to_untyped(dtype).name if op in _EXCHANGES else dtype.name
    if op in _BITWISE:
        return to_untyped(dtype).name
    return "u64" if op == "add" and dtype.bits == 64 else to_unsigned(dtype).name


def spell_vector(value: object) -> tuple[str, ...]:
    """Return `.vN` for a list or range of registers."""
    return (f"v{len(value)}",) if isinstance(value, list | RegArray) else ()  # pyright: ignore[reportUnknownArgumentType]


def spell_bulk_operation(op: str, dtype: Dtype) -> tuple[str, ...]:
    """Return the operation and type of a bulk reduction; sums of f16 and bf16 have `.noftz`."""
    kind = choose_operand_type(op, dtype)
    return (*keep_present(op, "noftz" if op == "add" and kind in HALVES else None), kind)


def emit_atomic(
    opcode: str, op: str, dtype: Dtype, operands: tuple[Any, ...], order: tuple[str | None, ...], hint: Any, pred: Any
) -> None:
    """Emit `atom` or `red`; the last operand determines whether it is a vector."""
    kind = choose_operand_type(op, dtype)
    noftz = "noftz" if kind in HALVES and op in ("add", "min", "max") else None
    level = None if hint is None else "L2::cache_hint"
    words = (*keep_present(*order, op, noftz, level), *spell_vector(operands[-1]), kind)
    emit(spell(opcode, *words), operands if hint is None else (*operands, hint), pred)
