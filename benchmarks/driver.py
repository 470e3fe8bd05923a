"""Compare launches on the simulated driver with the same kernel in `sim.run`, and programs under `pyptx simulate` with
an interpreter that imports NumPy: `python benchmarks/driver.py`.

Each round runs in a new process. One pair compares launches with thousands of allocations with launches without.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.ratios import ROOT, Pairs, Round, interleave, show
from pyptx.driver.launcher import make_environment
from pyptx.driver.settings import Settings

LAUNCHES, ALLOCATIONS = 200, 5000
PREPARE = f"""
import ctypes, sys
sys.path.insert(0, "tests/driver/programs")
import numpy as np
from benchmarks.ratios import measure_seconds
from calls import ask, launch, load, start
from pyptx import sim
from pyptx.parser import parse
TEXT = '''
.version 8.0
.target sm_80
.address_size 64
.visible .entry one(.param .u64 out)
{{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    st.global.u32 [%rd1], 1;
    ret;
}}
'''
start()
kernel, memory = load(TEXT, "one"), ask("cuMemAlloc_v2", 4)
module, array = parse(TEXT), np.zeros(1, np.uint32)
def ours():
    assert launch(kernel, 1, 1, memory) == 0
def peer():
    sim.run(module, grid=1, block=1, args=[array], check=sys.argv[1])
def measure(work):
    work(), work()
    return measure_seconds(work, {LAUNCHES})
"""
AGAINST_RUN = PREPARE + "print(measure(ours), measure(peer))"
WITH_ALLOCATIONS = f"""{PREPARE}
alone = measure(ours)
blocks = [ask("cuMemAlloc_v2", 256) for _ in range({ALLOCATIONS})]
print(measure(ours), alone)
"""
PROGRAM = PREPARE.partition("kernel, memory")[0] + 'launch(load(TEXT, "one"), 1, 1, ask("cuMemAlloc_v2", 4))\n'


def list_pairs() -> Pairs:
    """Compare launches, and the start of programs."""
    pairs: Pairs = {}
    for check in ("none", "all"):
        pairs[f"launch, check={check} / sim.run"] = partial(compare_launches, AGAINST_RUN, check)
        name = f"launch with {ALLOCATIONS} allocations, check={check} / without"
        pairs[name] = partial(compare_launches, WITH_ALLOCATIONS, check)
    for option in ("--no-cache", "--check=all"):
        pairs[f"pyptx simulate {option}, one launch / importing NumPy"] = partial(compare_start, option)
    return pairs


def compare_launches(source: str, check: str) -> Round:
    """Compare the two times that a program prints."""
    environment = make_environment(Settings(check=check))

    def measure() -> tuple[float, float]:
        command = [sys.executable, "-c", source, check]
        process = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        ours, peer = process.stdout.split()
        return float(ours), float(peer)

    return measure


def compare_start(option: str) -> Round:
    """Compare a program of one launch with one that only imports NumPy."""
    file = tempfile.NamedTemporaryFile("w", suffix=".py")  # noqa: SIM115 (it exists as long as the round)
    file.write(PROGRAM)
    file.flush()

    def run(*words: str) -> None:
        subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)

    def simulate() -> None:
        run("-m", "pyptx", "simulate", option, file.name)

    return interleave(simulate, partial(run, "-c", "import numpy"))


if __name__ == "__main__":
    show(list_pairs(), sys.argv[1:])
