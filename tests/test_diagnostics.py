"""Findings as text: one line each, and with the source line for readers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyptx.diagnostics import Diagnostic, PythonFrame, Severity, Span, format_count, render
from tests.messages import FOLDER

FOUND = Diagnostic(Severity.ERROR, "PTX0101", Span(2, 5, 4, "k.ptx"), "unknown instruction `addd`", help="write `add`")


def test_a_finding_prints_as_one_line() -> None:
    assert str(FOUND) == "k.ptx:2:5: error[PTX0101]: unknown instruction `addd`"
    assert str(FOUND.move_to(None)) == "error[PTX0101]: unknown instruction `addd`"


def test_render_points_at_the_text() -> None:
    lines = render([FOUND], ".version 8.5\n    addd.s32 %r0;\n").splitlines()
    assert lines[0] == str(FOUND)
    assert lines[1].endswith("|     addd.s32 %r0;")
    assert lines[2].index("^") == lines[1].index("addd")
    assert lines[2].count("^") == 4
    assert lines[3].endswith("write `add`")


def test_a_long_line_is_cut_around_the_place() -> None:
    text = "x" * 5000 + "addd" + "y" * 5000
    lines = render([FOUND.move_to(Span(1, 5001, 4))], text).splitlines()
    assert len(lines[1]) < 200
    assert lines[2].index("^") == lines[1].index("addd")


@pytest.mark.parametrize(("length", "shown"), [(160, 160), (161, 159)])
def test_a_line_of_160_characters_is_shown_whole(length: int, shown: int) -> None:
    rows = render([FOUND.move_to(Span(1, 83, 4))], "x" * length).splitlines()
    assert rows[1] == f"    1 | {'x' * shown}"
    assert rows[2] == f"      | {' ' * (82 if shown == length else 80)}^^^^"


def test_a_python_frame_resolves_its_line_when_asked() -> None:
    def sample() -> int:
        return 1 + 1

    frame = PythonFrame(sample.__code__, 2)
    assert frame.line in (sample.__code__.co_firstlineno, sample.__code__.co_firstlineno + 1)
    assert frame.file == __file__
    assert FOUND.move_to(frame).as_json()["line"] == frame.line
    behind = PythonFrame(sample.__code__, 10_000)
    assert (behind.line, behind.col, behind.length) == (sample.__code__.co_firstlineno, 1, 1)


def test_only_a_line_feed_ends_a_line() -> None:
    source = "// a\u2028b\x0cc\x85d\r\nadd;\r\n"
    lines = render([Diagnostic(Severity.ERROR, "PTX0101", Span(2, 1, 3), "unknown")], source)
    assert "    2 | add;\n      | ^^^" in lines


def test_the_place_of_a_definition_is_its_def_behind_the_decorators() -> None:
    def plain(function: Callable[[], int]) -> Callable[[], int]:
        return function

    @plain
    @plain
    def sample() -> int:
        return 1

    frame = PythonFrame.of_definition(sample.__code__)
    assert frame.line == sample.__code__.co_firstlineno + 2
    assert (frame.col, frame.length) == (5, len("def sample"))
    nowhere: dict[str, Any] = {}
    exec("def sample(): pass", nowhere)
    assert PythonFrame.of_definition(nowhere["sample"].__code__).line == 1


def test_one_of_a_thing_is_singular() -> None:
    assert [format_count("operand", n) for n in (0, 1, 2)] == ["0 operands", "1 operand", "2 operands"]
    assert format_count("operand", 1, 2) == "1 or 2 operands"
    assert [format_count("index", n, plural="indices") for n in (1, 2)] == ["1 index", "2 indices"]


def test_json_has_every_part() -> None:
    whole = Diagnostic(
        Severity.WARNING, "PTX0101", Span(2, 5, 4, "k.ptx"), "unknown", notes=("a note",), help="write `add`",
        details=("a detail",),
    )  # fmt: skip
    place = {"file": "k.ptx", "line": 2, "col": 5, "length": 4}
    text = {"message": "unknown", "notes": ["a note", "a detail"], "help": "write `add`"}
    assert whole.as_json() == {"severity": "warning", "code": "PTX0101", **place, **text}
    nowhere = whole.move_to(None).as_json()
    assert [nowhere[name] for name in place] == [None, 0, 0, 0]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.list")), ids=lambda path: path.stem)
def test_messages_use_the_right_article(path: Path) -> None:
    """A name that a message puts after `a` may begin with a vowel."""
    assert re.findall(r"\ba (?!or\b|one|u)[aeiou]\w*", path.read_text("utf-8")) == []
