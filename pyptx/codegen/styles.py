"""Reads the style of a module off the layouts of its statements: what most of them agree on.

In three steps, each counted over the whole module: how lines are indented and operands spaced; what stands before a
statement, by its kind and the kind before; single gaps that one kind of statement has different from the rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import Any, NamedTuple, TypeVar

from pyptx.codegen.regions import Seen, walked
from pyptx.emitter.spacing import Place, kind_of
from pyptx.emitter.styles import PUNCTUATION, Style, head_of, pair
from pyptx.ir.base import tokens
from pyptx.ir.directives import Module
from pyptx.ir.nodes import Instruction, Statement
from pyptx.ir.operands import inner_gap

K = TypeVar("K", bound=Hashable)
Deviation = tuple[tuple["int | str", str], ...]
LEAST = 2
"""How many statements must agree before something is a rule of the style."""


def detected(module: Module) -> Style:
    """Return the style that leaves the fewest statements with a layout of their own."""
    style = _spacing(module)
    style = _contexts(module, style)
    return _forms(module, style)


class _Votes(NamedTuple):
    """What is counted in the first step, for code or for inline assembly."""

    indent: Counter[str]
    deeper: Counter[tuple[str, int]]
    opcode: Counter[str]
    around: dict[str, Counter[str]]
    regular: Counter[int]


def _votes() -> _Votes:
    return _Votes(Counter(), Counter(), Counter(), defaultdict(Counter), Counter())


def _spacing(module: Module) -> Style:
    code, asm = _votes(), _votes()
    place = Place(Style())
    for seen in walked(module.directives, place):
        node = seen.node
        if isinstance(node, Instruction) and not seen.mark:
            votes = asm if place.asm else code
            tail = seen.gaps[0].rpartition("\n")[2]
            votes.indent[tail] += place.depth == 1 or place.asm
            if place.depth > 1:
                votes.deeper[tail, place.depth] += 1
            _count_operands(node, seen.gaps, votes)
    indent = _most(code.indent, "\t")
    flat = sum(n for (tail, _), n in code.deeper.items() if tail == indent)
    nested = sum(n for (tail, depth), n in code.deeper.items() if tail == indent * depth and indent)
    inner = None
    if asm.indent:
        inner = Style(_most(asm.indent, ""), _most(asm.opcode, " "), around=_around(asm))
    return Style(indent, _most(code.opcode, " "), flat=flat > nested, around=_around(code), asm=inner)


def _count_operands(node: Instruction, gaps: tuple[str, ...], votes: _Votes) -> None:
    guard = 0 if node.predicate is None else 2 + node.predicate.negated
    head = guard + 1 + len(node.modifiers)
    if not node.operands or len(gaps) <= head:
        return
    votes.opcode[gaps[head]] += 1
    if getattr(node.layout, "form", None) and ", " in (", ", *gaps[head + 1 :]):
        votes.regular[0] += 1
        if all(gap == " " or not gap for gap in gaps[head + 1 : -1]) and _is_plain(node, gaps, head):
            return
    words = tokens(node)
    for at in range(head + 1, len(words)):
        votes.around[pair(words[at - 1], words[at])][gaps[at]] += 1


def _is_plain(node: Instruction, gaps: tuple[str, ...], head: int) -> bool:
    """Tell whether every operand is one token and the gaps between them are the usual ones."""
    inner = gaps[head + 1 : -1]
    return len(inner) == 2 * len(node.operands) - 1 and inner == ("", " ") * (len(node.operands) - 1) + ("",)


def _around(votes: _Votes) -> dict[str, str]:
    out: dict[str, str] = {}
    for key, counted in sorted(votes.around.items()):
        first, last = (_side(key[0]), _side(key[-1]))
        usual = inner_gap(first, last)
        if key in (",_", "_,", "_;"):
            counted[usual] += votes.regular[0]
        gap = _most(counted, usual)
        if gap != usual:
            out[key] = gap
    return out


def _side(character: str) -> str:
    return character if character in PUNCTUATION else "x"


def _most(counted: Counter[Any], usual: str) -> Any:  # noqa: ANN401
    """Return what was seen most often; what is usual where nothing was."""
    return max(counted, key=lambda key: (counted[key], key == usual), default=usual) if counted else usual


def _contexts(module: Module, style: Style) -> Style:
    """Add what stands before statements."""
    special: tuple[Any, Any] = (defaultdict(Counter), defaultdict(Counter))
    general: tuple[Any, Any] = (defaultdict(Counter), defaultdict(Counter))
    leads: tuple[dict[str, str], dict[str, str]] = ({}, {})
    place = Place(style)
    for seen in walked(module.directives, place):
        kind = _kind(seen)
        one, two = place.keys(kind)
        special[place.asm][one, two][seen.gaps[0]] += 1
        general[place.asm][two][seen.gaps[0]] += 1
        leads[place.asm][two] = place.before(kind)
    made = [_befores(special[asm], general[asm], leads[asm]) for asm in (False, True)]
    inner = style.asm and style.asm._replace(before=made[1])
    return style._replace(before=made[0], asm=inner)


def _kind(seen: Seen) -> str:
    if seen.node is None:
        return seen.mark
    return kind_of(seen.node) + seen.mark


def _befores(special: Any, general: Any, leads: dict[str, str]) -> dict[str, str]:  # noqa: ANN401
    out: dict[str, str] = {}
    for kind, counted in sorted(general.items()):
        gap = _most(counted, leads[kind])
        if gap != leads[kind] and counted[gap] >= LEAST:
            out[kind] = gap
    for (key, kind), counted in sorted(special.items()):
        usual = out.get(kind, leads[kind])
        gap = _most(counted, usual)
        if gap != usual and counted[gap] >= LEAST:
            out[key] = gap
    return out


def _forms(module: Module, style: Style) -> Style:
    """Add the single gaps that kinds of statements have different from the rest."""
    heads: tuple[Any, Any] = (defaultdict(Counter), defaultdict(Counter))
    sized: tuple[Any, Any] = (defaultdict(Counter), defaultdict(Counter))
    place = Place(style)
    for seen in walked(module.directives, place):
        node = seen.node
        if node is None:
            continue
        if seen.mark:
            heads[place.asm][_kind(seen)][tuple([(-1, seen.gaps[1])] if seen.gaps[1] != "\n" else [])] += 1
            continue
        words = tokens(node)
        difference = deviation(node, words, place, seen.gaps)
        head = head_of(node, words)
        heads[place.asm][head][difference] += 1
        sized[place.asm][head, len(words)][difference] += 1
    made = [_chosen(heads[asm], sized[asm]) for asm in (False, True)]
    inner = style.asm and style.asm._replace(forms=made[1])
    return style._replace(forms=made[0], asm=inner)


def deviation(node: Statement, words: tuple[str, ...], place: Place, gaps: tuple[str, ...]) -> Deviation:
    """Return the gaps that are not what the style says: by index, "op" and -1 as in `Style.forms`."""
    usual = place.gaps(node, words)
    if len(usual) != len(gaps):
        return ()
    last = len(gaps) - 1
    operands = -1
    if isinstance(node, Instruction) and node.operands:
        operands = 1 + len(node.modifiers) + (0 if node.predicate is None else 2 + node.predicate.negated)
    out: list[tuple[int | str, str]] = []
    for at, (mine, theirs) in enumerate(zip(usual, gaps, strict=True)):
        if mine != theirs:
            out.append(("op" if at == operands else -1 if at == last else at, theirs))
    return tuple(out)


def _chosen(heads: Any, sized: Any) -> dict[str, dict[int | str, str]]:  # noqa: ANN401
    out: dict[str, dict[int | str, str]] = {}
    for head, counted in sorted(heads.items()):
        most: Deviation = max(counted, key=lambda key: (counted[key], not key))
        if most and counted[most] >= LEAST:
            out[head] = dict(most)
    for (head, size), counted in sorted(sized.items()):
        most = max(counted, key=lambda key: (counted[key], not key))
        if dict(most) != out.get(head, {}) and counted[most] >= LEAST:
            out[f"{head}/{size}"] = dict(most)
    return out
