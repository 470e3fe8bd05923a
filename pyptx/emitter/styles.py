"""How nodes without a layout are spaced. Styles are values; everything here is about looks, nothing about meaning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pyptx.ir.base import Node, tokens
from pyptx.ir.nodes import Function, Instruction
from pyptx.ir.operands import inner_gap


class Style(NamedTuple):
    """`indent` is written once per open body, `after_opcode` before the operands; `param_lines` puts each parameter
    of a function on its own line."""

    indent: str = "\t"
    after_opcode: str = " "
    param_lines: bool = True


DEFAULT = Style()
NVCC = Style(after_opcode=" \t")
SPACES = Style(indent="    ")
STYLES = {"default": DEFAULT, "nvcc": NVCC, "spaces": SPACES}

_NO_SPACE_BEFORE = frozenset(",;:)]}<>[+*/|")
_NO_SPACE_AFTER = frozenset("([{<+-!~@*/|")


def default_gaps(node: Node, words: Sequence[str], style: Style, depth: int) -> list[str]:
    """Return the n+1 gaps that the style puts around a node's n tokens."""
    lead = style.indent * depth
    if isinstance(node, Instruction):
        inner = _instruction_gaps(node, words, style)
    elif isinstance(node, Function):
        inner = _function_gaps(node, words, style, lead)
    else:
        inner = [_gap(before, after) for before, after in pairwise(words)]
        if len(words) > 1 and words[-1] == "{":
            inner[-1] = f"\n{lead}"
    return [lead, *inner, "\n"]


def _instruction_gaps(node: Instruction, words: Sequence[str], style: Style) -> list[str]:
    guard = len(tokens(node.predicate)) if node.predicate else 0
    head = guard + 1 + len(node.modifiers)
    gaps = [inner_gap(before, after) for before, after in pairwise(words)]
    if guard:
        gaps[guard - 1] = " "
    if node.operands:
        gaps[head - 1] = style.after_opcode
    return gaps


def _function_gaps(node: Function, words: Sequence[str], style: Style, lead: str) -> list[str]:
    gaps = [_gap(before, after) for before, after in pairwise(words)]
    at = len(words) - 1
    gaps[at - 1] = f"\n{lead}" if node.definition else ""
    for directive in reversed(node.directives):
        at -= len(tokens(directive))
        gaps[at - 1] = f"\n{lead}"
    if not node.params or not style.param_lines:
        return gaps
    at -= 1
    gaps[at - 1] = f"\n{lead}"
    for param in reversed(node.params):
        at -= len(tokens(param)) + (param is not node.params[-1])
        gaps[at - 1] = f"\n{lead}{style.indent}"
    return gaps


def _gap(before: str, after: str) -> str:
    """Return the space between two tokens of a declaration or directive."""
    if before in _NO_SPACE_AFTER:
        return ""
    if after in _NO_SPACE_BEFORE:
        return inner_gap(before, after)
    if after == "(":
        return " " if before in (".func", ".callprototype") else ""
    if after == "-":
        return "" if before[0] not in ".,=" else " "
    return " "
