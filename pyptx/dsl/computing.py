"""Emits instructions that compute one value of one type: derives the spelling from a type and words, and creates a
register if there is no destination. Reads the table rows through `isa.computations`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pyptx.dsl.arithmetic import to_unsigned
from pyptx.dsl.emit import Spelling, emit, find_plans, spell
from pyptx.dsl.registers import Pred, Reg, create_register, make_destination, resolve_type
from pyptx.dsl.trace import get_trace
from pyptx.isa.computations import computations
from pyptx.isa.lookup import find_matches
from pyptx.isa.targets import Target, Version
from pyptx.types import PtxType, from_name

_DEFAULTS = ("rn", "lo", "approx")
"""Defaults for required modifiers: round to nearest even, the low half, or the approximation if there is nothing
else."""


def compute(opcode: str, dtype: Any, operands: Sequence[Any], words: tuple[str, ...], pred: Pred | None) -> Reg:
    """Emit an instruction and return its destination: the first operand, or a new register if only sources are
    passed."""
    trace, dtype = get_trace(), resolve_type(dtype)
    spelling, result, counts = _choose_spelling(opcode, dtype, words, trace.target, trace.table_version)
    if len(operands) not in counts and len(operands) + 1 in counts:
        values = [create_register(result, None, trace), *operands]
    else:
        values = [*map(make_destination, operands[:1]), *operands[1:]]
    emit(spelling, values, pred, trace)
    return values[0]


@lru_cache(maxsize=4096)
def _choose_spelling(
    opcode: str, dtype: PtxType, words: tuple[str, ...], target: Target, version: Version
) -> tuple[Spelling, PtxType, frozenset[int]]:
    """Return the spelling for a type, the result type and the possible operand counts. Untyped bits count as unsigned,
    and every type as bits if the instruction takes only bits."""
    types = computations()[opcode].types
    kind = next((n for n in (dtype.name, f"b{dtype.bits}", to_unsigned(dtype).name) if n in types), dtype.name)
    spellings = [spell(opcode, *prefix, *words, kind) for prefix in ((), *((word,) for word in _DEFAULTS))]
    usable = [s for s in spellings if find_plans(s, target, version)]
    legal = [s for s in (*usable, *spellings) if find_matches(opcode, s.modifiers)]
    if not legal:
        return spellings[0], dtype, frozenset()
    matches = find_matches(opcode, legal[0].modifiers)
    result_type = matches[0].signatures[0][0].type
    result = dtype if result_type in (None, kind) else from_name(result_type)
    return spell(opcode, *matches[0].modifiers), result, frozenset(len(s) for m in matches for s in m.signatures)
