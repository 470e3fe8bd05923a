"""Renders the instruction reference: an index, which is committed, and one page per file of the table, which
`python -m tools.isa_pages OUT` writes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from pyptx.isa import notation, table
from pyptx.isa.model import Choice, Form, Group, Slot

_MARK = "<!-- Generated from pyptx/isa/table by `make {}`. Do not edit. -->\n"
_MANUAL = "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html"


def pages() -> dict[str, str]:
    """Return the text of every page by its file name, with an index that links them."""
    sections = {f"{section}.md": _page(section) for section in table.SECTIONS}
    return {"index.md": _index("docs", "{}.md"), **sections}


def build_committed_index() -> str:
    """Return the index whose links lead to the rows."""
    return _index("fmt", "../pyptx/isa/table/{}.py")


def _index(goal: str, target: str) -> str:
    lines = [_MARK.format(goal), "# Instructions\n"]
    lines += ["Every form that `pyptx check` knows, by section of the PTX manual.\n"]
    lines += ["| section | instructions | forms |", "|---|---|---|"]
    for section in table.SECTIONS:
        rows: tuple[Form, ...] = import_module(f"pyptx.isa.table.{section}").FORMS
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(row.opcode for row in rows))
        lines.append(f"| [{_title(section)}]({target.format(section)}) | {names} | {len(rows)} |")
    return "\n".join([*lines, ""])


def _page(section: str) -> str:
    module = import_module(f"pyptx.isa.table.{section}")
    meanings: dict[str, str] = module.MEANING
    rows: tuple[Form, ...] = module.FORMS
    lines = [_MARK.format("docs"), f"# {_title(section)}\n"]
    traits: dict[str, str] = getattr(module, "TRAITS", {})
    lines += (
        ["| instruction | meaning | traits |", "|---|---|---|"]
        if traits
        else ["| instruction | meaning |", "|---|---|"]
    )
    for name, meaning in meanings.items():
        lines.append(f"| `{name}` | {meaning} |" + (f" {traits.get(name, '')} |" if traits else ""))
    for opcode in dict.fromkeys(row.opcode for row in rows):
        lines.append(f"\n## {opcode}")
        for row in rows:
            if row.opcode == opcode:
                lines += _form(row)
    return "\n".join([*lines, ""])


def _title(section: str) -> str:
    return section.replace("_", " ").capitalize()


def _form(row: Form) -> Iterator[str]:
    head, _, operands = row.line.partition(" ")
    yield f"\n```\n{head} {operands.strip()}".rstrip() + "\n```\n"
    yield f"{row.available}" + (f", not on {row.removed}" if row.removed else "") + f". [Manual]({_MANUAL}#{row.see})"
    for slot in _list_named_slots(notation.parse_head(row)):
        yield f"- `.{slot.name}`: {', '.join(_choice(choice) for choice in slot.choices)}"
    if row.quirk:
        yield f"- {row.quirk}"


def _list_named_slots(group: Group) -> Iterator[Slot]:
    names: set[str] = set()
    for item in group.items:
        for slot in [item] if isinstance(item, Slot) else _list_named_slots(item):
            if slot.name and slot.name not in names:
                names.add(slot.name)
                yield slot


def _choice(choice: Choice) -> str:
    return f"`.{choice.text}`" + (f" ({choice.available})" if choice.available else "")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.isa_pages", description="Write the instruction pages.")
    parser.add_argument("out", metavar="OUT", type=Path, help="the directory to write them to")
    directory: Path = parser.parse_args(argv).out
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text, "utf-8")
    print(f"wrote {directory / 'index.md'} and a page for each of {len(table.SECTIONS)} sections")
    return 0


if __name__ == "__main__":
    sys.exit(main())
