"""`ptx.raw`: adds PTX text to the trace."""

from __future__ import annotations

from pyptx.check import symbols
from pyptx.diagnostics import PtxError, PythonFrame
from pyptx.dsl import rules
from pyptx.dsl.emit import require_plans, spell
from pyptx.dsl.trace import Trace, fail, get_trace, is_generated
from pyptx.ir.nodes import Block, Function, Instruction, Label, RegDecl, Statement, VarDecl
from pyptx.ir.operands import LabelOperand
from pyptx.parser import PtxSyntaxError, parse

_HEAD = ".version 9.5\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
_HEAD_LINES = _HEAD.count("\n")


def raw(text: str) -> None:
    """Parse PTX statements and add each exactly once."""
    trace = get_trace()
    origin = trace.locate()
    try:
        module = parse(f"{_HEAD}{text}\n}}\n")
    except PtxSyntaxError as wrong:
        raise PtxError(
            rules.PTX_TEXT.report(origin, f"line {max(1, d.line - _HEAD_LINES)} of the text: {d.message}", help=d.help)
            for d in wrong.diagnostics
        ) from None
    if len(module.directives) != 1 or not isinstance(module.directives[0], Function):
        fail(rules.PTX_TEXT, "the text closes a brace that it does not open", help="pass complete statements")
    for statement in module.directives[0].body:
        trace.append(_adopt(statement, trace, origin, outer=True))


def _adopt(statement: Statement, trace: Trace, origin: PythonFrame | None, *, outer: bool) -> Statement:
    """Return a parsed statement as a statement of the trace, with the user's place and with its names declared."""
    if isinstance(statement, Block):
        body = tuple(_adopt(inner, trace, origin, outer=False) for inner in statement.body)
        return Block(body, origin=origin)
    if isinstance(statement, Instruction):
        spelling = spell(statement.opcode, *(word[1:] for word in statement.modifiers))
        plans = trace.plans.get(spelling) or require_plans(trace, spelling, len(statement.operands))
        candidates = plans.get(len(statement.operands), next(iter(plans.values())))
        trace.require_version(min(plan.version for plan in candidates), f"`{spelling}`")
        target = statement.operands[0] if statement.operands else None
        if outer and statement.opcode == "bra" and isinstance(target, LabelOperand):
            trace.jumps.append((target.name, origin))
    elif isinstance(statement, Label) and outer:
        if statement.name in trace.labels:
            fail(rules.LABEL, f"the kernel already has a label `{statement.name}`")
        trace.labels[statement.name] = origin
        trace.used_names.add(statement.name)
    elif isinstance(statement, RegDecl | VarDecl) and outer:
        _make_room(statement, trace)
        for finding in symbols.declare(statement, trace.scope):
            raise PtxError([finding.move_to(origin)])
        trace.used_names.update(item.name for item in statement.declarators)
    changes = {name: None for name in ("layout",) if name in statement.__match_args__}
    return statement.replace(**changes, origin=origin)


def _make_room(statement: RegDecl | VarDecl, trace: Trace) -> None:
    """Keep registers declared by the text apart from generated ones: `%r<4>` and `%r0` would collide."""
    clashing = [item.name for item in statement.declarators if is_generated(item.name)]
    if isinstance(statement, RegDecl) and clashing and not trace.declarations.reserve_generated_names():
        fail(
            rules.NAME,
            f"`{clashing[0]}` could collide with a generated register name",
            help="move the text to the start or into a block { … }, or rename its registers",
        )
