"""What pyptx does today, on a real kernel: parse, print, check, assemble, disassemble, and find planted mistakes.

Run by `make demo`. The kernel is a warp-specialised GEMM for Hopper: TMA, mbarriers and wgmma.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from pyptx.check import check
from pyptx.diagnostics import render
from pyptx.emitter import emit
from pyptx.ir import Instruction, Module, visit
from pyptx.parser import parse
from pyptx.toolchain import assemble, disassemble, occupancy, resources, validate

KERNEL = Path(__file__).with_name("hopper_gemm.ptx")
THREADS, DYNAMIC_SHARED = 384, 131_072

MISTAKES = [
    (
        "a tensor map used without making its address generic: ptxas accepts it, and the copy reads a wrong address",
        "    cvta.param.u64  %b_desc_ptr, %b_desc_ptr;\n",
        "",
    ),
    ("a wgmma shape that bf16 does not have", ".m64n128k16.f32.bf16.bf16", ".m64n128k32.f32.bf16.bf16"),
    ("a wait on a barrier that nobody declared", "[%bar_full], %phase;", "[%bar_ful], %phase;"),
]


def main() -> int:
    text = KERNEL.read_text("utf-8")
    print(f"== {KERNEL.name}")
    module = show_reading(text)
    show_assembling(text)
    clean = not check(module)
    print(f"   checked: {'no findings' if clean else render(check(module), text)}")
    missed = show_mistakes(text)
    return 0 if clean and not missed else 1


def show_reading(text: str) -> Module:
    """Parse the kernel, show what is in it, and print it again byte for byte."""
    start = time.perf_counter()
    module = parse(text)
    elapsed = time.perf_counter() - start
    opcodes = Counter(node.opcode for node in visit(module) if isinstance(node, Instruction))
    print(f"   parsed in {elapsed * 1e3:.1f} ms: {opcodes.total()} instructions, {len(opcodes)} different opcodes")
    print(f"   printed again: {'the same bytes' if emit(module) == text else 'DIFFERENT BYTES'}")
    return module


def show_assembling(text: str) -> None:
    """Assemble the kernel and show what it costs and which machine instructions do the work."""
    cubin = assemble(text)
    (needs,) = resources(cubin).values()
    resident = occupancy(cubin.target, THREADS, registers=needs.registers, shared=needs.shared + DYNAMIC_SHARED)
    print(f"   assembled for {cubin.target} by {cubin.producer}: {needs.registers} registers, {needs.shared} bytes of")
    print(
        f"   static shared memory, {needs.spill_stores} bytes spilled; {resident.ctas} CTA of {THREADS} threads per SM"
    )
    opcodes = Counter(line.opcode for line in disassemble(cubin))
    work = {name: count for name, count in opcodes.items() if name.startswith(("HGMMA", "UTMALDG", "SYNCS.PHASE"))}
    print(
        f"   machine code: {opcodes.total()} instructions, among them " + ", ".join(f"{n} {o}" for o, n in work.items())
    )


def show_mistakes(text: str) -> list[str]:
    """Plant each mistake, show what pyptx and ptxas find, and return the mistakes that pyptx did not find."""
    missed: list[str] = []
    for number, (what, right, wrong) in enumerate(MISTAKES, 1):
        assert text.count(right) >= 1, right
        broken = text.replace(right, wrong, 1)
        found = check(parse(broken))
        rejected = [d for d in validate(broken) if d.severity == "error"]
        print(f"\n== mistake {number}: {what}")
        print(f"   ptxas: {rejected[0].message if rejected else 'accepts it'}")
        print(render(found, broken, colour=sys.stdout.isatty()) or "   NOT FOUND")
        if not found:
            missed.append(what)
    return missed


if __name__ == "__main__":
    sys.exit(main())
