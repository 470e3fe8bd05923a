"""Writes the tables of examples/README.md: the ladders with their first sentences, and the gallery of bugs."""

from __future__ import annotations

from pathlib import Path

from examples.parts.bug import load_bugs
from examples.parts.example import EXAMPLES, load_examples

PAGE = "examples/README.md"
_MARK = "<!-- generated: {} -->"


def readme_page() -> str:
    """Return the page with its tables replaced."""
    text = Path(PAGE).read_text("utf-8")
    for name, table in {"bugs": list_bugs(), **list_ladders()}.items():
        start, end = _MARK.format(name), _MARK.format("end")
        head, _, rest = text.partition(start)
        if not rest:
            raise ValueError(f"{PAGE} has no line {start}")
        text = head + start + "\n" + table + rest[rest.index(end) :]
    return text


def list_ladders() -> dict[str, str]:
    """Return a table of each directory's kernels."""
    tables: dict[str, str] = {}
    for example in load_examples():
        folder, file = example.path.parent.name, example.path.name
        row = f"| [{file}]({folder}/{file}) | {example.summary} | {', '.join(example.targets)} |\n"
        tables[folder] = tables.get(folder, "| file | what it computes | targets |\n|---|---|---|\n") + row
    return tables


def list_bugs() -> str:
    """Return the table of the gallery."""
    rows = ["| class | the bug | code |\n|---|---|---|\n"]
    for name, bug in load_bugs().items():
        text = (EXAMPLES / "bugs" / f"{name}.py").read_text("utf-8")
        sentence = text.removeprefix('"""').partition("\n\n")[0].replace("\n", " ")
        rows.append(f"| [{name}](bugs/{name}.py) | {sentence} | {bug.code} |\n")
    return "".join(rows)
