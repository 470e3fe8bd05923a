"""What modules that are linked say of each name, and which of them defines it for all, as nvlink decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyptx.check import checker
from pyptx.check.symbols import Scope, declare
from pyptx.diagnostics import Origin, PtxError, Severity
from pyptx.ir import AliasDirective, Function, Module, Statement, VarDecl
from pyptx.ir.nodes import Declarator, Param
from pyptx.sim.program.frames import size_and_alignment
from pyptx.sim.rules import faults

_SYSTEM = frozenset(("vprintf", "malloc", "free", "__assertfail"))
"""Functions that the system has."""
_COMMON, _EXTERN, _VISIBLE, _WEAK = ".common", ".extern", ".visible", ".weak"
_SHARED = ".shared"


@dataclass(slots=True)
class Symbol:
    """What one module says of a name. `linking` is empty for a private one; `statement` and `item` are the definition
    if `defined`, else a declaration."""

    name: str
    module: int
    linking: str
    statement: Function | VarDecl
    item: Declarator | None = None
    defined: bool = False

    @property
    def kind(self) -> str:
        """An entry, a function, or a variable by its space."""
        if isinstance(self.statement, Function):
            return "entry" if self.statement.is_entry else "function"
        return f"{self.statement.state_space.ptx} variable"

    @property
    def size(self) -> int:
        """The bytes of a variable, 0 if this module leaves them open."""
        return size_and_alignment(self.statement, self.item)[0] if isinstance(self.statement, VarDecl) else 0

    @property
    def managed(self) -> bool:
        return any(attribute.name.endswith("managed") for attribute in self.statement.attributes)

    @property
    def place(self) -> str:
        """Where it is declared, in words."""
        return f"{self.statement.origin}" if self.statement.origin is not None else f"module {self.module + 1}"


def symbols(module: Module, number: int) -> dict[str, Symbol]:
    """Return what a module says of each of its names; PtxError when it contradicts itself."""
    found: dict[str, Symbol] = {}
    scope = Scope(header=(checker.choose_architecture(module), (int(module.version.major), int(module.version.minor))))
    wrong = [why for statement in module.directives for why in declare(statement, scope)]
    if any(why.severity is Severity.ERROR for why in wrong):
        raise PtxError([why for why in wrong if why.severity is Severity.ERROR])
    aliases = {s.name: s.aliasee for s in module.directives if isinstance(s, AliasDirective)}
    for statement in module.directives:
        for name, item in _declared(statement):
            assert isinstance(statement, Function | VarDecl)
            linking = statement.linking.ptx if statement.linking else ""
            if linking == _COMMON and isinstance(statement, VarDecl) and statement.state_space.ptx != ".global":
                raise misfit(statement.origin, f"`{name}` is .common, which variables in .global can be alone",
                              "make it .weak")  # fmt: skip
            defined = linking != _EXTERN
            if isinstance(statement, Function):
                defined = statement.definition or name in aliases
            symbol = Symbol(name, number, linking, statement, item, defined)
            found[name] = _joined(found[name], symbol) if name in found else symbol
    for name, aliasee in aliases.items():
        # An alias is seen as far as what it stands for, whatever its own declaration says.
        if name in found and aliasee in found:
            found[name].linking = found[aliasee].linking
    return found


def _declared(statement: Statement) -> Iterator[tuple[str, Declarator | None]]:
    if isinstance(statement, Function):
        yield statement.name, None
    elif isinstance(statement, VarDecl):
        for item in statement.declarators:
            yield item.name, item


def _joined(before: Symbol, now: Symbol) -> Symbol:
    """Return what two declarations of one module say together."""
    kept = now if now.defined or not before.defined else before
    links = [linking for linking in (before.linking, now.linking) if linking not in ("", _EXTERN)]
    linking = links[0] if links else before.linking if before.linking == now.linking else ""
    return Symbol(kept.name, kept.module, linking, kept.statement, kept.item, kept.defined)


def winners(tables: Sequence[dict[str, Symbol]], used: Sequence[set[str]]) -> dict[str, Symbol | None]:
    """Return who defines every name that modules share, None where the launch or the system does; `used` are the names
    that each module mentions."""
    found: dict[str, Symbol | None] = {}
    shared = dict.fromkeys(name for own in tables for name, symbol in own.items() if symbol.linking)
    for name in shared:
        symbols = [own[name] for own in tables if name in own and own[name].linking]
        found[name] = _winner(symbols, used)
    for own, names in zip(tables, used, strict=True):
        for name, symbol in own.items():
            if symbol.linking != _EXTERN and not symbol.defined and name in names:
                text = f"`{name}` is declared without .extern, and its own module does not define it"
                raise _undefined(symbol, text, "declare it .extern where another module defines it")
    return found


def _winner(symbols: Sequence[Symbol], used: Sequence[set[str]]) -> Symbol | None:
    """Return the symbol that defines a name for all modules; None where the launch or the system does."""
    name, first = symbols[0].name, symbols[0]
    for symbol in symbols[1:]:
        if symbol.kind != first.kind:
            text = f"`{name}` is declared as {_a(symbol.kind)} here and as {_a(first.kind)} at {first.place}"
            raise misfit(symbol.statement.origin, text, "make both declarations say the same")
    strong = [symbol for symbol in symbols if symbol.defined and symbol.linking == _VISIBLE]
    if len(strong) > 1:
        text = f"`{name}` is defined here and at {strong[0].place}"
        raise misfit(strong[1].statement.origin, text,
                      "leave one definition and declare it .extern elsewhere, or make all but one .weak")  # fmt: skip
    weak = [symbol for symbol in symbols if symbol.defined and symbol.linking == _WEAK]
    common = [symbol for symbol in symbols if symbol.defined and symbol.linking == _COMMON]
    common.sort(key=lambda symbol: (symbol.item is not None and symbol.item.initializer is None, -symbol.size))
    chosen = next(iter((*strong, *weak, *common)), None)
    if chosen is None:
        _left_open(symbols, used)
        return None
    for symbol in symbols:
        why = _difference(symbol, chosen, symbol.name in used[symbol.module])
        if why is not None:
            text = f"`{name}` does not fit its definition at {chosen.place}: {why}"
            raise misfit(symbol.statement.origin, text, "make the declaration say what the definition says")
    return chosen


def _left_open(symbols: Sequence[Symbol], used: Sequence[set[str]]) -> None:
    """Refuse a name that nobody defines, unless it is the launch's shared memory, the system's, or nobody's concern."""
    first = symbols[0]
    if isinstance(first.statement, Function):
        needed = [symbol for symbol in symbols if symbol.name in used[symbol.module]]
        if not needed or first.name in _SYSTEM or first.kind == "entry":
            return
        first = needed[0]
    elif first.kind == f"{_SHARED} variable" and any(symbol.size == 0 for symbol in symbols):
        return
    others = [symbol for symbol in symbols if symbol is not first]
    more = f", and {len(others)} more modules declare it" if others else ""
    raise _undefined(first, f"`{first.name}` is external and no module defines it for others{more}",
                     "link the module that defines it, with .visible")  # fmt: skip


def _difference(symbol: Symbol, chosen: Symbol, used: bool) -> str | None:
    """Return how a declaration differs from the definition that is taken, in words; None where it fits."""
    if symbol is chosen:
        return None
    if isinstance(symbol.statement, Function) and isinstance(chosen.statement, Function):
        if symbol.kind == "entry" or not (used or symbol.defined):
            return None
        return _signature_difference(symbol.statement, chosen.statement)
    if symbol.managed is not chosen.managed:
        return "only one of them is .managed"
    if symbol.linking == _COMMON:
        fits = symbol.size <= chosen.size
    else:
        fits = symbol.size in (0, chosen.size)
    return None if fits else f"it has {symbol.size} bytes here and {chosen.size} there"


def _signature_difference(one: Function, other: Function) -> str | None:
    pairs = (("parameter", one.params, other.params), ("result", one.return_params or (), other.return_params or ()))
    for what, first, second in pairs:
        if len(first) != len(second):
            return f"{len(first)} {what}s here, {len(second)} there"
        for at, (mine, theirs) in enumerate(zip(first, second, strict=True), 1):
            if _shape(mine) != _shape(theirs):
                return f"{what} {at} is {_shown(mine)} here, {_shown(theirs)} there"
    return None


def _shape(param: Param) -> tuple[object, ...]:
    """Return what two declarations of a parameter have in common: nvlink tells floats of 32 and 64 bits from the rest,
    arrays from scalars, and no alignments."""
    floats = param.type.ptx in (".f32", ".f64")
    return param.state_space, param.array_size is not None, size_and_alignment(param)[0], floats


def _shown(param: Param) -> str:
    size = "" if param.array_size is None else f"[{int(param.array_size)}]"
    return f"`{param.state_space.ptx} {param.type.ptx}{size}`"


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def misfit(origin: Origin | None, text: str, help: str) -> PtxError:
    return faults.error(faults.LINKING, origin, text, help=help)


def _undefined(symbol: Symbol, text: str, help: str) -> PtxError:
    return faults.error(faults.UNDEFINED_EXTERN, symbol.statement.origin, text, help=help)
