"""Prints nodes: `emit`. A node's tokens are computed from its fields; the gaps around them come from its layout if the
counts match, else from the style."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.emitter.styles import DEFAULT, Style, compute_default_gaps
from pyptx.ir.base import tokens
from pyptx.ir.directives import Module, Section
from pyptx.ir.nodes import Block, Function, Instruction, IntrinsicScope, Statement
from pyptx.ir.operands import text_of


def emit(module: Module, *, style: Style = DEFAULT) -> str:
    """Return the text of a module, computed from its nodes. `style` spaces nodes without a layout."""
    out: list[str] = []
    _write_all(module.statements, out, style)
    if module.layout:
        out.append(module.layout[0])
    return "".join(out)


def emit_statement(statement: Statement, *, style: Style = DEFAULT) -> str:
    """Return the text of one statement, including its body."""
    out: list[str] = []
    _write_all((statement,), out, style)
    return "".join(out)


def _write_all(statements: Sequence[Statement], out: list[str], style: Style) -> None:
    """Write statements and their bodies; open bodies are kept in a list, so nesting needs no recursion."""
    stack: list[tuple[Iterator[Statement], Statement]] = []
    current = iter(statements)
    write = out.append
    while True:
        for node in current:
            if type(node) is Instruction:
                layout, operands, guard = node.layout, node.operands, node.predicate
                if layout is None:
                    if out and out[-1][-1:] != "\n":
                        write("\n")
                    write(_format_instruction(node, style, len(stack)))
                    continue
                if layout.form and layout.arity == len(operands):
                    texts = [o._text or text_of(o) for o in operands]  # pyright: ignore[reportPrivateUsage]
                    head = node.opcode + "".join(node.modifiers)
                    if guard is None:
                        if not layout.guarded:
                            write(layout.form % (head, *texts))
                            continue
                    elif layout.guarded:
                        mark = f"@!{guard.register}" if guard.negated else f"@{guard.register}"
                        write(layout.form % (mark, head, *texts))
                        continue
                _write_tokens(node, out, style, len(stack))
            elif isinstance(node, Block | Section | IntrinsicScope) or (type(node) is Function and node.definition):
                _open(node, out, style, len(stack))
                stack.append((current, node))
                current = iter(node.body)
                break
            else:
                _write_tokens(node, out, style, len(stack))
        else:
            if not stack:
                return
            current, node = stack.pop()
            _close(node, out, style, len(stack))


def _format_instruction(node: Instruction, style: Style, depth: int) -> str:
    """Return an instruction's line in the style's spacing: the result of `default_gaps`, without splitting into
    tokens."""
    guard, operands = node.predicate, node.operands
    mark = "" if guard is None else f"@!{guard.register} " if guard.negated else f"@{guard.register} "
    head = f"{style.indent * (min(depth, 1) if style.flat else depth)}{mark}{node.opcode}{''.join(node.modifiers)}"
    if not operands:
        return f"{head};\n"
    return f"{head}{style.after_opcode}{', '.join([text_of(operand) for operand in operands])};\n"


def _write_tokens(node: Statement, out: list[str], style: Style, depth: int) -> None:
    """Write a node's own tokens with the gaps around them."""
    words = tokens(node)
    if not words:
        return
    layout: tuple[str, ...] | None = getattr(node, "layout", None)
    if layout is not None and len(layout) == len(words) + 1:
        gaps: Sequence[str] = layout
    else:
        gaps = compute_default_gaps(node, words, style, depth)
        if layout:
            gaps = [layout[0], *gaps[1:-1], layout[-1]]
        elif out and out[-1] and out[-1][-1] != "\n":
            out.append("\n")
    out.append(gaps[0])
    out += [word + gap for word, gap in zip(words, gaps[1:], strict=True)]


def _open(node: Statement, out: list[str], style: Style, depth: int) -> None:
    if isinstance(node, IntrinsicScope):
        out.append(f"{style.indent * depth}// BEGIN {node.name}({node.args_repr})\n")
    else:
        _write_tokens(node, out, style, depth)


def _close(node: Statement, out: list[str], style: Style, depth: int) -> None:
    if isinstance(node, IntrinsicScope):
        out.append(f"{style.indent * depth}// END {node.name}\n")
        return
    assert isinstance(node, Block | Section | Function)
    closing = node.closing
    if closing is None:
        if out[-1] and out[-1][-1] != "\n":
            out.append("\n")
        out.append(f"{style.indent * depth}}}\n")
    elif closing:
        out.append(f"{closing[0]}}}{closing[1]}")
