"""The gap before a statement, by its kind and the preceding kind: the part of a style that depends on the position in a
text.

`Place` walks through a text, statement by statement. Detecting and applying a style use the same queries in the same
order, so both get the same answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pyptx.emitter.styles import Style, compute_default_gaps, find_form
from pyptx.ir.base import Node
from pyptx.ir.directives import FileDirective, LocDirective, Section, SectionData
from pyptx.ir.nodes import Block, Function, Instruction, Label, RegDecl, VarDecl

BEGIN, END = "\t// begin inline asm\n", "\t// end inline asm\n"
marks = re.compile(r"(?:(?<=\n)|\A)\t// (?:begin|end) inline asm\n")
"""The lines that LLVM puts around inline assembly."""

_KINDS: dict[type, str] = {
    Instruction: "inst",
    Label: "label",
    RegDecl: "reg",
    VarDecl: "var",
    Block: "block",
    Function: "function",
    LocDirective: "loc",
    SectionData: "data",
    Section: "section",
}


def get_kind(node: Node) -> str:
    """Return the key that `Style.before` uses for a statement."""
    return _KINDS.get(type(node), "directive")


def list_files(statements: Iterable[Node]) -> dict[int, str]:
    """Return the paths in a module's `.file` directives by number."""
    return {int(node.index): node.path for node in statements if isinstance(node, FileDirective)}


def format_loc_comment(node: LocDirective, words: Sequence[str], gaps: Sequence[str], files: Mapping[int, str]) -> str:
    """Return LLVM's comment after `.loc`: the place again, with the file's name, from column 40 on."""
    text = words[0] + "".join([gap + word for gap, word in zip(gaps[1:-1], words[1:], strict=True)])
    name = files.get(node.file, "").rpartition("/")[2]
    # LLVM counts the tab after the word as eight columns, and what follows.
    room = max(1, 32 - len(text.partition("\t")[2] or text))
    return f"{' ' * room}// {name}:{int(node.line)}:{int(node.column)}\n"


class Place:
    """A position in a text: the depth, whether it is in inline assembly, and the kind of the previous statement."""

    __slots__ = ("asm", "depth", "files", "last", "outer", "style")

    def __init__(self, style: Style, files: Mapping[int, str] | None = None) -> None:
        self.style = style
        self.files = files or {}
        self.asm = False
        self.depth = 0
        self.last = "{"
        self.outer: list[bool] = []

    @property
    def current(self) -> Style:
        """The style at this position."""
        return self.style.asm or self.style if self.asm else self.style

    @property
    def level(self) -> int:
        """The indentation level at this position."""
        return 1 if self.asm else min(self.depth, 1) if self.style.flat else self.depth

    def list_keys(self, kind: str) -> tuple[str, str]:
        """Return the keys under which `before` may have an entry for this kind, the most specific first."""
        level = self.level
        suffix = "" if level == 1 else f"@{level}"
        return f"{self.last} {kind}{suffix}", f"{kind}{suffix}"

    def choose_before(self, kind: str) -> str:
        """Return the gap before a statement of this kind."""
        style = self.current
        if style.before:
            special, general = self.list_keys(kind)
            gap = style.before.get(special)
            gap = style.before.get(general) if gap is None else gap
            if gap is not None:
                return gap
        return "" if kind in ("asm", "end") else style.indent * self.level

    def choose_gaps(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the gaps of a statement at this position."""
        style = self.current
        gaps = compute_default_gaps(node, words, style, self.level)
        if not style.forms or 0 not in (find_form(node, words, style) or ()):
            gaps[0] = self.choose_before(get_kind(node))
        if self.style.loc_comments and isinstance(node, LocDirective):
            gaps[-1] = format_loc_comment(node, words, gaps, self.files)
        return gaps

    def open(self) -> None:
        """Enter the body of the previous statement."""
        self.depth += 1
        self.outer.append(self.asm)
        self.last = "{"

    def leave(self) -> None:
        """Leave a body; its closing brace follows, `last` is still the last kind inside."""
        self.depth -= 1
        self.asm = self.outer.pop()

    def choose_closing(self, kind: str) -> list[str]:
        """Return the gaps of a closing brace at this position; its kind is that of its statement plus `}`."""
        form = self.current.forms.get(kind)
        return [self.choose_before(kind), "\n" if form is None else form.get(-1, "\n")]

    def begin(self) -> None:
        """Enter inline assembly."""
        self.asm, self.last = True, "asm"

    def end(self) -> None:
        """Leave inline assembly."""
        self.asm, self.last = False, "end"
