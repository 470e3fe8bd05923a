"""Replaces vector registers by scalar ones: `T` of `.reg .v4 .u32 T` becomes `{T.x, T.y, T.z, T.w}` in each step, and
each member is declared. Later stages know only scalar registers and braces."""

from __future__ import annotations

from collections.abc import Iterable

from pyptx.check.body import Body, Step
from pyptx.check.symbols import Kind, Scope, Symbol, make_register
from pyptx.ir import (
    AddressOperand,
    LabelOperand,
    NegatedOperand,
    Param,
    ParenthesizedOperand,
    PipeOperand,
    Predicate,
    RegisterOperand,
    UnaryOperand,
    VectorOperand,
)
from pyptx.ir.operands import Operand

_PARTS = "xyzw"
_COLORS = dict(zip("rgba", _PARTS, strict=True))
Name = tuple[str, int]


def list_register_names(param: Param) -> tuple[str, ...]:
    """Return the register names of a `.reg` parameter: its own, or those of a vector's members."""
    return _name_members(param.name, param.vector or 0) or (param.name,)


def _name_members(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}.{part}" for part in _PARTS[:count])


def _list_symbols(scope: Scope) -> list[Symbol]:
    return [*scope.names.values(), *(symbol for _, symbol in scope.ranges.values())]


class Members:
    """The members of a program's vector registers; each has its own symbol."""

    def __init__(self) -> None:
        self.symbols: dict[Name, Symbol] = {}

    def find_members(self, name: str, scope: Scope) -> tuple[str, ...]:
        """Declare the members of a vector register in the scope and return their names; nothing for other names."""
        symbol = scope.find(name)
        if symbol is None or symbol.kind is not Kind.REGISTER or not symbol.vector:
            return ()
        names = _name_members(name, symbol.vector)
        for member in names:
            own = self.symbols.setdefault((member, id(symbol)), make_register(symbol.type, 0, symbol.declaration))
            scope.declare(member, own)
        return names

    def expand(self, body: Body) -> None:
        """Rewrite the steps of a function that declares or inherits vector registers."""
        scopes = {id(item.scope): item.scope for item in body.items}
        symbols = [
            symbol for scope in scopes.values() for outer in scope.walk_outward() for symbol in _list_symbols(outer)
        ]
        if any(symbol.kind is Kind.REGISTER and symbol.vector for symbol in symbols):
            body.items = [self._expand_step(item) if isinstance(item, Step) else item for item in body.items]
            body.steps = [item for item in body.items if isinstance(item, Step)]

    def _expand_step(self, step: Step) -> Step:
        instruction, scope, plan = step
        operands = tuple(self._expand_operand(operand, scope) for operand in instruction.operands)
        guard = instruction.predicate
        if guard is not None and "." in guard.register:
            instruction = instruction.replace(
                predicate=Predicate(self._find_member(guard.register, scope), guard.negated)
            )
        if operands == instruction.operands:
            return Step(instruction, scope, plan)
        return Step(instruction.replace(operands=operands), scope, plan)

    def _expand_operand(self, operand: Operand, scope: Scope) -> Operand:
        match operand:
            case RegisterOperand() | LabelOperand():
                members = self.find_members(operand.name, scope)
                if members:
                    return VectorOperand(tuple(map(RegisterOperand, members)))
                return RegisterOperand(self._find_member(operand.name, scope)) if "." in operand.name else operand
            case VectorOperand() | ParenthesizedOperand():
                return operand.replace(elements=self._expand_all(operand.elements, scope))
            case AddressOperand():
                # Coordinates may have more members than the texture has dimensions; the others are not used.
                return operand.replace(rest=self._expand_all(operand.rest, scope)) if operand.rest else operand
            case PipeOperand():
                left, right = self._expand_all((operand.left, operand.right), scope)
                return operand.replace(left=left, right=right)
            case NegatedOperand() | UnaryOperand():
                return operand.replace(operand=self._expand_operand(operand.operand, scope))
            case _:
                return operand

    def _expand_all(self, operands: Iterable[Operand], scope: Scope) -> tuple[Operand, ...]:
        return tuple(self._expand_operand(operand, scope) for operand in operands)

    def _find_member(self, name: str, scope: Scope) -> str:
        """Return the name under which a member is declared: `T.x` for `T.r`."""
        base, _, part = name.rpartition(".")
        member = f"{base}.{_COLORS.get(part, part)}"
        return member if member in self.find_members(base, scope) else name
