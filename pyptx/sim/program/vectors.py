"""Vector registers as registers of their own: `T` of `.reg .v4 .u32 T` becomes `{T.x, T.y, T.z, T.w}` wherever a step
names it, and each of these is declared. Who comes after knows scalar registers and braces only."""

from __future__ import annotations

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
from pyptx.ir.operands import Operand as Actual
from pyptx.isa.model import Operand
from pyptx.isa.traits import Trait

_PARTS = "xyzw"
_COLORS = dict(zip("rgba", _PARTS, strict=True))
Name = tuple[str, int]


def names_of(param: Param) -> tuple[str, ...]:
    """Return the names of the registers of a `.reg` parameter: its own, or those of a vector's members."""
    return _members(param.name, param.vector or 0) or (param.name,)


def _members(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}.{part}" for part in _PARTS[:count])


def _declared(scope: Scope) -> list[Symbol]:
    return [*scope.names.values(), *(symbol for _, symbol in scope.ranges.values())]


class Members:
    """The members of the vector registers that a program names, each a symbol of its own."""

    def __init__(self) -> None:
        self.symbols: dict[Name, Symbol] = {}

    def of(self, name: str, scope: Scope) -> tuple[str, ...]:
        """Return the names of a vector register's members, which the scope knows then; nothing for another name."""
        symbol = scope.find(name)
        if symbol is None or symbol.kind is not Kind.REGISTER or not symbol.vector:
            return ()
        found = _members(name, symbol.vector)
        for member in found:
            own = self.symbols.setdefault((member, id(symbol)), make_register(symbol.type, 0, symbol.declaration))
            scope.declare(member, own)
        return found

    def expand(self, body: Body) -> None:
        """Rewrite the steps of a function that can name vector registers."""
        scopes = {id(item.scope): item.scope for item in body.items}
        known = [symbol for scope in scopes.values() for outer in scope.walk_outward() for symbol in _declared(outer)]
        if any(symbol.kind is Kind.REGISTER and symbol.vector for symbol in known):
            body.items = [self._step(item) if isinstance(item, Step) else item for item in body.items]
            body.steps = [item for item in body.items if isinstance(item, Step)]

    def _step(self, step: Step) -> Step:
        instruction, scope, plan = step
        wanted = plan.signature if plan is not None and Trait.CALLS not in step.traits else ()
        operands = tuple(
            self._operand(given, wanted[at] if at < len(wanted) else None, scope)
            for at, given in enumerate(instruction.operands)
        )
        guard = instruction.predicate
        if guard is not None and "." in guard.register:
            instruction = instruction.replace(predicate=Predicate(self._member(guard.register, scope), guard.negated))
        if operands == instruction.operands:
            return Step(instruction, scope, plan)
        return Step(instruction.replace(operands=operands), scope, plan)

    def _operand(self, given: Actual, wanted: Operand | None, scope: Scope) -> Actual:
        parts = wanted.parts if wanted is not None else ()
        match given:
            case RegisterOperand() | LabelOperand():
                members = self.of(given.name, scope)
                if members:
                    count = (wanted.count if wanted is not None else 0) or len(members)
                    return VectorOperand(tuple(RegisterOperand(name) for name in members[:count]))
                return RegisterOperand(self._member(given.name, scope)) if "." in given.name else given
            case VectorOperand() | ParenthesizedOperand():
                return given.replace(elements=tuple(self._operand(element, None, scope) for element in given.elements))
            case AddressOperand():
                rest = tuple(
                    self._operand(inner, parts[at + 1] if at + 1 < len(parts) else None, scope)
                    for at, inner in enumerate(given.rest)
                )
                return given.replace(rest=rest) if rest else given
            case PipeOperand():
                sides = [
                    self._operand(side, parts[at] if at < len(parts) else None, scope)
                    for at, side in enumerate((given.left, given.right))
                ]
                return given.replace(left=sides[0], right=sides[1])
            case NegatedOperand() | UnaryOperand():
                return given.replace(operand=self._operand(given.operand, wanted, scope))
            case _:
                return given

    def _member(self, name: str, scope: Scope) -> str:
        """Return the name by which a member is declared: `T.r` is `T.x`."""
        base, _, part = name.rpartition(".")
        member = f"{base}.{_COLORS.get(part, part)}"
        return member if member in self.of(base, scope) else name
