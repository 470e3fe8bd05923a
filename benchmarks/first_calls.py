"""Compare first calls, with cold caches, with second calls. Each pair runs in new processes."""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.ratios import Pairs, first_and_second, show

KERNEL = """
import numpy as np
from examples.parts.example import find_example
vector_add = find_example("any/vector_add")
a = np.ones(1024, np.float32)
"""
TEXT = """
from pathlib import Path
text = Path("examples/hopper_gemm.ptx").read_text("utf-8")
"""
CALLS = {
    "tracing a kernel": (KERNEL, "vector_add.make().ptx(n=1024)"),
    "simulating the same kernel": (KERNEL + "k = vector_add.make()", "k.simulate(a, a)"),
    "parsing": (TEXT + "from pyptx.parser import parse", "parse(text)"),
    "checking": (TEXT + "from pyptx.parser import parse\nfrom pyptx.check import check\nm = parse(text)", "check(m)"),
    "turning PTX into Python": (TEXT + "from pyptx.codegen import ptx_to_python", "ptx_to_python(text, sugar=True)"),
    "assembling with ptxas": (TEXT + "from pyptx.toolchain import assemble_with_ptxas", "assemble_with_ptxas(text)"),
    "assembling with nvJitLink": (
        TEXT + "from pyptx.toolchain import assemble_with_nvjitlink", "assemble_with_nvjitlink(text)"
    ),
    "disassembling": (TEXT + "from pyptx.toolchain import sass", "sass(text)"),
}  # fmt: skip


def list_pairs() -> Pairs:
    """Compare first calls with second calls."""
    return {f"{name}: first / second call": partial(first_and_second, *call) for name, call in CALLS.items()}


if __name__ == "__main__":
    show(list_pairs(), sys.argv[1:])
