"""Writes the tables of examples/README.md: ladders with their first sentences, steps, bugs, and times."""

from __future__ import annotations

import re
from pathlib import Path

from examples.parts.bug import load_bugs
from examples.parts.example import EXAMPLES, load_examples
from tools.examples.ladder import list_steps
from tools.examples.times import list_times

PAGE = "examples/README.md"
RESULTS = "benchmarks/results"
_MARK = "<!-- generated: {} -->"


def readme_page() -> str:
    """Return the page with its tables replaced."""
    text = Path(PAGE).read_text("utf-8")
    for name, table in {"bugs": list_bugs(), "steps": list_steps(), "times": list_times(), **list_ladders()}.items():
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
    """Return the table of the gallery, with what GPUs gave."""
    outcomes = read_outcomes()
    titles = "".join(f" 500 runs on {device} |" for device in outcomes)
    rows = [f"| class | the bug | code |{titles}\n|---|---|---|{'---|' * len(outcomes)}\n"]
    for name, bug in load_bugs().items():
        text = (EXAMPLES / "bugs" / f"{name}.py").read_text("utf-8")
        sentence = text.removeprefix('"""').partition("\n\n")[0].replace("\n", " ")
        cells = "".join(f" {results.get(name, 'not run')} |" for results in outcomes.values())
        rows.append(f"| [{name}](bugs/{name}.py) | {sentence} | {bug.code} |{cells}\n")
    return "".join(rows)


def read_outcomes() -> dict[str, dict[str, str]]:
    """Return what GPUs gave for each bug, by device: the stored output of `python -m tools.gpu bugs`."""
    outcomes: dict[str, dict[str, str]] = {}
    for path in sorted(Path(RESULTS).glob("*_bugs.txt")):
        header, *lines = path.read_text("utf-8").splitlines()
        device = header.partition(": ")[2].partition(",")[0]
        matches = [re.fullmatch(r"bugs (\w+): ok, (.*), [\d.]+ s", line) for line in lines]
        outcomes[device] = {match[1]: describe_outcome(match[2]) for match in matches if match}
    return outcomes


def describe_outcome(text: str) -> str:
    """Return what 500 runs of a bug gave, in a few words."""
    counts = {word: int(count) for word, count in re.findall(r"(\S.*?) (\d+) times(?:, )?", text)}
    if len(counts) == 1:
        word = next(iter(counts))
        return f"always {word}" if word in ("right", "wrong") else word
    return ", ".join(f"{word} {counts[word]} times" for word in ("right", "wrong") if word in counts)
