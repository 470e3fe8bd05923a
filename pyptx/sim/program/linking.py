"""Links modules into one, as nvlink does: what one leaves to others is resolved, private names stay apart.

Who defines a name is in `definitions`; what a name means inside a function is the checker's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyptx.diagnostics import Origin, Span
from pyptx.ir import AliasDirective, FileDirective, Function, LocDirective, Module, Statement, VarDecl
from pyptx.ir.directives import DwarfDirective, Section
from pyptx.ir.nodes import LinkingDirective
from pyptx.ir.walk import replace_statements
from pyptx.isa.targets import Target, target
from pyptx.sim.program.definitions import Symbol, misfit, symbols, winners
from pyptx.sim.program.renaming import names_used, renamed
from pyptx.sim.rules import faults


@dataclass(slots=True)
class _Linked:
    """What becomes of every module's names: new ones for private names, and who defines the others."""

    symbols: list[dict[str, Symbol]]
    winners: dict[str, Symbol | None]
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
        raise faults.error(faults.LINKING, None, "no modules to link")
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
    tables = [symbols(module, at) for at, module in enumerate(given)]
    linked = _Linked(tables, winners(tables, [names_used(module) for module in given]))
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
        raise misfit(_origin(other), f"addresses of {second} bits here, of {first} in {_place(one)}",
                      "write the same .address_size into every module")  # fmt: skip
    wanted = {name: module for module in modules for name in module.target.targets if name.startswith("sm_")}
    targets = {name: target(name) for name in wanted}
    suffixes = {one.suffix for one in targets.values()}
    newest = max((one.arch for one in targets.values()), default=0)
    chosen = Target(newest, "a" if "a" in suffixes else "f" if "f" in suffixes else "")
    for name, one in targets.items():
        if not chosen.provides(one):
            others = ", ".join(f"`{n}`" for n in targets if n != name)
            raise misfit(_origin(wanted[name]), f"a module for `{name}` does not run where one for {others} does",
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
