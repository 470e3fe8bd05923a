"""One function on its way to readable Python: its registers as variables, its instructions as lines.

Passes fill it in the order of `sugar.PASSES`. What is emitted is fixed from the start; only what is written changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyptx.check.body import Body
from pyptx.codegen.analysis.bench import Bench
from pyptx.codegen.analysis.usage import Register, Usage, usage_of
from pyptx.codegen.names import Names
from pyptx.codegen.plan import Expr, Line, Name
from pyptx.ir.nodes import Instruction
from pyptx.types import PtxType


@dataclass(slots=True)
class Variable:
    """A register and the Python variable that holds it.

    `declared` is its type in the PTX, `home` the type that most of its uses want. A `fresh` one is made by the expression
    that defines it and takes its name from `ptx.names`; any other is a declared name, used explicitly.
    """

    name: str
    declared: PtxType
    home: PtxType
    fresh: bool
    identifier: str = ""
    expr: Expr = field(default_factory=lambda: Name("_"))
    votes: dict[str, float] = field(default_factory=dict[str, float])
    inner: bool = False
    """Whether a block inside the function declares it."""


@dataclass(slots=True)
class Draft:
    """A function, what is known of it, and its lines by the identity of the instruction that each emits."""

    body: Body
    bench: Bench
    names: Names
    usage: Usage
    variables: dict[Register, Variable] = field(default_factory=dict[Register, Variable])
    lines: dict[int, Line] = field(default_factory=dict[int, Line])
    symbols: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """How module variables, parameters and shared variables are written where their name is long."""

    def line(self, instruction: Instruction) -> Line | None:
        """Return the line that emits an instruction."""
        return self.lines.get(id(instruction))


def draft_of(body: Body, bench: Bench, names: Names) -> Draft:
    """Return the draft of a function, nothing in it decided."""
    return Draft(body, bench, names, usage_of(body))
