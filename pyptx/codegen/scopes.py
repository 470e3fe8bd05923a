"""Maps registers to Python expressions, by the scope in which they are used."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.codegen.names import Names
from pyptx.codegen.plan import Expr, Item, Literal, Name
from pyptx.ir.nodes import RegDecl


class Scope:
    """The registers that a function or a block declares, visible in nested scopes."""

    __slots__ = ("cache", "names", "outer", "predicates", "ranges", "singles", "used")

    def __init__(self, names: Names, outer: Scope | None = None) -> None:
        self.names = names
        self.outer = outer
        self.singles: dict[str, Name] = {}
        self.ranges: dict[str, tuple[Name, int]] = {}
        self.predicates: set[Expr] = set() if outer is None else outer.predicates
        self.cache: dict[str, Expr | None] = {}
        self.used: set[str] = set()

    def open_block(self) -> Scope:
        """Return the scope of a nested block."""
        return Scope(self.names.open_block(), self)

    def declare(self, node: RegDecl) -> list[Name]:
        """Bind every name of a declaration; return the Python variables."""
        variables: list[Name] = []
        for item in node.declarators:
            variable = Name(self.names.make_name(item.name.lower()))
            variables.append(variable)
            if item.count is None:
                self.singles[item.name] = variable
            else:
                self.ranges[item.name] = variable, int(item.count)
            if node.type.name == "PRED":
                self.predicates.add(variable)
        self.cache.clear()
        return variables

    def find(self, name: str) -> Expr | None:
        """Return the expression of a declared register, or None for any other name."""
        scope: Scope | None = self
        misses: list[Scope] = []
        expression: Expr | None = None
        while scope is not None and name not in scope.cache:
            misses.append(scope)
            expression = scope._find_here(name)
            scope = scope.outer if expression is None else None
        if scope is not None:
            expression = scope.cache[name]
        for scope in misses:
            scope.cache[name] = expression
        return expression

    def _find_here(self, name: str) -> Expr | None:
        single = self.singles.get(name)
        if single is not None:
            self.used.add(single.id)
            return single
        if not self.ranges or not name[-1].isdigit():
            return None
        for base, digits in _find_splits(name):
            entry = self.ranges.get(base)
            if entry is not None and int(digits) < entry[1]:
                self.used.add(entry[0].id)
                return Item(entry[0], Literal(int(digits)))
        return None

    def is_predicate(self, expr: Expr) -> bool:
        """Tell whether an expression returned by `find` is a predicate."""
        return (expr.value if isinstance(expr, Item) else expr) in self.predicates


def _find_splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to split a name into the base and index of a range: without leading zeros."""
    for index in range(len(name) - 1, max(0, len(name) - 10), -1):
        if not ("0" <= name[index] <= "9"):
            return
        if name[index] != "0" or index == len(name) - 1:
            yield name[:index], name[index:]
