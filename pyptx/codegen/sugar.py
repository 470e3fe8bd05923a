"""`--sugar`: makes the plan of a file readable. No instruction, operand or label changes or moves.

Omits what readers do not need: spacing, compiler comments, and `.loc` (unless the module was compiled for a debugger).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.check.checker import choose_architecture, collect_bodies
from pyptx.codegen.analysis.demangle import demangle as readable_name
from pyptx.codegen.expressions import list_parts
from pyptx.codegen.frame import make_sort_key
from pyptx.codegen.names import Names, make_identifier
from pyptx.codegen.passes.cite_lines import list_files
from pyptx.codegen.passes.drop_unused import drop_unused
from pyptx.codegen.passes.fold_expressions import iterate_parts
from pyptx.codegen.passes.shorten_symbols import shorten_symbols
from pyptx.codegen.plan import (
    Block,
    Call,
    Define,
    Expr,
    Import,
    Line,
    Name,
    Plan,
    Repeat,
    Step,
    walk,
)
from pyptx.codegen.statements import Statements
from pyptx.codegen.sugar_function import Setting, make_readable
from pyptx.ir.directives import Module
from pyptx.ir.nodes import Function, VarDecl
from pyptx.ir.walk import visit
from pyptx.types import ALL

_TYPES = frozenset(kind.name for kind in ALL)
_SPACING = frozenset(("before", "ending", "layouts", "newline"))


def build_readable_plan(plan: Plan, module: Module) -> Plan:
    """Return the bare plan of a file with readable function bodies."""
    target = choose_architecture(module)
    version = int(module.version.major), int(module.version.minor)
    names = Names()
    names.used_names.update(_find_module_names(plan.body))
    waits: dict[Expr, Name] = {}
    lines = any("debug" in name for name in module.target.targets)
    setting = Setting(
        target, version, Statements(target, version, "module"), names, waits, {} if lines else list_files(module), lines
    )
    function_bodies = {id(body.function): body for body in collect_bodies(module)[0]}
    out: list[Step] = []
    for step in plan.body:
        if isinstance(step, Define) and step.opens and isinstance(step.opens[0], Function):
            renamed_step = step.replace(name=_choose_function_name(step, step.opens[0], names))
            out.append(drop_unused(make_readable(renamed_step, function_bodies[id(step.opens[0])], setting)))
        else:
            out.append(_drop_spacing(step))
    steps, constants = shorten_symbols(out, list(_find_symbols(module)), names)
    constants += [Line(loop, (), name) for loop, name in waits.items()]
    if constants:
        index = next((i for i, step in enumerate(steps) if isinstance(step, Line) and step.target == Name("module")), 0)
        steps = (*steps[:index], *constants, *steps[index:])
    return Plan(tuple(_add_imports(steps)))


def _find_symbols(module: Module) -> Iterator[str]:
    """Yield the symbols that a module declares."""
    for statement in visit(module):
        if isinstance(statement, Function):
            yield statement.name
            yield from (param.name for param in (*statement.params, *(statement.return_params or ())))
        elif isinstance(statement, VarDecl):
            yield from (item.name for item in statement.declarators)


def _choose_function_name(step: Define, function: Function, names: Names) -> str:
    """Return the readable name of a function, unless the user chose one."""
    is_user_name = step.name.strip("_") != make_identifier(function.name).strip("_") and step.name.rstrip(
        "0123456789_"
    ) != (make_identifier(function.name).rstrip("0123456789_"))
    stem = make_identifier(readable_name(function.name).strip("_")).lower()
    return step.name if is_user_name or stem == step.name else names.make_name(stem)


def _find_module_names(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the identifiers used in the whole file."""
    for step in steps:
        if isinstance(step, Define):
            yield step.name
        elif isinstance(step, Import):
            yield from step.names or (step.module,)
        elif isinstance(step, Line) and step.target is not None:
            yield from (part.id for part in iterate_parts(step.target) if isinstance(part, Name))


def _drop_spacing(step: Step) -> Step:
    if isinstance(step, Line) and isinstance(step.value, Call) and step.target == Name("module"):
        keywords = tuple([(name, value) for name, value in step.value.keywords if name not in _SPACING])
        return step.replace(value=Call(step.value.function, step.value.arguments, keywords))
    return step


def _add_imports(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps with imports of the names they use."""
    used = _find_used(steps)
    types = tuple(sorted(used & _TYPES, key=make_sort_key))
    for step in steps:
        if isinstance(step, Import) and step.module == "pyptx":
            yield Import("pyptx", ("ptx", "reg") if "reg" in used else ("ptx",))
        elif isinstance(step, Import) and step.module == "pyptx.codegen.program":
            yield step
            if types:
                yield Import("pyptx.types", types)
        elif not (isinstance(step, Import) and step.module == "pyptx.types"):
            yield step


def _find_used(steps: Sequence[Step]) -> set[str]:
    """Return every identifier that the steps use. Shared expressions are visited once."""
    visits: set[int] = set()
    names: set[str] = set()
    stack = [expr for step in walk(steps) for expr in _find_expressions(step)]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Name):
            names.add(expr.id)
        elif id(expr) not in visits:
            visits.add(id(expr))
            stack += list_parts(expr)
    return names


def _find_expressions(step: Step) -> Iterator[Expr]:
    """Yield the expressions that a step writes itself."""
    if isinstance(step, Line):
        yield step.value
        if step.target is not None:
            yield step.target
    elif isinstance(step, Block):
        yield step.header
    elif isinstance(step, Repeat):
        yield from (step.target, step.values)
    elif isinstance(step, Define):
        yield from step.decorators
