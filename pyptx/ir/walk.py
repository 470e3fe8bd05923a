"""Walks over modules: visits statements, replaces them, compares two modules, removes layouts. Nothing recurses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from pyptx.ir.base import Node, list_field_names, tokens
from pyptx.ir.directives import Module, Section
from pyptx.ir.nodes import Block, Function, IntrinsicScope, Label, Statement


def body_of(node: Node) -> tuple[Statement, ...] | None:
    """Return the statements inside a node, or None if it has no body."""
    if isinstance(node, Module):
        return node.statements
    if isinstance(node, Function):
        return node.body if node.definition else None
    return node.body if isinstance(node, Block | Section | IntrinsicScope) else None


def visit(node: Module | Statement) -> Iterator[Statement]:
    """Yield every statement in text order, enclosing statements before their contents."""
    stack: list[Iterator[Statement]] = [iter(node.statements if isinstance(node, Module) else (node,))]
    while stack:
        for statement in stack[-1]:
            yield statement
            inside = body_of(statement)
            if inside:
                stack.append(iter(inside))
                break
        else:
            stack.pop()


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly among a node's parts: operands, guards, parameters, declarators."""
    return tuple([part for part in node.parts() if isinstance(part, Node)])


def parts_of(node: Node) -> Iterator[Node]:
    """Yield a node and everything among its parts, at any depth: for example, all operands inside an instruction."""
    stack: list[Node] = [node]
    while stack:
        item = stack.pop()
        yield item
        stack += reversed(children(item))


Change = Callable[[Statement], "Statement | Sequence[Statement] | None"]
"""Returns the statement itself to keep it, one or several replacements, or None to remove it."""


def replace_statements(module: Module, change: Change) -> Module:
    """Return the module with every statement passed through `change`, inner ones first. Unchanged bodies, and an
    unchanged module, remain the same objects."""
    header = {id(module.version): "version", id(module.target): "target", id(module.address_size): "address_size"}
    fields: dict[str, Statement] = {}
    for statement in module.statements[: len(module.statements) - len(module.directives)]:
        replacement = change(statement)
        if replacement is not statement:
            fields[header[id(statement)]] = cast("Statement", replacement)
    directives = _replace(module.directives, change)
    if directives is not module.directives:
        return module.replace(directives=directives, **fields)
    return module.replace(**fields) if fields else module


def _replace(body: tuple[Statement, ...], change: Change) -> tuple[Statement, ...]:
    """Return a body after the change, the same tuple if nothing in it changed."""
    frames: list[_Frame] = [_Frame(body, None)]
    while True:
        frame = frames[-1]
        if frame.position < len(frame.body):
            statement = frame.body[frame.position]
            frame.position += 1
            inside = body_of(statement)
            if inside:
                frames.append(_Frame(inside, statement))
            else:
                frame.put(statement, change(statement))
            continue
        frames.pop()
        result = tuple(frame.out) if frame.changed else frame.body
        if not frames:
            return result
        owner = cast("Statement", frame.owner)
        rebuilt = owner.replace(body=result) if frame.changed else owner
        frames[-1].put(owner, change(rebuilt))


class _Frame:
    """A body being changed."""

    __slots__ = ("body", "changed", "out", "owner", "position")

    def __init__(self, body: tuple[Statement, ...], owner: Statement | None) -> None:
        self.body = body
        self.owner = owner
        self.position = 0
        self.out: list[Statement] = []
        self.changed = False

    def put(self, before: Statement, after: Statement | Sequence[Statement] | None) -> None:
        """Add the replacements of one statement."""
        self.changed = self.changed or after is not before
        if isinstance(after, Statement):
            self.out.append(after)
        elif after is not None:
            self.out += after


def strip_layout(module: Module) -> Module:
    """Return the same module without whitespace, comments and places: it prints in the default style."""

    def strip_statement(statement: Statement) -> Statement:
        fields = list_field_names(type(statement))
        cleared = {name: None for name in ("layout", "closing", "origin") if name in fields}
        return statement.replace(**cleared)

    return replace_statements(module, strip_statement).replace(layout=None, origin=None)


def normalize_module(module: Module) -> Module:
    """Return the canonical form without layout, dissolving intrinsic scopes, which are only comments."""

    def dissolve(statement: Statement) -> Statement | Sequence[Statement]:
        return statement.body if isinstance(statement, IntrinsicScope) else statement

    return replace_statements(strip_layout(module), dissolve)


def module_tokens(module: Module | Statement) -> list[str]:
    """Return every token of a module, computed from the fields of its nodes."""
    out: list[str] = []
    stack: list[tuple[Iterator[Statement], bool]] = [
        (iter(module.statements if isinstance(module, Module) else (module,)), False)
    ]
    while stack:
        for statement in stack[-1][0]:
            out += tokens(statement)
            inside = body_of(statement)
            if inside is not None:
                closing = getattr(statement, "closing", None)
                braces = not isinstance(statement, IntrinsicScope) and closing != ()
                stack.append((iter(inside), braces))
                break
        else:
            if stack.pop()[1]:
                out.append("}")
    return out


def diff_modules(a: Module, b: Module, entry_only: bool = False) -> list[str]:
    """Return the differences between two modules, one line each, ignoring layouts; with `entry_only` only those inside
    entry functions."""
    if entry_only:
        left, right = (
            _format_lines([d for d in m.directives if isinstance(d, Function) and d.is_entry]) for m in (a, b)
        )
    else:
        left, right = _format_lines(a.statements), _format_lines(b.statements)
    if left == right:
        return []
    from difflib import unified_diff

    return [line for line in unified_diff(left, right, lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))]


def _format_lines(statements: Sequence[Statement]) -> list[str]:
    """Return statements as lines of tokens, indented by nesting depth. Intrinsic scopes, which are only comments, add
    nothing."""
    out: list[str] = []
    stack: list[tuple[Iterator[Statement], int]] = [(iter(statements), 0)]
    while stack:
        inner, depth = stack[-1]
        for statement in inner:
            scope = isinstance(statement, IntrinsicScope)
            if not scope:
                out.append("  " * min(depth, 8) + _format_statement(statement))
            inside = body_of(statement)
            if inside is not None:
                stack.append((iter(inside), depth + (not scope)))
                break
        else:
            stack.pop()
            if stack and stack[-1][1] < depth:
                out.append("  " * min(depth - 1, 8) + "}")
    return out


def _format_statement(statement: Statement) -> str:
    if isinstance(statement, Label):
        return f"{statement.name}:"
    return " ".join(tokens(statement)).replace(" ;", ";").replace(" ,", ",").replace(" .", ".")
