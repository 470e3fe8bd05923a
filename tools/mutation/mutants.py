"""The mutants of a Python file: one small change each, as an edit of a span of its text.

Knows only Python's syntax. Skips what no run can show: annotations, docstrings, decorators, overloads and other code
for type checkers; and f-strings, which are messages or generated code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.mutation.trees import Point

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"), ast.Pow: ("**", "*"),
}  # fmt: skip
_NOT_NUMBERS = (ast.JoinedStr, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp)
_TYPES = re.compile(r"np\.\w+$|(\w+\.)*([A-Z]\w*|int|str|float|bool|bytes|None)(\[.*\])?$", re.DOTALL)


@dataclass(frozen=True)
class Mutant:
    """One change: a span of the file's text, its replacement, and the statement that must run for it to matter."""

    path: str
    start: int
    end: int
    text: str
    line: int
    change: str
    before: str
    after: str
    point: Point

    def apply(self, source: str) -> str:
        """Return the file's text with the change."""
        return source[: self.start] + self.text + source[self.end :]


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a file, in order of position."""
    return iter(_File(path, source).collect())


@dataclass(frozen=True)
class _Scope:
    """The context of a node: the name of its function, and its statement."""

    function: str
    statement: ast.stmt


class _File:
    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.mutants: list[Mutant] = []
        self.scope: _Scope

    def collect(self) -> list[Mutant]:
        for node in ast.parse(self.source).body:
            self._visit_statement(node, "")
        return sorted(dict.fromkeys(self.mutants), key=lambda mutant: (mutant.start, mutant.end, mutant.text))

    def _visit_statement(self, node: ast.stmt, function: str) -> None:
        if _is_skippable(node):
            return
        self.scope = _Scope(function, node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for default in _defaults(node):
                self._visit_expression(default)
            for child in node.body:
                self._visit_statement(child, f"{function}.{node.name}".lstrip("."))
            return
        self._mutate_statement(node)
        self._visit_parts(node, self.scope)

    def _visit_parts(self, node: ast.AST, scope: _Scope) -> None:
        for child in ast.iter_child_nodes(node):
            self.scope = scope
            if isinstance(child, ast.stmt):
                self._visit_statement(child, scope.function)
            elif isinstance(child, ast.excepthandler | ast.match_case):
                self._visit_parts(child, scope)
            elif not isinstance(child, ast.pattern) and not (
                isinstance(node, ast.AnnAssign) and child is node.annotation
            ):
                self._visit_expression(child)

    def _visit_expression(self, node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Subscript) and _name(node.value) == "Literal"):
            return
        if isinstance(node, ast.Call) and _name(node.func) in {"TypeVar", "ParamSpec", "assert_never", "cast"}:
            return
        if isinstance(node, ast.expr):
            self._mutate_expression(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.Call) and isinstance(child, ast.keyword) and child.arg == "strict":
                continue
            # NumPy infers a size from any negative number.
            if isinstance(node, ast.Call) and _name(node.func) == "reshape" and isinstance(child, ast.UnaryOp):
                continue
            self._visit_expression(child)

    def _mutate_statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Return) and not _falsy(node.value):
            self._replace(node, "return None", "result")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._replace(node, "pass", "call deleted")
        elif isinstance(node, ast.AugAssign):
            self._replace(node, "pass", "assignment deleted")
            self._swap_arithmetic(node.target, node.op, node.value, "=")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript):
            self._replace(node, "pass", "assignment deleted")
        elif isinstance(node, ast.If):
            self._force(node.test)

    def _mutate_expression(self, node: ast.expr) -> None:
        match node:
            case ast.Compare():
                self._swap_comparisons(node)
            case ast.BinOp():
                self._swap_arithmetic(node.left, node.op, node.right)
            case ast.BoolOp():
                words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    self._swap(left, right, *words, "condition")
            case ast.UnaryOp(op=ast.Not()):
                start, _ = self._span(node)
                self._edit(start, start + len("not"), "", "not dropped")
            case ast.Constant(value=bool()):
                self._replace(node, str(not node.value), "constant")
            case ast.Constant(value=int() | float()):
                self._replace(node, self._number(node.value, 1), "constant")
                self._replace(node, self._number(node.value, -1), "constant")
            case ast.IfExp():
                self._force(node.test)
            case ast.Slice():
                for limit, offset in ((node.lower, " + 1"), (node.upper, " - 1")):
                    if limit is not None and not isinstance(limit, ast.Constant):
                        self._replace(limit, f"({self._text(limit)}){offset}", "slice")
            case ast.Set():
                self._drop_members(node.elts)
            case ast.Dict():
                self._drop_entries(node)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()) as words, attr="split"), args=[]):
                self._drop_words(words)
            case _:
                pass

    def _swap_comparisons(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            self._swap(left, right, *_COMPARISONS[type(op)], "comparison")
            if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List):
                self._drop_members(right.elts)

    def _swap_arithmetic(self, left: ast.expr, op: ast.operator, right: ast.expr, suffix: str = "") -> None:
        texts = any(isinstance(side, _NOT_NUMBERS) or _is_text(side) for side in (left, right))
        types = isinstance(op, ast.BitOr) and _TYPES.match(self._text(right))
        if type(op) in _ARITHMETIC and not texts and not types:
            old, new = _ARITHMETIC[type(op)]
            self._swap(left, right, old + suffix, new + suffix, "arithmetic")

    def _force(self, test: ast.expr) -> None:
        for value in ("True", "False"):
            if not isinstance(test, ast.Constant):
                self._replace(test, value, "condition")

    def _drop_members(self, items: Sequence[ast.expr]) -> None:
        for item in items if len(items) > 1 else ():
            if _is_text(item):
                start, end = self._span(item)
                comma = re.compile(r"\s*,\s*").match(self.source, end)
                self._edit(start, comma.end() if comma else end, "", "member dropped")

    def _drop_entries(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and _is_text(key):
                end = self._span(value)[1]
                comma = re.compile(r"[\s)]*,\s*").match(self.source, end)
                if comma is None or ")" not in comma.group():
                    self._edit(self._span(key)[0], comma.end() if comma else end, "", "member dropped")

    def _drop_words(self, node: ast.Constant) -> None:
        start, end = self._span(node)
        literal = self.source[start:end]
        body = re.fullmatch(r"[a-z]*(\"\"\"|\"|')(.*)\1", literal, re.DOTALL)
        if body is None or "\\" in literal or len(body.group(2).split()) < 2:
            return
        start += body.start(2)
        for word in re.finditer(r"\S+\s*", body.group(2)):
            self._edit(start + word.start(), start + word.end(), "", "member dropped")

    def _swap(self, left: ast.expr, right: ast.expr, old: str, new: str, change: str) -> None:
        """Replace the operator between two operands; parentheses and comments may surround it."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = r"\s+".join(rf"\b{word}\b" if word.isalpha() else re.escape(word) for word in old.split())
        code = re.sub(r"#[^\n]*", lambda comment: " " * len(comment.group()), self.source[start:end])
        operator = re.search(pattern, code)
        if operator:
            self._edit(start + operator.start(), start + operator.end(), new, change)

    def _number(self, value: object, step: int) -> str:
        number = value + step if isinstance(value, int | float) else value
        return f"({number!r})" if str(number).startswith("-") else repr(number)

    def _replace(self, node: ast.expr | ast.stmt, text: str, change: str) -> None:
        self._edit(*self._span(node), text, change)

    def _edit(self, start: int, end: int, text: str, change: str) -> None:
        first, last = self._line_of(start), self._line_of(max(start, end - 1))
        low, high = self.starts[first], self.starts[last + 1]
        before, after = self.source[low:high], self.source[low:start] + text + self.source[end:high]
        statement = self.scope.statement
        point = Point(self.path, self.scope.function, self.lines[statement.lineno - 1].strip())
        before, after = " ".join(before.split()), " ".join(after.split())
        self.mutants.append(Mutant(self.path, start, end, text, first + 1, change, before, after, point))

    def _line_of(self, offset: int) -> int:
        low, high = 0, len(self.lines)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle)
        return low

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def _offset(self, line: int, column: int) -> int:
        """Convert a line and a UTF-8 byte column to an offset in the text."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def _text(self, node: ast.expr) -> str:
        return self.source[slice(*self._span(node))]


def _is_skippable(node: ast.stmt) -> bool:
    """Return whether a statement is for type checkers, for `import *`, or for running the file as a program."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return any(_name(decorator) == "overload" for decorator in node.decorator_list)
    if isinstance(node, ast.If):
        return any(_name(part) in {"TYPE_CHECKING", "__name__"} for part in ast.walk(node.test))
    targets = node.targets if isinstance(node, ast.Assign) else ()
    alias = isinstance(node, ast.AnnAssign) and _name(node.annotation) == "TypeAlias"
    return alias or any(_name(target) in {"__all__", "__slots__"} for target in targets)


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.expr]:
    if isinstance(node, ast.ClassDef):
        return []
    return [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _falsy(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in (None, False))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
