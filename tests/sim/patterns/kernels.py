"""The example kernels and kernels of the corpus with their synchronization removed, one statement at a time."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.parts.example import HALF, Run, find_dtype, find_example, widen
from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.ir import Function, Module
from pyptx.parser import parse
from pyptx.sim import hazards
from pyptx.tensormap import tensor_map
from tests.sim.patterns.removals import Change, changes
from tools import sim_corpus
from tools.corpus import manifest

Finding = tuple[str, str, str]
"""A code and both places."""
Launch = Callable[[Module, str, int], tuple[sim.Result, bool]]
"""Runs a module under a schedule and a seed; returns the result, and whether the values are right."""
SCHEDULES = (("lazy", 0), ("eager", 0), *(("adversarial", seed) for seed in range(9)), ("random", 1), ("random", 2))
RUNS: dict[str, Run] = {
    "any/vector_add": Run({"n": 1023}), "any/transpose": Run({"m": 33, "n": 70}),
    "any/rmsnorm": Run({"m": 3, "n": 1300}, 2e-6), "any/softmax": Run({"m": 3, "n": 2500}, 2e-5, 1e-30, 20),
    "any/histogram": Run({"n": 5000}), "ampere/pipelined_gemm": Run({"m": 128, "n": 256, "k": 160}, HALF, 1e-3),
    "hopper/tma_copy": Run({"m": 100, "n": 72}), "hopper/wgmma_tile": Run({}, atol=1e-4),
    "hopper/cluster_gemm": Run({"m": 256, "n": 512, "k": 512}, HALF, 1e-3),
    "hopper/persistent_gemm": Run({"m": 256, "n": 512, "k": 320, "sms": 2}, HALF, 1e-3),
    "hopper/fp8_gemm": Run({"m": 256, "n": 512, "k": 640, "kb": 5, "nb": 4, "sms": 2}, HALF, 1e-2),
    "hopper/grouped_gemm": Run({"t": 400, "g": 3, "n": 512, "k": 192, "sms": 1}, HALF, 1e-3),
    "hopper/attention": Run({"h": 1, "s": 384, "d": 128}, 2 * HALF, 8e-3, 2),
    "blackwell/tcgen05_tile": Run({}, atol=1e-4),
    "blackwell/two_sm_gemm": Run({"m": 512, "n": 256, "k": 512}, HALF, 1e-3),
}  # fmt: skip
"""The launch of each example whose synchronization is removed."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel whose synchronization is removed."""

    name: str
    text: str
    launch: Launch
    entry: str
    """The kernel; other functions of the file are unchanged."""
    ours: bool

    def changes(self) -> Iterator[Change]:
        start = re.search(rf"\.entry\s+{re.escape(self.entry)}\b", self.text)
        assert start is not None
        end = re.compile(r"\.(?:entry|func)\b").search(self.text, start.end())
        first, last = (
            self.text.count("\n", 0, offset) for offset in (start.start(), end.start() if end else len(self.text))
        )
        return (change for change in changes(self.text) if first < change.line <= last + 1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a changed kernel: the first report with its lines, or the result of the run."""

    outcome: str
    schedule: str

    @property
    def is_reported(self) -> bool:
        return self.outcome.startswith("PTX")


def ours(name: str) -> Subject:
    """Return an example kernel at a small size."""
    example, run = find_example(name), RUNS[name]
    kernel, shape = example.make(), dict(run.shape)
    inputs = example.draw_inputs(run)
    expected = example.compute(run, inputs)
    grid: Any = kernel.grid
    if callable(grid):
        grid = grid(**{name: shape[name] for name in inspect.signature(grid).parameters})

    def launch(module: Module, schedule: str, seed: int) -> tuple[sim.Result, bool]:
        outputs = [np.zeros(tile.resolve_shape(shape), find_dtype(tile)) for tile in kernel.out_specs]
        (entry,) = (item for item in module.directives if isinstance(item, Function))
        names = [param.name for param in entry.params]
        args: dict[str, Any] = {}
        for (name, tile), array in zip(kernel.definition.tensors, (*inputs, *outputs), strict=True):
            args[name] = array
            if f"{name}_tma_desc" in names:
                args[f"{name}_tma_desc"] = sim.Tensor(array, tensor_map(tile, shape, 0))
        execution = sim.run(
            module, kernel.name, grid=grid, block=kernel.block, cluster=kernel.cluster,
            args=args, shared=kernel.dynamic_smem(**shape), schedule=schedule, seed=seed, on_hazard="report",
            max_steps=2_000_000,
        )  # fmt: skip
        compared = [(output, desired) for output, desired in zip(outputs, expected, strict=True) if desired is not None]
        return execution, all(np.allclose(widen(a), widen(b), run.rtol, run.atol) for a, b in compared)

    return Subject(name, kernel.ptx(**shape), launch, kernel.name, True)


CORPUS = {
    "clang": ["clusters.sm_90a.ptx"],
    "cutedsl": [
        "cluster_exchange.sm_90a.ptx",
        "cluster_sum.sm_90a.ptx",
        "gemm_mma.sm_80.ptx",
        "tcgen05_bf16.sm_100a.ptx",
        "tensor_map_copy.sm_90a.ptx",
        "wgmma_bf16.sm_90a.ptx",
    ],
    "cutlass": ["cute_hopper.sm_90a.ptx"],
    "numba": ["blelloch_scan.sm_75.ptx", "reduce_block.sm_75.ptx", "wave_steps.sm_90.ptx"],
    "pallas": ["triton_softmax.sm_90a.ptx"],
    "triton": ["gluon_async_scale.sm_80.ptx", "layernorm.sm_75.ptx", "matmul_f16.sm_90a.ptx", "rmsnorm.sm_90a.ptx"],
}
"""Kernels of the corpus whose synchronization is removed: files, by producer."""


def theirs(producer: str) -> Iterator[Subject]:
    """Yield the kernels of a producer, the first entry of each file."""
    (directory,) = (path for path in manifest.producers() if manifest.load(path).producer == producer)
    for item in manifest.load(directory).files:
        if item.path in CORPUS[producer]:
            entry = next(entry for entry in item.entries if entry.run is not None)
            text = (directory / item.path).read_bytes().rstrip(b"\0").decode()

            def launch(
                module: Module, schedule: str, seed: int, entry: manifest.Entry = entry
            ) -> tuple[sim.Result, bool]:
                result, wrong = sim_corpus.launch(module, entry, "all", schedule, seed)
                return result, not wrong

            yield Subject(f"{producer}/{item.path.removesuffix('.ptx')}", text, launch, entry.name, False)


def baseline(
    subject: Subject, schedules: Sequence[tuple[str, int]] = SCHEDULES
) -> tuple[frozenset[Finding], list[str]]:
    """Return the findings of the unchanged kernel under any schedule, and the schedules with wrong results."""
    module, findings, wrong = parse(subject.text), set[Finding](), list[str]()
    for schedule, seed in schedules:
        result, right = subject.launch(module, schedule, seed)
        findings |= {key(finding) for finding in result.hazards}
        wrong += [] if right else [f"{schedule} {seed}"]
    return frozenset(findings), wrong


def key(finding: hazards.Finding) -> Finding:
    return finding.rule.code, str(finding.place.origin), str(finding.other.origin) if finding.other is not None else ""


def judge_version(subject: Subject, text: str, baseline_findings: frozenset[Finding] = frozenset()) -> Verdict:
    """Run a version until a run reports something new; otherwise state whether its results were ever wrong."""
    module, wrong = parse(text), ""
    for schedule, seed in SCHEDULES:
        try:
            result, right = subject.launch(module, schedule, seed)
        except PtxError as error:
            findings = error.diagnostics[0]
            return Verdict(f"{findings.code} {findings.origin}", f"{schedule} {seed}")
        fresh = [findings for findings in result.hazards if key(findings) not in baseline_findings]
        if fresh:
            first = min(fresh, key=lambda finding: finding.severity.value)
            other_place = f" and {first.other.origin}" if first.other is not None else ""
            return Verdict(f"{first.rule.code} {first.place.origin}{other_place}", f"{schedule} {seed}")
        if not right:
            wrong = f"wrong results under {schedule} {seed}"
    return Verdict(wrong or "nothing", "")
