"""Calls every entry with arguments that are mostly wrong: null pointers, handles of another kind or destroyed ones,
freed or foreign memory, addresses without memory, huge sizes. Prints the codes of each entry, and each call on
standard error.

wrong_arguments.py SEED CALLS_PER_ENTRY [ENTRY ...]
"""

from __future__ import annotations

import ctypes
import mmap
import random
import struct
import sys
from inspect import signature

from calls import VECTOR_ADD, ask, call, try_call  # pyright: ignore[reportMissingImports]

from pyptx.driver.calls import ENTRIES

SIZE = 1 << 16
BYTES = 1 << 20
"""The size of allocations: so large that they lie apart from the C library's, as lists of values may overwrite them."""
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(bool)
"""A function that the driver may call with any arguments."""
FUNCTIONS = {
    "cuLaunchHostFunc": 1, "cuLaunchHostFunc_v2": 1, "cuStreamAddCallback": 1, "cuUserObjectCreate": 2,
    "cuOccupancyMaxPotentialBlockSize": 3, "cuOccupancyMaxPotentialBlockSizeWithFlags": 3,
}  # fmt: skip
"""Arguments that are functions of the program: any other number would be called."""
SIZES = (0, 1, 4, 4096, 1 << 31, 1 << 40, 1 << 63, (1 << 64) - 1)
SMALL = (0, 1, 2, 3, 7, -1)
INTEGERS = (*SMALL, 4, 5, 8, 64, 1 << 30, (1 << 31) - 1, -(1 << 31))
HANDLES = ("handle", "stream", "graph", "node", "event", "context", "child", "start", "end", "address", "target")
"""Parameters that are handles or addresses of the device."""
LIVE = slice(0, 15)
NOWHERE = (8, 0xDEAD_BEEF_0000, (1 << 64) - 8)
PTX = VECTOR_ADD.encode() + b"\0"


def map_memory() -> tuple[mmap.mmap, int]:
    """Return memory of the program, most of which nothing follows, and its address."""
    region = mmap.mmap(-1, SIZE + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(region))
    assert ctypes.CDLL(None).munmap(ctypes.c_void_p(address + SIZE), ctypes.c_size_t(mmap.PAGESIZE)) == 0
    return region, address


def make_pointers() -> list[int]:
    """Return memory, live and freed, and a handle of each kind, live and destroyed."""
    ctypes.memmove(PLACE, PTX, len(PTX))
    module, graph = ask("cuModuleLoadData", PLACE), ask("cuGraphCreate", 0)
    memory, context = ask("cuMemAlloc_v2", BYTES), ask("cuDevicePrimaryCtxRetain", 0)
    kernel, event = ask("cuModuleGetFunction", module, b"add"), ask("cuEventCreate", 0)
    arguments = (ctypes.c_uint64 * 4)(PLACE, PLACE, PLACE, PLACE)
    launch = struct.pack("<Q7I4xQQ", kernel, 1, 1, 1, 32, 1, 1, 0, ctypes.addressof(arguments), 0)
    live = [
        memory, ask("cuMemAllocHost_v2", BYTES), context, module, kernel, ask("cuStreamCreate", 1), event, graph,
        ask("cuGraphAddKernelNode", graph, None, 0, launch), ask("cuGraphAddEventRecordNode", graph, None, 0, event),
        ask("cuGraphAddMemsetNode", graph, None, 0, struct.pack("<QQIIQQ", memory, 0, 0, 1, 4, 1), context),
        ask("cuGraphAddMemFreeNode", graph, None, 0, memory), ask("cuGraphInstantiateWithFlags", graph, 0),
        ask("cuDeviceGetDefaultMemPool", 0), ask("cuUserObjectCreate", None, CALLBACK, 1, 1),
    ]  # fmt: skip
    dead = [ask("cuMemAlloc_v2", BYTES), ask("cuStreamCreate", 0), ask("cuEventCreate", 0), ask("cuGraphCreate", 0)]
    for name, value in zip(
        ("cuMemFree_v2", "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuGraphDestroy"), dead, strict=True
    ):
        call(name, value)
    return [*live, *dead, *NOWHERE, *len(live) * [PLACE], 0, 1, 2, PLACE + SIZE - 4]


def fill_place(pointers: list[int]) -> None:
    """Choose what the program's memory holds."""
    texts = [b"\0", b"\1", b"\xff", b"add\0", b"bias\0", PTX, b"\x7fELF\2\1\1\x33" + b"\7" * 56]
    texts += [struct.pack("<8Q", *(draw.choice([*pointers, *SIZES]) for _ in range(8))) for _ in range(4)]
    data = draw.choice(texts)
    if len(data) < 1000:
        data *= SIZE // len(data)
    ctypes.memmove(PLACE, data, len(data))


def guess_values(kind: str, parameter: str) -> str:
    """Return which values to choose from: often, those that are likely to be right."""
    if kind in ("pointer", "result") and draw.random() < 0.7:
        return "handle" if parameter in HANDLES else "place"
    return kind


def call_entry(name: str, values: dict[str, list[int]], known: dict[int, list[int]]) -> int:
    """Call an entry and return its code. `known` are the arguments of a call with each code: most calls differ from one
    of them in one argument, and so come closer to right ones."""
    kinds = ENTRIES[name].kinds
    fill_place(values["pointer"])
    parameters = list(signature(ENTRIES[name].answer).parameters)[2:]
    arguments = [
        draw.choice(values[guess_values(kind, parameter)]) for kind, parameter in zip(kinds, parameters, strict=True)
    ]
    if kinds and known and draw.random() < 0.8:
        changed = draw.randrange(len(kinds))
        new, arguments = arguments[changed], [*known[draw.choice(list(known))]]
        arguments[changed] = new
    if name in FUNCTIONS:
        arguments[FUNCTIONS[name]] = draw.choice((0, ctypes.cast(CALLBACK, ctypes.c_void_p).value or 0))
    sys.stderr.write(f"{name} {' '.join(map(hex, arguments))}\n")
    code = try_call(name, *arguments)
    if code not in known or draw.random() < 0.5:
        known[code] = arguments
    return code


def call_often(name: str, count: int) -> list[int]:
    """Call an entry and return all its codes."""
    try_call("cuDevicePrimaryCtxReset_v2", 0)
    call("cuCtxSetCurrent", ask("cuDevicePrimaryCtxRetain", 0))
    pointers = make_pointers()
    integers = SMALL if "Launch" in name else INTEGERS
    values: dict[str, list[int]] = {
        "pointer": pointers, "result": pointers, "size": list(SIZES), "int": list(integers), "uint": list(integers),
        "ushort": [0, 7], "byte": [0, 7], "handle": pointers[LIVE], "place": [PLACE],
    }  # fmt: skip
    codes, known = set[int](), dict[int, list[int]]()
    for _ in range(count):
        call("cuCtxSetCurrent", ask("cuDevicePrimaryCtxRetain", 0))
        codes.add(call_entry(name, values, known))
    return sorted(codes)


seed, calls, *names = sys.argv[1:]
draw = random.Random(int(seed))
REGION, PLACE = map_memory()
call("cuInit", 0)
for entry in names or ENTRIES:
    sys.stdout.write(f"{entry} {' '.join(map(str, call_often(entry, int(calls))))}\n")
    sys.stdout.flush()
