"""Links modules into one, as nvlink does: resolves external names and renames private names that clash.

`definitions` decides which module defines a name; the checker knows what a name means inside a function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyptx.check import checker
from pyptx.check.symbols import Kind
from pyptx.diagnostics import Origin, Span
from pyptx.ir import AliasDirective, FileDirective, Function, LocDirective, Module, Statement, VarDecl
from pyptx.ir.directives import DwarfDirective, Section
from pyptx.ir.nodes import LinkingDirective
from pyptx.ir.walk import replace_statements
from pyptx.isa.targets import Target, find_target
from pyptx.sim.program.blocks import find_names as find_operand_names
from pyptx.sim.program.definitions import (
    SYSTEM_FUNCTIONS,
    Symbol,
    collect_symbols,
    find_definitions,
    make_linking_error,
)
from pyptx.sim.program.renaming import find_names, rename
from pyptx.sim.rules import faults


@dataclass(slots=True)
class _Linkage:
    """The symbols of each module, the definitions of shared names, and new names of private symbols."""

    symbols: list[dict[str, Symbol]]
    definitions: dict[str, Symbol | None]
    renames: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


_LINKED: dict[tuple[int, ...], tuple[list[Module], Module]] = {}
"""The last linked modules and their results, so that equal launches share one module and its prepared program."""
_LOCATED: dict[tuple[int, int], tuple[Module, Module]] = {}
"""The last modules that ran beside others, and copies whose places name the module by number."""
_MOST_LINKED = 16


def combine_modules(modules: Module | Sequence[Module]) -> Module:
    """Return a module as it is, or several linked into one; the same modules give the same object."""
    if isinstance(modules, Module):
        return modules
    if isinstance(modules, str) or not isinstance(modules, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(modules).__name__
        raise TypeError(f"expected a module, found {kind}: pyptx.parser.parse(text) and kernel.module(…) return one")
    key = tuple(id(module) for module in modules)
    entry = _LINKED.pop(key, None)
    if entry is None:
        if len(_LINKED) >= _MOST_LINKED:
            del _LINKED[next(iter(_LINKED))]
        entry = list(modules), link(modules)
    _LINKED[key] = entry
    return entry[1]


def distinguish_modules(modules: Sequence[Module]) -> list[Module]:
    """Return modules whose places name the module they are in; the same modules give the same objects."""
    numbers: dict[int, int] = {}
    for module in modules:
        numbers.setdefault(id(module), len(numbers) + 1)
    if len(numbers) == 1:
        return list(modules)
    distinct: list[Module] = []
    for module in modules:
        key = id(module), numbers[id(module)]
        entry = _LOCATED.pop(key, None) or (module, _locate(module, f"<module {key[1]}>", 0))
        if len(_LOCATED) >= _MOST_LINKED:
            del _LOCATED[next(iter(_LOCATED))]
        _LOCATED[key] = entry
        distinct.append(entry[1])
    return distinct


def link(modules: Sequence[Module], names: Sequence[str] = ()) -> Module:
    """Link modules into one, as nvlink does. Raise PtxError if they do not fit together.

    Places in the modules show `names`, by default `<module 1>` and so on. A private name that another module also has
    gets the number of its module, as in `table$2`."""
    if not modules:
        raise faults.error(faults.LINKING, None, "no modules to link")
    for module in modules:
        if not isinstance(module, Module):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"expected modules, found {type(module).__name__}: pyptx.parser.parse(text) returns one")
    if len(modules) == 1:
        return modules[0]
    sources: list[Module] = []
    files = 0
    for index, module in enumerate(modules):
        sources.append(_locate(module, names[index] if index < len(names) else f"<module {index + 1}>", files))
        files += max((s.index for s in module.directives if isinstance(s, FileDirective)), default=0)
    header = _merge_headers(sources)
    tables = [collect_symbols(module, index) for index, module in enumerate(sources)]
    linkage = _Linkage(tables, find_definitions(tables, [find_names(module) for module in sources]))
    _rename_private_names(linkage)
    statements = [
        statement for index, module in enumerate(sources) for statement in _list_remaining(module, index, linkage)
    ]
    return header.replace(directives=tuple(statements), layout=None)


def refuse_undefined_functions(module: Module) -> None:
    """Raise PtxError for a function that a whole module uses, even in code that never runs, and that neither the module
    nor the driver defines, as ptxas does."""
    functions = [statement for statement in module.directives if isinstance(statement, Function)]
    provided = {function.name for function in functions if function.definition or function.is_entry} | SYSTEM_FUNCTIONS
    provided |= {statement.name for statement in module.directives if isinstance(statement, AliasDirective)}
    declarations = {function.name: function for function in functions if function.name not in provided}
    for name in sorted(declarations.keys() & _find_used_functions(module)) if declarations else ():
        text = f"the function `{name}` is used, and neither this module nor the driver defines it"
        help = "define it, or link the module that defines it, as by `cuLinkAddData`"
        raise faults.error(faults.UNDEFINED_EXTERN, declarations[name].origin, text, help=help)


def _find_used_functions(module: Module) -> set[str]:
    """Return the functions that instructions use, and all names in initializers and aliases. A local name hides a
    function's."""
    rest = (statement for statement in module.directives if not isinstance(statement, Function))
    names = find_names(module.replace(directives=tuple(rest)))
    for body in checker.collect_bodies(module)[0]:
        for step in body.steps:
            for name in (name for operand in step.instruction.operands for name in find_operand_names(operand)):
                symbol = step.scope.find(name)
                if symbol is not None and symbol.kind is Kind.FUNCTION:
                    names.add(name)
    return names


def _locate(module: Module, name: str, files: int) -> Module:
    """Return a module whose places name it, with `files` added to the numbers of `.file` and `.loc`."""

    def locate_statement(statement: Statement) -> Statement:
        origin: Origin | None = getattr(statement, "origin", None)
        changes: dict[str, object] = {}
        if isinstance(origin, Span) and origin.file is None:
            changes["origin"] = origin._replace(file=name)
        if files and isinstance(statement, FileDirective):
            changes["index"] = statement.index + files
        elif files and isinstance(statement, LocDirective):
            call_site = statement.inlined_at
            changes |= {
                "file": statement.file + files,
                "inlined_at": call_site and (call_site[0] + files, call_site[1], call_site[2]),
            }
        return statement.replace(**changes) if changes else statement

    return replace_statements(module, locate_statement)


def _merge_headers(modules: Sequence[Module]) -> Module:
    """Return a module with the newest version and a target that runs all modules."""
    sizes = {module.address_size.size if module.address_size else 32: module for module in modules}
    if len(sizes) > 1:
        (first_size, first), (second_size, second) = list(sizes.items())[:2]
        text = f"addresses have {second_size} bits here and {first_size} in {_describe_place(first)}"
        raise make_linking_error(_find_origin(second), text, "write the same .address_size in every module")
    modules_by_target = {name: module for module in modules for name in module.target.targets if name.startswith("sm_")}
    targets = {name: find_target(name) for name in modules_by_target}
    suffixes = {member.suffix for member in targets.values()}
    newest = max((member.arch for member in targets.values()), default=0)
    common_target = Target(newest, "a" if "a" in suffixes else "f" if "f" in suffixes else "")
    for name, member in targets.items():
        if not common_target.provides(member):
            other_targets = ", ".join(f"`{n}`" for n in targets if n != name)
            text = f"no target runs a module for `{name}` together with one for {other_targets}"
            help = "compile all modules for one target, or for targets without a suffix, which newer targets run"
            raise make_linking_error(_find_origin(modules_by_target[name]), text, help)
    version = max((module.version for module in modules), key=lambda v: (int(v.major), int(v.minor)))
    first_module = modules[0]
    if targets:
        options = [name for name in first_module.target.targets if not name.startswith("sm_")]
        first_module = first_module.replace(target=first_module.target.replace(targets=(common_target.name, *options)))
    return first_module.replace(version=version)


def _find_origin(module: Module) -> Origin | None:
    return module.target.origin or module.origin


def _describe_place(module: Module) -> str:
    return str(_find_origin(module) or "another module")


def _rename_private_names(linkage: _Linkage) -> None:
    """Give new names to private symbols whose name another module also has."""
    all_names = {name for table in linkage.symbols for name in table}
    visible_names = set(linkage.definitions)
    for index, table in enumerate(linkage.symbols):
        renames: dict[str, str] = {}
        for name, symbol in table.items():
            if symbol.linking:
                continue
            if name in visible_names:
                new = f"{name}${index + 1}"
                while new in all_names:
                    new += "$"
                all_names.add(new)
                renames[name] = new
            visible_names.add(name)
        linkage.renames.append(renames)


def _list_remaining(module: Module, number: int, linkage: _Linkage) -> Iterator[Statement]:
    """Yield the statements of a module without definitions that another module replaces, under their new names."""
    foreign_names = {
        name for name, symbol in linkage.symbols[number].items()
        if symbol.linking and symbol.is_definition and linkage.definitions.get(name) is not symbol
    }  # fmt: skip
    renames = linkage.renames[number]
    for statement in module.directives:
        for remaining in _drop_definitions(statement, foreign_names):
            yield rename(module, remaining, renames)


def _drop_definitions(statement: Statement, foreign_names: set[str]) -> Iterator[Statement]:
    """Yield what remains of a statement if other modules define these names."""
    if isinstance(statement, Section | DwarfDirective):
        return
    if isinstance(statement, AliasDirective) and statement.name in foreign_names:
        return
    if isinstance(statement, Function) and statement.name in foreign_names and statement.definition:
        if not statement.is_entry:
            yield statement.replace(
                definition=False, body=(), linking=LinkingDirective.EXTERN, layout=None, closing=None
            )
        return
    if not isinstance(statement, VarDecl) or not any(item.name in foreign_names for item in statement.declarators):
        yield statement
        return
    for item in statement.declarators:
        is_foreign = item.name in foreign_names
        yield statement.replace(
            name=item.name, array_size=item.array_size, dims=item.dims, count=item.count, more=(), layout=None,
            initializer=None if is_foreign else item.initializer, braces=None if is_foreign else item.braces,
            linking=LinkingDirective.EXTERN if is_foreign else statement.linking,
        )  # fmt: skip
