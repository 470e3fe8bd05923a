"""Gathers registers that instructions use as vectors into arrays: the accumulator of `wgmma`, fragments, tensor memory.

Contract: names registers that are declared side by side and written more than once as elements of one variable; an
operand that lists them in order becomes the array or a slice of it. Emits and orders nothing.
"""

from __future__ import annotations

from pyptx.check.body import Step
from pyptx.codegen.plan import Item, Literal, Name
from pyptx.codegen.sugar_draft import Draft, Variable
from pyptx.codegen.sugar_operands import Operands
from pyptx.ir.operands import VectorOperand

_LEAST = 4
_NAMES = {"wgmma": "acc", "mma": "acc", "tcgen05": "tmem", "ldmatrix": "frag", "wmma": "frag", "ld": "v", "st": "v"}


def gather_arrays(draft: Draft) -> None:
    """Create arrays, the longest first."""
    arrays: list[tuple[list[Variable], str]] = []
    for step in draft.usage.steps:
        for operand in step.instruction.operands:
            if isinstance(operand, VectorOperand) and len(operand.elements) >= _LEAST:
                variables = _find_members(draft, step, operand)
                if variables is not None:
                    arrays.append((variables, _NAMES.get(step.instruction.opcode, "v")))
    arrays.sort(key=lambda item: -len(item[0]))
    for variables, name in arrays:
        if not any(variable.identifier for variable in variables):
            _make(draft, variables, name)


def _find_members(draft: Draft, step: Step, vector: VectorOperand) -> list[Variable] | None:
    """Return the registers of a vector if they are declared side by side, in either order, and written more than
    once."""
    operands = Operands(draft, step.scope)
    out: list[Variable] = []
    start: Item | None = None
    by = 1
    for offset, element in enumerate(vector.elements):
        variable = operands.get_variable(getattr(element, "name", ""))
        place = draft.get_element(variable) if variable is not None else None
        if variable is None or variable.fresh or variable.inner or not isinstance(place, Item):
            return None
        start = start or place
        if offset == 1:
            by = _get_index(place) - _get_index(start)
        if place.value != start.value or abs(by) != 1 or _get_index(place) != _get_index(start) + by * offset:
            return None
        out.append(variable)
    return out


def _get_index(place: Item) -> int:
    assert isinstance(place.index, Literal)
    assert isinstance(place.index.value, int)
    return place.index.value


def _make(draft: Draft, variables: list[Variable], name: str) -> None:
    place = draft.get_element(variables[0])
    assert isinstance(place, Item)
    assert isinstance(place.value, Name)
    identifier, first = draft.names.make_name(name), _get_index(place)
    after = draft.get_element(variables[1])
    by = _get_index(after) - first if isinstance(after, Item) else 1
    homes = {variable.home for variable in variables}
    home = homes.pop() if len(homes) == 1 else variables[0].declared_type
    draft.arrays[identifier] = place.value, first, first + by * len(variables), home
    for index, variable in enumerate(variables):
        variable.home = home
        variable.identifier, variable.expr = identifier, Item(Name(identifier), Literal(index))
    bench = draft.bench
    bench.bindings[identifier] = [bench.view_register(variable.name, home) for variable in variables]
