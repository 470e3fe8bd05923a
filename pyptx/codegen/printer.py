"""Prints a plan as Python text. Safe by construction: identifiers are checked, and everything else goes through
`ascii`. Lines have at most WIDTH characters wherever brackets allow a break."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from pyptx.codegen.plan import (
    Attribute,
    Binary,
    Blank,
    Block,
    Call,
    Comprehension,
    Define,
    Dict,
    Doc,
    Expr,
    Import,
    Item,
    Lambda,
    Line,
    List,
    Literal,
    Main,
    Name,
    Note,
    Plan,
    Repeat,
    Slice,
    Step,
    Tuple,
    Unary,
)

WIDTH = 120
_PIECE = 80
_INDENT = "    "
_OPERATORS = frozenset("+ - * / // % ** << >> & ^ | < <= > >= == != and or in is".split())
_IN_PLACE = frozenset(f"{symbol}=" for symbol in "+ - * / // % << >> & ^ |".split())
_BEFORE = {"-": "-", "~": "~", "+": "+", "not": "not ", "*": "*"}
_KEYWORDS = frozenset(("True", "False", "None"))


def print_plan(plan: Plan) -> str:
    """Return the text of a file."""
    out: list[str] = []
    stack: list[tuple[Iterator[Step], str]] = []
    steps, indent = iter(plan.body), ""
    while True:
        for step in steps:
            header = _HEADERS.get(type(step))
            if header is None:
                _SIMPLE[type(step)](step, indent, out)
                continue
            inner = header(step, indent, out) or cast("Block | Repeat | Define | Main", step)
            stack.append((steps, indent))
            indent += _INDENT
            body = inner.body
            if not any(isinstance(inner, Line | Block | Repeat | Define) for inner in body):
                out.append(f"{indent}pass\n")
            steps = iter(body)
            break
        else:
            if not stack:
                return "".join(out)
            steps, indent = stack.pop()


def format_expression(expr: Expr) -> str:
    """Return an expression on one line."""
    text = expr._text  # pyright: ignore[reportPrivateUsage]
    if text is None:
        text = _TEXTS[type(expr)](expr)
        cast("Any", type(expr))._text.__set__(expr, text)
    return text


def _check_name(name: str) -> str:
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"{name!r} is not an identifier")
    return name


def _format_literal(expr: Literal) -> str:
    value = expr.value
    if type(value) is str:
        return _quote(value)
    if value is not None and type(value) not in (int, float, bool):
        raise TypeError(f"{value!r} is not a literal")
    return hex(value) if expr.hex and isinstance(value, int) else repr(value)


def _quote(text: str) -> str:
    literal = ascii(text)
    if literal[0] == "'" and '"' not in literal and "\\'" not in literal:
        return f'"{literal[1:-1]}"'
    return literal


def _format_atom(expr: Expr) -> str:
    """Return an expression that binds more tightly than any operator."""
    text = format_expression(expr)
    loose = isinstance(expr, Binary | Unary) or (isinstance(expr, Literal) and text[0] == "-")
    return f"({text})" if loose else text


def _format_base(expr: Expr) -> str:
    """Return the text before a dot or a bracket: numbers need parentheses too."""
    text = _format_atom(expr)
    return f"({text})" if text[0].isdigit() else text


def _format_call(expr: Call) -> str:
    return f"{_format_base(expr.function)}({', '.join(_format_arguments(expr))})"


def _format_arguments(expr: Call) -> list[str]:
    parts = [format_expression(argument) for argument in expr.arguments]
    parts += [f"{_check_name(name)}={format_expression(value)}" for name, value in expr.keywords]
    return parts


def _format_slice(expr: Slice) -> str:
    ends = ["" if end is None else _format_atom(end) for end in (expr.start, expr.stop)]
    return ":".join(ends if expr.step is None else [*ends, _format_atom(expr.step)])


def _format_unary(expr: Unary) -> str:
    return f"{_BEFORE[expr.operator]}{_format_atom(expr.operand)}"


def _format_binary(expr: Binary) -> str:
    if expr.operator not in _OPERATORS:
        raise ValueError(f"{expr.operator!r} is not an operator")
    left, right = _format_side(expr.left, expr.operator, True), _format_side(expr.right, expr.operator, False)
    return f"{left} {expr.operator} {right}"


def _format_side(expr: Expr, operator: str, left: bool) -> str:
    """Return an operand, in parentheses unless the precedence is obvious: `a * b + c`, `a + b + c`."""
    if isinstance(expr, Binary):
        products = operator in "+-" and expr.operator in ("*", "/", "//")
        chain = left and ((operator in "+-" and expr.operator in "+-") or operator == expr.operator in "*&|^")
        if products or chain:
            return format_expression(expr)
    return _format_atom(expr)


def _format_tuple(expr: Tuple) -> str:
    inside = ", ".join([format_expression(element) for element in expr.elements])
    return f"({inside},)" if len(expr.elements) == 1 else f"({inside})"


_TEXTS: dict[type[Expr], Callable[[Any], str]] = {
    Name: lambda e: _check_name(e.id),
    Literal: _format_literal,
    Attribute: lambda e: f"{_format_base(e.value)}.{_check_name(e.name)}",
    Item: lambda e: f"{_format_base(e.value)}[{format_expression(e.index)}]",
    Slice: _format_slice,
    Call: _format_call,
    Unary: _format_unary,
    Binary: _format_binary,
    Dict: lambda e: (
        f"{{{', '.join([f'{format_expression(key)}: {format_expression(value)}' for key, value in e.items])}}}"
    ),
    Comprehension: lambda e: (
        f"[{format_expression(e.body)} for {_format_target(e.target)} in {format_expression(e.values)}]"
    ),
    Lambda: lambda e: f"lambda: {format_expression(e.body)}",
    List: lambda e: f"[{', '.join([format_expression(element) for element in e.elements])}]",
    Tuple: _format_tuple,
}


def _fit(before: str, expr: Expr, after: str, indent: str) -> str:
    """Return a line, broken inside its brackets if it is too long."""
    return f"{indent}{before}{_break(expr, indent, len(before), len(after))}{after}"


def _break(expr: Expr, indent: str, before: int, after: int) -> str:
    """Return an expression over several lines; `before` and `after` are the lengths of the text on its first and last
    line."""
    flat = format_expression(expr)
    if len(indent) + before + len(flat) + after <= WIDTH:
        return flat
    if isinstance(expr, Call) and (expr.arguments or expr.keywords):
        if len(expr.arguments) == 1 and not expr.keywords and _is_text(expr.arguments[0]):
            return f"{_format_function(expr.function, indent, before)}{_break(expr.arguments[0], indent, WIDTH, 0)}"
        parts: list[tuple[str, Expr]] = [("", argument) for argument in expr.arguments]
        parts += [(f"{_check_name(name)}=", value) for name, value in expr.keywords]
        return f"{_format_function(expr.function, indent, before)}(\n{_fill(parts, indent + _INDENT)}\n{indent})"
    if isinstance(expr, List | Tuple) and expr.elements:
        opening, closing = ("[", "]") if isinstance(expr, List) else ("(", ")")
        parts = [("", element) for element in expr.elements]
        return f"{opening}\n{_fill(parts, indent + _INDENT)}\n{indent}{closing}"
    if isinstance(expr, Comprehension):
        deeper = indent + _INDENT
        body, values = _break(expr.body, deeper, 0, 0), f"for {_format_target(expr.target)} in "
        iterable = _break(expr.values, deeper, len(values), 0)
        return f"[\n{deeper}{body}\n{deeper}{values}{iterable}\n{indent}]"
    if isinstance(expr, Dict) and expr.items:
        parts = [(f"{format_expression(key)}: ", value) for key, value in expr.items]
        return f"{{\n{_fill(parts, indent + _INDENT)}\n{indent}}}"
    if isinstance(expr, Literal) and isinstance(expr.value, str) and _is_text(expr):
        return _split_text(expr.value, indent, expr.dense)
    if isinstance(expr, Attribute) and isinstance(expr.value, Call):
        name = f".{_check_name(expr.name)}"
        return f"{_break(expr.value, indent, before, len(name) + after)}{name}"
    if isinstance(expr, Binary):
        deeper = indent + _INDENT
        left = _break_side(expr.left, deeper, 0)
        right = _break_side(expr.right, deeper, len(expr.operator) + 1)
        return f"(\n{deeper}{left}\n{deeper}{expr.operator} {right}\n{indent})"
    return flat


def _is_text(expr: Expr) -> bool:
    """Tell whether an expression is a string that can be split inside parentheses."""
    return isinstance(expr, Literal) and isinstance(expr.value, str) and len(expr.value) > 1


def _format_function(expr: Expr, indent: str, before: int) -> str:
    """Return the callee; a long index in it goes on a separate line."""
    text = _format_base(expr)
    if len(indent) + before + len(text) + 1 <= WIDTH or not isinstance(expr, Item):
        return text
    index = _break(expr.index, indent + _INDENT, 0, 0)
    return f"{_format_base(expr.value)}[\n{indent}{_INDENT}{index}\n{indent}]"


def _break_side(expr: Expr, indent: str, before: int) -> str:
    """Return an operand on a line of its own: one that needs parentheses is not broken."""
    return f"({format_expression(expr)})" if isinstance(expr, Binary | Unary) else _break(expr, indent, before, 0)


def _fill(parts: Sequence[tuple[str, Expr]], indent: str) -> str:
    """Return arguments or elements, as many on each line as fit."""
    lines: list[str] = []
    line = ""
    for prefix, expr in parts:
        flat = f"{prefix}{format_expression(expr)},"
        if line and len(indent) + len(line) + 1 + len(flat) <= WIDTH:
            line += f" {flat}"
            continue
        if line:
            lines.append(line)
        if len(indent) + len(flat) <= WIDTH:
            line = flat
        else:
            lines.append(f"{prefix}{_break(expr, indent, len(prefix), 1)},")
            line = ""
    if line:
        lines.append(line)
    return "\n".join([f"{indent}{row}" for row in lines])


def _split_text(text: str, indent: str, dense: bool) -> str:
    """Return a long string as several adjacent literals, one for each line of the text, or `dense` ones."""
    deeper = indent + _INDENT
    pieces: list[str] = []
    lines: Sequence[str] = _LINES.findall(text)
    for line in _pack(lines, WIDTH - len(deeper)) if dense else lines:
        start = 0
        while start < len(line):
            size = WIDTH if dense else _PIECE
            while size > 1 and len(deeper) + len(_quote(line[start : start + size])) > WIDTH:
                size //= 2
            pieces.append(f"{deeper}{_quote(line[start : start + size])}")
            start += size
    return "(\n" + "\n".join(pieces) + f"\n{indent})"


def _pack(lines: Sequence[str], room: int) -> Iterator[str]:
    """Yield lines joined as long as their literal fits."""
    line = ""
    for addition in lines:
        if line and len(_quote(line + addition)) > room:
            yield line
            line = ""
        line += addition
    yield line


_LINES = re.compile(r"[^\n]*\n|[^\n]+")


def _format_remark(text: str | None) -> str:
    return "" if text is None else f"  # {_make_visible(text)}"


def _make_visible(text: str) -> str:
    """Return text that cannot end its comment line."""
    return "".join([c if " " <= c <= "~" else "?" for c in text])


def _write_line(step: Line, indent: str, out: list[str]) -> None:
    if step.operator and f"{step.operator}=" not in _IN_PLACE:
        raise ValueError(f"{step.operator!r} is not an operator")
    before = "" if step.target is None else f"{_format_assigned(step.target, indent)} {step.operator}= "
    text = _fit(before, step.value, "", indent)
    remark = _format_remark(step.comment)
    if remark and len(text) - text.rfind("\n") + len(remark) > WIDTH:
        out += [*_format_notes(step.comment or "", indent), f"{text}\n"]
    else:
        out.append(f"{text}{remark}\n")


def _format_assigned(expr: Expr, indent: str) -> str:
    """Return an assignment target; many targets go on several lines."""
    text = _format_target(expr)
    if not isinstance(expr, Tuple) or len(indent) + len(text) + 8 <= WIDTH:
        return text
    inside = _fill([("", Name(_format_target(element))) for element in expr.elements], indent + _INDENT)
    return f"(\n{inside}\n{indent})"


def _format_target(expr: Expr) -> str:
    """Return an assignment target: a name, an item, an attribute, or several of these without parentheses."""
    if isinstance(expr, Tuple):
        inside = ", ".join(
            [
                f"({_format_target(element)})" if isinstance(element, Tuple) else _format_target(element)
                for element in expr.elements
            ]
        )
        return f"{inside}," if len(expr.elements) == 1 else inside
    if isinstance(expr, Name | Item | Attribute) and format_expression(expr) not in _KEYWORDS:
        return format_expression(expr)
    raise TypeError(f"{expr!r} cannot be assigned to")


def _write_with(step: Block, indent: str, out: list[str]) -> Block:
    """Write the headers of a block and of the blocks that are its only content; return the innermost block."""
    parts = [step]
    while len(parts[-1].body) == 1 and isinstance(inner := parts[-1].body[0], Block) and inner.comment is None:
        parts.append(inner)
    texts = [format_expression(part.header) + _format_as(part) for part in parts]
    line = f"{indent}with {', '.join(texts)}:"
    if len(line) > WIDTH and len(parts) > 1:
        lines = [_fit("", part.header, f"{_format_as(part)},", indent + _INDENT) for part in parts]
        line = "\n".join((f"{indent}with (", *lines, f"{indent}):"))
    elif len(line) > WIDTH:
        line = _fit("with ", step.header, f"{_format_as(step)}:", indent)
    _write_head(line, step.comment, indent, out)
    return parts[-1]


def _format_as(step: Block) -> str:
    return "" if step.target is None else f" as {_format_target(step.target)}"


def _write_for(step: Repeat, indent: str, out: list[str]) -> None:
    _write_head(_fit(f"for {_format_target(step.target)} in ", step.values, ":", indent), step.comment, indent, out)


def _write_head(head: str, comment: str | None, indent: str, out: list[str]) -> None:
    if comment is not None:
        out += _format_notes(comment, indent)
    out.append(f"{head}\n")


def _write_def(step: Define, indent: str, out: list[str]) -> None:
    out += [f"{_fit('@', decorator, '', indent)}\n" for decorator in step.decorators]
    out.append(f"{indent}def {_check_name(step.name)}() -> None:\n")


def _format_docstring(text: str) -> str:
    safe = _make_visible(text)
    return f'"""{safe}"""' if not set(safe) & {'"', "\\"} and safe.strip() else ascii(text)


def _format_notes(text: str, indent: str) -> list[str]:
    """Return comment lines, breaking long ones at spaces."""
    room = max(WIDTH - len(indent) - 2, 20)
    lines: list[str] = []
    for line in text.split("\n"):
        remainder = _make_visible(line.rstrip())
        while len(remainder) > room:
            end = remainder.rfind(" ", 1, room)
            end = room if end < 0 else end
            lines.append(remainder[:end])
            remainder = remainder[end:].lstrip()
        lines.append(remainder)
    return [f"{indent}# {line}".rstrip() + "\n" for line in lines]


def _write_import(step: Import, indent: str, out: list[str]) -> None:
    for part in step.module.split("."):
        _check_name(part)
    names = [_check_name(name) for name in step.names]
    if not names:
        out.append(f"{indent}import {step.module}\n")
        return
    line = f"{indent}from {step.module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        out.append(f"{line}\n")
        return
    inside = "\n".join([f"{indent}{_INDENT}{name}," for name in names])
    out.append(f"{indent}from {step.module} import (\n{inside}\n{indent})\n")


_SIMPLE: dict[type[Step], Callable[[Any, str, list[str]], None]] = {
    Line: _write_line,
    Doc: lambda step, indent, out: out.append(f"{indent}{_format_docstring(step.text)}\n"),
    Note: lambda step, indent, out: out.extend(_format_notes(step.text, indent)),
    Blank: lambda step, indent, out: out.append("\n" * step.count),
    Import: _write_import,
}
_HEADERS: dict[type[Step], Callable[[Any, str, list[str]], Any]] = {
    Block: _write_with,
    Repeat: _write_for,
    Define: _write_def,
    Main: lambda step, indent, out: out.append(f'{indent}if __name__ == "__main__":\n'),
}
