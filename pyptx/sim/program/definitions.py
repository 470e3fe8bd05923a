"""The symbols of linked modules, and which module defines each of them for all, as nvlink decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyptx.check import checker
from pyptx.check.symbols import Scope, declare
from pyptx.diagnostics import Origin, PtxError, Severity, format_count
from pyptx.ir import AliasDirective, Function, Module, Statement, VarDecl
from pyptx.ir.nodes import Declarator, Param
from pyptx.sim.program.frames import measure_declaration
from pyptx.sim.rules import faults

SYSTEM_FUNCTIONS = frozenset(("vprintf", "malloc", "free", "__assertfail"))
"""Functions that the CUDA driver provides."""
_COMMON, _EXTERN, _VISIBLE, _WEAK = ".common", ".extern", ".visible", ".weak"
_SHARED = ".shared"


@dataclass(slots=True)
class Symbol:
    """A name in one module. `linking` is empty for a private one; `statement` and `item` are its definition or
    declaration."""

    name: str
    module: int
    linking: str
    statement: Function | VarDecl
    item: Declarator | None = None
    is_definition: bool = False

    @property
    def kind(self) -> str:
        """What the name is: an entry, a function, or a variable of some state space."""
        if isinstance(self.statement, Function):
            return "entry" if self.statement.is_entry else "function"
        return f"{self.statement.state_space.ptx} variable"

    @property
    def size(self) -> int:
        """The size of a variable in bytes, 0 if this module does not state it."""
        return measure_declaration(self.statement, self.item)[0] if isinstance(self.statement, VarDecl) else 0

    @property
    def is_managed(self) -> bool:
        return any(attribute.name.endswith("managed") for attribute in self.statement.attributes)

    @property
    def place(self) -> str:
        """The place of the declaration, for messages."""
        return f"{self.statement.origin}" if self.statement.origin is not None else f"module {self.module + 1}"


def collect_symbols(module: Module, number: int) -> dict[str, Symbol]:
    """Return the symbols of a module by name. Raise PtxError if its declarations contradict one another."""
    table: dict[str, Symbol] = {}
    scope = Scope(header=(checker.choose_architecture(module), (int(module.version.major), int(module.version.minor))))
    diagnostics = [diagnostic for statement in module.directives for diagnostic in declare(statement, scope)]
    if any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics):
        raise PtxError([diagnostic for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR])
    aliases = {s.name: s.aliasee for s in module.directives if isinstance(s, AliasDirective)}
    for statement in module.directives:
        for name, item in _list_declarators(statement):
            assert isinstance(statement, Function | VarDecl)
            linking = statement.linking.ptx if statement.linking else ""
            if linking == _COMMON and isinstance(statement, VarDecl) and statement.state_space.ptx != ".global":
                text = f"`{name}` is .common, which is legal only for variables in .global"
                raise make_linking_error(statement.origin, text, "make it .weak")
            is_definition = linking != _EXTERN
            if isinstance(statement, Function):
                is_definition = statement.definition or name in aliases
            symbol = Symbol(name, number, linking, statement, item, is_definition)
            table[name] = _join_declarations(table[name], symbol) if name in table else symbol
    for name, aliasee in aliases.items():
        # An alias has the linking of its aliasee, whatever its own declaration says.
        if name in table and aliasee in table:
            table[name].linking = table[aliasee].linking
    return table


def _list_declarators(statement: Statement) -> Iterator[tuple[str, Declarator | None]]:
    if isinstance(statement, Function):
        yield statement.name, None
    elif isinstance(statement, VarDecl):
        for item in statement.declarators:
            yield item.name, item


def _join_declarations(before: Symbol, now: Symbol) -> Symbol:
    """Merge two declarations of a name in one module."""
    symbol = before if before.is_definition else now
    links = [linking for linking in (before.linking, now.linking) if linking not in ("", _EXTERN)]
    linking = links[0] if links else before.linking if before.linking == now.linking else ""
    return Symbol(symbol.name, symbol.module, linking, symbol.statement, symbol.item, symbol.is_definition)


def find_definitions(tables: Sequence[dict[str, Symbol]], mentions: Sequence[set[str]]) -> dict[str, Symbol | None]:
    """Return the definition of each name that modules share, None if the launch or the driver provides it. `mentions`
    are the names that each module uses."""
    definitions: dict[str, Symbol | None] = {}
    shared = dict.fromkeys(name for table in tables for name, symbol in table.items() if symbol.linking)
    for name in shared:
        symbols = [table[name] for table in tables if name in table and table[name].linking]
        definitions[name] = _find_definition(symbols, mentions)
    for table, names in zip(tables, mentions, strict=True):
        for name, symbol in table.items():
            if symbol.linking != _EXTERN and not symbol.is_definition and name in names:
                text = f"`{name}` is declared without .extern, and its own module does not define it"
                raise _make_undefined_error(symbol, text, "declare it .extern where another module defines it")
    return definitions


def _find_definition(symbols: Sequence[Symbol], mentions: Sequence[set[str]]) -> Symbol | None:
    """Return the symbol that defines a name for all modules, or None if the launch or the driver provides it."""
    name, first = symbols[0].name, symbols[0]
    for symbol in symbols[1:]:
        if symbol.kind != first.kind:
            kinds = _add_article(symbol.kind), _add_article(first.kind)
            text = f"`{name}` is declared as {kinds[0]} here and as {kinds[1]} at {first.place}"
            raise make_linking_error(symbol.statement.origin, text, "make both declarations agree")
    strong = [symbol for symbol in symbols if symbol.is_definition and symbol.linking == _VISIBLE]
    if len(strong) > 1:
        text = f"`{name}` is defined here and at {strong[0].place}"
        raise make_linking_error(strong[1].statement.origin, text,
                      "leave one definition and declare it .extern elsewhere, or make all but one .weak")  # fmt: skip
    weak = [symbol for symbol in symbols if symbol.is_definition and symbol.linking == _WEAK]
    common = [symbol for symbol in symbols if symbol.is_definition and symbol.linking == _COMMON]
    common.sort(key=lambda symbol: (symbol.item is not None and symbol.item.initializer is None, -symbol.size))
    definition = next(iter((*strong, *weak, *common)), None)
    if definition is None:
        _check_unresolved(symbols, mentions)
        return None
    for symbol in symbols:
        difference = _describe_difference(symbol, definition, symbol.name in mentions[symbol.module])
        if difference is not None:
            text = f"`{name}` does not match its definition at {definition.place}: {difference}"
            raise make_linking_error(symbol.statement.origin, text, "make the declaration match the definition")
    return definition


def _check_unresolved(symbols: Sequence[Symbol], mentions: Sequence[set[str]]) -> None:
    """Raise PtxError for a name without a definition, unless the launch or the driver provides it or no module uses
    it."""
    first = symbols[0]
    if isinstance(first.statement, Function):
        users = [symbol for symbol in symbols if symbol.name in mentions[symbol.module]]
        if not users or first.name in SYSTEM_FUNCTIONS or first.kind == "entry":
            return
        first = users[0]
    elif first.kind == f"{_SHARED} variable" and any(symbol.size == 0 for symbol in symbols):
        return
    declarations = [symbol for symbol in symbols if symbol is not first]
    verb = "declares" if len(declarations) == 1 else "declare"
    suffix = f"; {format_count('other module', len(declarations))} {verb} it" if declarations else ""
    text = f"`{first.name}` is external, but no module has a definition visible to others{suffix}"
    raise _make_undefined_error(first, text, "link the module that defines it, and make the definition .visible")


def _describe_difference(symbol: Symbol, definition: Symbol, is_mentioned: bool) -> str | None:
    """Describe how a declaration differs from the definition, or return None if they match."""
    if symbol is definition:
        return None
    if isinstance(symbol.statement, Function) and isinstance(definition.statement, Function):
        if symbol.kind == "entry" or not (is_mentioned or symbol.is_definition):
            return None
        return _describe_signature_difference(symbol.statement, definition.statement)
    if symbol.is_managed is not definition.is_managed:
        return "only one of them is .managed"
    if symbol.linking == _COMMON:
        fits = symbol.size <= definition.size
    else:
        fits = symbol.size in (0, definition.size)
    return None if fits else f"it has {format_count('byte', symbol.size)} here and {definition.size} there"


def _describe_signature_difference(declaration: Function, definition: Function) -> str | None:
    pairs = (
        ("parameter", declaration.params, definition.params),
        ("result", declaration.return_params or (), definition.return_params or ()),
    )
    for noun, first, second in pairs:
        if len(first) != len(second):
            return f"{format_count(noun, len(first))} here, {len(second)} there"
        for position, (here, there) in enumerate(zip(first, second, strict=True), 1):
            if _compute_shape(here) != _compute_shape(there):
                return f"{noun} {position} is {_format_param(here)} here, {_format_param(there)} there"
    return None


def _compute_shape(param: Param) -> tuple[object, ...]:
    """Return what nvlink compares of a parameter: its space and size, array or scalar, float of 32 or 64 bits or not.
    It ignores alignments."""
    floats = param.type.ptx in (".f32", ".f64")
    return param.state_space, param.array_size is not None, measure_declaration(param)[0], floats


def _format_param(param: Param) -> str:
    size = "" if param.array_size is None else f"[{int(param.array_size)}]"
    return f"`{param.state_space.ptx} {param.type.ptx}{size}`"


def _add_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def make_linking_error(origin: Origin | None, text: str, help: str) -> PtxError:
    return faults.error(faults.LINKING, origin, text, help=help)


def _make_undefined_error(symbol: Symbol, text: str, help: str) -> PtxError:
    return faults.error(faults.UNDEFINED_EXTERN, symbol.statement.origin, text, help=help)
