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


def begin(name: str) -> None:
    """Begin a scene with zeros in the arrays."""
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


def run_graph(graph: int, stream: int) -> None:
    """Launch an executable graph."""
    call("cuGraphLaunch", graph, stream)
