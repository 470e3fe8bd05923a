"""Lifetimes of shared memory, layouts of tiles, bounds and unread copies: PTX0917-PTX0919, PTX0976-PTX0989."""

from __future__ import annotations

from pyptx.sim.rules.definitions import error, warning

# Unused: looked for only when asked for by name
UNREAD_COPY = warning(
    976,
    "copied bytes that nobody read",
    "A copy brought bytes into shared memory that were overwritten, or lost at the end, before anybody read them; fill "
    "outside a tensor and padding do not count.",
    "copy only what is read, or read the part that is left: check the box, the bytes, the stages and the offsets",
)
UNREAD_ACCUMULATOR = warning(
    977,
    "accumulators that nobody read",
    "A product wrote columns of tensor memory, or registers, that nobody reads before they are overwritten or gone.",
    "read every column by `tcgen05.ld`, every register in the epilogue, or make N smaller",
)
EMPTY_COPY = warning(
    978,
    "tensor copy of a box outside its tensor",
    "No element of the box lies inside the tensor: a load brings only fill, a store writes nothing (Tensor copy).",
    "leave the copy out, or correct its coordinates",
)

# Lifetimes
PEER_NOT_STARTED = error(
    980,
    "access to another CTA before any cluster barrier",
    "A CTA of the cluster may not have started yet (cluster barrier).",
    "`barrier.cluster.arrive` and `.wait` first",
)
PEER_EXITED = error(
    981,
    "access to a CTA that may have exited",
    "Shared memory ends with its CTA; it must stay until its last remote user is done.",
    "`barrier.cluster.arrive` and `.wait` by all, before exit",
)
LANDS_AFTER_EXIT = error(
    982,
    "copy still landing in shared memory at exit",
    "The memory may already belong to another CTA.",
    "wait for every copy before exit",
)
STORE_AT_EXIT = warning(
    983,
    "exit while a bulk copy may still read its source",
    "The manual asks for the wait; published kernels leave it out.",
    "`cp.async.bulk.wait_group.read 0` before exit",
)
ABSENT_CTA = error(
    984, "multicast to an absent CTA", "The mask names ranks of the cluster.", "mask off ranks beyond the cluster"
)

# Layouts
PATTERN_START = warning(
    914,
    "matrix descriptor that starts inside a swizzle pattern",
    "The pattern of a swizzle goes by address bits: it repeats every 1024, 512 or 256 bytes (128B, 64B, 32B). A matrix "
    "starts in its first line, or the descriptor's base offset says in which (Matrix Descriptor Format).",
    "align the tile to the pattern, start on a multiple of 8 rows, or set the base offset",
)
SWIZZLE = warning(
    985,
    "swizzle of the copy and of the descriptor differ",
    "A product takes the bytes of a tile from where its descriptor says that the swizzle put them; a tensor copy with "
    "another mode put them elsewhere (Tensor swizzling modes; matrix descriptors).",
    "give the tensor map and the matrix descriptor the same swizzle; only data that was swizzled before may be copied "
    "without one",
)
LOST_BOX = warning(
    986,
    "coordinates of a tensor copy that look exchanged or scaled",
    "A box without any element inside the tensor loads only fill, or stores nothing; the coordinates of all boxes "
    "would fit in another order or unit (Tensor copy; Tiled mode).",
    "give coordinates in elements, that of the fastest dimension first",
)
OVERLAPPING_OPERAND = warning(
    987,
    "matrix descriptor whose offsets overlap",
    "The leading and the stride byte offset (LBO, SBO) of a descriptor put two elements of an operand on the same "
    "bytes, so that the product reads some of them twice and others never (matrix descriptors; canonical layouts).",
    "SBO is at least 1024, 512, 256 or 128 bytes: 8 lines of the 128-, 64-, 32-byte swizzle or of none; LBO is ignored "
    "with a swizzle along K",
)
ELEMENT_TYPE = warning(
    988,
    "element type of the tensor map and of the product differ",
    "A tensor map of floating-point numbers says what its bytes are, and the product takes them for another type.",
    "encode the tensor map with the type that the product reads, or let the product read the map's; maps of U8, U16 "
    "and U32 copy bits",
)
ROW_SWIZZLE = warning(
    989,
    "rows read by another swizzle than they were written",
    "The eight addresses of a matrix show which swizzle `ldmatrix` expects; the tensor copy or `stmatrix` that wrote "
    "the rows used another (Tensor swizzling modes; ldmatrix).",
    "apply the swizzle of the writer to the addresses, or write without one",
)

# Bounds
SUBSCRIPT = error(
    917,
    "index outside its allocation",
    "The element is not one of the allocation; what lies there belongs to another one, or to nobody.",
    "compare the index with the shape, or guard the access",
)
