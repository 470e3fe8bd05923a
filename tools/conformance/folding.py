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
from tools.conformance.agreement import Agreement, compare, summarize_judgments
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
class Folding:
    """The results of ptxas for a case on one target."""

    case: Case
    fold_count: int = 0
    lowering_count: int = 0
    agreement: Agreement = field(default_factory=Agreement)
    distance: int = 0
    """The largest distance between the simulator and ptxas, in units of the last place."""

    excuses: Counter[str] = field(default_factory=Counter[str])
    """Known bugs of ptxas that explain tuples that differ, and on how many."""

    @property
    def open_differences(self) -> int:
        """Count the tuples that differ without a known reason."""
        return self.agreement.differing - self.excuses.total()


def _folds_tie_to_odd(opcode: str, lane: list[int]) -> bool:
    """Return whether the exact sum is halfway between two results; `lane` is both operands and both results."""
    a, b, ours, ptxas_result = (float(value) for value in np.array(lane, "u4").view("f4"))
    if not all(map(math.isfinite, (a, b, ours, ptxas_result))):
        return False
    return 2 * (Fraction(a) + Fraction(b if opcode == "add" else -b)) == Fraction(ours) + Fraction(ptxas_result)


def excuse(case: Case, operands: list[int], mine: int, theirs: int) -> str:
    """Return the known bug of ptxas that explains a difference, or an empty string."""
    if case.opcode in ("add", "sub") and case.modifiers[-1] in ("f32", "f32x2"):
        lanes = [[value >> start & 0xFFFFFFFF for value in (*operands[:2], mine, theirs)] for start in (0, 32)]
        if all(_folds_tie_to_odd(case.opcode, lane) for lane in lanes if lane[2] != lane[3]):
            return "ptxas folds a tie to odd"
    if case.opcode in ("vabsdiff2", "vabsdiff4") and case.modifiers[-1] == "sat":
        size = 16 if case.opcode == "vabsdiff2" else 8
        parts = [(mine >> bit & (1 << size) - 1, theirs >> bit & (1 << size) - 1) for bit in range(0, 32, size)]
        if all(ptxas_result in (ours, 0) for ours, ptxas_result in parts):
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
        *declarations(case.version, case.target.arch),
        ".reg .b64 out, low, high; .reg .b32 carry;",
        "ld.param.u64 out, [results];",
    ]
    offset = 0
    for n in range(count):
        lines += [constant(c, tuple(operands[position, n].tolist())) for position, c in enumerate(case.inputs)]
        lines += [f"add.cc.u32 carry, {-(n & 1) & 0xFFFFFFFF}, 1;"] if case.carries else []
        lines += [*case.before, case.text, *case.after]
        columns = list(case.outputs)
        if case.carries:
            lines.append("addc.u32 carry, 0, 0;")
            columns.append(Column("carry", "b32", "u32", "carry"))
        for column in columns:
            lines += store_of(column, f"[out+{offset}]")
            offset += STRIDE
    return "\n".join(lines) + "\nret;\n}"


def draw_operands(case: Case, count: int) -> Array:
    """Return the operands as a kernel of `modules` reads them; each form has its own draws."""
    words = np.zeros((max(1, len(case.inputs)), TUPLES, 2), np.uint64)
    for position, values in enumerate(draw(case, count, zlib.crc32(case.text.encode()))):
        words[position, :count] = values if values.ndim == 2 else np.stack([values, np.zeros_like(values)], 1)
    return words


def simulate(case: Case, operands: Array, count: int) -> Array:
    """Return the simulator's results: `[column, tuple, word]`. One entry per module is fastest to prepare."""
    compiled = parse(module(case.target, case.version, [case]))
    results = np.zeros((len(case.outputs) + case.carries, TUPLES, 2), np.uint64)
    sim.run(compiled, "c0", grid=1, block=THREADS, args=[operands, results], check="none", precision="hardware")
    return results[:, :count]


def examine(selection: Iterable[Case], count: int, unmodeled: Counter[str]) -> Iterator[Folding]:
    """Yield the results of ptxas for each case on its target."""
    able = [case for case in selection if case.target.name in ASSEMBLED]
    for target, version, batch in batches(able):
        operands = {case: draw_operands(case, count) for case in batch}
        for cubin, cubin_cases in _assemble_batch(target, version, batch, operands, count):
            code = functions(cubin)
            for number, case in enumerate(cubin_cases):
                mine = simulate(case, operands[case], count)
                yield _compare_known(case, operands[case], mine, dict(_words(code[f"c{number}"], unmodeled)))


def _assemble_batch(
    target: Target, version: Version, batch: list[Case], operands: dict[Case, Array], count: int
) -> Iterator[tuple[Cubin, list[Case]]]:
    """Yield a cubin with its cases: one for all, or if ptxas rejects some, one for each that it accepts."""
    header = f".version {version[0]}.{version[1]}\n.target {target.name}\n.address_size 64\n"
    text = "\n".join(kernel(n, case, operands[case], count) for n, case in enumerate(batch))
    try:
        yield assemble(header + text, target.name), batch
    except PtxError as why:
        if len(batch) == 1:
            print(f"not assembled: {batch[0].text}  {str(why).splitlines()[0]}")
            return
        for case in batch:
            yield from _assemble_batch(target, version, [case], operands, count)


def _words(code: list[Instruction], unmodeled: Counter[str]) -> Iterator[tuple[int, Known]]:
    for store in stores(code, unmodeled):
        value = store.value()
        if value is not None:
            yield store.offset // STRIDE, value


def _compare_known(case: Case, operands: Array, mine: Array, words: dict[int, Known]) -> Folding:
    """Compare the tuples whose results are all known."""
    columns = mine.shape[0]
    result = Folding(case)
    theirs, indices = mine.copy(), list[int]()
    for n in range(mine.shape[1]):
        values = [words.get(n * columns + position) for position in range(columns)]
        have = [value for value in values if value is not None]
        if len(have) < columns:
            continue
        indices.append(n)
        is_folded = all(value.is_folded for value in have)
        result.fold_count += is_folded
        result.lowering_count += not is_folded
        for position, value in enumerate(have):
            theirs[position, n] = value.bits & PAIR, value.bits >> 64
    inputs, mine, theirs = operands[:, indices], mine[:, indices], theirs[:, indices]
    right = judge(case, inputs, theirs) if indices else None
    if right is not None:
        result.agreement = summarize_judgments(case, inputs, theirs, right)
        result.distance = _distance(case, mine[0, :, 0].tolist(), theirs[0, :, 0].tolist())
    elif indices:
        result.agreement = compare(case, inputs, mine, theirs)
        if result.agreement.differing:
            result.distance = _distance(case, mine[0, :, 0].tolist(), theirs[0, :, 0].tolist())
            result.excuses = _excuses(case, inputs, mine, theirs)
    return result


def _excuses(case: Case, inputs: Array, mine: Array, theirs: Array) -> Counter[str]:
    """Count the known bugs among tuples with one result."""
    reasons = Counter[str]()
    for n in np.flatnonzero((mine != theirs).any((0, 2))) if len(mine) == 1 else ():
        reasons[excuse(case, inputs[:, n, 0].tolist(), int(mine[0, n, 0]), int(theirs[0, n, 0]))] += 1
    del reasons[""]
    return reasons


def _distance(case: Case, mine: list[int], theirs: list[int]) -> int:
    """Return the largest distance between two results, counted in representable numbers across zero."""
    name = case.outputs[0].type or ""
    if not is_float(name):
        return 0
    sign = 1 << FORMATS[name].width - 1
    pairs = [[sign - bits if bits & sign else bits for bits in pair] for pair in zip(mine, theirs, strict=True)]
    return max(abs(first - second) for first, second in pairs)


def select_cases(sections: Iterable[str] = SECTIONS, opcodes: Iterable[str] = ()) -> dict[str, list[tuple[str, Case]]]:
    """Return the cases of every form by its text, with their sections: on its oldest and its newest target."""
    places: defaultdict[str, dict[str, tuple[str, Case]]] = defaultdict(dict)
    for section in sections:
        for arch in TARGETS:
            for case in cases([section], arch):
                if case.opcode not in OF_WARPS and (not opcodes or case.opcode in opcodes):
                    places[case.text].setdefault(case.target.name, (section, case))
    selection: dict[str, list[tuple[str, Case]]] = {}
    for text, by_target in places.items():
        able = sorted((name for name in by_target if name in ASSEMBLED), key=ASSEMBLED.index)
        selection[text] = [by_target[name] for name in dict.fromkeys([*able[:1], *able[-1:]])]
    return selection


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--section", action="append", choices=SECTIONS)
    options.add_argument("--opcode", action="append", default=[])
    options.add_argument("--sample", type=int, help="try only this many forms, chosen by --seed")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--tuples", type=int, default=8, help=f"operand tuples per form, at most {THREADS}")
    options.add_argument("--show", type=int, default=40, help="how many of the forms that differ to print")
    arguments = options.parse_args(argv)
    selection = select_cases(arguments.section or SECTIONS, arguments.opcode)
    if arguments.sample and arguments.sample < len(selection):
        sample = random.Random(arguments.seed).sample(sorted(selection), arguments.sample)
        selection = {text: selection[text] for text in sample}
    unmodeled = Counter[str]()
    results = list(examine([case for pairs in selection.values() for _, case in pairs], arguments.tuples, unmodeled))
    return report(selection, results, unmodeled, arguments.show)


_HEADS = ("forms", "folded", "lowered", "open", "tuples", "equal", "differ", "payloads", "ulp")


def report(
    selection: dict[str, list[tuple[str, Case]]], results: list[Folding], unmodeled: Counter[str], show: int
) -> int:
    """Print the results by opcode and by section, what differs, and what ptxas leaves to the GPU."""
    by_text: defaultdict[str, list[Folding]] = defaultdict(list)
    for result in results:
        by_text[result.case.text].append(result)
    opcodes: defaultdict[str, list[str]] = defaultdict(list)
    sections: defaultdict[str, list[str]] = defaultdict(list)
    for text, pairs in selection.items():
        opcodes[text.split(" ")[0].split(".")[0]].append(text)
        sections[pairs[0][0] if pairs else "on no ptxas target"].append(text)
    for title, groups in (("opcode", sorted(opcodes.items())), ("section", list(sections.items()))):
        print(f"{title:<22}" + "".join(f"{head:>9}" for head in _HEADS))
        for name, texts in [*groups, ("all", list(selection))]:
            print(f"{name:<22}" + "".join(f"{number:>9}" for number in _row(texts, by_text)))
        print()
    print(", ".join(f"{name} {count}" for name, count in sorted(Counter(f.case.target.name for f in results).items())))
    print("left to the GPU:", ", ".join(f"{name} {count}" for name, count in _by_opcode(unmodeled).most_common(40)))
    differing = [f for f in results if f.agreement.differing]
    for result in differing[:show]:
        why = "".join(f": {why}" for why in result.excuses)
        counts = f"{result.agreement.differing} of {result.agreement.tuples}"
        print(f"  {result.case.target.name}, {counts}: {result.agreement.example}{why}")
    return 1 if any(result.open_differences for result in differing) else 0


def _row(texts: list[str], by_text: dict[str, list[Folding]]) -> tuple[int, ...]:
    groups = [by_text.get(text, []) for text in texts]
    fold_count = sum(any(f.fold_count for f in answers) for answers in groups)
    answer_count = sum(any(f.fold_count or f.lowering_count for f in answers) for answers in groups)
    results = [f for answers in groups for f in answers]
    tuples, differ = (sum(getattr(f.agreement, name) for f in results) for name in ("tuples", "differing"))
    payloads, distance = sum(f.agreement.payloads for f in results), max((f.distance for f in results), default=0)
    return (
        len(texts),
        fold_count,
        answer_count - fold_count,
        len(texts) - answer_count,
        tuples,
        tuples - differ,
        differ,
        payloads,
        distance,
    )


def _by_opcode(unmodeled: Counter[str]) -> Counter[str]:
    counts = Counter[str]()
    for name, count in unmodeled.items():
        counts[name.split(".")[0]] += count
    return counts


if __name__ == "__main__":
    sys.exit(main())
