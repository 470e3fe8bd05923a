"""Audits the machine code that ptxas generates for every `mma`, `wmma` and `wgmma` on every target against the sums of
the simulator with `precision="hardware"`.

    python -m tools.audit_lowering [--target sm_90a ...] [--section mma ...] [--sample 40] [--seed 1]

Prints each signature of machine code (counts of its arithmetic instructions) with the simulator's model, the number of
forms and targets that have it, and one example; then every form whose machine code differs from the model.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from pyptx.diagnostics import PtxError
from pyptx.isa.targets import ASSEMBLED
from pyptx.sim.numerics.tensor_core import BLOCK_FRACTION, BLOCK_RUN, BYTES, Lowering, select_lowering, select_rule
from pyptx.toolchain import sass
from tools.conformance.forms import Case, cases
from tools.conformance.modules import batches, module

SECTIONS = ("mma", "wmma", "wgmma")
TOGETHER = 24
_ENTRY = re.compile(r"\s*\.section\s+\.text\.c(\d+)\b")
_ARITHMETIC = r"[A-Z]\w*MMA[\w.]*|(?:FADD|FFMA|FMUL|HADD2|F2FP?)\b[\w.]*"
_LINE = re.compile(rf"\s*/\*[0-9a-f]{{4,}}\*/\s+(?:@!?\w+\s+)?(?P<opcode>{_ARITHMETIC})(?P<rest>.*?);")
_SHAPE = re.compile(r"(?:88|168|8x8x|16x8x|64x\d+x)\d+")
_CONSTANT = "HFMA2"
"""An opcode that ptxas uses to load constants."""


@dataclass(frozen=True)
class Form:
    """The shape and types of a product."""

    instruction: str
    shape: tuple[int, int, int]
    types: tuple[str, ...]
    """Of D, A, B and, for all but wgmma, C."""
    sparse: bool
    sm: int

    @classmethod
    def of(cls, case: Case) -> Form:
        parts = [part for modifier in case.modifiers for part in modifier.split(".")]
        shape = next(part for part in parts if re.fullmatch(r"m\d+n\d+k\d+", part))
        m, n, k = (int(number) for number in re.findall(r"\d+", shape))
        types = tuple(part for part in parts[parts.index(shape) + 1 :] if re.fullmatch(r"[besuft]+\d+(m\d)?", part))
        if case.opcode == "wmma" and len(types) == 2:
            types = (types[0], "f16", "f16", types[1])
        return cls(case.opcode, (m, n, k), types, any(part.startswith("sp") for part in parts), case.target.arch)


@dataclass(frozen=True)
class Operation:
    """A machine instruction that computes part of a product."""

    opcode: str
    operands: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int, int] | None:
        """The shape of a matrix instruction."""
        match = _SHAPE.search(self.opcode)
        if match is None or "MMA" not in self.opcode:
            return None
        if "x" in match[0]:
            m, n, k = (int(number) for number in match[0].split("x"))
            return m, n, k
        rows = 16 if match[0].startswith("168") else 8
        return rows, 8, int(match[0][len(str(rows)) + 1 :])


def operations(listing: str) -> dict[int, list[Operation]]:
    """Return the arithmetic of every entry `c<n>` of a disassembled module."""
    by_entry: dict[int, list[Operation]] = defaultdict(list)
    entry = -1
    for text in listing.split("\n"):
        if start := _ENTRY.match(text):
            entry = int(start[1])
        elif (line := _LINE.match(text)) and not line["opcode"].startswith(_CONSTANT):
            operands = tuple(part.strip().removesuffix(".reuse") for part in line["rest"].split(","))
            by_entry[entry].append(Operation(line["opcode"], operands))
    return by_entry


def signature(arithmetic: Sequence[Operation]) -> str:
    """Return counts of the arithmetic, without factor types and wgmma widths, which `mismatch` compares."""
    return " + ".join(
        f"{count}×{name}" for name, count in Counter(_family(operation.opcode) for operation in arithmetic).items()
    )


def _family(opcode: str) -> str:
    if opcode.startswith("F2FP"):
        return "F2FP.UNPACK" if "UNPACK" in opcode else "F2FP.PACK"
    plain = re.sub(r"\.STEP\d|\.U?E\d+M\d|\.[SU][48]\b", "", opcode)
    return re.sub(r"64x\d+x", "64xNx", plain)


def model(form: Form) -> str:
    """Describe how the simulator sums."""
    dtype, name = form.types[0], form.types[1]
    if dtype == "s32":
        return "exact integers"
    if dtype == "f64":
        return "chain of fma"
    lowering = select_lowering(form.instruction, form.sm, name, form.shape[2])
    if lowering is Lowering.SCALAR:
        return f"{lowering}: f32 per thread"
    if form.types[-1].startswith("ue") and form.shape[2] >= (128 if form.sparse else 64):
        return f"{lowering}: exact runs of {BLOCK_RUN}, {BLOCK_FRACTION} bits, {dtype}"
    factor = "f16" if lowering is Lowering.UNPACKED else name
    rule = select_rule(form.instruction, form.sm, factor, _find_sum_type(form), sparse=form.sparse)
    step = min(rule.step, form.shape[2] // (2 if lowering is Lowering.UNPACKED else 1))
    return f"{lowering}: {rule.fraction} bits, steps of {step}, {rule.output}"


def _find_sum_type(form: Form) -> str:
    """Return the type of the sums; an f16 result with an f32 addend is rounded at the end."""
    return "f32" if form.types[0] == "f16" and form.types[3:] == ("f32",) else form.types[0]


def mismatch(form: Form, arithmetic: Sequence[Operation]) -> str | None:
    """Return how the machine code differs from the model, or None."""
    matrix = [operation for operation in arithmetic if "MMA" in operation.opcode]
    opcode_counts = Counter(operation.opcode.split(".")[0] for operation in arithmetic if "MMA" not in operation.opcode)
    dtype, name = form.types[0], form.types[1]
    if dtype in ("s32", "f64"):
        expectation = ("DMMA",) if dtype == "f64" else ("IMMA", "BMMA", "IGMMA", "BGMMA")
        exact = {operation.opcode.split(".")[0] for operation in arithmetic} <= set(expectation)
        return None if exact and matrix else f"expected {' or '.join(expectation)} alone"
    lowering = select_lowering(form.instruction, form.sm, name, form.shape[2])
    if lowering is Lowering.SCALAR:
        return _scalar_mismatch(form, matrix, opcode_counts)
    if not matrix:
        return "expected matrix instructions"
    return (
        _find_unpacking_mismatch(form, matrix, arithmetic)
        if lowering is Lowering.UNPACKED
        else _matrix_mismatch(form, matrix, opcode_counts)
    )


def _scalar_mismatch(form: Form, matrix: Sequence[Operation], opcode_counts: Counter[str]) -> str | None:
    """A thread computes eight elements of D, each from four products."""
    expectation = {"FFMA": 32, "FADD": 8} if form.types[0] == "f32" else {"FMUL": 16, "FFMA": 16, "FADD": 16, "F2FP": 4}
    counts = {name: count for name, count in opcode_counts.items() if name != "HADD2"}
    return None if not matrix and counts == expectation else f"expected {expectation} and conversions by HADD2.F32"


def _find_unpacking_mismatch(form: Form, matrix: Sequence[Operation], arithmetic: Sequence[Operation]) -> str | None:
    dtype, depth = form.types[0], form.shape[2] // 2
    first, second = matrix if len(matrix) == 2 else (matrix[0], matrix[0])
    if first is second or {operation.shape for operation in matrix} != {(16, 8, depth)}:
        return f"expected two HMMA with K = {depth}"
    if first.operands[3] != "RZ" or second.operands[3] != first.operands[0]:
        return "expected C = 0 in the first HMMA, and its result in the second"
    upper = [operation for operation in arithmetic if "UNPACK" in operation.opcode and ".H1" in operation.operands[1]]
    unpacks = [operation for operation in arithmetic if "UNPACK" in operation.opcode]
    opcode = "FADD" if dtype == "f32" else "HADD2"
    sums = [operation for operation in arithmetic if operation.opcode == opcode]
    if 2 * len(upper) != len(unpacks) or len(sums) != (4 if dtype == "f32" else 2):
        return f"expected both halves of every register, and C added by {opcode}"
    return _type_mismatch(matrix, form.sparse, (dtype,))


def _matrix_mismatch(form: Form, matrix: Sequence[Operation], opcode_counts: Counter[str]) -> str | None:
    dtype, name, sum_type = form.types[0], form.types[1], _find_sum_type(form)
    m, n, k = form.shape
    # Volta computes four products in four steps of a quarter of D, or in two of a half.
    steps = len({operation.opcode for operation in matrix}) if ".STEP" in matrix[0].opcode else len(matrix)
    volume, shape = 4 * m * n * k if ".STEP" in matrix[0].opcode else m * n * k, matrix[0].shape
    if shape is None or {operation.shape for operation in matrix} != {shape}:
        return "expected matrix instructions of one shape"
    if ".STEP" not in matrix[0].opcode and steps * prod(shape) != volume:
        return f"expected matrix instructions that span {m} x {n} x {k}"
    machine_rule = select_rule(
        "mma" if form.instruction == "wmma" else form.instruction, form.sm, name, sum_type, sparse=form.sparse
    )
    rule = select_rule(form.instruction, form.sm, name, sum_type, sparse=form.sparse)
    if min(rule.step, k) != min(machine_rule.step, shape[2]):
        return (
            f"expected steps of {min(rule.step, k)} elements of K; machine code has {min(machine_rule.step, shape[2])}"
        )
    converts = form.instruction == "wmma" and form.types[0] != form.types[3]
    if set(opcode_counts) - ({"F2F", "F2FP"} if dtype == "f16" and converts else {"HADD2"} if converts else set()):
        return "expected matrix instructions alone"
    kinds = form.types[1:3] if name in BYTES or name[:2] in ("e2", "e3") else () if name == "f16" else (name,)
    return _type_mismatch(matrix, form.sparse, (sum_type, *kinds))


def _type_mismatch(matrix: Sequence[Operation], sparse: bool, types: Iterable[str]) -> str | None:
    for operation in matrix:
        parts = operation.opcode.split(".")
        if ("SP" in parts) is not sparse or not {kind.upper() for kind in types} <= set(parts):
            return f"expected {'sparse ' * sparse}matrix instructions of {' '.join(types)}, found {operation.opcode}"
    return None


def lower_cases(selection: Iterable[Case]) -> Iterator[tuple[Case, list[Operation]]]:
    """Yield cases with their arithmetic. Modules that crash ptxas are halved."""
    todo = [(target, version, batch) for target, version, batch in batches(selection, TOGETHER)]
    while todo:
        target, version, batch = todo.pop()
        try:
            by_entry = operations(sass(module(target, version, batch), target.name))
        except PtxError:
            if len(batch) == 1:
                raise
            half = len(batch) // 2
            todo += [(target, version, batch[:half]), (target, version, batch[half:])]
            continue
        for number, case in enumerate(batch):
            yield case, by_entry[number]


def all_cases(target: str, sections: Sequence[str] = SECTIONS) -> list[Case]:
    """Return the products of a target."""
    candidates = [case for case in cases(sections, target) if case.target.name == target]
    return [case for case in candidates if case.opcode != "wgmma" or "mma_async" in case.modifiers]


def main(argv: list[str] | None = None) -> int:
    """Run the audit; exit 1 if machine code differs from the model."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", action="append", choices=ASSEMBLED)
    options.add_argument("--section", action="append", choices=SECTIONS)
    options.add_argument("--sample", type=int, help="try only this many of each target, chosen by --seed")
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args(argv)
    rows: dict[tuple[str, str], list[Case]] = defaultdict(list)
    wrong: list[str] = []
    for target in arguments.target or ASSEMBLED:
        selection = all_cases(target, arguments.section or SECTIONS)
        if arguments.sample and arguments.sample < len(selection):
            selection = random.Random(arguments.seed).sample(selection, arguments.sample)
        for case, arithmetic in lower_cases(selection):
            form = Form.of(case)
            rows[model(form), signature(arithmetic)].append(case)
            why = mismatch(form, arithmetic)
            if why is not None:
                wrong.append(f"{target} {case.text.split(' ')[0]}: {why}; {signature(arithmetic)}")
    for (text, name), group in sorted(rows.items()):
        targets = sorted({case.target.name for case in group}, key=ASSEMBLED.index)
        targets_text = targets[0] if len(targets) == 1 else f"{len(targets)} targets from {targets[0]} to {targets[-1]}"
        print(f"{text} | {name} | {len(group)} on {targets_text} | {group[0].text.split(' ')[0]}")
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    print(
        f"{sum(map(len, rows.values()))} forms on their targets, {len(wrong)} whose machine code differs from the model"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
