"""Runs every example kernel at all its shapes, in every order with every class of checks, and with uninitialized memory
marked; assembles it for all its targets, and prints what limits it: one row per kernel and target. Findings that the
example declares for a run must appear, and no others; their reasons are printed below the rows.

python -m tools.audit_examples [NAME ...]        for example: hopper/cluster_gemm
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing import get_context

from examples.parts.example import Example, Run, list_paths, load_example, name_example
from pyptx.diagnostics import PtxError
from pyptx.isa.targets import find_target
from pyptx.sim.numerics.tensor_core import CORES
from tools.examples.account import Account, make_account
from tools.examples.machines import H200, MACHINES
from tools.examples.rivals import RIVALS
from tools.examples.runs import ORDERS, SPECIAL, VALUES, choose_checks, list_surprises
from tools.examples.times import find_rates

Identity = tuple[object, ...]
WITHOUT_ROW = {
    "patterns/multimem_all_reduce": "has no row: it needs several devices, as tests/examples has",
}
"""Kernels that have no row, and why."""
NOTES = (
    "shared memory: accesses of threads and cp.async, neither what wgmma and tcgen05 read nor what TMA writes",
    "L1: plain loads, as if each hit; loads into SMs and L2: asynchronous loads, a multicast once from L2",
)
"""What the clocks of a resource count."""
COLUMNS = ("shapes", "orders", "conflicts", "spills", "registers", "shared", "CTAs/SM", "GPU", "limit", "ceiling")


@dataclass
class Verdict:
    """The runs of a kernel: how many were right and without other findings than declared, and what went wrong."""

    shapes: int = 0
    orders: int = 0
    conflicts: int = 0
    problems: list[str] = field(default_factory=list[str])


def judge(example: Example, target: str) -> Verdict:
    """Make every run in every order on a target."""
    verdict, results = Verdict(), dict[str, set[bytes]]()
    for run in example.runs:
        before = len(verdict.problems)
        for order in ORDERS:
            verdict.orders += judge_run(example, run, order, target, verdict, results.setdefault(str(run), set()))
        try:
            example.simulate(run, target, poison=True, check="none").verify()
        except (AssertionError, PtxError) as error:
            verdict.problems.append(f"{run}, uninitialized memory: {first_line(error)}")
        verdict.shapes += len(verdict.problems) == before
    verdict.problems += [
        f"{run}: {len(outputs)} different results"
        for run, outputs in results.items()
        if len(outputs) > 1 and not example.varies
    ]
    return verdict


def judge_run(
    example: Example, run: Run, order: tuple[str, int], target: str, verdict: Verdict, results: set[bytes]
) -> bool:  # fmt: skip
    """Make a run in an order; return whether it was right and without other findings than it declares."""
    schedule, seed = order
    checks = choose_checks(schedule)
    try:
        outcome = example.simulate(run, target, schedule=schedule, seed=seed, check=checks, statistics=True)
        outcome.verify()
    except (AssertionError, PtxError) as error:
        verdict.problems.append(f"{run}, {schedule} {seed}: {first_line(error)}")
        return False
    statistics = outcome.report.stats.statistics
    assert statistics is not None
    verdict.conflicts = max(verdict.conflicts, len(statistics.conflicts))
    surprises = list_surprises(run, schedule, outcome.report.hazards)
    verdict.problems += [f"{run}, {schedule} {seed}: {surprise}" for surprise in surprises]
    compared = zip(outcome.outputs, outcome.expected, strict=True)
    results.add(b"".join(output.tobytes() for output, desired in compared if desired is not None))
    return not surprises


def first_line(error: Exception) -> str:
    """Return the first line of a message that has words."""
    return next(line for line in str(error).splitlines() if line.strip())


def describe(verdict: Verdict, account: Account, example: Example) -> list[str]:
    """Return the cells of a row."""
    rows = len(example.runs) * len(ORDERS)
    conflicts = f"{verdict.conflicts}*" if verdict.conflicts and example.conflicts else str(verdict.conflicts)
    return [
        f"{verdict.shapes}/{len(example.runs)}", f"{verdict.orders}/{rows}", conflicts, str(account.spills),
        str(account.registers), f"{account.shared:,}", str(account.ctas), account.gpu, account.limit, account.ceiling,
    ]  # fmt: skip


def audit_example(name: str) -> tuple[str, int]:
    """Return the rows of an example and what went wrong, as text, and the number of problems."""
    example = load_example(next(path for path in list_paths() if name_example(path) == name))
    verdicts, problems, lines = dict[Identity, Verdict](), list[str](), list[str]()
    for target in example.targets:
        account, identity = make_account(example, target), identify(example, target)
        if identity not in verdicts:
            verdicts[identity] = judge(example, target)
            problems += [f"{target}: {problem}" for problem in verdicts[identity].problems]
        verdict = verdicts[identity]
        problems += [f"{target}: {problem}" for problem in inspect(example, target, account)]
        lines += [format_row(example.name, target, describe(verdict, account, example)), f"    {account}"]
    figure, source = RIVALS.get(example.name, ("none known", ""))
    lines.append(f"    published: {figure}{f' ({source})' if source else ''}; on a GPU: {compare(example)}")
    lines += [f"    declared: {code} of {names}: {reason}" for (code, reason), names in list_declared(example).items()]
    if example.conflicts and any(verdict.conflicts for verdict in verdicts.values()):
        lines.append(f"    * {example.conflicts}")
    lines += [f"    WRONG {problem}" for problem in problems]
    return "\n".join(lines), len(problems)


def list_declared(example: Example) -> dict[tuple[str, str], str]:
    """Return the declared findings with their reasons, and the runs that have them."""
    runs = dict[tuple[str, str], list[str]]()
    for run in example.runs:
        for finding in run.findings.items():
            runs.setdefault(finding, []).append(str(run))
    return {finding: " and of ".join(names) for finding, names in runs.items()}


def compare(example: Example) -> str:
    """Return what the example reached on GPUs, with the ceiling of the one that is not the target's."""
    rates = find_rates(example.name)
    is_other = f"NVIDIA {H200.name}" in rates
    return rates + (f", whose ceiling is {make_account(example, 'sm_90a', H200).ceiling}" if is_other else "")


def inspect(example: Example, target: str, account: Account) -> list[str]:
    """Return what is wrong with the code for a target: findings without a run, spills, instructions that are absent."""
    kernel = example.make(target)
    problems = [str(finding) for finding in kernel.check(**example.large)]
    problems += [f"{account.spills} bytes of spills"] if account.spills else []
    absent = example.list_absent(kernel.sass(**example.large))
    return problems + [f"{words} is not in the machine code" for words in absent]


def identify(example: Example, target: str) -> Identity:
    """Return what the runs on a target depend on: the PTX of each, apart from the directives that name the target, and
    how its tensor cores sum."""
    kernel = example.make(target)
    texts = [
        "\n".join(line for line in kernel.ptx(**run.shape).splitlines() if not line.startswith((".version", ".target")))
        for run in example.runs
    ]
    core = CORES[find_target(target).arch] if any("mma" in text for text in texts) else None
    return *texts, core


def make_pool(jobs: int) -> ProcessPoolExecutor:
    """Return processes for one example each: what hundreds of runs leave in pieces, malloc does not return."""
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1)


def main(argv: list[str] | None = None) -> int:
    """Run the audit; print a row per kernel and target, and what went wrong."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    arguments = options.parse_args(argv)
    names = [name_example(path) for path in list_paths()]
    if unknown := set(arguments.names) - set(names):
        options.error(f"no example is called {', '.join(sorted(unknown))}; expected names such as hopper/cluster_gemm")
    names = [name for name in names if not arguments.names or name in arguments.names]
    count = 0
    print(format_row("", "target", [*COLUMNS]))
    with make_pool(arguments.jobs) if arguments.jobs > 1 else nullcontext() as pool:
        for text, problems in (pool.map if pool else map)(audit_example, names):
            print(text, flush=True)
            count += problems
    for name, reason in WITHOUT_ROW.items():
        print(f"{name:30}{reason}")
    print(f"{len(names)} kernels, {len(ORDERS)} orders each: {count} problems")
    print(f"classes of checks: {', '.join(choose_checks('eager'))}; {VALUES} only in the eager order, which it keeps")
    print(f"not declared: {' and '.join(SPECIAL)} of runs with NaN and infinities, which say where these appear first")
    print("\n".join(NOTES))
    for machine in {machine.name: machine for machine in (*MACHINES.values(), H200)}.values():
        print(f"rates of {machine.name}: {'; '.join(machine.sources)}")
    return 1 if count else 0


def format_row(name: str, target: str, cells: list[str]) -> str:
    """Return the cells in columns."""
    widths = (7, 9, 10, 7, 10, 9, 8, 11, 18, 17)
    return f"{name:30}{target:10}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


if __name__ == "__main__":
    sys.exit(main())
