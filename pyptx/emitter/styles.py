"""The spacing of nodes without a layout. Styles are values that affect appearance only, never meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from pyptx.ir.base import Node, tokens
from pyptx.ir.nodes import Function, Instruction
from pyptx.ir.operands import choose_inner_gap

Form = Mapping["int | str", str]
NOTHING: Mapping[str, str] = MappingProxyType({})
NO_FORMS: Mapping[str, Form] = MappingProxyType({})


class Style(NamedTuple):
    """`indent` is written once per open body (`flat`: once, however deep), `after_opcode` before the operands;
    `param_lines` puts each parameter of a function on its own line.

    For the habits of producers: `around` spaces the punctuation of operands (`{"{_": " "}`: after an opening brace;
    `_` is any word). `forms` changes single gaps of one kind of statement, identified by its first word or opcode, with
    `/n` only of those with n tokens: by index, by `"op"` before the operands, by -1 after the statement. `before` is
    the gap before a statement, by its kind and optionally the preceding kind (`{"label": "\\n"}`,
    `{"label inst": "\\n\\t"}`). `asm` is the style between `// begin inline asm` and `// end inline asm`.
    `loc_comments` appends LLVM's `// file:line:column` to `.loc`. The last three apply only where statements are placed
    (`spacing.py`): `emit` alone uses `around` and `forms`.
    """

    indent: str = "\t"
    after_opcode: str = " "
    param_lines: bool = True
    flat: bool = False
    around: Mapping[str, str] = NOTHING
    before: Mapping[str, str] = NOTHING
    forms: Mapping[str, Form] = NO_FORMS
    asm: Style | None = None
    loc_comments: bool = False


DEFAULT = Style()
NVCC = Style(after_opcode=" \t")
SPACES = Style(indent="    ")
STYLES = {"default": DEFAULT, "nvcc": NVCC, "spaces": SPACES}

_NO_SPACE_BEFORE = frozenset(",;:)]}<>[+*/|")
_NO_SPACE_AFTER = frozenset("([{<+-!~@*/|")
PUNCTUATION = frozenset("{}[](),;+|<>!-:=")
"""The tokens whose surroundings `around` may space."""


def compute_default_gaps(node: Node, words: Sequence[str], style: Style, depth: int) -> list[str]:
    """Return the n+1 gaps that the style puts around a node's n tokens."""
    lead = style.indent * (min(depth, 1) if style.flat else depth)
    if isinstance(node, Instruction):
        inner, operands = _compute_instruction_gaps(node, words, style)
    elif isinstance(node, Function):
        inner, operands = _compute_function_gaps(node, words, style, lead), 0
    else:
        inner, operands = [_choose_gap(before, after) for before, after in pairwise(words)], 0
        if len(words) > 1 and words[-1] == "{":
            inner[-1] = f"\n{lead}"
    gaps = [lead, *inner, "\n"]
    if style.forms:
        apply_form(gaps, find_form(node, words, style), operands)
    return gaps


def apply_form(gaps: list[str], form: Form | None, operands: int) -> None:
    """Insert a form's gaps; `operands` is the index of the gap before the operands."""
    for position, gap in (form or NO_FORMS).items():
        index = operands if isinstance(position, str) else position
        if -len(gaps) <= index < len(gaps):
            gaps[index] = str(gap)


def find_form(node: Node, words: Sequence[str], style: Style) -> Form | None:
    """Return what the style changes for this kind of statement."""
    head = find_head(node, words)
    return style.forms.get(f"{head}/{len(words)}") or style.forms.get(head)


def find_head(node: Node, words: Sequence[str]) -> str:
    """Return the key of a kind of statement in `forms`: the opcode with its guard, or the first words with dots."""
    if isinstance(node, Instruction):
        guard = "" if node.predicate is None else "@! " if node.predicate.negated else "@ "
        return guard + node.full_opcode
    if words[-1] == ":":
        return "label"
    second = len(words) > 1 and words[0] in _LINKING
    return " ".join(words[:2]) if second else words[0]


_LINKING = frozenset((".visible", ".extern", ".weak", ".common"))


def _compute_instruction_gaps(node: Instruction, words: Sequence[str], style: Style) -> tuple[list[str], int]:
    guard = len(tokens(node.predicate)) if node.predicate else 0
    head = guard + 1 + len(node.modifiers)
    gaps = [choose_inner_gap(before, after) for before, after in pairwise(words)]
    if style.around:
        around = style.around
        for index in range(head, len(words)):
            before, after = words[index - 1], words[index]
            gaps[index - 1] = around.get(pair(before, after), gaps[index - 1])
    if guard:
        gaps[guard - 1] = " "
    if node.operands:
        gaps[head - 1] = style.after_opcode
    elif len(gaps) >= head:
        gaps[head - 1] = ""
    return gaps, head


def pair(before: str, after: str) -> str:
    """Return the key of `around` for two tokens: punctuation as is, `_` for anything else."""
    return f"{before if before in PUNCTUATION else '_'}{after if after in PUNCTUATION else '_'}"


def _compute_function_gaps(node: Function, words: Sequence[str], style: Style, lead: str) -> list[str]:
    gaps = [_choose_gap(before, after) for before, after in pairwise(words)]
    index = len(words) - 1
    gaps[index - 1] = f"\n{lead}" if node.definition else ""
    for directive in reversed(node.directives):
        index -= len(tokens(directive))
        gaps[index - 1] = f"\n{lead}"
    if not node.params or not style.param_lines:
        return gaps
    index -= 1
    gaps[index - 1] = f"\n{lead}"
    for param in reversed(node.params):
        index -= len(tokens(param)) + (param is not node.params[-1])
        gaps[index - 1] = f"\n{lead}{style.indent}"
    return gaps


def _choose_gap(before: str, after: str) -> str:
    """Return the space between two tokens of a declaration or directive."""
    if before in _NO_SPACE_AFTER:
        return ""
    if after in _NO_SPACE_BEFORE:
        return choose_inner_gap(before, after)
    if after == "(":
        return " " if before in (".func", ".callprototype") else ""
    if after == "-":
        return "" if before[0] not in ".,=" else " "
    return " "
