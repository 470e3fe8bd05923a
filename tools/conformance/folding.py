"""Compares the simulator with ptxas: `python -m tools.conformance.folding [--section integer] [--opcode add]`.

ptxas folds, wholly or in part, a kernel that applies an instruction to constants and stores the result. `folding_sass`
computes what the SASS stores. "Folded" tuples are those that ptxas computed itself; "lowered" ones are those that it
left as integer and logic instructions of SASS, which are evaluated here. Anything else that it leaves to the GPU has no
value and is not counted. Every form is tried on its oldest and newest target.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.isa.targets import ASSEMBLED, Target, Version
from pyptx.numbers import FORMATS, is_float
from pyptx.parser import parse
from pyptx.toolchain import Cubin, assemble
from tools.conformance.agreement import Agreement, compare, judged
from tools.conformance.draws import draw
from tools.conformance.folding_operations import PAIR, Known
from tools.conformance.folding_sass import Instruction, functions, stores
from tools.conformance.forms import SECTIONS as ALL
from tools.conformance.forms import Array, Case, Column, cases
from tools.conformance.modules import STRIDE, THREADS, TUPLES, WIDTH, batches, module, store_of
from tools.conformance.references.bounded import judge
from tools.isa.synthesize import declarations

SECTIONS = tuple(name for name in ALL if name not in ("mma", "matrix_move", "synchronization"))
TARGETS = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")
OF_WARPS = frozenset(("shfl", "vote", "match", "redux"))
"""Opcodes whose results depend on other threads."""


@dataclass
class Found:
    """The results of ptxas for a case on one target."""

    case: Case
    folded: int = 0
    lowered: int = 0
    agreement: Agreement = field(default_factory=Agreement)
    distance: int = 0
    """The largest distance between the simulator and ptxas, in units of the last place."""

    excuses: Counter[str] = field(default_factory=Counter[str])
    """Why ptxas is wrong on tuples that differ, and on how many."""

    @property
    def unexplained(self) -> int:
        """Count the tuples that differ without a known reason."""
        return self.agreement.differing - self.excuses.total()


def excuse(case: Case, operands: list[int], mine: int, theirs: int) -> str:
    """Return the known bug of ptxas that explains a difference, or an empty string."""
    if case.opcode in ("add", "sub") and case.modifiers[-1] == "f32":
        a, b, ours, its = (float(value) for value in np.array([*operands[:2], mine, theirs], "u4").view("f4"))
        exact = all(map(math.isfinite, (a, b, ours, its))) and Fraction(a) + Fraction(b if case.opcode == "add" else -b)
        if exact and 2 * exact == Fraction(ours) + Fraction(its):
            return "ptxas folds a tie to odd"
    if case.opcode in ("vabsdiff2", "vabsdiff4") and case.modifiers[-1] == "sat":
        size = 16 if case.opcode == "vabsdiff2" else 8
        parts = [(mine >> at & (1 << size) - 1, theirs >> at & (1 << size) - 1) for at in range(0, 32, size)]
        if all(its in (ours, 0) for ours, its in parts):
            return "the absolute value is missing in uniform code"
    return ""


def constant(column: Column, words: tuple[int, int]) -> str:
    """Return instructions that load a constant into a register."""
    low, high = words
    if column.kind == "pred":
        return f"setp.ne.u32 {column.register}, {low}, 0;"
    if column.kind == "b128":
        return f"mov.b64 low, {low}; mov.b64 high, {high}; mov.b128 {column.register}, {{low, high}};"
    width = WIDTH.get(column.kind, column.kind)
    if width == "b8":
        return f"cvt.u8.u32 {column.register}, {low};"
    return f"mov.{width} {column.register}, {low:#x};"


def kernel(number: int, case: Case, operands: Array, count: int) -> str:
    """Return an entry that applies the instruction to some tuples and stores each result."""
    lines = [
        f".visible .entry c{number}(.param .u64 results)",
        "{",
        *declarations(case.version, case.where.arch),
        ".reg .b64 out, low, high; .reg .b32 carry;",
        "ld.param.u64 out, [results];",
    ]
    at = 0
    for n in range(count):
        lines += [constant(c, tuple(operands[position, n].tolist())) for position, c in enumerate(case.inputs)]
        lines += [f"add.cc.u32 carry, {-(n & 1) & 0xFFFFFFFF}, 1;"] if case.carries else []
        lines += [*case.before, case.text, *case.after]
        columns = list(case.outputs)
        if case.carries:
            lines.append("addc.u32 carry, 0, 0;")
            columns.append(Column("carry", "b32", "u32", "carry"))
        for column in columns:
            lines += store_of(column, f"[out+{at}]")
            at += STRIDE
    return "\n".join(lines) + "\nret;\n}"


def given(case: Case, count: int) -> Array:
    """Return the operands as a kernel of `modules` reads them; each form has its own draws."""
    made = np.zeros((max(1, len(case.inputs)), TUPLES, 2), np.uint64)
    for position, values in enumerate(draw(case, count, zlib.crc32(case.text.encode()))):
        made[position, :count] = values if values.ndim == 2 else np.stack([values, np.zeros_like(values)], 1)
    return made


def simulated(case: Case, operands: Array, count: int) -> Array:
    """Return the simulator's results: `[column, tuple, word]`. One entry per module is fastest to prepare."""
    made = parse(module(case.where, case.version, [case]))
    results = np.zeros((len(case.outputs) + case.carries, TUPLES, 2), np.uint64)
    sim.run(made, "c0", grid=1, block=THREADS, args=[operands, results], check="none", precision="hardware")
    return results[:, :count]


def examine(tried: Iterable[Case], count: int, unknown: Counter[str]) -> Iterator[Found]:
    """Yield the results of ptxas for each case on its target."""
    able = [case for case in tried if case.where.name in ASSEMBLED]
    for where, version, together in batches(able):
        operands = {case: given(case, count) for case in together}
        for cubin, kept in _assembled(where, version, together, operands, count):
            code = functions(cubin)
            for number, case in enumerate(kept):
                mine = simulated(case, operands[case], count)
                yield _compared(case, operands[case], mine, dict(_words(code[f"c{number}"], unknown)))


def _assembled(
    where: Target, version: Version, together: list[Case], operands: dict[Case, Array], count: int
) -> Iterator[tuple[Cubin, list[Case]]]:
    """Yield a cubin with its cases: one for all, or if ptxas rejects some, one for each that it accepts."""
    header = f".version {version[0]}.{version[1]}\n.target {where.name}\n.address_size 64\n"
    text = "\n".join(kernel(n, case, operands[case], count) for n, case in enumerate(together))
    try:
        yield assemble(header + text, where.name), together
    except PtxError as why:
        if len(together) == 1:
            print(f"not assembled: {together[0].text}  {str(why).splitlines()[0]}")
            return
        for case in together:
            yield from _assembled(where, version, [case], operands, count)


def _words(code: list[Instruction], unknown: Counter[str]) -> Iterator[tuple[int, Known]]:
    for store in stores(code, unknown):
        value = store.value()
        if value is not None:
            yield store.offset // STRIDE, value


def _compared(case: Case, operands: Array, mine: Array, known: dict[int, Known]) -> Found:
    """Compare the tuples whose results are all known."""
    columns = mine.shape[0]
    found = Found(case)
    theirs, taken = mine.copy(), list[int]()
    for n in range(mine.shape[1]):
        values = [known.get(n * columns + position) for position in range(columns)]
        have = [value for value in values if value is not None]
        if len(have) < columns:
            continue
        taken.append(n)
        folded = all(value.folded for value in have)
        found.folded += folded
        found.lowered += not folded
        for position, value in enumerate(have):
            theirs[position, n] = value.bits & PAIR, value.bits >> 64
    asked, mine, theirs = operands[:, taken], mine[:, taken], theirs[:, taken]
    right = judge(case, asked, theirs) if taken else None
    if right is not None:
        found.agreement = judged(case, asked, theirs, right)
        found.distance = _distance(case, mine[0, :, 0].tolist(), theirs[0, :, 0].tolist())
    elif taken:
        found.agreement = compare(case, asked, mine, theirs)
        if found.agreement.differing:
            found.distance = _distance(case, mine[0, :, 0].tolist(), theirs[0, :, 0].tolist())
            found.excuses = _excuses(case, asked, mine, theirs)
    return found


def _excuses(case: Case, asked: Array, mine: Array, theirs: Array) -> Counter[str]:
    """Count the known bugs among tuples with one result."""
    found = Counter[str]()
    for n in np.flatnonzero((mine != theirs).any((0, 2))) if len(mine) == 1 else ():
        found[excuse(case, asked[:, n, 0].tolist(), int(mine[0, n, 0]), int(theirs[0, n, 0]))] += 1
    del found[""]
    return found


def _distance(case: Case, mine: list[int], theirs: list[int]) -> int:
    """Return the largest distance between two results, counted in representable numbers across zero."""
    name = case.outputs[0].type or ""
    if not is_float(name):
        return 0
    sign = 1 << FORMATS[name].width - 1
    pairs = [[sign - bits if bits & sign else bits for bits in pair] for pair in zip(mine, theirs, strict=True)]
    return max(abs(first - second) for first, second in pairs)


def asked(sections: Iterable[str] = SECTIONS, opcodes: Iterable[str] = ()) -> dict[str, list[tuple[str, Case]]]:
    """Return the cases of every form by its text, with their sections: on its oldest and its newest target."""
    places: defaultdict[str, dict[str, tuple[str, Case]]] = defaultdict(dict)
    for section in sections:
        for arch in TARGETS:
            for case in cases([section], arch):
                if case.opcode not in OF_WARPS and (not opcodes or case.opcode in opcodes):
                    places[case.text].setdefault(case.where.name, (section, case))
    chosen: dict[str, list[tuple[str, Case]]] = {}
    for text, found in places.items():
        able = sorted((name for name in found if name in ASSEMBLED), key=ASSEMBLED.index)
        chosen[text] = [found[name] for name in dict.fromkeys([*able[:1], *able[-1:]])]
    return chosen


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--section", action="append", choices=SECTIONS)
    options.add_argument("--opcode", action="append", default=[])
    options.add_argument("--sample", type=int, help="try only this many forms, chosen by --seed")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--tuples", type=int, default=8, help=f"operand tuples per form, at most {THREADS}")
    options.add_argument("--show", type=int, default=40, help="how many of the forms that differ to print")
    wanted = options.parse_args(argv)
    chosen = asked(wanted.section or SECTIONS, wanted.opcode)
    if wanted.sample and wanted.sample < len(chosen):
        kept = random.Random(wanted.seed).sample(sorted(chosen), wanted.sample)
        chosen = {text: chosen[text] for text in kept}
    unknown = Counter[str]()
    found = list(examine([case for pairs in chosen.values() for _, case in pairs], wanted.tuples, unknown))
    return report(chosen, found, unknown, wanted.show)


_HEADS = ("forms", "folded", "lowered", "open", "tuples", "equal", "differ", "payloads", "ulp")


def report(chosen: dict[str, list[tuple[str, Case]]], found: list[Found], unknown: Counter[str], show: int) -> int:
    """Print the results by opcode and by section, what differs, and what ptxas leaves to the GPU."""
    by_text: defaultdict[str, list[Found]] = defaultdict(list)
    for one in found:
        by_text[one.case.text].append(one)
    opcodes: defaultdict[str, list[str]] = defaultdict(list)
    sections: defaultdict[str, list[str]] = defaultdict(list)
    for text, pairs in chosen.items():
        opcodes[text.split(" ")[0].split(".")[0]].append(text)
        sections[pairs[0][0] if pairs else "on no ptxas target"].append(text)
    for title, groups in (("opcode", sorted(opcodes.items())), ("section", list(sections.items()))):
        print(f"{title:<22}" + "".join(f"{head:>9}" for head in _HEADS))
        for name, texts in [*groups, ("all", list(chosen))]:
            print(f"{name:<22}" + "".join(f"{number:>9}" for number in _row(texts, by_text)))
        print()
    print(", ".join(f"{name} {count}" for name, count in sorted(Counter(f.case.where.name for f in found).items())))
    print("left to the GPU:", ", ".join(f"{name} {count}" for name, count in _by_opcode(unknown).most_common(40)))
    differing = [f for f in found if f.agreement.differing]
    for one in differing[:show]:
        why = "".join(f": {why}" for why in one.excuses)
        counts = f"{one.agreement.differing} of {one.agreement.tuples}"
        print(f"  {one.case.where.name}, {counts}: {one.agreement.example}{why}")
    return 1 if any(one.unexplained for one in differing) else 0


def _row(texts: list[str], by_text: dict[str, list[Found]]) -> tuple[int, ...]:
    together = [by_text.get(text, []) for text in texts]
    folded = sum(any(f.folded for f in answers) for answers in together)
    answered = sum(any(f.folded or f.lowered for f in answers) for answers in together)
    every = [f for answers in together for f in answers]
    tuples, differ = (sum(getattr(f.agreement, name) for f in every) for name in ("tuples", "differing"))
    payloads, distance = sum(f.agreement.payloads for f in every), max((f.distance for f in every), default=0)
    return (
        len(texts),
        folded,
        answered - folded,
        len(texts) - answered,
        tuples,
        tuples - differ,
        differ,
        payloads,
        distance,
    )


def _by_opcode(unknown: Counter[str]) -> Counter[str]:
    made = Counter[str]()
    for name, count in unknown.items():
        made[name.split(".")[0]] += count
    return made


if __name__ == "__main__":
    sys.exit(main())
