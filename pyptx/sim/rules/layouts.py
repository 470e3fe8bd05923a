"""Lifetimes of shared memory, layouts of tiles, bounds and unread copies: PTX0917-PTX0919, PTX0976-PTX0989."""

from __future__ import annotations

from pyptx.sim.rules.definitions import error, warning

# Unused: looked for only when asked for by name
UNREAD_COPY = warning(
    976,
    "copied bytes that were never read",
    "A copy loaded bytes into shared memory that were overwritten, or lost at the end, before any thread read them; "
    "fill outside a tensor and padding do not count.",
    "copy only what is read, or read the rest: check the box, the bytes, the stages and the offsets",
)
UNREAD_ACCUMULATOR = warning(
    977,
    "accumulators that were never read",
    "A product wrote columns of tensor memory, or registers, that no thread read before they were overwritten or "
    "freed.",
    "read every column by `tcgen05.ld` and every register in the epilogue, or make N smaller",
)
EMPTY_COPY = warning(
    978,
    "tensor copy of a box outside its tensor",
    "No element of the box is inside the tensor: a load writes only fill, a store writes nothing (Tensor copy).",
    "remove the copy, or correct its coordinates",
)

# Lifetimes
PEER_NOT_STARTED = error(
    980,
    "access to another CTA before any cluster barrier",
    "A CTA of the cluster may not have started yet (cluster barrier).",
    "execute `barrier.cluster.arrive` and `.wait` first",
)
PEER_EXITED = error(
    981,
    "access to a CTA that may have exited",
    "Shared memory ends with its CTA, so the CTA must not exit before the last remote access to it.",
    "let all CTAs execute `barrier.cluster.arrive` and `.wait` before exit",
)
LANDS_AFTER_EXIT = error(
    982,
    "copy to shared memory still in flight at exit",
    "The memory may already belong to another CTA.",
    "wait for every copy before exit",
)
STORE_AT_EXIT = warning(
    983,
    "exit while a bulk copy may still read its source",
    "The manual requires the wait; published kernels omit it.",
    "execute `cp.async.bulk.wait_group.read 0` before exit",
)
ABSENT_CTA = error(
    984,
    "multicast to an absent CTA",
    "The mask names ranks of the cluster.",
    "clear the mask bits of ranks beyond the cluster",
)

# Layouts
PATTERN_START = warning(
    914,
    "matrix descriptor that starts inside a swizzle pattern",
    "Swizzle patterns depend on address bits and repeat every 1024, 512 or 256 bytes (128B, 64B, 32B). A matrix "
    "starts in the first line of a pattern, or the descriptor's base offset says in which line (Matrix Descriptor "
    "Format).",
    "align the tile to the pattern, start on a multiple of 8 rows, or set the base offset",
)
SWIZZLE = warning(
    985,
    "swizzle of the copy and of the descriptor differ",
    "A product reads a tile by the swizzle of its descriptor; the tensor copy wrote the tile with another swizzle "
    "(Tensor swizzling modes; matrix descriptors).",
    "use the same swizzle in the tensor map and in the matrix descriptor; only data that is already swizzled may be "
    "copied without one",
)
LOST_BOX = warning(
    986,
    "coordinates of a tensor copy that look swapped or scaled",
    "A box without any element inside the tensor loads only fill, or stores nothing; the coordinates of all boxes "
    "would fit in another order or unit (Tensor copy; Tiled mode).",
    "give coordinates in elements, fastest dimension first",
)
OVERLAPPING_OPERAND = warning(
    987,
    "matrix descriptor whose offsets overlap",
    "The leading and the stride byte offset (LBO, SBO) of a descriptor map two elements of an operand to the same "
    "bytes, so the product reads some bytes twice and others never (matrix descriptors; canonical layouts).",
    "make SBO at least 1024, 512, 256 or 128 bytes: 8 lines of the 128-, 64- or 32-byte swizzle, or of none; LBO is "
    "ignored with a swizzle along K",
)
ELEMENT_TYPE = warning(
    988,
    "element types of the tensor map and of the product differ",
    "The tensor map declares one floating-point type and the product reads the bytes as another.",
    "encode the tensor map with the type that the product reads, or let the product read the map's; maps of U8, U16 "
    "and U32 copy bits",
)
ROW_SWIZZLE = warning(
    989,
    "rows read with a swizzle other than that of the write",
    "The eight addresses of a matrix show which swizzle `ldmatrix` expects; the tensor copy or `stmatrix` that wrote "
    "the rows used another (Tensor swizzling modes; ldmatrix).",
    "apply the swizzle of the writer to the addresses, or write without one",
)

# Bounds
SUBSCRIPT = error(
    917,
    "index outside its allocation",
    "The element is outside the allocation; the bytes there belong to another allocation or to none.",
    "compare the index with the shape, or guard the access",
)
