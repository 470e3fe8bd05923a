"""A kernel that fills shared and tensor memory from arrays, runs instructions in one thread, and returns tensor memory;
and the manual's layouts of matrices, scale factors and metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyptx import sim
from pyptx.isa.descriptors import Tcgen05Descriptor
from pyptx.isa.swizzle import swizzle
from pyptx.parser import parse
from pyptx.sim.numerics.formats import value_table
from pyptx.tensormap import Swizzle

Array = np.ndarray[Any, Any]
BOX = 2048
"""Where the kernel's dynamic shared memory starts."""

_TEXT = """.version 8.8
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 box[];
.visible .entry k(.param .u64 bytes, .param .u64 words)
{{
.reg .b32 %t, %rank, %base, %at, %n, %r<8>, %v<32>; .reg .b64 %x, %z, %w, %far; .reg .pred %p, %q, %never, %yes;
.shared .align 8 .b64 bar; .shared .align 8 .b64 done; .shared .align 4 .b32 where;
mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %n, %ctaid.x;
ld.param.u64 %x, [bytes]; mad.wide.u32 %x, %n, {size}, %x;
ld.param.u64 %z, [words]; mad.wide.u32 %z, %n, 262144, %z; mad.wide.u32 %z, %t, 2048, %z;
setp.ne.u32 %never, %t, %t; setp.eq.u32 %yes, %t, %t;
shr.u32 %r1, %t, 5;
setp.ne.u32 %p, %r1, 0;
@%p bra allocated;
tcgen05.alloc.cta_group::{ctas}.sync.aligned.shared::cta.b32 [where], 512;
tcgen05.relinquish_alloc_permit.cta_group::{ctas}.sync.aligned;
allocated:
setp.ne.u32 %p, %t, 0;
@!%p mbarrier.init.shared::cta.b64 [bar], 1;
@!%p mbarrier.init.shared::cta.b64 [done], 1;
bar.sync 0;
@!%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {size};
@!%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%x], {size}, [bar];
filled: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
@!%q bra filled;
ld.shared.u32 %base, [where];
shl.b32 %at, %r1, 21;
add.u32 %at, %at, %base;
mov.u32 %n, 0; mov.u64 %w, %z; mov.u32 %r2, %at;
into: {loads}
tcgen05.st.sync.aligned.32x32b.x32.b32 [%r2], {{{registers}}};
tcgen05.wait::st.sync.aligned;
add.u64 %w, %w, 128; add.u32 %r2, %r2, 32; add.u32 %n, %n, 1;
setp.lt.u32 %q, %n, 16;
@%q bra into;
tcgen05.fence::before_thread_sync;
{meet}
tcgen05.fence::after_thread_sync;
setp.ne.u32 %p, %t, 0;
setp.ne.u32 %q, %rank, {issuer};
or.pred %p, %p, %q;
@%p bra wait;
{instructions}
tcgen05.commit.cta_group::{ctas}.mbarrier::arrive::one.shared::cluster{multicast}.b64 [done]{mask};
wait: mbarrier.try_wait.parity.shared::cta.b64 %q, [done], 0;
@!%q bra wait;
tcgen05.fence::after_thread_sync;
{warps}
mov.u32 %n, 0; mov.u64 %w, %z; mov.u32 %r2, %at;
out: tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{registers}}}, [%r2];
tcgen05.wait::ld.sync.aligned;
{stores}
add.u64 %w, %w, 128; add.u32 %r2, %r2, 32; add.u32 %n, %n, 1;
setp.lt.u32 %q, %n, 16;
@%q bra out;
{meet}
shr.u32 %r1, %t, 5;
setp.ne.u32 %p, %r1, 0;
@%p bra end;
tcgen05.dealloc.cta_group::{ctas}.sync.aligned.b32 %base, 512;
end: ret;
}}
"""


def run(
    instructions: str, shared: Array, tensor: Array, *, target: str = "sm_100a", warps: str = "", clusters: int = 1,
    issuer: int = 0, **options: Any,
) -> Array:  # fmt: skip
    """Return tensor memory after thread 0 of CTA `issuer` of each cluster has run instructions. `shared`,
    `[cta, byte]`, and `tensor`, `[cta, 128, 512]`, are the initial contents; all threads run `warps` afterwards."""
    ctas, size = shared.shape[0] // clusters, shared.shape[1]
    names = [f"%v{n}" for n in range(32)]
    quads = [(16 * q, "{" + ", ".join(names[4 * q : 4 * q + 4]) + "}") for q in range(8)]
    meet = "bar.sync 0;" if ctas == 1 else "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    text = _TEXT.format(
        target=target, size=size, ctas=ctas, instructions=instructions, warps=warps, meet=meet, issuer=issuer,
        registers=", ".join(names), loads=" ".join(f"ld.global.v4.b32 {v}, [%w+{offset}];" for offset, v in quads),
        stores=" ".join(f"st.global.v4.b32 [%w+{offset}], {v};" for offset, v in quads),
        multicast="" if ctas == 1 else ".multicast::cluster", mask="" if ctas == 1 else ", 3",
    )  # fmt: skip
    output = np.ascontiguousarray(tensor).copy()
    sim.run(
        parse(text), grid=ctas * clusters, cluster=ctas, block=128, shared=size, args=[shared.copy(), output], **options
    )
    return output


def place(image: Array, start: int, matrix: Array, mode: Swizzle, *, across: bool = False) -> int:
    """Write a matrix with rows of M or N and columns of K into shared memory in the manual's canonical layouts, and
    return its descriptor. `start` is an offset from the kernel's box."""
    size, span = matrix.dtype.itemsize, mode.span or 16
    atom = 4 if mode is Swizzle.B128_ATOM_32B else 8
    repeats = -(-matrix.shape[0] // 8) if not across else -(-matrix.shape[0] * size // span)
    line = 8 if not across else atom
    # Twice the necessary size, so that a wrong stride is detected.
    stride = 2 * line * span
    far = (repeats if not across else -(-matrix.shape[1] // atom)) * stride
    leading = far
    for (row, k), value in np.ndenumerate(matrix):
        outer, inner = divmod((row if across else k) * size, span)
        low = k if across else row
        offset = outer * far + low // line * stride + low % line * span + inner
        offset = swizzle(BOX + start + offset, mode) - BOX
        image[offset : offset + size] = np.frombuffer(value.tobytes(), "u1")
    if across and not mode.span:
        leading, stride = stride, leading
    return Tcgen05Descriptor(BOX + start, leading, stride, mode).encode()


Placement = Callable[[int, int], tuple[int, int, int]]


def layout(name: str, n: int) -> Placement:
    """Return (CTA, lane, column) of an element of D, as the manual's figures of layouts A to G draw them."""
    half, quarter = n // 2, n // 4
    placements: dict[str, Placement] = {
        "A": lambda r, c: (r // 128, r % 128, c),
        "B": lambda r, c: (r // 64, r % 64 + 64 * (c // half), c % half),
        "C": lambda r, c: (r // 64, r % 64 // 16 * 32 + r % 16, c),
        "D": lambda r, c: (0, r, c),
        "E": lambda r, c: (0, r + 64 * (c // half), c % half),
        "F": lambda r, c: (0, r // 16 * 32 + r % 16, c),
        "G": lambda r, c: (0, r + 32 * (c // quarter), c % quarter),
    }
    return placements[name]


def gather_result(tensor: Array, placement: Placement, m: int, n: int, column: int, lane: int = 0) -> Array:
    """Return the words of D."""
    output = np.empty((m, n), "u4")
    for row in range(m):
        for col in range(n):
            cta, first_lane, c = placement(row, col)
            output[row, col] = tensor[cta, first_lane + lane, column + c]
    return output


def pack_in_chunks(codes: Array, bits: int) -> Array:
    """Return bytes with codes of 4 or 6 bits: 16 codes in each 16 bytes, padded with ones."""
    rows, count = codes.shape
    bits_of_codes = np.unpackbits(codes.astype("u1")[..., None], axis=-1, bitorder="little")[..., :bits]
    bytes_of_codes = np.packbits(bits_of_codes.reshape(rows, count // 16, 16 * bits), axis=-1, bitorder="little")
    output = np.full((rows, count // 16, 16), 0xFF, "u1")
    output[..., : 2 * bits] = bytes_of_codes
    return output.reshape(rows, count)


def pairs(codes: Array) -> Array:
    """Return bytes with two 4-bit codes each, the first in the lower half."""
    return (codes[:, 0::2] | codes[:, 1::2] << 4).astype("u1")


def in_words(raw: Array) -> Array:
    """Return rows of elements as rows of 32-bit words."""
    return np.ascontiguousarray(raw).view("u4")


def values(codes: Array, name: str) -> Array:
    """Return the values of codes of a small format."""
    if name in ("s8", "u8"):
        return codes.view("i1" if name == "s8" else "u1").astype("f8")
    return {
        "f16": lambda: codes.view("f2").astype("f8"), "tf32": lambda: codes.view("f4").astype("f8"),
        "bf16": lambda: (codes.astype("u4") << 16).view("f4").astype("f8"),
    }.get(name, lambda: value_table(name)[codes].astype("f8"))()  # fmt: skip


def draw_codes(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> Array:
    """Return codes of numbers whose sums are exact in float32."""
    if name in ("s8", "u8"):
        return random.integers(0, 256, shape).astype("u1")
    if name in ("e4m3", "e5m2"):
        return (random.integers(0x30, 0x44, shape) | random.integers(0, 2, shape) << 7).astype("u1")
    if name in ("e2m1", "e2m3", "e3m2"):
        return random.integers(0, 16 if name == "e2m1" else 64, shape).astype("u1")
    numbers = random.integers(-4, 5, shape).astype("f4")
    if name == "f16":
        return numbers.astype("f2").view("u2")
    return numbers.view("u4") if name == "tf32" else (numbers.view("u4") >> 16).astype("u2")
