"""One function on its way to readable Python: registers become variables, instructions become lines.

Passes fill it in the order of `sugar.PASSES`. What is emitted is fixed from the start; only what is written changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pyptx.check.body import Body
from pyptx.codegen.analysis.bench import Bench
from pyptx.codegen.analysis.usage import Register, Usage, analyze_usage
from pyptx.codegen.names import Names
from pyptx.codegen.plan import Expr, Item, Line, Literal, Name
from pyptx.types import PtxType


@dataclass(slots=True)
class Variable:
    """A register and the Python variable that holds it.

    `declared_type` is its type in the PTX, `home` the type that most of its uses need. A `fresh` variable is created by
    the expression that defines it and takes its name from `ptx.names`; any other is a declared name, used explicitly.
    """

    name: str
    declared_type: PtxType
    home: PtxType
    fresh: bool
    identifier: str = ""
    expr: Expr = field(default_factory=lambda: Name("_"))
    votes: dict[str, float] = field(default_factory=dict[str, float])
    declaration: object = None
    """Its declaration: a statement, or a parameter of the function."""
    is_compared: bool = False
    """Whether it is compared for equality, for which untyped bits use `.b32` instead of `.u32`."""
    inner: bool = False
    """Whether it is declared in a nested block, or after the function's first instruction."""


@dataclass
class Draft:
    """A function, the analysis of it, and its lines by the identity of the instruction that each emits."""

    body: Body
    bench: Bench
    names: Names
    usage: Usage
    outer: Names
    """The names of the file."""
    waits: dict[Expr, Name]
    """The styles of the compiler's wait loops, with a constant for each; shared by all functions of a file."""
    variables: dict[Register, Variable] = field(default_factory=dict[Register, Variable])
    lines: dict[int, Line] = field(default_factory=dict[int, Line])
    symbols: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """Expressions for module variables, parameters and shared variables with long names."""

    ranges: dict[tuple[int, str], tuple[Name, int]] = field(default_factory=dict[tuple[int, str], "tuple[Name, int]"])
    """The ranges that the function and its blocks declare, `%r<24>`, by the identity of the declaration and base: their
    variables and lengths."""
    elements: dict[tuple[str, int], Expr | None] = field(default_factory=dict[tuple[str, int], "Expr | None"])
    """Cached results of `element`."""
    own: set[int] = field(default_factory=set[int])
    """The register declarations of the function, by identity."""
    late: set[int] = field(default_factory=set[int])
    """Those that follow the first instruction, so that nothing at the top may name their registers."""
    singles: dict[tuple[int, str], Expr] = field(default_factory=dict[tuple[int, str], Expr])
    """The registers declared individually."""

    arrays: dict[str, tuple[Name, int, int, PtxType]] = field(
        default_factory=dict[str, "tuple[Name, int, int, PtxType]"]
    )
    """Variables for parts of declared ranges: the range, first, last, and the type as which they are read."""

    def get_element(self, variable: Variable) -> Expr | None:
        """Return a register of a declared range as its element, or None for any other."""
        key = variable.name, id(variable.declaration)
        if key not in self.elements:
            self.elements[key] = self._find_element(*key)
        return self.elements[key]

    def _find_element(self, name: str, declaration: int) -> Expr | None:
        for index in range(len(name) - 1, max(0, len(name) - 10), -1):
            if not name[index].isdigit():
                return None
            entry = self.ranges.get((declaration, name[:index]))
            if entry is not None and str(int(name[index:])) == name[index:] and int(name[index:]) < entry[1]:
                return Item(entry[0], Literal(int(name[index:])))
        return None

    def is_read_once(self, identifier: str) -> bool:
        """Tell whether a variable is created by its definition and read once."""
        register = self.by_identifier.get(identifier)
        return (
            register is not None and self.variables[register].fresh and len(self.usage.registers[register].reads) == 1
        )

    def reads(self, identifier: str) -> int | None:
        """Return how often a variable that its definition creates is read; None for any other."""
        register = self.by_identifier.get(identifier)
        if register is None:
            return None
        use, variable = self.usage.registers[register], self.variables[register]
        if variable.inner:
            # The use count includes its declaration and the write.
            return len(use.reads) + len(use.writes)
        return len(use.reads) if variable.fresh else None

    def is_read(self, variable: Variable) -> bool:
        """Tell whether anything reads a variable that holds one register."""
        register = self.by_identifier.get(variable.identifier)
        return register is None or bool(self.usage.registers[register].reads)

    @cached_property
    def by_identifier(self) -> dict[str, Register]:
        """The registers of variables that hold a single register."""
        return {v.identifier: key for key, v in self.variables.items() if isinstance(v.expr, Name)}


def create_draft(body: Body, bench: Bench, outer: Names, waits: dict[Expr, Name]) -> Draft:
    """Return the initial draft of a function."""
    return Draft(body, bench, outer.open_function(), analyze_usage(body), outer, waits)
