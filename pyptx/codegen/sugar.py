"""`--sugar`: the plan of a file, made readable. No instruction, operand or label changes, and none changes its place.

What a reader does not need goes: spacing, comments of the compiler, `.loc` (unless the module is made for a debugger).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.check.checker import architecture, bodies
from pyptx.codegen.names import Names
from pyptx.codegen.passes.fold_expressions import parts
from pyptx.codegen.plan import (
    Attribute,
    Block,
    Call,
    Define,
    Expr,
    Import,
    Line,
    Main,
    Name,
    Plan,
    Repeat,
    Step,
    Tuple,
    dotted,
    walk,
)
from pyptx.codegen.statements import Statements
from pyptx.codegen.sugar_function import Setting, readable
from pyptx.emitter import emit
from pyptx.ir.directives import Module
from pyptx.ir.nodes import Function
from pyptx.types import ALL

_TYPES = frozenset(kind.name for kind in ALL)
_LAYOUTS = (dotted("module.layout"), dotted("ptx.layout"))
_SPACING = frozenset(("style", "before", "ending", "layouts", "newline"))


def apply_sugar(module: Module, *, kernel_name: str = "matmul_kernel") -> Plan:
    """Return the plan of a readable file for a module."""
    from pyptx.codegen.plain import plain_plan
    from pyptx.parser import parse

    source = emit(module)
    spaced = parse(source)
    return sugared(plain_plan(spaced, kernel_name=kernel_name, source=source), spaced)


def sugared(plan: Plan, module: Module) -> Plan:
    """Return the plan of the plain file with the bodies of its functions made readable."""
    target = architecture(module)
    version = int(module.version.major), int(module.version.minor)
    names = Names()
    names.taken.update(_module_names(plan.body))
    lines = any("debug" in name for name in module.target.targets)
    setting = Setting(target, version, Statements(target, version, "module"), names, lines)
    made = {id(body.function): body for body in bodies(module)[0]}
    out: list[Step] = []
    for step in plan.body:
        if isinstance(step, Define) and step.opens and isinstance(step.opens[0], Function):
            out.append(readable(step, made[id(step.opens[0])], setting))
        elif not _spaces(step):
            out.append(_unspaced(step))
    return Plan(tuple(_imports(out)))


def _module_names(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the identifiers that mean something in the whole file."""
    for step in steps:
        if isinstance(step, Define):
            yield step.name
        elif isinstance(step, Import):
            yield from step.names or (step.module,)
        elif isinstance(step, Line) and step.target is not None:
            yield from (part.id for part in parts(step.target) if isinstance(part, Name))


def _spaces(step: Step) -> bool:
    """Tell whether a step says only how the text is spaced."""
    if isinstance(step, Line) and isinstance(step.value, Call):
        return step.value.function in _LAYOUTS or step.target == Name("STYLE")
    return False


def _unspaced(step: Step) -> Step:
    if isinstance(step, Block):
        return step.replace(body=tuple([_unspaced(inside) for inside in step.body if not _spaces(inside)]))
    if isinstance(step, Line) and isinstance(step.value, Call) and step.target == Name("module"):
        keywords = tuple([(name, value) for name, value in step.value.keywords if name not in _SPACING])
        return step.replace(value=Call(step.value.function, step.value.arguments, keywords))
    return step


def _imports(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps with imports of what they name."""
    used = {
        part.id for step in walk(steps) for expr in expressions(step) for part in parts(expr) if isinstance(part, Name)
    }
    types = tuple(sorted(used & _TYPES))
    for step in steps:
        if isinstance(step, Import) and step.module == "pyptx":
            yield Import("pyptx", ("ptx", "reg") if "reg" in used else ("ptx",))
        elif isinstance(step, Import) and step.module == "pyptx.types":
            if types:
                yield Import("pyptx.types", types)
        else:
            yield step


def expressions(step: Step) -> Iterator[Expr]:
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


__all__ = ["Attribute", "Main", "Tuple", "apply_sugar", "expressions", "sugared"]
