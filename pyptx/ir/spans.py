"""Places inside a statement: of a token, the opcode, a modifier, an operand, a parameter. Computed from the statement's
own place, tokens and layout, so that nodes store no further places."""

from __future__ import annotations

from pyptx.diagnostics import Origin, Span
from pyptx.ir.base import Node, tokens
from pyptx.ir.nodes import Instruction


def token_span(node: Node, first: int, count: int = 1) -> Origin | None:
    """Return the place of `count` tokens of a node starting at index `first` (at most to the end of their line); the
    node's own origin if it is not a place in PTX text, or if the layout does not match."""
    origin = node.origin
    words = tokens(node)
    layout: tuple[str, ...] | None = getattr(node, "layout", None)
    if not isinstance(origin, Span) or layout is None or len(layout) != len(words) + 1:
        return origin
    before = "".join([word + gap for word, gap in zip(words[:first], layout[1:], strict=False)])
    inner = [word + gap for word, gap in zip(words[first : first + count], layout[first + 1 :], strict=False)]
    length = len("".join(inner)) - len(layout[first + count]) if inner else 1
    first_line = "".join(inner)[:length].partition("\n")[0]
    lines = before.count("\n")
    col = len(before) - before.rfind("\n") if lines else origin.col + len(before)
    return Span(origin.line + lines, col, max(1, len(first_line)), origin.file)


def opcode_span(node: Instruction) -> Origin | None:
    """Return the place of the opcode with its modifiers."""
    return token_span(node, _count_guard_tokens(node), 1 + len(node.modifiers))


def modifier_span(node: Instruction, index: int) -> Origin | None:
    """Return the place of one modifier."""
    return token_span(node, _count_guard_tokens(node) + 1 + index)


def operand_span(node: Instruction, index: int) -> Origin | None:
    """Return the place of one operand."""
    first = _count_guard_tokens(node) + 1 + len(node.modifiers) + index
    first += sum([len(tokens(operand)) for operand in node.operands[:index]])
    return token_span(node, first, len(tokens(node.operands[index])))


def guard_span(node: Instruction) -> Origin | None:
    """Return the place of the guard predicate."""
    return token_span(node, 0, _count_guard_tokens(node) or 1)


def word_span(node: Node, word: str) -> Origin | None:
    """Return the place of the first token equal to this word, or the node's own."""
    words = tokens(node)
    return token_span(node, words.index(word)) if word in words else node.origin


def part_span(node: Node, part: Node) -> Origin | None:
    """Return the place of a node among another's parts (a parameter or directive of a function, a declarator)."""
    index = 0
    for item in node.parts():
        if item is part or (isinstance(item, Node) and item == part):
            return token_span(node, index, len(tokens(part)))
        index += 1 if isinstance(item, str) else len(tokens(item))
    return node.origin


def _count_guard_tokens(node: Instruction) -> int:
    return 0 if node.predicate is None else 2 + node.predicate.negated
