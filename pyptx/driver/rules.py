"""Rules PTX1301 to PTX1307: the order of a program's work on a device, and its memory."""

from __future__ import annotations

from pyptx.diagnostics import Rule, Severity

UNORDERED = Rule(
    "PTX1301",
    "work of two streams races",
    "Work in different streams, or in nodes of a graph without a path between them, may run at the same time or in "
    "either order. The legacy default stream orders only the streams that were created without "
    "CU_STREAM_NON_BLOCKING.",
    "",
    "",
)
LIFETIME = Rule(
    "PTX1302",
    "memory used while another stream allocates or frees it",
    "cuMemAllocAsync and cuMemFreeAsync take effect in the order of their stream: another stream must wait for the "
    "allocation before it uses the memory, and the free must wait for the other stream's use.",
    "",
    "",
)
UNRECORDED = Rule(
    "PTX1303",
    "wait for an event that was never recorded",
    "An event that has not been recorded counts as complete: the wait waits for nothing.",
    "",
    "",
    Severity.WARNING,
)
CHANGED = Rule(
    "PTX1304",
    "the host changed memory before a pending copy read it",
    "A copy from page-locked memory reads it when its turn in the stream comes, not when it is submitted.",
    "",
    "",
)
LEAK = Rule(
    "PTX1305",
    "memory never freed",
    "Memory lives until it is freed or its context ends; a program that allocates in a loop runs out of it.",
    "",
    "",
    Severity.WARNING,
)
NO_ACCESS = Rule(
    "PTX1306",
    "kernel accesses memory without permission",
    "A device reaches the memory of a peer only after cuCtxEnablePeerAccess in the context of the kernel, and that of "
    "a memory pool or a mapping after cuMemPoolSetAccess or cuMemSetAccess.",
    "",
    "",
)

BY_HOST = Rule(
    "PTX1307",
    "the host accesses memory that the device may be using",
    "Kernels, copies and memsets run later than the call that submits them, also with managed and page-locked memory.",
    "",
    "",
)

RULES = (UNORDERED, LIFETIME, UNRECORDED, CHANGED, LEAK, NO_ACCESS, BY_HOST)
