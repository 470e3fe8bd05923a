"""Verifies and times an example at its large shape on a GPU: cold L2 cache, random inputs, in turns with a library.

Knows PyTorch, which holds the tensors, and `pyptx.benchmark`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from examples.parts import torch_references
from examples.parts.example import HALF, Example, Run, list_keywords
from examples.parts.peers import list_peers
from examples.parts.torch_inputs import draw_inputs, find_device, make_outputs, to_tensor, torch
from examples.parts.torch_references import REFERENCES, Tensors
from pyptx import Kernel, driver
from pyptx.benchmark import Comparison, compare

Work = Callable[[], object]
SECONDS = 0.08
"""How long each function is timed."""
FEWEST, MOST = 10, 60
"""Runs of each function."""
BOUNDS, LOOSEST = {"torch.float32": 2e-5}, 2.5e-3
"""Largest error, |result - reference| / |reference| of all elements together: rounding to bf16 makes 1.7e-3."""
FEW = 64
"""With fewer elements, rounding to bf16 may make as much error as it does in one: half a unit in the last place."""
LOOSE_BOUNDS = {
    "ampere/fp8_gemm": 2e-2,
    "any/reduction": 1e-3,
    "blackwell/attention": 5e-3,
    "hopper/attention": 5e-3,
    "hopper/attention_backward_dkv": 8e-3,
    "hopper/attention_backward_dq": 8e-3,
    "hopper/attention_overlap": 5e-3,
    "hopper/decode_attention": 5e-3,
    "patterns/cluster_reduction": 1e-4,
}
"""Where operands are rounded in between, tensor cores add fp8 with few bits, or a sum may come close to zero."""
OUTLIER = 16
"""How many times its share of the error one element may have; it is much less than that of an element not computed."""


@dataclass(frozen=True)
class Case:
    """Inputs of a run on the GPU, and what the outputs should be; several kernels can be timed with them."""

    example: Example
    run: Run
    inputs: Tensors
    expected: Tensors
    peers: dict[str, Work]

    @property
    def bytes(self) -> int:
        """The bytes that a launch must move; 0 if its arithmetic takes longer."""
        return self.example.traffic(self.run.shape) if self.example.traffic and not self.example.flops else 0


@dataclass(frozen=True)
class Report:
    """The times of a kernel and of what it is compared with, and its largest error."""

    case: Case
    comparison: Comparison
    error: float

    def __str__(self) -> str:
        times, example, run = self.comparison.times["pyptx"], self.case.example, self.case.run
        if times.is_simulated:
            return f"{run}: ran on the simulated driver, which has no times"
        rates = list[str]()
        if example.flops:
            rates.append(f"{times.teraflops(example.flops(run.shape)):.0f} TFLOP/s")
        if example.traffic:
            rates.append(f"{times.gigabytes(example.traffic(run.shape)):.0f} GB/s")
        return f"{run}: {', '.join(rates) or 'no rate'}, error {self.error:.2g}\n{self.comparison}"


def prepare(example: Example, run: Run) -> Case:
    """Draw inputs of a run and compute what the outputs should be."""
    inputs, expected = compute_on_cpu(example, run) if example.name not in REFERENCES else compute(example, run)
    peers = list_peers(example, inputs, causal=run.shape.get("causal", False))
    return Case(example, run, inputs, expected, {name: capture(work) for name, work in peers.items()})


def compute(example: Example, run: Run) -> tuple[Tensors, Tensors]:
    """Return inputs of a run and what the outputs should be."""
    inputs, keywords = draw_inputs(example, run), list_keywords(example.make(), run)
    dims = {name for tile in example.make().out_specs for name in tile.symbolic_dims}
    parameters = {name: value for name, value in keywords.items() if name not in dims}
    return inputs, torch_references.compute(example.name, inputs, **parameters)


def compute_on_cpu(example: Example, run: Run) -> tuple[Tensors, Tensors]:
    """Return the same for an example without a reference in PyTorch: at a real size this takes minutes."""
    arrays = example.draw_inputs(run)
    expected = example.compute(run, arrays)
    return tuple(map(to_tensor, arrays)), tuple(array if array is None else to_tensor(array) for array in expected)


def bench(case: Case, kernel: Kernel, seconds: float = SECONDS) -> Report:
    """Verify a kernel and time it in turns with a library's function, and with a copy if it only moves bytes.
    AssertionError if a result is wrong, before or after."""
    outputs = make_outputs(case.example, kernel, case.run)
    keywords = list_keywords(kernel, case.run)
    out = outputs[0] if len(outputs) == 1 else tuple(outputs)
    works: dict[str, Work] = {"pyptx": lambda: kernel(*case.inputs, out=out, **keywords)}
    works["pyptx"]()
    error = verify(case, outputs)
    works["pyptx"] = capture(works["pyptx"])
    if case.bytes:
        works["copy"] = capture(make_copy(case.bytes))
    works |= case.peers
    is_simulated, stream = driver.is_active(), torch.cuda.current_stream() if torch.cuda.is_available() else 0
    if is_simulated:
        return Report(case, compare(works, runs=1, warmup=0, stream=stream), error)
    estimate = sum(times.median for times in compare(works, runs=3, stream=stream).times.values())
    runs = round(min(max(seconds * len(works) * 1e3 / estimate, FEWEST), MOST))
    comparison = compare(works, runs=runs, warmup=runs // 4, stream=stream)
    if case.example.outputs is None:
        error = max(error, verify(case, outputs))
    return Report(case, comparison, error)


def capture(work: Work) -> Work:
    """Return a function that launches a graph of the work, which takes the host less time than most kernels run."""
    if not torch.cuda.is_available():
        return work
    graph = torch.cuda.CUDAGraph()
    try:
        work()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            work()
    except RuntimeError as why:
        print(f"not captured: {why}")
        return work
    return graph.replay


def verify(case: Case, outputs: list[Any]) -> float:
    """Return the largest error of an output. AssertionError if one is too large, or a single element is far off."""
    errors = [0.0]
    for number, (actual, expected) in enumerate(zip(outputs, case.expected, strict=True)):
        if expected is None:
            continue
        where = f"{case.run}: output {number}"
        if not actual.dtype.is_floating_point:
            assert torch.equal(actual.view(torch.int32), expected.int()), f"{where} differs"
            continue
        bound = LOOSE_BOUNDS.get(case.example.name, BOUNDS.get(str(actual.dtype), LOOSEST))
        if actual.numel() < FEW and actual.dtype == torch.bfloat16:
            bound = max(bound, HALF)
        wide = expected.double()
        difference, size = (actual.double() - wide).abs_(), float(wide.square().mean().sqrt())
        error = float(difference.square().mean().sqrt()) / size
        outliers = int((~(difference <= OUTLIER * bound * (wide.abs() + size))).sum())
        assert error <= bound, f"{where}: error {error:.3g}, expected at most {bound:.2g}; {outliers} elements are off"
        assert outliers == 0, f"{where}: {outliers} elements are off"
        errors.append(error)
    return max(errors)


def make_copy(count: int) -> Work:
    """Return a function that copies tensors on the device, so that it moves so many bytes."""
    source, target = (torch.ones(max(count // 8, 1), device=find_device()) for _ in range(2))
    return lambda: target.copy_(source)
