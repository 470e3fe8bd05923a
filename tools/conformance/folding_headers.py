"""Compares narrow conversions and arithmetic on halves with the code in NVIDIA's headers: `python -m
tools.conformance.folding_headers`.

`cuda_fp16.h` and related headers contain host code for the functions that they offer on a GPU. It is compiled with g++,
and its results are compared with the simulator bit for bit.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pyptx.numbers import FORMATS
from pyptx.toolchain import find_tool
from pyptx.toolchain.process import create_private_folder
from tools.conformance.agreement import compare
from tools.conformance.folding import draw_operands, select_cases, simulate
from tools.conformance.forms import Array, Case
from tools.conformance.modules import THREADS

_PROGRAM = """
#include <cuda_runtime_api.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
typedef uint64_t W;
static float F(W a) { uint32_t x = a; float f; memcpy(&f, &x, 4); return f; }
static double D(W a) { double f; memcpy(&f, &a, 8); return f; }
static W f(float x) { uint32_t a; memcpy(&a, &x, 4); return a; }
static __half H(W a) { return __ushort_as_half(a); }
static __nv_bfloat16 B(W a) { return __ushort_as_bfloat16(a); }
static __half_raw HR(W a) { __half_raw r; r.x = a; return r; }
static __nv_bfloat16_raw BR(W a) { __nv_bfloat16_raw r; r.x = a; return r; }
static W h(__half x) { return __half_as_ushort(x); }
static W b16(__nv_bfloat16 x) { return __bfloat16_as_ushort(x); }
static W P(W a, W sign, W infinity) { return (a & sign) && (a & (sign - 1)) <= infinity ? 0 : a; }
static W (*FUNCTIONS[])(W, W) = {
%s
};
int main() {
    W which, given[2], made;
    while (fread(&which, 8, 1, stdin) == 1 && fread(given, 8, 2, stdin) == 2) {
        made = FUNCTIONS[which](given[0], given[1]);
        fwrite(&made, 8, 1, stdout);
    }
}
"""
_ON_HOST = "#define NV_IF_ELSE_TARGET(condition, here, ...) { __VA_ARGS__ }\n"
"""Replaces a header of another package that chooses between GPU and host code."""
_NARROW = {"e4m3": "fp8", "e5m2": "fp8", "e2m3": "fp6", "e3m2": "fp6", "e2m1": "fp4", "ue8m0": "e8m0"}
_WHOLE = {"s8": "char", "u8": "uchar", "s16": "short", "u16": "ushort", "s32": "int", "u32": "uint", "s64": "ll",
          "u64": "ull"}  # fmt: skip
_ROUNDINGS = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}
_READ = {"f32": "F(a)", "f64": "D(a)", "f16": "H(a)", "bf16": "B(a)"}
_RAW = {"f32": ("float", "F(a)"), "f16": ("halfraw", "HR(a)"), "bf16": ("bfloat16raw", "BR(a)")}
_NAMES = {"f16": "half", "bf16": "bfloat16", "f32": "float", "f64": "double"}
_MADE = {"f16": "h(%s)", "bf16": "b16(%s)", "f32": "f(%s)"}
_ORDERS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu")


@dataclass(frozen=True)
class Plan:
    """How to compute a case by lanes: the expression, the bits of a lane read and written, and the number of lanes."""

    expression: str
    width: int
    result_width: int
    lanes: int


def plan(case: Case) -> Plan | None:
    """Return how the headers compute a case, or None."""
    if case.opcode == "cvt":
        return _conversion(case)
    kind = case.modifiers[-1] if case.modifiers else ""
    name, lanes = kind.removesuffix("x2"), 2 if kind.endswith("x2") else 1
    flags = set(case.modifiers[:-1])
    if name not in ("f16", "bf16"):
        return None
    x, y = _READ[name], _READ[name].replace("a", "b")
    if case.opcode in ("add", "sub", "mul") and flags <= {"rn", "sat"}:
        call = f"__h{case.opcode}{'_sat' if 'sat' in flags else ''}({x}, {y})"
    elif case.opcode in ("min", "max") and flags <= {"NaN"} and len(case.inputs) == 2:
        call = f"__h{case.opcode}{'_nan' if flags else ''}({x}, {y})"
    elif case.opcode in ("abs", "neg") and not flags:
        call = f"__h{case.opcode}({x})"
    elif case.opcode == "setp" and len(case.modifiers) == 2 and case.modifiers[0] in _ORDERS and lanes == 1:
        return Plan(f"__h{case.modifiers[0]}({x}, {y})", 16, 32, 1) if len(case.outputs) == 1 else None
    else:
        return None
    return Plan(_MADE[name] % call, 16, 16, lanes)


def _conversion(case: Case) -> Plan | None:
    result, source = case.modifiers[-2:]
    flags = set(case.modifiers[:-2])
    unsigned = _unsigned(result, source, flags - {"relu"})
    if unsigned is None or "relu" not in flags:
        return unsigned
    # `.relu` turns negative numbers into zero: the expression takes the sign bit and the largest code of a number.
    form = FORMATS[source.removesuffix("x2")]
    return replace(
        unsigned, expression=f"a = P(a, {form.sign:#x}, {form.infinity or form.largest:#x}), {unsigned.expression}"
    )


def _unsigned(result: str, source: str, flags: set[str]) -> Plan | None:
    """Return how a conversion without `.relu` is computed."""
    lanes = 2 if result.endswith("x2") else 1
    result, source = result.removesuffix("x2"), source.removesuffix("x2")
    rounding = next((r for r in _ROUNDINGS if r in flags), "")
    if not flags <= {*_ROUNDINGS, "rzi", "satfinite"} or (lanes == 1) != (
        source not in _NARROW and result not in _NARROW
    ):
        return _pair(result, source, rounding) if lanes == 2 and flags <= set(_ROUNDINGS) and source == "f32" else None
    if result in _NARROW:
        call = _to_narrow(result, source, rounding, "satfinite" in flags)
        return Plan(call, FORMATS[source].width, FORMATS[result].lane, lanes) if call else None
    if source in _NARROW:
        if result not in ("f16", "bf16") or "satfinite" in flags:
            return None
        family = _NARROW[source]
        raw, kind = "bf16raw" if result == "bf16" else "halfraw", "" if family == "e8m0" else f", __NV_{source.upper()}"
        return Plan(f"__nv_cvt_{family}_to_{raw}(a{kind}).x", FORMATS[source].lane, 16, lanes)
    return _scalar(result, source, rounding, flags)


def _to_narrow(result: str, source: str, rounding: str, saturates: bool) -> str:
    """Return the call that converts to a narrow format; the headers round to nearest, powers of two as requested."""
    if source not in _RAW or (result != "ue8m0" and rounding != "rn"):
        return ""
    family, (name, read) = _NARROW[result], _RAW[source]
    limit = "__NV_SATFINITE" if saturates else "__NV_NOSAT"
    if family == "e8m0":
        return f"__nv_cvt_{name}_to_e8m0({read}, {limit}, {'cudaRoundZero' if rounding == 'rz' else 'cudaRoundPosInf'})"
    last = f"{limit}, __NV_{result.upper()}" if family == "fp8" else f"__NV_{result.upper()}, cudaRoundNearest"
    return f"__nv_cvt_{name}_to_{family}({read}, {last})"


def _pair(result: str, source: str, rounding: str) -> Plan | None:
    """Return the conversion of two numbers to a pair of halves."""
    if result not in ("f16", "bf16"):
        return None
    return Plan(_MADE[result] % f"__float2{_NAMES[result]}_{_ROUNDINGS[rounding]}(F(a))", 32, 16, 2)


def _scalar(result: str, source: str, rounding: str, flags: set[str]) -> Plan | None:
    if "satfinite" in flags:
        return None
    if result in ("f16", "bf16") and source == "f32" and rounding:
        call = f"__float2{_NAMES[result]}_{_ROUNDINGS[rounding]}(F(a))"
    elif result in ("f16", "bf16") and source == "f64" and rounding == "rn":
        call = f"__double2{_NAMES[result]}(D(a))"
    elif result == "f32" and source in ("f16", "bf16") and not flags:
        call = f"__{_NAMES[source]}2float({_READ[source]})"
    elif result in _WHOLE and source in ("f16", "bf16") and flags == {"rzi"}:
        return Plan(f"(W)__{_NAMES[source]}2{_WHOLE[result]}_rz({_READ[source]})", 16, max(int(result[1:]), 16), 1)
    elif (
        source in _WHOLE
        and source[1:] != "8"
        and rounding
        and (result == "f16" or (result, rounding) == ("bf16", "rn"))
    ):
        call = f"__{_WHOLE[source]}2{_NAMES[result]}_{_ROUNDINGS[rounding]}(a)"
        return Plan(_MADE[result] % call, int(source[1:]), 16, 1)
    else:
        return None
    return Plan(_MADE[result] % call, FORMATS[source].width, FORMATS[result].width, 1)


def lanes(case: Case, host_plan: Plan, operands: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the operands of each lane, lowest first; among several registers, the last is the lowest."""
    mask = np.uint64((1 << host_plan.width) - 1)
    words = [operands[n, :, 0] for n in range(len(case.inputs))]
    for lane in range(host_plan.lanes):
        if case.opcode == "cvt" and len(words) == 2:
            yield words[1 - lane] & mask, words[0]
        else:
            elements = [word >> np.uint64(lane * host_plan.width) & mask for word in words]
            yield elements[0], elements[-1]


def host(plans: dict[Case, Plan], operands: dict[Case, Array]) -> dict[Case, Array]:
    """Return the results of the headers for every case: `[1, tuple, 2]`."""
    rows = list[Array]()
    for number, (case, host_plan) in enumerate(plans.items()):
        for first, second in lanes(case, host_plan, operands[case]):
            rows.append(np.stack([np.full_like(first, number), first, second], 1))
    answers = _run([host_plan.expression for host_plan in plans.values()], np.concatenate(rows).tobytes())
    results: dict[Case, Array] = {}
    offset = 0
    for case, host_plan in plans.items():
        count = operands[case].shape[1]
        columns = np.zeros((1, count, 2), np.uint64)
        for lane in range(host_plan.lanes):
            part = answers[offset : offset + count] & np.uint64((1 << host_plan.result_width) - 1)
            columns[0, :, 0] |= part << np.uint64(lane * host_plan.result_width)
            offset += count
        results[case] = columns & np.uint64(0xFF) if case.outputs[0].kind == "b8" else columns
    return results


def _run(expressions: list[str], stdin: bytes) -> Array:
    table = ",\n".join(f"    [](W a, W b) -> W {{ return {text}; }}" for text in expressions)
    include = Path(find_tool("ptxas").path).parents[1] / "include"
    with create_private_folder() as folder:
        (folder / "nv").mkdir()
        (folder / "nv" / "target").write_text(_ON_HOST)
        (folder / "host.cpp").write_text(_PROGRAM % table)
        command = ["g++", "-std=c++17", "-w", f"-I{include}", "-I.", "host.cpp", "-o", "host"]
        subprocess.run(command, cwd=folder, check=True)
        process = subprocess.run([str(folder / "host")], input=stdin, capture_output=True, check=True)
    return np.frombuffer(process.stdout, np.uint64)


def main() -> int:
    if not shutil.which("g++"):
        print("g++ not found; it compiles NVIDIA's headers", file=sys.stderr)
        return 1
    selection = select_cases(["floating_point", "half_precision", "comparison", "conversion"])
    plan_of_case = {pairs[-1][1]: plan(pairs[-1][1]) for pairs in selection.values() if pairs}
    plans = {case: host_plan for case, host_plan in plan_of_case.items() if host_plan is not None}
    operands = {case: draw_operands(case, THREADS) for case in plans}
    theirs = host(plans, {case: words[:, :THREADS] for case, words in operands.items()})
    forms, tuples, payloads, differing = Counter[str](), 0, 0, list[str]()
    for case in plans:
        agreement = compare(case, operands[case], simulate(case, operands[case], THREADS), theirs[case])
        forms[case.opcode] += 1
        tuples, payloads = tuples + agreement.tuples, payloads + agreement.payloads
        differing += (
            [f"{agreement.differing} of {agreement.tuples}: {agreement.example}"] if agreement.differing else []
        )
    print(", ".join(f"{name} {count}" for name, count in sorted(forms.items())))
    print(f"{len(plans)} forms, {tuples} tuples, {payloads} differ in NaN payloads, {len(differing)} forms differ")
    print("\n".join(f"  {line}" for line in differing))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
