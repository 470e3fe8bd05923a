"""The registers of a function, declared before its body: declarations, declared names in use, assigned names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.codegen.passes.fold_expressions import iterate_parts
from pyptx.codegen.plan import Attribute, Block, Call, Expr, Item, Line, Literal, Name, Repeat, Slice, Step, Tuple, walk
from pyptx.codegen.sugar_draft import Draft, Variable
from pyptx.ir.nodes import Block as BracedBlock
from pyptx.ir.nodes import Instruction, Label, RegDecl, Statement
from pyptx.ir.walk import visit
from pyptx.types import PtxType, from_name


def declare(draft: Draft, statements: Sequence[Statement]) -> None:
    """Name the ranges of registers that a function and its blocks declare."""
    has_begun = False
    for statement in statements:
        has_begun = has_begun or isinstance(statement, Instruction | Label | BracedBlock)
        for inside in visit(statement):
            if isinstance(inside, RegDecl):
                if has_begun:
                    draft.late.add(id(inside))
                draft.own.add(id(inside))
                if inside is statement:
                    draft.bench.declare(inside)
                for item in inside.declarators:
                    if item.count is not None:
                        name = draft.names.make_name(item.name.lower())
                        draft.bench.bind_range(name, item.name, int(item.count), from_name(inside.type.ptx))
                        draft.ranges[id(inside), item.name] = Name(name), int(item.count)


def build_target(draft: Draft, statement: RegDecl) -> Expr | None:
    """Return the assignment target of a register declaration."""
    targets: list[Expr] = []
    for item in statement.declarators:
        if item.count is not None:
            targets.append(draft.ranges[id(statement), item.name][0])
        else:
            targets.append(draft.singles.get((id(statement), item.name)) or Name("_"))
    return targets[0] if len(targets) == 1 else Tuple(tuple(targets))


def list_new_names(draft: Draft, instructions: Sequence[Instruction]) -> list[Expr]:
    """Return the arguments of `ptx.names`: the new registers of each class in creation order, neighbors as ranges."""
    out: dict[object, list[tuple[Expr, int, int]]] = {}
    usage, exact = draft.usage, draft.bench.exact
    for instruction in instructions:
        for register in dict.fromkeys(usage.access[usage.places[id(instruction)]][1]):
            variable = draft.variables[register]
            if not variable.fresh:
                continue
            runs = out.setdefault(
                exact.find_class(draft.bench.view_register(variable.name, variable.declared_type)), []
            )
            element = draft.get_element(variable)
            if not isinstance(element, Item) or not isinstance(element.index, Literal):
                runs.append((Name(variable.identifier), -1, -1))
                continue
            index = element.index.value
            assert isinstance(index, int)
            if runs and runs[-1][0] == element.value and runs[-1][2] == index:
                runs[-1] = runs[-1][0], runs[-1][1], index + 1
            else:
                runs.append((element.value, index, index + 1))
    return [_build_run(*run) for runs in out.values() for run in runs]


def _build_run(name: Expr, first: int, last: int) -> Expr:
    if first < 0:
        return name
    return Item(name, Literal(first)) if last == first + 1 else Item(name, Slice(Literal(first), Literal(last)))


def assign_mentioned(draft: Draft, steps: Sequence[Step]) -> Iterator[Step]:
    """Yield lines that assign a variable to every declared register that the body uses by name, neighbors together."""
    used = {
        part.id
        for step in walk(steps)
        for expr in _find_expressions(step)
        for part in iterate_parts(expr)
        if isinstance(part, Name)
    }
    for identifier, (array, first, last, home) in draft.arrays.items():
        if identifier in used:
            yield Line(_build_part(draft, array, first, last, home), (), Name(identifier))
    groups: dict[tuple[str, str], list[tuple[int, Variable]]] = {}
    for variable in draft.variables.values():
        if variable.fresh or variable.inner or variable.identifier not in used or not isinstance(variable.expr, Name):
            continue
        element = draft.get_element(variable)
        if isinstance(element, Item) and isinstance(element.value, Name) and isinstance(element.index, Literal):
            index = element.index.value
            assert isinstance(index, int)
            groups.setdefault((element.value.id, variable.home.name), []).append((index, variable))
    for (name, _), members in groups.items():
        yield from _join_members(draft, Name(name), sorted(members, key=lambda member: member[0]))


_MOST = 8
"""Maximum number of registers assigned on one line."""


def _join_members(draft: Draft, array: Name, members: list[tuple[int, Variable]]) -> Iterator[Step]:
    start = 0
    while start < len(members):
        first, variable = members[start]
        stop = start + 1
        while stop < len(members) and stop - start < _MOST and members[stop][0] == first + stop - start:
            stop += 1
        targets = tuple([member.expr for _, member in members[start:stop]])
        if len(targets) == 1:
            expression: Expr = Item(array, Literal(first))
            if variable.home is not variable.declared_type:
                expression = Attribute(expression, variable.home.name)
            yield Line(expression, (), targets[0])
        else:
            yield Line(_build_part(draft, array, first, first + stop - start, variable.home), (), Tuple(targets))
        start = stop


def _build_part(draft: Draft, array: Name, first: int, last: int, home: PtxType) -> Expr:
    source: Expr = array
    if draft.bench.look_up(array).dtype is not home:
        source = Call(Attribute(array, "view"), (Name(home.name),))
    if last > first:
        return Item(source, Slice(Literal(first), Literal(last)))
    return Item(source, Slice(Literal(first), Literal(last) if last >= 0 else None, Literal(-1)))


def _find_expressions(step: Step) -> Iterator[Expr]:
    if isinstance(step, Line):
        yield step.value
        if step.target is not None:
            yield step.target
    elif isinstance(step, Block):
        yield step.header
    elif isinstance(step, Repeat):
        yield step.values
