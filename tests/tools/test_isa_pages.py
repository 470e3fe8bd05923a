"""The instruction pages, rendered in memory: each shows every form of its section, and no link or table is broken."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from pyptx.isa import lookup, table
from pyptx.isa.model import Form
from tools import isa_pages

PAGES = isa_pages.pages()


def forms(section: str) -> list[Form]:
    """Return the section's rows as its page orders them: by opcode."""
    rows: tuple[Form, ...] = import_module(f"pyptx.isa.table.{section}").FORMS
    return [row for opcode in dict.fromkeys(row.opcode for row in rows) for row in rows if row.opcode == opcode]


def squeeze(line: str) -> str:
    return " ".join(line.split())


@pytest.mark.parametrize("section", table.SECTIONS)
def test_a_page_shows_every_form_of_its_section_under_its_opcode(section: str) -> None:
    examples: list[tuple[str, str]] = []
    for part in PAGES[f"{section}.md"].split("\n## ")[1:]:
        opcode, _, text = part.partition("\n")
        examples += [(opcode, line) for line in re.findall(r"^```\n(.+)\n```$", text, re.MULTILINE)]
    assert examples == [(row.opcode, squeeze(row.line)) for row in forms(section)]


@pytest.mark.parametrize("section", table.SECTIONS)
def test_each_form_lists_the_modifiers_of_every_legal_spelling(section: str) -> None:
    texts = PAGES[f"{section}.md"].split("\n```\n")[2::2]
    for row, text in zip(forms(section), texts, strict=True):
        slots = {slot for sequence in lookup.list_sequences(row) for slot in sequence if slot.name}
        missing = [
            (slot.name, choice.text)
            for slot in slots
            for choice in slot.choices
            if not re.search(rf"^- `\.{slot.name}`:.* `\.{re.escape(choice.text)}`", text, re.MULTILINE)
        ]
        assert missing == []
        assert text.splitlines()[1].startswith(f"{row.available}")
        assert f"index.html#{row.see})" in text
        assert not row.quirk or f"\n- {row.quirk}\n" in text


@pytest.mark.parametrize("page", PAGES)
def test_the_rows_of_a_pages_tables_have_as_many_cells_as_their_heading(page: str) -> None:
    (rows,) = re.findall(r"(?:^\|.*\n)+", PAGES[page], re.MULTILINE)
    assert len({row.count("|") for row in rows.splitlines()}) == 1


def test_the_index_counts_the_forms_and_links_every_page() -> None:
    rows = re.findall(r"^\| \[.+\]\((.+)\) \|.*\| (\d+) \|$", PAGES["index.md"], re.MULTILINE)
    assert [(name, int(count)) for name, count in rows] == [(f"{s}.md", len(forms(s))) for s in table.SECTIONS]
    assert [name for name, _ in rows] == [name for name in PAGES if name != "index.md"]


def test_the_pages_are_written_to_the_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert isa_pages.main([str(tmp_path / "isa")]) == 0
    assert {path.name: path.read_text("utf-8") for path in (tmp_path / "isa").iterdir()} == PAGES
    assert f"{len(table.SECTIONS)} sections" in capsys.readouterr().out
