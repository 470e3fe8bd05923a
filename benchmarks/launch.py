"""Time what a launch costs the host: `python benchmarks/launch.py`.

The driver is a stub that does nothing, and CPU tensors stand for a device's: the work of the driver, of a GPU and of
its allocator is not measured. Peers are an addition of PyTorch, a custom operator of PyTorch that does nothing,
`cuda.core.launch`, and Triton: a call of its kernel, and a launch of the compiled one. Needs a C compiler, and the
`bench` extra.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.ratios import Pairs, Round, Work, interleave, show
from pyptx import TensorSpec, Tile, kernel, ptx
from pyptx.driver.build import find_compiler
from pyptx.runtime import device_views, fast_calls
from pyptx.types import f32

STUB = Path(__file__).with_name("peers") / "stub_driver.c"
FOLDER = tempfile.TemporaryDirectory(prefix="pyptx-")
"""Of the stub, with which Triton links its launcher."""


@cache
def load_stub() -> ctypes.CDLL:
    """Make the stub the driver of this process, and CPU tensors a device's; return its counters."""
    library = Path(FOLDER.name) / "libcuda.so.1"
    options = ["-shared", "-fPIC", "-O2", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*find_compiler(), *options, "-o", str(library), str(STUB)], check=True)
    stub = ctypes.CDLL(str(library), os.RTLD_NOW | os.RTLD_GLOBAL)
    os.environ |= {"PYPTX_DRIVER_LIBRARY": "the stub", "TRITON_LIBCUDA_PATH": FOLDER.name}
    fast_calls.HOOKS = None, None
    device_views.register = id
    return stub


@kernel(in_specs=[Tile("n", f32), Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def add(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
    """Do nothing: the stub does not run it."""
    ptx.ret()


def repeat(work: Work, count: int) -> Work:
    """Return work that repeats another, which is too short to measure."""

    def run() -> None:
        for _ in range(count):
            work()

    return run


Make = Callable[[], Work]


def make_core() -> Work:
    """Return the launch of three tensors and an integer."""
    load_stub()
    torch, launch = import_module("torch"), import_module("pyptx.runtime._launch")
    slots = [("p", 0, 8, 0), ("p", 8, 8, 1), ("p", 16, 8, 2), ("u", 24, 4, 3)]
    launcher = launch.Launcher(
        4096, 4096, (1, 1, 1), (32, 1, 1), 0, [], bytes(28), [0, 8, 16, 24], slots, 4, None, fail
    )  # fmt: skip
    a, b, c = (torch.ones(1024) for _ in range(3))
    return lambda: launcher(a, b, c, 1024)


def fail(code: int) -> None:
    raise RuntimeError(f"the stub returned {code}")


def make_call() -> Work:
    """Return a call of a kernel on tensors, with checks and an output."""
    load_stub()
    torch = import_module("torch")
    a, b = torch.ones(1024), torch.ones(1024)
    add(a, b)
    assert add._repeats.calls, "the C extension is not built"  # pyright: ignore[reportPrivateUsage]
    return lambda: add(a, b)


def make_torch_add() -> Work:
    """Return an addition of PyTorch, of few elements."""
    torch = import_module("torch")
    a, b = torch.ones(32), torch.ones(32)
    return lambda: torch.add(a, b)


@cache
def find_operator() -> Callable[[Any, Any], Any]:
    """Return a custom operator of PyTorch that only allocates its output."""
    torch: Any = import_module("torch")

    def allocate(a: object, b: object) -> object:
        return torch.empty_like(a)

    allocate.__annotations__ = {"a": torch.Tensor, "b": torch.Tensor, "return": torch.Tensor}
    operator: Any = torch.library.custom_op("pyptx_benchmark::add", allocate, mutates_args=())
    operator.register_fake(allocate)
    return operator


def make_custom_op() -> Work:
    """Return a call of the operator."""
    torch, operator = import_module("torch"), find_operator()
    a, b = torch.ones(32), torch.ones(32)
    return lambda: operator(a, b)


def make_compiled(call: Callable[[Any, Any], Any]) -> Work:
    """Return a function with 20 calls in a row that PyTorch compiles with Inductor."""
    load_stub()
    torch: Any = import_module("torch")
    a, b = torch.ones(1024), torch.ones(1024)

    @torch.compile(fullgraph=True)
    def function(a: object, b: object) -> object:
        for _ in range(20):
            a = call(a, b)
        return a

    function(a, b)
    return lambda: function(a, b)


def make_cuda_core() -> Work:
    """Return a launch of cuda.core with three addresses and an integer."""
    load_stub()
    core: Any = import_module("cuda.core")
    device = core.Device(0)
    device.set_current()
    module = core.ObjectCode.from_ptx(add.ptx(n=1024).encode())
    function, config = module.get_kernel("add"), core.LaunchConfig(grid=1, block=32)
    return lambda: core.launch(device.default_stream, config, function, 4096, 4096, 4096, 1024)


def make_triton(kind: str) -> Work:
    """Return a call of a kernel of Triton on three tensors and an integer, or a launch of what it compiled."""
    load_stub()
    # Another benchmark makes Triton interpret its kernels.
    os.environ.pop("TRITON_INTERPRET", None)
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    torch, peer = import_module("torch"), import_module("benchmarks.peers.triton_add")
    return getattr(peer, f"make_{kind}")(*(torch.ones(1024) for _ in range(3)))


PEERS: dict[str, Make] = {
    "torch.add": make_torch_add, "a custom operator of PyTorch": make_custom_op, "cuda.core.launch": make_cuda_core,
    "a launch of Triton": partial(make_triton, "launch"), "a call of Triton": partial(make_triton, "call"),
}  # fmt: skip


def list_pairs() -> Pairs:
    """Compare our launches with those of peers."""
    ours = {"launch of 3 tensors and an int": make_core, "call on 2 tensors": make_call}
    pairs: Pairs = {
        f"{name} / {peer}": partial(compare, make, make_peer)
        for name, make in ours.items()
        for peer, make_peer in PEERS.items()
    }
    compiled = partial(make_compiled, add), lambda: make_compiled(find_operator())
    return pairs | {"20 calls in torch.compile / 20 of a custom operator": partial(compare, *compiled, 50)}


def compare(make: Make, make_peer: Make, count: int = 1000) -> Round:
    """Return a round that repeats both."""
    return interleave(repeat(make(), count), repeat(make_peer(), count))


if __name__ == "__main__":
    show(list_pairs(), sys.argv[1:])
