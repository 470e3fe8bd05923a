"""How each spelling of the instructions with wrappers is called: every modifier at least once, guarded or not.

The digest of an opcode is of the Python of its instructions: print `describe` at both commits to see what changed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from pyptx.codegen import ptx_to_python
from pyptx.codegen.passes.use_families import FAMILIES
from pyptx.codegen.passes.use_wrappers import WAYS
from pyptx.isa import lookup, table
from pyptx.isa.model import Form
from tests.codegen.sugared import find_module_difference
from tests.digests import assert_digest
from tools.isa.audit_spellings import Place, list_first_places
from tools.isa.synthesize import instructions

_REGISTER = re.compile(r"q_(\w+?)_\d+")


def list_bindings(row: Form) -> Iterator[lookup.Bindings]:
    """Yield spellings that have each choice of each position, the shortest first."""
    seen = set[tuple[str, object]]()
    for sequence in sorted(lookup.list_sequences(row), key=len):
        for turn in range(max((len(slot.choices) for slot in sequence), default=1)):
            binding = tuple((slot.name, slot.choices[turn % len(slot.choices)]) for slot in sequence)
            if not set(binding) <= seen or not binding:
                seen |= set(binding)
                yield binding


def list_modules(opcode: str) -> Iterator[str]:
    """Yield modules of one instruction each."""
    for row in table.find_rows(opcode):
        for binding in list_bindings(row):
            match = lookup.match_of(row, binding)
            for place in list_first_places(match.needs, match.form.removed)[:1]:
                for text in instructions(match):
                    for guard in ("", "@q_pred_99 "):
                        yield make_module(place, guard + text)


def make_module(place: Place, text: str) -> str:
    """Return a module with an instruction."""
    kinds = dict.fromkeys(_REGISTER.findall(text))
    return "\n".join([
        f".version {place.version[0]}.{place.version[1]}", f".target {place.target.name}", ".address_size 64",
        ".global .align 16 .b8 q_global[64];", ".shared .align 16 .b8 q_shared[64];",
        ".entry k(.param .b64 q_param)", "{", *(f".reg .{kind} q_{kind}_<300>;" for kind in kinds),
        text, "q_label:", "ret;", "}", "",
    ])  # fmt: skip


def describe(opcode: str) -> str:
    """Return the Python of all instructions of an opcode."""
    return "\n".join(ptx_to_python(source, sugar=True).partition("def ")[2] for source in list_modules(opcode))


OPCODES = sorted(WAYS.keys() | FAMILIES.keys())


@pytest.mark.parametrize("opcode", OPCODES)
def test_the_call_of_every_spelling(opcode: str) -> None:
    assert_digest("spellings", opcode, describe(opcode))


def test_a_sample_of_spellings_keeps_every_token(seed: int) -> None:
    draw = random.Random(seed)
    modules = [source for opcode in OPCODES for source in draw.choices(list(list_modules(opcode)), k=5)]
    assert {source: why for source in modules if (why := find_module_difference(source))} == {}
