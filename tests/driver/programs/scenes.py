"""What the scenes in the tests of streams share. Their findings name the lines of the scenes, not these."""

from __future__ import annotations

import ctypes
import struct
import sys

from calls import VECTOR_ADD, ask, call, launch, load, start, try_call  # pyright: ignore[reportMissingImports]

start()
add, size = load(VECTOR_ADD, "add"), 4000
a, b, c, d = (ask("cuMemAlloc_v2", size) for _ in range(4))
first, second, blocking = ask("cuStreamCreate", 1), ask("cuStreamCreate", 1), ask("cuStreamCreate", 0)
event, other = ask("cuEventCreate", 0), ask("cuEventCreate", 0)
pinned = ask("cuMemAllocHost_v2", size)
values = (ctypes.c_float * 1000).from_address(pinned)

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
count = load(
    HEADER + """
.file 1 "kernels.cu"
.visible .entry count(.param .u64 data)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data];
    .loc 1 7 0
    red.relaxed.gpu.global.add.u32 [%rd1], 1;
    ret;
}
""", "count",
)  # fmt: skip
bulk = load(
    HEADER + """
.visible .entry bulk(.param .u64 data)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .reg .pred %p<3>;
    .shared .align 16 .b8 buffer[256];
    .shared .align 8 .b64 barrier;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    ld.param.u64 %rd1, [data];
    mbarrier.init.shared.b64 [barrier], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [barrier], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 256, [barrier];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [barrier], 0;
    @!%p2 bra WAIT;
DONE:
    ret;
}
""", "bulk",
)  # fmt: skip


def new() -> int:
    """Allocate memory."""
    return ask("cuMemAlloc_v2", size)


def begin(name: str) -> None:
    """Begin a scene with zeros in the arrays, and with a kernel of its own, as findings are printed once for each."""
    global add
    kernel = "_".join(["add", *name.replace("-", " ").replace(",", "").split()])
    add = load(VECTOR_ADD.replace("entry add", f"entry {kernel}"), kernel)
    try_call("cuCtxSynchronize")
    for memory in (a, b, c, d):
        call("cuMemsetD32_v2", memory, 0, 1000)
    call("cuCtxSynchronize")
    sys.stderr.write(f"## {name}\n")


def sum(source: int, target: int, stream: int) -> int:
    """Add 64 elements of an array to those of `b`."""
    return launch(add, 1, 64, source, b, target, 64, stream=stream)


def fill(target: int, stream: int) -> None:
    """Clear an array."""
    call("cuMemsetD32Async", target, 0, 1000, stream)


def borrow(stream: int) -> None:
    """Use memory for a while."""
    memory = ask("cuMemAllocAsync", size, stream)
    fill(memory, stream)
    call("cuMemFreeAsync", memory, stream)


def join(source: int, target: int) -> None:
    """Make a stream wait for another."""
    call("cuEventRecord", event, source)
    call("cuStreamWaitEvent", target, event, 0)


def wait(stream: int) -> None:
    """Make the host wait for a stream."""
    call("cuStreamSynchronize", stream)


def copy(target: int, stream: int) -> None:
    """Copy 10 rows of 64 bytes to rows 200 bytes apart."""
    source, destination = ((0, 0, 2, 0, address, 0, pitch) for address, pitch in ((b, 100), (target, 200)))
    call("cuMemcpy2DAsync_v2", struct.pack("<QQI4xQQQQ QQI4xQQQQ QQ", *source, *destination, 64, 10), stream)


def capture(stream: int) -> int:
    """Return an executable graph with one kernel."""
    call("cuStreamBeginCapture_v2", stream, 0)
    sum(c, c, stream)
    graph = ctypes.c_uint64()
    call("cuStreamEndCapture", stream, ctypes.byref(graph))
    return ask("cuGraphInstantiateWithFlags", graph.value, 0)


def allocate_in_graph(stream: int) -> int:
    """Launch a graph that allocates memory, and return its address."""
    call("cuStreamBeginCapture_v2", stream, 0)
    memory, graph = ask("cuMemAllocAsync", size, stream), ctypes.c_uint64()
    call("cuStreamEndCapture", stream, ctypes.byref(graph))
    run_graph(ask("cuGraphInstantiateWithFlags", graph.value, 0), stream)
    return memory


def run_graph(graph: int, stream: int) -> None:
    """Launch an executable graph."""
    call("cuGraphLaunch", graph, stream)
