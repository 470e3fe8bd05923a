"""tcgen05: allocation, loads and stores of every shape, and products against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.isa.descriptors import InstructionDescriptor, Tcgen05Descriptor
from pyptx.isa.fragments.tensor_memory import tmem_registers
from pyptx.parser import parse
from pyptx.sim.numerics.formats import decode
from pyptx.tensormap import Swizzle
from pyptx.types import from_name
from tests.messages import raises
from tests.sim.kernels import kernel
from tests.sim.semantics.test_wgmma import image

Array = np.ndarray[Any, Any]

START = """.version 8.6
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 box[];
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)
{
.reg .b32 %t, %base, %at, %r<8>, %v<32>; .reg .b64 %x, %y, %z; .reg .pred %p, %q;
.shared .align 8 .b64 bar; .shared .align 8 .b64 done; .shared .align 4 .b32 where;
mov.u32 %t, %tid.x;
ld.param.u64 %x, [a]; ld.param.u64 %y, [b]; ld.param.u64 %z, [d];
shr.u32 %r1, %t, 5;
setp.ne.u32 %p, %r1, 0;
@%p bra allocated;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
allocated:
setp.ne.u32 %p, %t, 0;
@!%p mbarrier.init.shared::cta.b64 [bar], 1;
@!%p mbarrier.init.shared::cta.b64 [done], 1;
bar.sync 0;
ld.shared.u32 %base, [where];
shl.b32 %at, %r1, 21;
add.u32 %at, %at, %base;
"""
END = """
bar.sync 0;
shr.u32 %r1, %t, 5;
setp.ne.u32 %p, %r1, 0;
@!%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 64;
ret;
}
"""


def run(body: str, *arrays: Array, shared: int = 0, check: str = "all") -> None:
    sim.run(parse(START + body + END), block=128, shared=shared, args=list(arrays), check=check)


@pytest.mark.parametrize("convert", ["", "cvta.shared.u64 %x, %x;"], ids=["shared", "generic"])
@pytest.mark.parametrize("space", ["", ".shared::cta"])
def test_alloc_takes_the_low_half_of_an_address(convert: str, space: str) -> None:
    alloc = f"mov.u64 %x, where; {convert} tcgen05.alloc.cta_group::1.sync.aligned{space}.b32 [%x], 64;"
    text = START.replace("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 64;", alloc)
    output = np.zeros(128, "u4")
    body = "mad.wide.u32 %z, %t, 4, %z; st.global.u32 [%z], %base;"
    sim.run(parse(text + body + END), block=128, args=[output, output, output])
    assert len(set(output.tolist())) == 1


@pytest.mark.parametrize(
    ("shape", "num", "count"), [("32x32b", 8, 8), ("16x64b", 4, 4), ("16x128b", 2, 4), ("16x256b", 1, 4)]
)
def test_stored_registers_lie_where_the_shape_says(shape: str, num: int, count: int) -> None:
    output = np.zeros((128, 32), "u4")
    registers = ", ".join(f"%v{n}" for n in range(count))
    body = f"""
{" ".join(f"mad.lo.u32 %v{n}, %t, 100, {n + 1};" for n in range(count))}
tcgen05.st.sync.aligned.{shape}.x{num}.b32 [%at], {{{registers}}};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{", ".join(f"%v{n}" for n in range(32))}}}, [%at];
tcgen05.wait::ld.sync.aligned;
mad.wide.u32 %z, %t, 128, %z;
{" ".join(f"st.global.u32 [%z+{4 * n}], %v{n};" for n in range(32))}
"""
    run(body, output, output, output, check="races")
    fragment = tmem_registers(shape, num)
    expected = np.zeros((128, 32), "u4")
    for thread in range(128):
        for index in range(count):
            row, column = fragment.position(thread % 32, index)
            expected[thread // 32 * 32 + row, column] = thread * 100 + index + 1
    np.testing.assert_array_equal(output, expected)


def bits_of(numbers: Array, name: str) -> Array:
    """Return small numbers as the bits of a type."""
    if name == "f16":
        return numbers.astype("f2").view("u2")
    return numbers.view("u4") if name == "tf32" else (numbers.view("u4") >> 16).astype("u2")


@pytest.mark.parametrize(("kind", "name", "k", "mode"), [
    ("f16", "bf16", 16, Swizzle.B128), ("f16", "f16", 16, Swizzle.NONE), ("tf32", "tf32", 8, Swizzle.B64),
    ("f8f6f4", "e4m3", 32, Swizzle.B32),
])  # fmt: skip
def test_products_accumulate_in_tensor_memory(kind: str, name: str, k: int, mode: Swizzle) -> None:
    random = np.random.default_rng(1)
    if name == "e4m3":
        a, b = (random.integers(0x30, 0x44, (rows, k)).astype("u1") for rows in (128, 32))
    else:
        a, b = (bits_of(random.integers(-4, 5, (rows, k)).astype("f4"), name) for rows in (128, 32))
    images = [image(x, mode, start, False) for x, start in ((a, 2048), (b, 2048 + 32768))]
    descriptors = [
        Tcgen05Descriptor(d.address, d.leading_byte_offset, d.stride_byte_offset, mode).encode() for _, d in images
    ]
    element = from_name(name)
    instruction = InstructionDescriptor(kind, 128, 32, element, element, from_name("f32")).encode()
    output = np.zeros((128, 32), "f4")
    product = f"tcgen05.mma.cta_group::1.kind::{kind} [%base], {descriptors[0]}, {descriptors[1]}, %r2,"
    body = f"""
@%p bra wait;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 65536;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%x], 32768, [bar];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box+32768], [%y], 32768, [bar];
first: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
@!%q bra first;
mov.u32 %r2, {instruction};
setp.ne.u32 %q, %t, 0;
{product} %q;
{product} !%q;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
wait: mbarrier.try_wait.parity.shared::cta.b64 %q, [done], 0;
@!%q bra wait;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{", ".join(f"%v{n}" for n in range(32))}}}, [%at];
tcgen05.wait::ld.sync.aligned;
mad.wide.u32 %z, %t, 128, %z;
{" ".join(f"st.global.u32 [%z+{4 * n}], %v{n};" for n in range(32))}
"""
    run(body, *(np.frombuffer(bytes(data), "u1").copy() for data, _ in images), output, shared=65536)
    np.testing.assert_array_equal(output, 2 * decode(a, name).astype("f8") @ decode(b, name).astype("f8").T)


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (
            "add.u32 %at, %at, 0x100000; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%at];",
            "lane 32; warp 0 of its warpgroup accesses lanes 0",
        ),
        ("add.u32 %at, %at, 64; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%at];", "columns 64 … 64 are"),
        (
            "setp.gt.u32 %p, %t, 31; @%p bra on; tcgen05.dealloc.cta_group::1.sync.aligned.b32 96, 32; on:",
            "columns 96 … 127 are not all allocated",
        ),
    ],
)  # fmt: skip
def test_misuse_is_an_error(body: str, messages: str) -> None:
    empty = np.zeros(4, "u4")
    with raises(PtxError, match=messages):
        run(body, empty, empty, empty)


@pytest.mark.parametrize("check", ["none", "all"])
def test_each_lane_copies_from_its_own_descriptor(check: str) -> None:
    """Lanes 0 to 2 of a warp each copy a matrix of their own to columns of their own."""
    source, output = np.random.default_rng(1).integers(0, 1 << 32, (3, 128, 4)).astype("u4"), np.zeros((128, 12), "u4")
    descriptor = Tcgen05Descriptor(2048, 128, 128, Swizzle.NONE).encode()
    body = f"""
@%p bra copied;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 6144;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%x], 6144, [bar];
copied: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
@!%q bra copied;
setp.gt.u32 %q, %t, 2;
mov.u32 %r1, box; sub.u32 %r1, %r1, 2048; mad.lo.u32 %r1, %t, 2048, %r1; shr.u32 %r1, %r1, 4; cvt.u64.u32 %y, %r1;
add.u64 %y, %y, {descriptor};
mad.lo.u32 %r2, %t, 4, %base;
@!%q tcgen05.cp.cta_group::1.128x128b [%r2], %y;
@!%p tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
@!%q tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [more];
bar.sync 0;
wait: mbarrier.try_wait.parity.shared::cta.b64 %q, [more], 0;
@!%q bra wait;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{", ".join(f"%v{n}" for n in range(8))}}}, [%at];
add.u32 %at, %at, 8;
tcgen05.ld.sync.aligned.32x32b.x4.b32 {{{", ".join(f"%v{n}" for n in range(8, 12))}}}, [%at];
tcgen05.wait::ld.sync.aligned;
mad.wide.u32 %z, %t, 48, %z;
{" ".join(f"st.global.u32 [%z+{4 * n}], %v{n};" for n in range(12))}
"""
    start = START.replace(".shared .align 8 .b64 done;", ".shared .align 8 .b64 done; .shared .align 8 .b64 more;")
    start = start.replace("bar.sync 0;\n", "@!%p mbarrier.init.shared::cta.b64 [more], 3;\nbar.sync 0;\n")
    args = [source.view("u1").reshape(-1), np.zeros(1, "u4"), output]
    sim.run(parse(start + body + END), block=128, shared=6144, args=args, check=check)
    np.testing.assert_array_equal(output.reshape(128, 3, 4), source.transpose(1, 0, 2))


@pytest.mark.parametrize("check", ["none", "all"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_commit_signals_the_ctas_of_each_lanes_mask(check: str, first: int) -> None:
    """Lanes commit with the masks from `first` to 3; each CTA's mbarrier expects one arrival per mask that names it."""
    body = f"""mov.u32 %r1, bar;
setp.ge.u32 %p0, %t, {4 - first};
setp.eq.u32 %p1, %t, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r1], 2;
@%p1 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive; barrier.cluster.wait;
mov.u32 %r2, %cluster_ctarank;
setp.ne.or.u32 %p0, %r2, 0, %p0;
add.u32 %r3, %t, {first};
cvt.u16.u32 %h0, %r3;
@!%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %h0;
wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
@!%p1 bra wait;
st.global.u32 [%o], 1;
barrier.cluster.arrive; barrier.cluster.wait;"""
    output = np.zeros(32, "u4")
    text = kernel(body, module=".shared .align 8 .b64 bar;").replace("sm_90a", "sm_100a")
    sim.run(parse(text), grid=2, block=32, cluster=2, args=(output,), check=check, max_steps=10_000)
    assert output.all()
