"""Audits `check` on the corpus: no errors on unmodified files; single edits that ptxas rejects are reported in place.

    python -m tools.audit_corruptions [--count 5000] [--seed 1] [--show 30] [--largest 60000]

An edit changes a modifier, a type, the number of operands, an immediate, a name, a label, a semicolon or the header.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.isa.targets import FIRST_PTX, PTX_VERSIONS
from pyptx.parser import parse
from pyptx.types import ALL
from tools.isa.ptxas import ptxas_path, virtual_architecture

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"
_INSTRUCTION = re.compile(
    r"^\s*(?:@!?[%\w$]+\s+)?([a-z][a-z0-9_]*(?:\.[\w:]+)*)\s+([^;{}]*(?:\{[^;{}]*\}[^;{}]*)*);", re.M
)
_TYPES = [t.name for t in ALL if t.kind != "opaque"]
_WORDS = (
    "rn",
    "rz",
    "ftz",
    "sat",
    "approx",
    "wide",
    "lo",
    "global",
    "shared",
    "sync",
    "relaxed",
    "gpu",
    "v2",
    "v4",
    "to",
)
STRATA = ("modifier", "type", "count", "immediate", "name", "label", "semicolon", "header")


@dataclass(frozen=True)
class Corruption:
    """An edited text, the lines of the statement that was edited, and what kind of edit it was."""

    path: Path
    text: str
    lines: range
    stratum: str

    @property
    def line(self) -> int:
        return self.lines[0]


def corrupt(path: Path, text: str, stratum: str, draw: random.Random) -> Corruption | None:
    """Return the text with one edit of this kind, or None if the text has no place for it."""
    edit = _header(text, draw) if stratum == "header" else _edit(text, stratum, draw)
    if edit is None or edit[1] == text:
        return None
    first = text.count("\n", 0, edit[0]) + 1
    last = first + text.count("\n", edit[0], text.find(";", edit[0])) if stratum != "header" else first
    return Corruption(path, edit[1], range(first, last + 1), stratum)


def _header(text: str, draw: random.Random) -> tuple[int, str] | None:
    if draw.random() < 0.5:
        place = re.search(r"^\.target\s+(\w+)", text, re.M)
        new = draw.choice([name for name in FIRST_PTX if FIRST_PTX[name] >= (3, 0)])
    else:
        place = re.search(r"^\.version\s+([\d.]+)", text, re.M)
        new = ".".join(map(str, draw.choice(PTX_VERSIONS)))
    return (place.start(1), text[: place.start(1)] + new + text[place.end(1) :]) if place else None


def _edit(text: str, stratum: str, draw: random.Random) -> tuple[int, str] | None:
    places = [m for m in _INSTRUCTION.finditer(text) if stratum != "label" or "$" in m[2]]
    place = draw.choice(places) if places else None
    if place is None:
        return None
    if stratum == "semicolon":
        return place.start(1), text[: place.end() - 1] + text[place.end() :]
    head, operands = place[1].split("."), place[2].split(", ")
    if not (_edit_head(head, stratum, draw) or _edit_operands(operands, stratum, draw)):
        return None
    return place.start(1), text[: place.start(1)] + ".".join(head) + " " + ", ".join(operands) + text[place.end() - 1 :]


def _edit_head(head: list[str], stratum: str, draw: random.Random) -> bool:
    if stratum == "modifier" and len(head) > 1:
        index = draw.randrange(1, len(head))
        if draw.random() < 0.3:
            head.pop(index)
        else:
            head[index] = draw.choice(_WORDS)
        return True
    places = [i for i, m in enumerate(head) if m in _TYPES]
    if stratum == "type" and places:
        head[draw.choice(places)] = draw.choice(_TYPES)
        return True
    return False


def _edit_operands(operands: list[str], stratum: str, draw: random.Random) -> bool:
    index = draw.randrange(len(operands))
    if stratum == "count":
        if draw.random() < 0.5:
            operands.pop(index)
        else:
            operands.insert(index, operands[index])
    elif stratum == "immediate":
        operands[index] = draw.choice(("0", "-1", "7", "256", "1.5", "0f3F800000", "[16]"))
    elif stratum == "name":
        operands[index] = re.sub(r"%?[A-Za-z_$][\w$]*", "%nobody", operands[index], count=1)
    elif stratum == "label":
        operands[index] = re.sub(r"\$[\w$]+", "$nowhere", operands[index])
    else:
        return False
    return True


def ptxas_lines(text: str) -> set[int] | None:
    """Return the lines on which ptxas reports errors, or None if it accepts the text."""
    place = re.search(r"^\.target\s+(\w+)", text, re.M)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.ptx"
        path.write_text(text, encoding="utf-8")
        target = virtual_architecture(place[1] if place else "sm_75")
        command = [ptxas_path(), "-arch", target, str(path), "-o", f"{folder}/o"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, errors="replace")
    if run.returncode == 0:
        return None
    return {int(m) for m in re.findall(r"line (\d+); (?:error|fatal)", run.stdout + run.stderr)}


def header_lines(text: str) -> set[int]:
    """Return the lines of `.version` and `.target`, which may both be reported when they do not match."""
    return {text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^\.(?:version|target)\b", text, re.M)}


def our_lines(text: str) -> set[int]:
    """Return the lines on which the parser or `check` reports an error."""
    module, problems = parse(text, recover=True)
    return {d.line for d in (*problems, *check(module)) if d.severity is Severity.ERROR}


def false_errors(paths: list[Path], show: int) -> int:
    """Print and count the errors on unmodified corpus files, all of which ptxas accepts."""
    wrong = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for finding in check(parse(text)):
            if finding.severity is Severity.ERROR:
                wrong += 1
                if wrong <= show:
                    print(f"false error: {path.relative_to(CORPUS)}:{finding.line}: {finding.code} {finding.message}")
    return wrong


def generate_rejections(seed: int, largest: int) -> Iterator[tuple[Corruption, set[int]]]:
    """Yield corruptions that ptxas rejects, cycling through the strata, each with the lines that ptxas names."""
    draw = random.Random(seed)
    small = [path for path in sorted(CORPUS.rglob("*.ptx")) if path.stat().st_size <= largest]
    for stratum in cycle(STRATA):
        path = draw.choice(small)
        corruption = corrupt(path, path.read_text(encoding="utf-8").rstrip("\0"), stratum, draw)
        theirs = ptxas_lines(corruption.text) if corruption else None
        if corruption is not None and theirs is not None:
            yield corruption, theirs


def is_reported(corruption: Corruption, theirs: set[int]) -> bool:
    """Return whether the parser or `check` reports an error in the edited statement, or on a line that ptxas names."""
    right = (
        theirs
        | set(corruption.lines)
        | (header_lines(corruption.text) if corruption.stratum == "header" else set[int]())
    )
    return bool(our_lines(corruption.text) & right)


def list_unreported(source: Iterator[tuple[Corruption, set[int]]], count: int) -> list[Corruption]:
    """Return the corruptions among the next `count` that are not reported."""
    return [corruption for corruption, theirs in islice(source, count) if not is_reported(corruption, theirs)]


def main() -> int:
    """Run the audit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=5000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--show", type=int, default=30)
    options.add_argument("--largest", type=int, default=60_000, help="edit only files up to this many bytes")
    arguments = options.parse_args()
    paths = sorted(CORPUS.rglob("*.ptx"))
    wrong = false_errors(paths, arguments.show)
    print(f"{len(paths)} corpus files, {wrong} false errors")
    rejections, good = Counter[str](), Counter[str]()
    for corruption, theirs in islice(generate_rejections(arguments.seed, arguments.largest), arguments.count):
        rejections[corruption.stratum] += 1
        if is_reported(corruption, theirs):
            good[corruption.stratum] += 1
        elif rejections.total() - good.total() <= arguments.show:
            statement = corruption.text.splitlines()[corruption.line - 1].strip()[:120]
            place = f"{corruption.path.relative_to(CORPUS)}:{corruption.line}"
            print(f"missed {corruption.stratum}: {place}: {statement} (ptxas {sorted(theirs)[:3]})")
    for stratum in STRATA:
        print(f"{stratum:10} {rejections[stratum]:6} rejected by ptxas, {good[stratum]:6} reported on the right line")
    share = good.total() / rejections.total()
    print(f"all        {rejections.total():6} rejected by ptxas, reported {share:.2%}")
    return 0 if share >= 0.99 and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
