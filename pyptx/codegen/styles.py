"""Detects the style of a module from the layouts of its statements: the spacing that most of them share.

Three steps, each counted over the whole module: indentation and operand spacing; the gap before a statement, by its
kind and the preceding kind; single gaps in which one kind of statement differs from the rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import Any, NamedTuple, TypeVar

from pyptx.codegen.regions import Visit, walk_items
from pyptx.emitter.spacing import Place, format_loc_comment, get_kind, list_files
from pyptx.emitter.styles import PUNCTUATION, Style, find_head, pair
from pyptx.ir.base import tokens
from pyptx.ir.directives import LocDirective, Module
from pyptx.ir.nodes import Instruction, Statement
from pyptx.ir.operands import choose_inner_gap

K = TypeVar("K", bound=Hashable)
Deviation = tuple[tuple["int | str", str], ...]
LEAST = 2
"""Minimum number of agreeing statements for a rule of the style."""


Spots = list[Visit]


def detect_style(module: Module) -> Style:
    """Return the style that leaves the fewest statements with their own layout."""
    spots = list(walk_items(module.directives))
    files = list_files(module.directives)
    style = _find_spacing(spots)._replace(loc_comments=_has_loc_comments(spots, files))
    return _add_forms(spots, _add_contexts(spots, style), files)


def _has_loc_comments(spots: Spots, files: dict[int, str]) -> bool:
    """Tell whether most `.loc` directives repeat their place in a comment."""
    votes = 0
    for item in spots:
        if isinstance(item.node, LocDirective):
            comment = format_loc_comment(item.node, tokens(item.node), item.gaps, files)
            votes += 1 if comment == item.gaps[-1] else -1
    return votes > 0


class _Votes(NamedTuple):
    """Counters of the first step, for code or for inline assembly."""

    indent: Counter[str]
    deeper: Counter[tuple[str, int]]
    opcode: Counter[str]
    around: dict[str, Counter[str]]
    regular: Counter[str]


def _make_votes() -> _Votes:
    return _Votes(Counter(), Counter(), Counter(), defaultdict(Counter), Counter())


def _find_spacing(spots: Spots) -> Style:
    code, asm = _make_votes(), _make_votes()
    alike: dict[Any, tuple[Visit, list[int]]] = {}
    for item in spots:
        node = item.node
        if type(node) is Instruction:
            # Statements of one form are counted together; the others one by one.
            form = getattr(node.layout, "form", None)
            key = (form, item.gaps[0], item.asm, item.depth) if form else item.gaps
            entry = alike.get(key) if form else None
            if entry is not None:
                entry[1][0] += 1
            elif form:
                alike[key] = item, [1]
            else:
                _count(item, node, 1, asm if item.asm else code)
    for item, (times,) in alike.values():
        assert isinstance(item.node, Instruction)
        _count(item, item.node, times, asm if item.asm else code)
    indent = _choose_most_frequent(code.indent, "\t")
    flat_count = sum(n for (tail, _), n in code.deeper.items() if tail == indent)
    indented_count = sum(n for (tail, depth), n in code.deeper.items() if tail == indent * depth and indent)
    inner = None
    if asm.indent:
        inner = Style(
            _choose_most_frequent(asm.indent, ""), _choose_most_frequent(asm.opcode, " "), around=_choose_around(asm)
        )
    return Style(
        indent,
        _choose_most_frequent(code.opcode, " "),
        flat=flat_count > indented_count,
        around=_choose_around(code),
        asm=inner,
    )


def _count(visit: Visit, node: Instruction, times: int, votes: _Votes) -> None:
    gaps = visit.gaps
    tail = gaps[0].rpartition("\n")[2]
    if visit.depth == 1 or visit.asm:
        votes.indent[tail] += times
    if visit.depth > 1:
        votes.deeper[tail, visit.depth] += times
    head = _find_head_gap(node)
    if not node.operands or len(gaps) <= head:
        return
    votes.opcode[gaps[head]] += times
    form = getattr(node.layout, "form", None)
    if form:
        # Spacing inside the operands of a form is the default.
        commas = form.count("%s, ")
        votes.regular[",_"] += times * commas
        votes.regular["_,"] += times * commas
        votes.regular["_;"] += times
        votes.around[",_"][""] += times * form.count("%s,%s")
        return
    words = tokens(node)
    for index in range(head + 1, len(words)):
        votes.around[pair(words[index - 1], words[index])][gaps[index]] += times


def _find_head_gap(node: Instruction) -> int:
    """Return the index of the gap between opcode and operands."""
    return 1 + len(node.modifiers) + (0 if node.predicate is None else 2 + node.predicate.negated)


def _choose_around(votes: _Votes) -> dict[str, str]:
    out: dict[str, str] = {}
    for key, counts in sorted(votes.around.items()):
        usual = choose_inner_gap(_classify_side(key[0]), _classify_side(key[-1]))
        counts[usual] += votes.regular[key]
        gap = _choose_most_frequent(counts, usual)
        if gap != usual:
            out[key] = gap
    return out


def _classify_side(character: str) -> str:
    return character if character in PUNCTUATION else "x"


def _choose_most_frequent(counts: Counter[Any], usual: str) -> Any:  # noqa: ANN401
    """Return the most frequent value, or the default if there is none."""
    return max(counts, key=lambda key: (counts[key], key == usual), default=usual) if counts else usual


def _make_tables() -> tuple[Any, Any]:
    """Return counters by key, for code and for inline assembly."""
    code_counts: defaultdict[Any, Counter[Any]] = defaultdict(Counter)
    two: defaultdict[Any, Counter[Any]] = defaultdict(Counter)
    return code_counts, two


def _add_contexts(spots: Spots, style: Style) -> Style:
    """Count the gaps before statements."""
    counts = Counter([(item.asm, item.depth, item.last, item.kind, item.gaps[0]) for item in spots])
    special, general = _make_tables(), _make_tables()
    leads: tuple[dict[str, str], dict[str, str]] = ({}, {})
    place = Place(style)
    for (asm, depth, last, kind, gap), times in counts.items():
        place.asm, place.depth, place.last = asm, depth, last
        special_key, two = place.list_keys(kind)
        special[asm][special_key, two][gap] += times
        general[asm][two][gap] += times
        leads[asm][two] = place.choose_before(kind)
    befores = [_choose_befores(special[asm], general[asm], leads[asm]) for asm in (False, True)]
    inner = style.asm and style.asm._replace(before=befores[1])
    return style._replace(before=befores[0], asm=inner)


_ONCE = frozenset(("reg inst", "reg loc", "function}", "function}@0"))
"""Statements that occur once in a function: a single one makes a rule."""


def _choose_befores(special: Any, general: Any, leads: dict[str, str]) -> dict[str, str]:  # noqa: ANN401
    out: dict[str, str] = {}
    for kind, counts in sorted(general.items()):
        gap = _choose_most_frequent(counts, leads[kind])
        if gap != leads[kind] and counts[gap] >= (1 if kind in _ONCE else LEAST):
            out[kind] = gap
    for (key, kind), counts in sorted(special.items()):
        usual = out.get(kind, leads[kind])
        gap = _choose_most_frequent(counts, usual)
        if gap != usual and counts[gap] >= (1 if key in _ONCE else LEAST):
            out[key] = gap
    return out


def _add_forms(spots: Spots, style: Style, files: dict[int, str]) -> Style:
    """Count the single gaps in which kinds of statements differ from the rest."""
    heads, sizes = _make_tables(), _make_tables()
    compare = Comparison(style, files)
    place = compare.place
    for node, mark, gaps, asm, depth, last in spots:
        if node is None:
            continue
        if mark:
            kind = get_kind(node) + mark
            heads[asm][kind][((-1, gaps[1]),) if gaps[1] != "\n" else ()] += 1
            continue
        place.asm, place.depth, place.last = asm, depth, last
        difference = compare.find_deviation(node, gaps)
        head = _find_head(node)
        heads[asm][head][difference] += 1
        sizes[asm][head, len(gaps) - 1][difference] += 1
    forms = [_choose_forms(heads[asm], sizes[asm]) for asm in (False, True)]
    inner = style.asm and style.asm._replace(forms=forms[1])
    return style._replace(forms=forms[0], asm=inner)


def _find_head(node: Statement) -> str:
    return find_head(node, ()) if type(node) is Instruction else find_head(node, tokens(node))


class Comparison:
    """Compares the layouts of statements with what a style gives them at `place`. Instructions with default operand
    spacing are compared once per form and place."""

    def __init__(self, style: Style, files: dict[int, str]) -> None:
        self.place = Place(style, files)
        self.cache: dict[Any, Deviation] = {}
        form_names = (*style.forms, *(style.asm.forms if style.asm is not None else ()))
        self.special = frozenset(key.partition("/")[0].rpartition(" ")[2].partition(".")[0] for key in form_names)
        self.simple = not style.around, style.asm is not None and not style.asm.around

    def find_deviation(self, node: Statement, gaps: tuple[str, ...]) -> Deviation:
        """Return the gaps that differ from the style: by index, "op" and -1 as in `Style.forms`."""
        place = self.place
        if type(node) is Instruction and self.simple[place.asm] and node.opcode not in self.special:
            form = getattr(node.layout, "form", None)
            if form:
                key = form, gaps[0], place.last, place.depth, place.asm
                difference = self.cache.get(key)
                if difference is None:
                    difference = self.cache[key] = _find_deviation(node, place, gaps)
                return difference
        return _find_deviation(node, place, gaps)


def _find_deviation(node: Statement, place: Place, gaps: tuple[str, ...]) -> Deviation:
    usual = place.choose_gaps(node, tokens(node))
    last = len(gaps) - 1
    operands = _find_head_gap(node) if isinstance(node, Instruction) and node.operands else -1
    out: list[tuple[int | str, str]] = []
    for index, (mine, theirs) in enumerate(zip(usual, gaps, strict=True)):
        if mine != theirs:
            out.append(("op" if index == operands else -1 if index == last else index, theirs))
    return tuple(out)


def _choose_forms(heads: Any, sizes: Any) -> dict[str, dict[int | str, str]]:  # noqa: ANN401
    out: dict[str, dict[int | str, str]] = {}
    for head, counts in sorted(heads.items()):
        deviation: Deviation = max(counts, key=lambda key: (counts[key], not key))
        if deviation and counts[deviation] >= LEAST:
            out[head] = dict(deviation)
    for (head, size), counts in sorted(sizes.items()):
        deviation = max(counts, key=lambda key: (counts[key], not key))
        if dict(deviation) != out.get(head, {}) and counts[deviation] >= LEAST:
            out[f"{head}/{size}"] = dict(deviation)
    return out
