"""Layout of the statements of an exact transcript.

`ptx.layout` and `ptx.inline_asm` leave marks among the statements; at the end every statement gets the layout from the
style and its marks. A statement spaced only by the style has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.emitter.spacing import BEGIN, END, Place, get_kind, list_files
from pyptx.emitter.styles import Style
from pyptx.ir.base import tokens
from pyptx.ir.directives import Section
from pyptx.ir.layout import Layout, layout_of
from pyptx.ir.nodes import Block, Function, Instruction, Statement


class Gap(Statement):
    """Gaps of the next statement or closing brace: all of them, or the first, the last, or some."""

    gaps: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None
    inner: tuple[tuple[int, str], ...] = ()


class Mark(Statement):
    """Start ("asm") or end ("end") of inline assembly."""

    kind: str


def apply_layout(statements: Sequence[Statement], style: Style, depth: int = 0) -> list[Statement]:
    """Return the statements with their layouts and without marks."""
    return _LayoutWriter(style, depth, list_files(statements)).run(statements)


class _LayoutWriter:
    """A walk over the statements: the marks waiting for their statement, and the open bodies."""

    def __init__(self, style: Style, depth: int, files: dict[int, str]) -> None:
        self.place = Place(style, files)
        self.place.depth = depth
        self.gap: Gap | None = None
        self.prefix = ""
        self.whole_line = True
        self.plain = not style.around
        self.heads = frozenset(key.partition("/")[0] for key in style.forms)
        self.usual: dict[tuple[str, int], bool] = {}

    def run(self, statements: Sequence[Statement]) -> list[Statement]:
        stack: list[tuple[Iterator[Statement], Statement, Layout | None, list[Statement]]] = []
        current, out = iter(statements), list[Statement]()
        place = self.place
        while True:
            for node in current:
                if type(node) is Instruction:
                    if not self._is_usual(node):
                        _set_layout(node, self._take_layout(node))
                    place.last = "inst"
                elif isinstance(node, Gap):
                    self.gap = node
                    continue
                elif isinstance(node, Mark):
                    self._apply_mark(node.kind)
                    continue
                elif isinstance(node, Block | Section) or (isinstance(node, Function) and node.definition):
                    stack.append((current, node, self._take_layout(node), out))
                    current, out = iter(node.body), []
                    place.open()
                    break
                else:
                    _set_layout(node, self._take_layout(node))
                    place.last = get_kind(node)
                out.append(node)
            else:
                if not stack:
                    return out
                body = tuple(out)
                current, node, layout, out = stack.pop()
                out.append(node.replace(body=body, layout=layout, closing=self._take_closing_layout(node)))

    def _is_usual(self, node: Instruction) -> bool:
        """Tell whether the style alone determines the layout of this instruction."""
        place = self.place
        if not self.plain or place.asm or self.gap is not None or self.prefix or not self.whole_line or node.layout:
            return False
        key = place.last, place.level
        is_usual = self.usual.get(key)
        if is_usual is None:
            is_usual = self.usual[key] = place.choose_before("inst") == place.style.indent * place.level
        if not is_usual or not self.heads:
            return is_usual
        guard = "" if node.predicate is None else "@! " if node.predicate.negated else "@ "
        return guard + node.full_opcode not in self.heads

    def _take_layout(self, node: Statement) -> Layout | None:
        """Return the layout of the next statement, and drop the marks before it."""
        own: Layout | None = getattr(node, "layout", None)
        words = tokens(node)
        gaps = list(own) if own is not None and len(own) == len(words) + 1 else self.place.choose_gaps(node, words)
        self._add_overrides(gaps)
        return layout_of(gaps)

    def _take_closing_layout(self, node: Statement) -> Layout:
        place = self.place
        place.leave()
        kind = f"{get_kind(node)}}}"
        own: Layout | None = getattr(node, "closing", None)
        gaps = place.choose_closing(kind) if own is None else list(own)
        place.last = kind
        self._add_overrides(gaps)
        return layout_of(gaps)

    def _add_overrides(self, gaps: list[str]) -> None:
        gap = self.gap
        if gap is not None:
            if len(gap.gaps) == len(gaps):
                gaps[:] = gap.gaps
            elif gap.gaps:
                gaps[0], gaps[-1] = gap.gaps[0], gap.gaps[-1]
            for index, text in gap.inner:
                if -len(gaps) <= index < len(gaps):
                    gaps[index] = text
            gaps[0] = gaps[0] if gap.before is None else gap.before
            gaps[-1] = gaps[-1] if gap.after is None else gap.after
            self.gap = None
        gaps[0] = self.prefix + gaps[0]
        self.prefix = ""
        self.whole_line = gaps[-1][-1:] == "\n"

    def _apply_mark(self, kind: str) -> None:
        place = self.place
        before = place.choose_before(kind)
        if self.gap is not None:
            before = self.gap.gaps[0] if self.gap.gaps else before if self.gap.before is None else self.gap.before
            self.gap = None
        self.prefix += before + (BEGIN if kind == "asm" else END)
        (place.begin if kind == "asm" else place.end)()


def _set_layout(node: Statement, layout: Layout | None) -> None:
    """Set the layout of a node that was created for this text and is not shared."""
    vars(type(node))["layout"].__set__(node, layout)
