"""Makes one function readable: runs the passes in order and checks their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pyptx.check.body import Body, Step
from pyptx.codegen.analysis.bench import Bench
from pyptx.codegen.names import Names
from pyptx.codegen.passes.choose_types import choose_types
from pyptx.codegen.passes.cite_lines import cite_lines, find_places
from pyptx.codegen.passes.describe_blocks import describe_blocks
from pyptx.codegen.passes.fold_expressions import fold_expressions
from pyptx.codegen.passes.gather_arrays import gather_arrays
from pyptx.codegen.passes.name_registers import name_registers
from pyptx.codegen.passes.raise_control_flow import Tally, raise_control_flow
from pyptx.codegen.passes.raise_waits import build_block_wait, build_loop_wait
from pyptx.codegen.passes.roll_repeats import create_loops, roll_repeats
from pyptx.codegen.passes.show_masks import show_masks
from pyptx.codegen.passes.spell_instructions import spell_instructions
from pyptx.codegen.plan import (
    Block,
    Call,
    Define,
    Emitted,
    End,
    Expr,
    Line,
    List,
    Literal,
    Name,
    Unary,
    build_path,
    flatten,
    list_emitted,
    walk,
)
from pyptx.codegen.plan import Step as Written
from pyptx.codegen.scopes import Scope
from pyptx.codegen.statements import Statements
from pyptx.codegen.sugar_draft import Draft, create_draft
from pyptx.codegen.sugar_operands import Operands
from pyptx.codegen.sugar_registers import assign_mentioned, build_target, declare, list_new_names
from pyptx.ir.directives import Directive, LocDirective
from pyptx.ir.nodes import Block as BracedBlock
from pyptx.ir.nodes import Instruction, IntrinsicScope, Label, RegDecl, Statement, VarDecl
from pyptx.isa.targets import Target, Version

BLOCK, OPEN, CLOSE = (
    Call(build_path("ptx.block")),
    Call(build_path("ptx.open_block")),
    Call(build_path("ptx.close_block")),
)
NAMES = build_path("ptx.names")
DEEPEST_BLOCK = 15


@dataclass(slots=True)
class Setting:
    """Data shared by the functions of a module."""

    target: Target
    version: Version
    statements: Statements
    names: Names
    waits: dict[Expr, Name]
    files: dict[int, str]
    """The names of the source files, empty if `.loc` stays."""
    lines: bool
    """Whether `.loc` stays: in modules compiled for a debugger."""


def make_readable(define: Define, body: Body, setting: Setting) -> Define:
    """Return the definition of a function with a readable body. It emits the same statements, without `.loc`."""
    if not body.steps:
        return define
    bench = Bench(setting.target, setting.version, body.steps[0].scope)
    draft = create_draft(body, bench, setting.names, setting.waits)
    declare(draft, body.function.body)
    choose_types(draft)
    gather_arrays(draft)
    name_registers(draft)
    spell_instructions(draft)
    writer = _Writer(draft, define, setting)
    tally = Tally()
    steps: Sequence[Written] = ()
    statements = tuple(writer.list_emissions(body.function.body))
    passes: tuple[tuple[str, Callable[[Sequence[Written]], Sequence[Written]]], ...] = (
        ("raise_control_flow", lambda _: writer.write_body(body.function.body, tally, 2)),
        ("fold_expressions", lambda steps: fold_expressions(steps, draft.is_read_once)),
        ("describe_blocks", describe_blocks),
        ("roll_repeats", lambda steps: roll_repeats(steps, create_loops(draft.reads, draft.names))),
        ("show_masks", show_masks),
        ("cite_lines", lambda steps: cite_lines(steps, find_places(body.function, setting.files))),
    )
    for name, run in passes:
        steps = run(steps)
        _check_statements(name, steps, statements)
    return define.replace(body=_frame(draft, steps, tally))


class BrokenPass(AssertionError):
    """A pass dropped, repeated or moved a statement: a bug in this package, never a problem of the PTX."""


def _check_statements(name: str, steps: Sequence[Written], statements: Sequence[Emitted]) -> None:
    """Refuse the steps of a pass that do not emit exactly the statements of the function, in order."""
    for emission, statement in zip_longest(flatten(steps), statements):
        is_same = emission is statement or (
            isinstance(emission, End) and isinstance(statement, End) and emission.of is statement.of
        )
        if not is_same:
            raise BrokenPass(f"{name}: {emission!r:.120} stands where {statement!r:.120} was")


def _frame(draft: Draft, steps: Sequence[Written], tally: Tally) -> tuple[Written, ...]:
    """Put the declared names in use first, and the body into `with ptx.names(…)`."""
    first = next((index for index, step in enumerate(steps) if not _declares(step)), len(steps))
    instructions = [item for item in flatten(steps) if isinstance(item, Instruction)]
    fresh = list_new_names(draft, instructions)
    front = [*steps[:first], *assign_mentioned(draft, steps)]
    body = tuple(steps[first:])
    if not fresh and not tally.labels:
        return (*front, *body)
    keywords = (("labels", List(tuple([Literal(name) for name in tally.labels]))),) if tally.labels else ()
    return (*front, Block(Call(NAMES, tuple(fresh), keywords), body))


def _declares(step: Written) -> bool:
    return isinstance(step, Line) and bool(step.emits) and isinstance(step.emits[0], RegDecl | VarDecl | Directive)


class _Writer:
    """Writes the statements outside of structures."""

    def __init__(self, draft: Draft, define: Define, setting: Setting) -> None:
        self.draft, self.setting = draft, setting
        self.plain: dict[int, Line] = {}
        for step in walk(define.body):
            if isinstance(step, Line) and len(step.emits) == 1:
                self.plain[id(step.emits[0])] = step

    def write_body(self, statements: Sequence[Statement], tally: Tally, depth: int) -> tuple[Written, ...]:
        """Return the steps of a body."""
        remaining = [s for s in statements if self.setting.lines or not isinstance(s, LocDirective)]

        def write_inner(statement: Statement, inner: int) -> Sequence[Written]:
            return self.write_statement(statement, tally, inner)

        return raise_control_flow(remaining, write_inner, self.build_guard, self.build_wait, tally, depth)

    def list_emissions(self, statements: Sequence[Statement]) -> Iterator[Emitted]:
        """Yield all that the function emits, in order."""
        for item in list_emitted(statements):
            if self.setting.lines or not isinstance(item, LocDirective):
                yield item

    def build_wait(self, label: Statement, test: Statement, tail: Instruction) -> Line | None:
        """Return the line of a loop that waits for a barrier, or None."""
        if isinstance(label, Label) and isinstance(test, Instruction):
            return build_loop_wait(self.draft, label, test, tail)
        return None

    def build_guard(self, branch: Instruction) -> Expr:
        """Return the predicate of a branch."""
        step = self.step(branch)
        assert branch.predicate is not None
        expression = Operands(self.draft, step.scope).build_name(branch.predicate.register)
        return Unary("~", expression) if branch.predicate.negated else expression

    def step(self, instruction: Instruction) -> Step:
        return self.draft.usage.steps[self.draft.usage.places[id(instruction)]]

    def write_statement(self, statement: Statement, tally: Tally, depth: int) -> Sequence[Written]:
        if isinstance(statement, Instruction):
            line = self.draft.lines.get(id(statement))
            return [line] if line is not None else self.write_plain(statement)
        if isinstance(statement, RegDecl):
            plain = self.plain[id(statement)]
            return [Line(plain.value, plain.emits, build_target(self.draft, statement))]
        if isinstance(statement, BracedBlock):
            waits = None if self.setting.lines else build_block_wait(self.draft, statement)
            if waits is not None:
                return [waits]
            if depth >= DEEPEST_BLOCK:
                return self.write_flat(statement)
            inside = self.write_body(statement.body, tally, depth + 1)
            return [Block(BLOCK, inside, (statement,), (End(statement),))]
        if isinstance(statement, IntrinsicScope):
            raise TypeError("a text has no intrinsic scopes")
        return [self.plain[id(statement)]]

    def write_flat(self, block: BracedBlock) -> list[Written]:
        """Write a block nested too deep for `with`, with its contents, as one statement after the other."""
        out: list[Written] = []
        for item in list_emitted([block]):
            if isinstance(item, End):
                out.append(Line(CLOSE, (item,)))
            elif isinstance(item, BracedBlock):
                out.append(Line(OPEN, (item,)))
            elif self.setting.lines or not isinstance(item, LocDirective):
                out += self.write_statement(item, Tally(), 0)
        return out

    def write_plain(self, instruction: Instruction) -> list[Written]:
        """Write an instruction as the plain transpiler does, with the variables of this function."""
        scope = _Seen(self.draft, self.step(instruction))
        expression = self.setting.statements.build_instruction(instruction, scope)
        pending = self.setting.statements.operands.pending
        before = list(pending)
        pending.clear()
        return [*before, Line(expression, (instruction,))]


class _Seen(Scope):
    """The registers visible to an instruction, for the plain transpiler."""

    def __init__(self, draft: Draft, step: Step) -> None:
        super().__init__(draft.names)
        self.operands = Operands(draft, step.scope)

    def find(self, name: str) -> Expr | None:
        variable = self.operands.get_variable(name)
        return None if variable is None else variable.expr

    def is_predicate(self, expr: Expr) -> bool:
        return any(v.expr == expr and v.declared_type.name == "pred" for v in self.operands.draft.variables.values())
