"""Wrappers emit the spellings of arithmetic, logic, comparisons, conversions, loads and stores in the table, with the
reviewed operands."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from pyptx.dsl.rewrite import iterate_instructions
from pyptx.ir import Function, Instruction
from tests.digests import assert_digest
from tests.dsl.tracing import make_kernel
from tests.ptx.scalar_calls import ROWS, ScalarRegisters, calls
from tests.ptx.tensor_calls import Call


def list_emitted(call: Call) -> list[Instruction]:
    """Return the instructions that a call emitted."""

    def body() -> None:
        call.make(ScalarRegisters())

    module = make_kernel(body, arch=call.targets[-1], version=(9, 5), block=128).module()
    statements = [s for part in module.directives if isinstance(part, Function) for s in part.body]
    return list(iterate_instructions(statements))[:-1]


def spell(instructions: Sequence[Instruction]) -> list[str]:
    """Return the spellings of instructions."""
    return [instruction.full_opcode for instruction in instructions]


def test_a_call_emits_its_spelling(seed: int) -> None:
    draw = random.Random(seed)
    accesses = tuple(row for row in ROWS if row.opcode in ("ld", "st"))
    rows = tuple(row for row in ROWS if row.opcode not in ("ld", "st"))
    sample = [call for call, _ in calls(rows) if call is not None and call.targets]
    emissions = [list_emitted(call) for call in sample]
    assert_digest("calls", "scalar", "\n".join(repr(instruction) for group in emissions for instruction in group))
    extras = [call for call, _ in calls((draw.choice(accesses),)) if call is not None and call.targets][:200]
    emissions += map(list_emitted, extras)
    sample += extras
    assert len(sample) > 1800
    assert list(map(spell, emissions)) == [[call.spelling] for call in sample]


def test_how_many_spellings_wrappers_lack_is_known() -> None:
    """Spellings without a wrapper, for `ptx.inst`: arithmetic on two types or with carry, saturation of `mad`, two
    results of `lop3`, combined comparisons, 8-bit registers, and forms that only old targets have without a
    rounding."""
    rows = tuple(row for row in ROWS if row.opcode not in ("ld", "st"))
    lacking = Counter(spelling.partition(".")[0] for call, spelling in calls(rows) if call is None)
    assert set(lacking) == {*"add sub mul fma mad lop3 setp mov cvt div rcp sqrt rsqrt ex2 lg2 sin cos".split()}
