"""PTX that runs cases: the threads of each entry load their operands, execute the instruction and store the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from pyptx.isa.targets import Target, Version
from tools.conformance.forms import Case, Column
from tools.isa.synthesize import declarations

THREADS, CTAS = 128, 8
TUPLES = THREADS * CTAS
CELL = 32
"""Bytes of memory per thread, for instructions that access memory."""
STRIDE = 16
"""Bytes per value and thread; a column takes `STRIDE * TUPLES`."""
_VARIABLES = (
    f".global .align 32 .b8 cells[{CELL * TUPLES}]; .shared .align 32 .b8 rows[{CELL * THREADS}];\n"
    ".const .align 16 .b8 table[16];\n"
)
WIDTH = {"pred": "b32", "b8": "b8", "f16": "b16", "f16x2": "b32", "f32": "b32", "f64": "b64"}
"""The types with which loads and stores access registers of other classes."""


def batches(cases: Iterable[Case], most: int = 64) -> Iterator[tuple[Target, Version, list[Case]]]:
    """Yield groups of cases that can share a module."""
    by_header = sorted(cases, key=lambda case: (case.target.name, case.version))
    for (_, version), group in groupby(by_header, key=lambda case: (case.target.name, case.version)):
        batch = list(group)
        for start in range(0, len(batch), most):
            yield batch[0].target, version, batch[start : start + most]


def module(target: Target, version: Version, cases: list[Case]) -> str:
    """Return a module whose entry `c<n>` runs the n-th case."""
    header = f".version {version[0]}.{version[1]}\n.target {target.name}\n.address_size 64\n"
    variables = _VARIABLES * any(case.before for case in cases)
    return header + variables + "\n".join(_entry(n, case, version, target.arch) for n, case in enumerate(cases))


def _entry(number: int, case: Case, version: Version, arch: int) -> str:
    lines = [
        f".visible .entry c{number}(.param .u64 given, .param .u64 results)",
        "{",
        *declarations(version, arch),
        ".reg .b64 in, out; .reg .b32 tid, cta, carry;",
        *([f".reg .b64 cell; .local .align 32 .b8 stack[{CELL}];"] if case.before else []),
        "ld.param.u64 in, [given];",
        "ld.param.u64 out, [results];",
        "mov.u32 tid, %tid.x;",
        "mov.u32 cta, %ctaid.x;",
        f"mad.lo.u32 tid, cta, {THREADS}, tid;",
        f"mad.wide.u32 in, tid, {STRIDE}, in;",
        f"mad.wide.u32 out, tid, {STRIDE}, out;",
    ]
    for position, column in enumerate(case.inputs):
        lines += _load(column, f"[in+{position * STRIDE * TUPLES}]")
    if case.carries:
        lines += ["mov.b32 carry, tid;", "shl.b32 carry, carry, 31;", "add.cc.u32 carry, carry, carry;"]
    lines += [*case.before, case.text, *case.after]
    if case.carries:
        lines += ["addc.u32 carry, 0, 0;", f"st.global.b32 [out+{len(case.outputs) * STRIDE * TUPLES}], carry;"]
    for position, column in enumerate(case.outputs):
        lines += store_of(column, f"[out+{position * STRIDE * TUPLES}]")
    return "\n    ".join(lines) + "\n    ret;\n}"


def _load(column: Column, address: str) -> list[str]:
    width = WIDTH.get(column.kind, column.kind)
    if column.kind == "pred":
        return [f"ld.global.b32 carry, {address};", f"setp.ne.u32 {column.register}, carry, 0;"]
    return [f"ld.global.{width} {column.register}, {address};"]


def store_of(column: Column, address: str) -> list[str]:
    """Return instructions that store the register of a column."""
    if column.kind == "pred":
        return [f"selp.b32 carry, 1, 0, {column.register};", f"st.global.b32 {address}, carry;"]
    return [f"st.global.{WIDTH.get(column.kind, column.kind)} {address}, {column.register};"]
