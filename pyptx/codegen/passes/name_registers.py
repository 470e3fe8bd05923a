"""Names registers after their roles: `tid`, `lane`, `param_0`, `acc`, `i`, `mbar`; the others keep `r12`.

Contract: fills `identifier` and `expr` of every variable, each identifier once per function, only through `Names`.
Emits and orders nothing.
"""

from __future__ import annotations

import re

from pyptx.check.body import Step
from pyptx.codegen.analysis.demangle import demangle
from pyptx.codegen.names import make_identifier
from pyptx.codegen.passes.name_rings import find_ring_roles
from pyptx.codegen.plan import Attribute, Item, Literal, Name
from pyptx.codegen.sugar_draft import Draft, Variable
from pyptx.ir.nodes import Instruction, RegDecl
from pyptx.ir.operands import AddressOperand, ImmediateOperand, Operand, VectorOperand
from pyptx.isa.special import find_special_register

_GENERATED = re.compile(r"%?(?:p|rs?|rd|rq|rl|fd?|hh?|b)\d+")
"""Register names that compilers generate."""
FEW = 3
"""Maximum number of uses of a register without a variable."""
_PARAM = re.compile(r"_?param_(\d+)$")


def name_registers(draft: Draft) -> None:
    """Name the variables in the order of their first write."""
    roles: dict[tuple[str, int], str] = find_ring_roles(draft)
    axes = _find_axes(draft)
    for place, step in enumerate(draft.usage.steps):
        for register, role in _find_roles(draft, step, roles, axes):
            variable = draft.variables.get(register)
            if variable is not None and not variable.inner:
                roles.setdefault(register, role)
        if _gather_fragment(draft, place, step, roles):
            continue
    for register in sorted(draft.variables, key=lambda key: _find_first(draft, key)):
        variable = draft.variables[register]
        if not variable.identifier:
            match = _GENERATED.fullmatch(variable.name)
            use = draft.usage.registers[register]
            _name(
                draft,
                variable,
                roles.get(register) if match else None,
                bool(match),
                len(use.reads) + len(use.writes),
            )


def _is_single(draft: Draft, variable: Variable) -> bool:
    """Tell whether a declaration of the function names only this register: not a range that may contain it, a
    parameter, or a module-level one."""
    declaration = variable.declaration
    return (
        isinstance(declaration, RegDecl)
        and id(declaration) in draft.own
        and any(item.name == variable.name and item.count is None for item in declaration.declarators)
    )


def _find_first(draft: Draft, register: tuple[str, int]) -> int:
    use = draft.usage.registers[register]
    return min([*use.writes[:1], *use.reads[:1]], default=0)


def _name(draft: Draft, variable: Variable, role: str | None, is_generated: bool, mentions: int) -> None:
    element = draft.get_element(variable)
    if element is None and not _is_single(draft, variable):
        variable.expr, variable.fresh = Literal(variable.name), False
        return
    if element is not None and not variable.fresh:
        is_unnamed = role is None and is_generated
        if variable.inner or (is_unnamed and is_plain(variable)):
            variable.expr = element
            return
        if is_unnamed and mentions <= FEW:
            variable.expr = Attribute(element, variable.home.name)
            return
    fresh_name = draft.names.make_name((role or variable.name).lower())
    variable.identifier, variable.expr = fresh_name, Name(fresh_name)
    if element is None:
        draft.singles[id(variable.declaration), variable.name] = variable.expr


def is_plain(variable: Variable) -> bool:
    """Tell whether a register is read with its declared type."""
    return variable.home is variable.declared_type


def _find_axes(draft: Draft) -> frozenset[str]:
    """Return the vector special registers of which components other than `.x` are read."""
    read = {
        getattr(step.instruction.operands[1], "name", "")
        for step in draft.usage.steps
        if step.instruction.opcode == "mov" and len(step.instruction.operands) == 2
    }
    return frozenset(name[:-2] for name in read if name.endswith((".y", ".z")))


def _find_roles(
    draft: Draft, step: Step, roles: dict[tuple[str, int], str], axes: frozenset[str]
) -> list[tuple[tuple[str, int], str]]:
    """Return the roles that an instruction implies."""
    instruction = step.instruction
    operands = instruction.operands
    if not operands:
        return []
    roles_of_step: list[tuple[tuple[str, int], str]] = []
    target = _find_register(step, operands[0])
    role = _name_result(step, instruction, roles, axes) if target is not None else None
    if target is not None and role:
        roles_of_step.append((target, role))
    if instruction.opcode == "mbarrier":
        roles_of_step += [(key, "mbar") for operand in operands if (key := _find_base(step, operand)) is not None]
    if instruction.opcode == "wgmma" and len(operands) > 3:
        for operand, name in zip(operands[1:3], ("desc_a", "desc_b"), strict=True):
            key = _find_register(step, operand)
            if key is not None:
                roles_of_step.append((key, name))
    if _counts(instruction) and target is not None and not draft.usage.registers[target].fresh:
        roles_of_step.append((target, "i"))
    return roles_of_step


def _name_result(
    step: Step, instruction: Instruction, roles: dict[tuple[str, int], str], axes: frozenset[str]
) -> str | None:
    opcode, operands = instruction.opcode, instruction.operands
    source = operands[1] if len(operands) > 1 else None
    if opcode == "mov":
        name = getattr(source, "name", "")
        if name.startswith("%") and find_special_register(name) is not None:
            base, dot, axis = name[1:].partition(".")
            return base if (axis == "x" and f"%{base}" not in axes) or not dot else f"{base}_{axis}"
        param = _PARAM.search(name) if name[:1] != "%" else None
        if param:
            return f"param_{param.group(1)}_addr"
        if name and name[0] not in "%_" and _find_register(step, source) is None:
            return f"{_shorten(name)}_addr"
        if name.startswith("_Z"):
            return f"{_shorten(name)}_addr"
    elif opcode == "ld" and ".param" in instruction.modifiers and isinstance(source, AddressOperand):
        return _name_param(source) if _find_base(step, source) is None else None
    elif opcode == "cvta":
        key = None if source is None else _find_register(step, source)
        role = None if key is None else roles.get(key)
        return f"{role.removesuffix('_addr')}_ptr" if role and not role.endswith("_ptr") else None
    elif opcode in ("and", "shr") and len(operands) == 3 and isinstance(operands[2], ImmediateOperand):
        key = None if source is None else _find_register(step, source)
        if key is not None and roles.get(key) in ("tid", "tid_x"):
            return {("and", "31"): "lane", ("shr", "5"): "warp", ("shr", "7"): "warpgroup"}.get(
                (opcode, operands[2].text)
            )
    return None


def _name_param(source: AddressOperand) -> str:
    match = _PARAM.search(source.base)
    stem = f"param_{match.group(1)}" if match else _shorten(source.base)
    return stem if source.offset is None else f"{stem}_{source.offset}"


def _shorten(name: str) -> str:
    return make_identifier(demangle(name).strip("_")).rstrip("_")


def _counts(instruction: Instruction) -> bool:
    """Tell whether an instruction adds a constant to a register in place."""
    operands = instruction.operands
    return (
        instruction.opcode == "add"
        and len(operands) == 3
        and operands[0] == operands[1]
        and isinstance(operands[2], ImmediateOperand)
        and instruction.modifiers[-1] in (".s32", ".u32")
    )


def _find_register(step: Step, operand: Operand | None) -> tuple[str, int] | None:
    name = getattr(operand, "name", None)
    symbol = step.scope.find(name) if isinstance(name, str) else None
    return None if symbol is None or symbol.space != "reg" else (str(name), id(symbol))


def _find_base(step: Step, operand: Operand) -> tuple[str, int] | None:
    if not isinstance(operand, AddressOperand):
        return None
    symbol = step.scope.find(operand.base)
    return None if symbol is None or symbol.space != "reg" else (operand.base, id(symbol))


_LISTS = {"ldmatrix": "frag", "mma": "acc", "wmma": "frag", "tcgen05": "tmem", "ld": "v", "wgmma": "acc"}


def _gather_fragment(draft: Draft, place: int, step: Step, roles: dict[tuple[str, int], str]) -> bool:
    """Make the new registers of one vector destination the elements of one list."""
    operands = step.instruction.operands
    first = operands[0] if operands else None
    if not isinstance(first, VectorOperand) or step.instruction.opcode not in _LISTS:
        return False
    variables: list[Variable] = []
    for element in first.elements:
        key = _find_register(step, element)
        variable = None if key is None else draft.variables.get(key)
        if variable is None or not variable.fresh or variable.identifier:
            return False
        variables.append(variable)
    writes = draft.usage.access[place][1]
    if len(variables) < 2 or len(writes) != len(variables) or len({v.home.name for v in variables}) > 1:
        return False
    list_name = draft.names.make_name(_LISTS[step.instruction.opcode])
    fragment = Name(list_name)
    for index, variable in enumerate(variables):
        variable.identifier, variable.expr = list_name, Item(fragment, Literal(index))
    return True
