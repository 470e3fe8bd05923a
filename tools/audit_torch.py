"""What tests of kernels with PyTorch do not do, because it starts compilers or processes: Inductor compiles a model of
kernels, a process loads a program that another one has exported, and two processes share a sharded tensor. Then it
prints what a call costs besides the launch.

python -m tools.audit_torch
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pyptx import TensorSpec, Tile, kernel
from pyptx.torch_support import operator
from pyptx.types import f32
from tests.runtime.test_torch_model import train
from tests.runtime.torch_model import Block

# PyTorch's stubs leave most types unknown.
torch: Any = import_module("torch")
Tensor = Any
ROOT = Path(__file__).parent.parent
EXPORT = """\
import sys, torch
from tests.runtime.torch_kernels import product

class Model(torch.nn.Module):
    def forward(self, x):
        return product(x, x, factor=3)

torch.export.save(torch.export.export(Model(), (torch.ones(32),)), sys.argv[1])
"""
LOAD = """\
import sys, torch
from pyptx.torch_support import operator
from tests.runtime.torch_kernels import product
operator(product)
x = torch.linspace(-3, 3, 32)
assert torch.equal(torch.export.load(sys.argv[1]).module()(x), x * x * 3)
"""
SHARD = """\
import sys, torch
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
from pyptx.torch_support import declare_sharding
from tests.runtime.torch_kernels import product
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=2)
mesh = init_device_mesh("cpu", (2,))
declare_sharding(product, "n")
x = torch.arange(64.0)
y = product(*(distribute_tensor(x, mesh, [Shard(0)]) for _ in range(2)))
assert y.placements == (Shard(0),) and y.to_local().numel() == 32
assert torch.equal(y.full_tensor(), x * x)
torch.distributed.destroy_process_group()
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a Python program that imports the tests."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip


def check_inductor(folder: Path) -> str:
    """Train a model of kernels that Inductor compiles; return what differs from the model that nothing compiles."""
    model, reference = Block(uses_kernels=True), Block(uses_kernels=True)
    compiled = torch.compile(model, fullgraph=True, backend="inductor", dynamic=False)
    losses, expected = train(model, compiled, 2), train(reference, reference, 2)
    close = torch.allclose(torch.tensor(losses), torch.tensor(expected), rtol=1e-6, atol=0)
    return "" if close else f"losses {losses}, expected {expected}"


def check_export(folder: Path) -> str:
    """Export in one process and load in another."""
    path = str(folder / "model.pt2")
    for program in (EXPORT, LOAD):
        process = start(program, path)
        output = process.communicate()[0]
        if process.returncode:
            return output[-2000:]
    process = start(LOAD.replace("operator(product)\n", ""), path)
    return "" if "kernels__product" in process.communicate()[0] else "a program runs without its operators"


def check_shards(folder: Path) -> str:
    """Run a kernel on both shards of a tensor."""
    processes = [start(SHARD, str(folder / "store"), str(rank)) for rank in range(2)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    return "\n".join(output[-2000:] for process, output in zip(processes, outputs, strict=True) if process.returncode)


@kernel(in_specs=[Tile("n", f32)] * 2, out_specs=[Tile("n", f32)], grid=(1,))
def measured(x: TensorSpec, y: TensorSpec, z: TensorSpec) -> None:
    """Whatever it does, `list_costs` replaces what runs it."""


def allocate(x: Tensor, y: Tensor) -> Tensor:
    """Return an output and compute nothing."""
    return torch.empty_like(x)


def run(inputs: Sequence[Tensor], out: None = None, **options: object) -> Tensor:
    """Stand for `Kernel.run`."""
    return allocate(*inputs)


def measure(call: Callable[[], object]) -> float:
    """Return the processor time of a call in microseconds, the least of several rounds."""
    times: list[float] = []
    for _ in range(7):
        begin = time.process_time()
        for _ in range(2000):
            call()
        times.append((time.process_time() - begin) / 2000 * 1e6)
    return min(times)


def list_costs() -> dict[str, float]:
    """Return what calls cost up to the launch, which an allocation of the output replaces in all of them."""
    library: Any = torch.library.Library("pyptx_audit", "FRAGMENT")
    library.define("plain(Tensor x, Tensor y) -> Tensor")
    library.impl("plain", allocate, "CompositeExplicitAutograd")
    custom: Any = torch.library.custom_op(
        "pyptx_audit::custom", allocate, mutates_args=(), schema="(Tensor x, Tensor y) -> Tensor"
    )
    for name in ("plain", "custom"):
        torch.library.register_fake(f"pyptx_audit::{name}", allocate, lib=library)
    own = operator(measured)
    measured.run = run
    x, y = torch.ones(32), torch.ones(32)
    calls: dict[str, Callable[[Any, Any], Any]] = {
        "torch.add": torch.add, "an operator of torch.library": torch.ops.pyptx_audit.plain.default,
        "torch.library.custom_op": custom, "the operator of a kernel": own.default,
        "a kernel, with no operator": measured,
    }  # fmt: skip
    compiled = {
        f"{name}, compiled": torch.compile(calls[name], fullgraph=True, backend="aot_eager")
        for name in ("torch.add", "torch.library.custom_op", "a kernel, with no operator")
    }
    costs: dict[str, float] = {}
    for name, call in {**calls, **compiled}.items():
        call(x, y)
        costs[name.replace(", with no operator, compiled", ", compiled")] = measure(lambda call=call: call(x, y))
    return costs


def main() -> int:
    """Run the checks, print a line for each, and the costs."""
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for check in (check_inductor, check_export, check_shards):
            problem = check(Path(name))
            problems += [problem] * bool(problem)
            print(f"{check.__doc__.partition(';')[0].rstrip('.') if check.__doc__ else ''}: {problem or 'passed'}")
    print(f"\nPyTorch {torch.__version__}, microseconds of a call in which an allocation replaces the launch:")
    for name, cost in list_costs().items():
        print(f"{name:40} {cost:6.1f}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
