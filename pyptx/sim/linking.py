"""Links modules into one, as nvlink does: what one leaves to others is resolved, private names stay apart.

`symbols` below are the names of modules; what a name means inside a function is the checker's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyptx.check import checker
from pyptx.check.symbols import Scope, declare
from pyptx.diagnostics import Origin, PtxError, Severity, Span
from pyptx.ir import AliasDirective, FileDirective, Function, LocDirective, Module, Statement, VarDecl
from pyptx.ir.directives import DwarfDirective, Section
from pyptx.ir.nodes import Declarator, LinkingDirective, Param
from pyptx.ir.walk import replace_statements
from pyptx.isa.targets import Target, target
from pyptx.sim import rules
from pyptx.sim.frames import size_and_alignment
from pyptx.sim.renaming import names_used, renamed

_SYSTEM = frozenset(("vprintf", "malloc", "free", "__assertfail"))
"""Functions that the system has."""
_COMMON, _EXTERN, _VISIBLE, _WEAK = ".common", ".extern", ".visible", ".weak"
_SHARED = ".shared"


@dataclass(slots=True)
class _Symbol:
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


@dataclass(slots=True)
class _Linked:
    """What becomes of every module's names: new ones for private names, and who defines the others."""

    symbols: list[dict[str, _Symbol]]
    winners: dict[str, _Symbol | None] = field(default_factory=dict[str, "_Symbol | None"])
    renames: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


_LINKED: dict[tuple[int, ...], tuple[list[Module], Module]] = {}
"""The last modules that were linked, and what they became: programs are kept by their module."""
_LOCATED: dict[tuple[int, int], tuple[Module, Module]] = {}
"""The last modules that ran beside others, and the same with places that name them, by number."""
_MOST_LINKED = 16


def whole(modules: Module | Sequence[Module]) -> Module:
    """Return a module as it is, and several as one, the same for the same ones."""
    if isinstance(modules, Module):
        return modules
    if isinstance(modules, str) or not isinstance(modules, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(modules).__name__
        raise TypeError(f"a module is run, found {kind}: pyptx.parser.parse(text) and kernel.module(…) make one")
    key = tuple(id(module) for module in modules)
    found = _LINKED.pop(key, None)
    if found is None:
        if len(_LINKED) >= _MOST_LINKED:
            del _LINKED[next(iter(_LINKED))]
        found = list(modules), link(modules)
    _LINKED[key] = found
    return found[1]


def told_apart(modules: Sequence[Module]) -> list[Module]:
    """Return modules whose places say which of several they are in, the same for the same ones."""
    numbers: dict[int, int] = {}
    for module in modules:
        numbers.setdefault(id(module), len(numbers) + 1)
    if len(numbers) == 1:
        return list(modules)
    found: list[Module] = []
    for module in modules:
        key = id(module), numbers[id(module)]
        kept = _LOCATED.pop(key, None) or (module, _located(module, f"<module {key[1]}>", 0))
        if len(_LOCATED) >= _MOST_LINKED:
            del _LOCATED[next(iter(_LOCATED))]
        _LOCATED[key] = kept
        found.append(kept[1])
    return found


def link(modules: Sequence[Module], names: Sequence[str] = ()) -> Module:
    """Return one module that does what several do together. PtxError says what does not fit, as nvlink would.

    `names` are what places in them are called, `<module 1>` and so on if there are none. A private name that another
    module has too gets the number of its module: `table$2`."""
    if not modules:
        raise rules.error(rules.LINKING, None, "no modules to link")
    for module in modules:
        if not isinstance(module, Module):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"modules are linked, found {type(module).__name__}: pyptx.parser.parse(text) makes one")
    if len(modules) == 1:
        return modules[0]
    given: list[Module] = []
    files = 0
    for at, module in enumerate(modules):
        given.append(_located(module, names[at] if at < len(names) else f"<module {at + 1}>", files))
        files += max((s.index for s in module.directives if isinstance(s, FileDirective)), default=0)
    header = _header(given)
    linked = _Linked([_symbols(module, at) for at, module in enumerate(given)])
    _resolve(linked, [names_used(module) for module in given])
    _part(linked)
    statements = [kept for at, module in enumerate(given) for kept in _kept(module, at, linked)]
    return header.replace(directives=tuple(statements), layout=None)


def _located(module: Module, name: str, files: int) -> Module:
    """Return a module whose places name it, with the numbers of `.file` and `.loc` raised."""

    def placed(statement: Statement) -> Statement:
        origin: Origin | None = getattr(statement, "origin", None)
        changes: dict[str, object] = {}
        if isinstance(origin, Span) and origin.file is None:
            changes["origin"] = origin._replace(file=name)
        if files and isinstance(statement, FileDirective):
            changes["index"] = statement.index + files
        elif files and isinstance(statement, LocDirective):
            at = statement.inlined_at
            changes |= {"file": statement.file + files, "inlined_at": at and (at[0] + files, at[1], at[2])}
        return statement.replace(**changes) if changes else statement

    return replace_statements(module, placed)


def _header(modules: Sequence[Module]) -> Module:
    """Return the module whose header all can have: the newest version, and a target that runs all of them."""
    sizes = {module.address_size.size if module.address_size else 32: module for module in modules}
    if len(sizes) > 1:
        (first, one), (second, other) = list(sizes.items())[:2]
        raise _misfit(_origin(other), f"addresses of {second} bits here, of {first} in {_place(one)}",
                      "write the same .address_size into every module")  # fmt: skip
    wanted = {name: module for module in modules for name in module.target.targets if name.startswith("sm_")}
    targets = {name: target(name) for name in wanted}
    suffixes = {one.suffix for one in targets.values()}
    newest = max((one.arch for one in targets.values()), default=0)
    chosen = Target(newest, "a" if "a" in suffixes else "f" if "f" in suffixes else "")
    for name, one in targets.items():
        if not chosen.provides(one):
            others = ", ".join(f"`{n}`" for n in targets if n != name)
            raise _misfit(_origin(wanted[name]), f"a module for `{name}` does not run where one for {others} does",
                          "write modules for one target, or plain ones, which newer targets run")  # fmt: skip
    version = max((module.version for module in modules), key=lambda v: (int(v.major), int(v.minor)))
    head = modules[0]
    if targets:
        rest = [name for name in head.target.targets if not name.startswith("sm_")]
        head = head.replace(target=head.target.replace(targets=(chosen.name, *rest)))
    return head.replace(version=version)


def _origin(module: Module) -> Origin | None:
    return module.target.origin or module.origin


def _place(module: Module) -> str:
    return str(_origin(module) or "another module")


# Names


def _symbols(module: Module, number: int) -> dict[str, _Symbol]:
    """Return what a module says of each of its names; PtxError when it contradicts itself."""
    found: dict[str, _Symbol] = {}
    scope = Scope(header=(checker.architecture(module), (int(module.version.major), int(module.version.minor))))
    wrong = [why for statement in module.directives for why in declare(statement, scope)]
    if any(why.severity is Severity.ERROR for why in wrong):
        raise PtxError([why for why in wrong if why.severity is Severity.ERROR])
    aliases = {s.name: s.aliasee for s in module.directives if isinstance(s, AliasDirective)}
    for statement in module.directives:
        for name, item in _declared(statement):
            assert isinstance(statement, Function | VarDecl)
            linking = statement.linking.ptx if statement.linking else ""
            if linking == _COMMON and isinstance(statement, VarDecl) and statement.state_space.ptx != ".global":
                raise _misfit(statement.origin, f"`{name}` is .common, which variables in .global can be alone",
                              "make it .weak")  # fmt: skip
            defined = linking != _EXTERN
            if isinstance(statement, Function):
                defined = statement.definition or name in aliases
            symbol = _Symbol(name, number, linking, statement, item, defined)
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


def _joined(before: _Symbol, now: _Symbol) -> _Symbol:
    """Return what two declarations of one module say together."""
    kept = now if now.defined or not before.defined else before
    links = [linking for linking in (before.linking, now.linking) if linking not in ("", _EXTERN)]
    linking = links[0] if links else before.linking if before.linking == now.linking else ""
    return _Symbol(kept.name, kept.module, linking, kept.statement, kept.item, kept.defined)


# Who defines what


def _resolve(linked: _Linked, used: Sequence[set[str]]) -> None:
    """Find the definition of every name that modules share."""
    shared = dict.fromkeys(name for own in linked.symbols for name, symbol in own.items() if symbol.linking)
    for name in shared:
        symbols = [own[name] for own in linked.symbols if name in own and own[name].linking]
        linked.winners[name] = _winner(symbols, used)
    for own, names in zip(linked.symbols, used, strict=True):
        for name, symbol in own.items():
            if symbol.linking != _EXTERN and not symbol.defined and name in names:
                text = f"`{name}` is declared without .extern, and its own module does not define it"
                raise _undefined(symbol, text, "declare it .extern where another module defines it")


def _winner(symbols: Sequence[_Symbol], used: Sequence[set[str]]) -> _Symbol | None:
    """Return the symbol that defines a name for all modules; None where the launch or the system does."""
    name, first = symbols[0].name, symbols[0]
    for symbol in symbols[1:]:
        if symbol.kind != first.kind:
            text = f"`{name}` is declared as {_a(symbol.kind)} here and as {_a(first.kind)} at {first.place}"
            raise _misfit(symbol.statement.origin, text, "make both declarations say the same")
    strong = [symbol for symbol in symbols if symbol.defined and symbol.linking == _VISIBLE]
    if len(strong) > 1:
        text = f"`{name}` is defined here and at {strong[0].place}"
        raise _misfit(strong[1].statement.origin, text,
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
            raise _misfit(symbol.statement.origin, text, "make the declaration say what the definition says")
    return chosen


def _left_open(symbols: Sequence[_Symbol], used: Sequence[set[str]]) -> None:
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


def _difference(symbol: _Symbol, chosen: _Symbol, used: bool) -> str | None:
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


def _misfit(origin: Origin | None, text: str, help: str) -> PtxError:
    return rules.error(rules.LINKING, origin, text, help=help)


def _undefined(symbol: _Symbol, text: str, help: str) -> PtxError:
    return rules.error(rules.UNDEFINED_EXTERN, symbol.statement.origin, text, help=help)


# The linked module


def _part(linked: _Linked) -> None:
    """Give private names that another module has too a name of their own."""
    taken = {name for own in linked.symbols for name in own}
    seen = set(linked.winners)
    for at, own in enumerate(linked.symbols):
        renames: dict[str, str] = {}
        for name, symbol in own.items():
            if symbol.linking:
                continue
            if name in seen:
                new = f"{name}${at + 1}"
                while new in taken:
                    new += "$"
                taken.add(new)
                renames[name] = new
            seen.add(name)
        linked.renames.append(renames)


def _kept(module: Module, number: int, linked: _Linked) -> Iterator[Statement]:
    """Yield what stays of a module: all but the definitions that others replace, under their new names."""
    lost = {
        name for name, symbol in linked.symbols[number].items()
        if symbol.linking and symbol.defined and linked.winners.get(name) is not symbol
    }  # fmt: skip
    renames = linked.renames[number]
    for statement in module.directives:
        for kept in _without(statement, lost):
            yield renamed(module, kept, renames)


def _without(statement: Statement, lost: set[str]) -> Iterator[Statement]:
    """Yield what stays of a statement when others define these names."""
    if isinstance(statement, Section | DwarfDirective):
        return
    if isinstance(statement, AliasDirective) and statement.name in lost:
        return
    if isinstance(statement, Function) and statement.name in lost and statement.definition:
        if not statement.is_entry:
            yield statement.replace(
                definition=False, body=(), linking=LinkingDirective.EXTERN, layout=None, closing=None
            )
        return
    if not isinstance(statement, VarDecl) or not any(item.name in lost for item in statement.declarators):
        yield statement
        return
    for item in statement.declarators:
        gone = item.name in lost
        yield statement.replace(
            name=item.name, array_size=item.array_size, initializer=None if gone else item.initializer, dims=item.dims,
            count=item.count, braces=None if gone else item.braces, more=(), layout=None,
            linking=LinkingDirective.EXTERN if gone else statement.linking,
        )  # fmt: skip
