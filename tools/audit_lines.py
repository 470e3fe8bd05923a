"""Audits the Python lines that profilers show for every example kernel, in the PTX and in the cubin.

python -m tools.audit_lines [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from examples.parts.example import load_examples
from pyptx import Kernel
from pyptx.diagnostics import PythonFrame
from pyptx.dsl.lines import DEEPEST_CHAIN, map_statements
from pyptx.ir.directives import FileDirective, LocDirective
from pyptx.ir.nodes import Block, Function, Instruction, IntrinsicScope, Statement
from pyptx.toolchain import SassInstruction, disassemble

Place = tuple[str, int]
Locs = tuple[LocDirective, ...]
COLUMNS = ("loc", "inlined", "sass", "with a line", "exact", "accesses")
ACCESSES = ("ld", "st", "atom", "red", "ldmatrix", "stmatrix", "bar", "barrier", "mbarrier")
"""PTX opcodes whose lines must all appear in the machine code."""

EXACT = {
    "LDG": "ld", "STG": "st", "LDS": "ld tcgen05", "STS": "st tcgen05", "STAS": "st tcgen05", "LDSM": "ldmatrix",
    "STSM": "stmatrix", "LDGSTS": "cp", "ATOMS": "atom red tcgen05", "ATOMG": "atom", "RED": "red",
    "BAR": "bar barrier", "SYNCS": "mbarrier tcgen05", "UCGABAR_ARV": "barrier", "UCGABAR_WAIT": "barrier",
    "UTMALDG": "cp", "UTMASTG": "cp", "UTMACMDFLUSH": "cp", "LDTM": "tcgen05", "UTCHMMA": "tcgen05",
    "UTCBAR": "tcgen05", "SHFL": "shfl", "WARPGROUP": "wgmma",
}  # fmt: skip
"""Machine instructions that must name exactly the Python line they come from (accesses, barriers, TMA), with their PTX
opcodes."""

NOTHING = "@!PT LDS RZ, [RZ]"
"""A filler that ptxas puts between asynchronous copies; it reads nothing."""


@dataclass
class Report:
    """The errors in one kernel's lines, and counts."""

    wrong: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])


def frames(origin: PythonFrame) -> list[PythonFrame]:
    """Return the callers, outermost first, then the place itself."""
    chain = [origin]
    while chain[-1].caller is not None:
        chain.append(chain[-1].caller)
    return chain[::-1]


def pair_with_locs(statements: Sequence[Statement], holding: list[LocDirective]) -> Iterator[tuple[Instruction, Locs]]:
    """Yield each instruction with the `.loc` directives that apply to it: its line and the lines it is inlined at.
    `holding` is the line before the first instruction, then the one after the last."""
    fresh = True
    for statement in statements:
        if isinstance(statement, LocDirective):
            holding[:] = [*([] if fresh else holding), statement]
            fresh = False
        elif isinstance(statement, Block | IntrinsicScope):
            yield from pair_with_locs(statement.body, holding)
            fresh = True
        elif isinstance(statement, Instruction):
            yield statement, tuple(holding)
            fresh = True


def audit(kernel: Kernel, shape: dict[str, Any]) -> Report:
    """Return the errors in a kernel's lines, and their counts."""
    report = Report()
    module = kernel.module(lineinfo=True, **shape)
    files = {item.index: item.path for item in module.directives if isinstance(item, FileDirective)}
    for function in (item for item in module.directives if isinstance(item, Function)):
        for node, locs in pair_with_locs(function.body, []):
            if isinstance(node.origin, PythonFrame):
                _judge_locs(report, node, node.origin, locs, files)
    instruction_of_line = {line: node for line, node in map_statements(module).items() if isinstance(node, Instruction)}
    places = {(f.file, f.line) for node in instruction_of_line.values() if isinstance(node.origin, PythonFrame)
              for f in frames(node.origin)}  # fmt: skip
    sass = disassemble(kernel.cubin(lineinfo=True, **shape))
    _judge_accesses(report, sass, instruction_of_line, places)
    for step in sass:
        report.counts["sass"] += 1
        if step.file is None or step.line is None:
            continue
        report.counts["with a line"] += 1
        if (step.file, step.line) not in places:
            report.wrong.append(f"{step.text}: {step.file}:{step.line} is not the line of any instruction")
        node = instruction_of_line.get(step.ptx_line or 0)
        report.counts["exact"] += node is not None and place_of(node) == (step.file, step.line)
    return report


def place_of(node: Instruction) -> Place | None:
    """Return the file and line where an instruction was written."""
    origin = node.origin
    return (origin.file, origin.line) if isinstance(origin, PythonFrame) else None


def _list_places(node: Instruction, places: Iterable[Place]) -> frozenset[Place | None]:
    """Return where an instruction was written, and other places of the kernel in lines with the same number: ptxas
    takes a change of the file alone, to a caller or to what is called next, for no change."""
    place = place_of(node)
    return frozenset((place, *(other for other in places if place is not None and other[1] == place[1])))


def _judge_locs(report: Report, node: Instruction, origin: PythonFrame, locs: Locs, files: dict[int, str]) -> None:
    chain = frames(origin)[-DEEPEST_CHAIN:]
    report.counts["loc"] += 1
    report.counts["inlined"] += len(chain) > 1
    locs_in_module = [(files[loc.file], loc.line, loc.column) for loc in locs]
    if locs_in_module[-len(chain) :] != [(f.file, f.line, f.col) for f in chain]:
        report.wrong.append(f"{node.opcode} of {origin}: `.loc` says {locs_in_module}")
    for outer, inner in zip(locs[-len(chain) :], locs[len(locs) - len(chain) + 1 :], strict=False):
        if inner.inlined_at != (outer.file, outer.line, outer.column):
            report.wrong.append(f"{node.opcode} of {origin}: inlined at {inner.inlined_at}, its caller is at {outer}")


def _judge_accesses(
    report: Report, sass: Sequence[SassInstruction], instruction_of_line: Mapping[int, Instruction], places: set[Place]
) -> None:
    """Each access in the machine code names a Python line with that access, and none of these lines is missing."""
    lines: dict[str, set[frozenset[Place | None]]] = {}
    for node in instruction_of_line.values():
        # Instructions read parameters directly from the constant bank.
        if node.opcode == "ld" and ".param" in node.modifiers:
            continue
        lines.setdefault(node.opcode, set()).add(_list_places(node, places))
    for step in sass:
        opcodes = EXACT.get(step.opcode.split(".")[0])
        if opcodes is None or step.line is None or step.file is None or step.text == NOTHING:
            continue
        report.counts["accesses"] += 1
        node = instruction_of_line.get(step.ptx_line or 0)
        if (
            node is None
            or node.opcode not in opcodes.split()
            or (step.file, step.line) not in _list_places(node, places)
        ):
            report.wrong.append(f"{step.text}: line {step.line} of {step.file}, {node and node.opcode}")
    sass_places = {(step.file, step.line) for step in sass}
    for opcode in ACCESSES:
        for alike in lines.get(opcode, ()):
            if None not in alike and alike.isdisjoint(sass_places):
                names = " or ".join(f"{place[0]}:{place[1]}" for place in alike if place)
                report.wrong.append(f"{opcode} of {names} is missing from the machine code")


def main(argv: list[str] | None = None) -> int:
    """Run the audit; print the errors and the counts of each kernel."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*")
    names = options.parse_args(argv).names
    total, wrong = Counter[str](), 0
    print(f"{'':34}" + "".join(f"{word:>13}" for word in COLUMNS) + f"{'exact lines':>13}")
    for example in load_examples():
        for target in example.targets if not names or example.name in names else ():
            report = audit(example.make(target), dict(example.large))
            total += report.counts
            wrong += len(report.wrong)
            _print(f"{example.name} {target}", report.counts)
            for line in report.wrong:
                print(f"    {line}")
    _print("all", total)
    print(f"{wrong} wrong lines")
    return 1 if wrong else 0


def _print(name: str, counts: Counter[str]) -> None:
    share = counts["exact"] / max(counts["sass"], 1)
    print(f"{name:34}" + "".join(f"{counts[word]:13,}" for word in COLUMNS) + f"{share:13.1%}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
