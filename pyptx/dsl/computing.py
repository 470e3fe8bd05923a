"""Emits instructions that compute one value of one type: derives the spelling from a type and words, and creates a
register if there is no destination. Reads the table rows through `isa.computations`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pyptx.dsl.arithmetic import unsigned
from pyptx.dsl.emit import Spelling, emit, judged, spelled
from pyptx.dsl.registers import Pred, Reg, destination, fresh, type_of
from pyptx.dsl.trace import current
from pyptx.isa.computations import computations
from pyptx.isa.lookup import matches_of
from pyptx.isa.targets import Target, Version
from pyptx.types import PtxType, from_name

_DEFAULTS = ("rn", "lo", "approx")
"""Defaults for required modifiers: round to nearest even, the low half, or the approximation if there is nothing
else."""


def compute(opcode: str, dtype: Any, operands: Sequence[Any], words: tuple[str, ...], pred: Pred | None) -> Reg:
    """Emit an instruction and return its destination: the first operand, or a new register if only sources are
    passed."""
    trace, dtype = current(), type_of(dtype)
    spelling, result, counts = _choose_spelling(opcode, dtype, words, trace.target, trace.judged_at)
    if len(operands) not in counts and len(operands) + 1 in counts:
        values = [fresh(result, None, trace), *operands]
    else:
        values = [*map(destination, operands[:1]), *operands[1:]]
    emit(spelling, values, pred, trace)
    return values[0]


@lru_cache(maxsize=4096)
def _choose_spelling(
    opcode: str, dtype: PtxType, words: tuple[str, ...], target: Target, version: Version
) -> tuple[Spelling, PtxType, frozenset[int]]:
    """Return the spelling for a type, the result type and the possible operand counts. Untyped bits count as unsigned,
    and every type as bits if the instruction takes only bits."""
    types = computations()[opcode].types
    kind = next((n for n in (dtype.name, f"b{dtype.bits}", unsigned(dtype).name) if n in types), dtype.name)
    spellings = [spelled(opcode, *said, *words, kind) for said in ((), *((word,) for word in _DEFAULTS))]
    usable = [s for s in spellings if judged(s, target, version)]
    known = [s for s in (*usable, *spellings) if matches_of(opcode, s.modifiers)]
    if not known:
        return spellings[0], dtype, frozenset()
    matches = matches_of(opcode, known[0].modifiers)
    written = matches[0].signatures[0][0].type
    result = dtype if written in (None, kind) else from_name(written)
    return spelled(opcode, *matches[0].modifiers), result, frozenset(len(s) for m in matches for s in m.signatures)
