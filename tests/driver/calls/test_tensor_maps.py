"""Tensor maps that a program encodes: what a kernel loads through them, and the maps that are refused."""

from __future__ import annotations

from tests.driver.conftest import Run

LOAD = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<6>;
    .shared .align 128 .b8 tile[64];
    .shared .align 8 .b64 full;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    ld.param.u64 %rd2, [out];
    ld.param.u32 %r1, [x];
    ld.param.u32 %r2, [y];
    mov.u32 %r3, tile;
    mov.u32 %r4, full;
    mov.u32 %r5, %tid.x;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra WAIT;
    mbarrier.init.shared.b64 [%r4], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r4], 64;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r1, %r2}], [%r4];
WAIT:
    bar.sync 0;
TRY:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
    @!%p2 bra TRY;
    shl.b32 %r6, %r5, 2;
    add.u32 %r7, %r3, %r6;
    ld.shared.u32 %r8, [%r7];
    cvt.u64.u32 %rd4, %r6;
    add.u64 %rd5, %rd2, %rd4;
    st.global.u32 [%rd5], %r8;
    ret;
}
"""
"""Copies a box of 4 by 4 words."""
START = """\
import ctypes
from calls import *
start()
block = (ctypes.c_ubyte * 192)()
MAP = -ctypes.addressof(block) % 64 + ctypes.addressof(block)
U32, F16, BF16 = 2, 6, 9

def words(kind, values):
    return (kind * max(1, len(values)))(*values)

def common(address, dims, strides, steps=None):
    return address, words(ctypes.c_uint64, dims), words(ctypes.c_uint64, strides), words(
        ctypes.c_uint32, steps or [1] * len(dims))

def tile(element, address, dims, strides, box, modes=(0, 0, 0, 0), at=MAP, rank=None, steps=None):
    address, dims, strides, steps = common(address, dims, strides, steps)
    rank = len(dims) if rank is None else rank
    return try_call(
        "cuTensorMapEncodeTiled", at, element, rank, address, dims, strides, words(ctypes.c_uint32, box), steps, *modes)

def im2col(lower, upper, channels=8, pixels=64, wide=None, modes=(0, 0, 0, 0)):
    address, dims, strides, steps = common(0, (64, 14, 9, 64), (128, 1792, 16128))
    interleave, *others = modes
    if wide is not None:
        return try_call("cuTensorMapEncodeIm2colWide", MAP, F16, 4, address, dims, strides, lower, upper, channels,
                        pixels, steps, interleave, wide, *others)
    corners = [words(ctypes.c_int, corner) for corner in (lower, upper)]
    return try_call(
        "cuTensorMapEncodeIm2col", MAP, F16, 4, address, dims, strides, *corners, channels, pixels, steps, *modes)
"""


def test_a_kernel_loads_through_maps(run_program: Run) -> None:
    program = (
        f'{START}\nkernel = load("""{LOAD}""", "load")'
        + """
first, second, out = (ask("cuMemAlloc_v2", 1024) for _ in range(3))
for start, array in ((0, first), (1000, second)):
    call("cuMemcpyHtoD_v2", array, words(ctypes.c_uint32, range(start, start + 256)), 1024)

def run(x, y):
    values = (ctypes.c_char * 128).from_address(MAP), ctypes.c_uint64(out), ctypes.c_uint32(x), ctypes.c_uint32(y)
    result = words(ctypes.c_uint32, [0] * 16)
    print(launch(kernel, 1, 16, *values), end=" ")
    call("cuMemcpyDtoH_v2", result, out, 64)
    print(*result)

print(tile(U32, first, (16, 16), (64,), (4, 4)))
run(4, 1)
print(try_call("cuTensorMapReplaceAddress", MAP, second), try_call("cuTensorMapReplaceAddress", MAP, second + 8))
run(12, -1)
"""
    )
    process = run_program(program)
    assert process.stdout.splitlines() == [
        "0",
        "0 20 21 22 23 36 37 38 39 52 53 54 55 68 69 70 71",
        "0 1",
        "0 0 0 0 0 1012 1013 1014 1015 1028 1029 1030 1031 1044 1045 1046 1047",
    ]
    (message,) = process.stderr.splitlines()
    assert message.startswith("pyptx: cuTensorMapReplaceAddress: the tensor must be aligned to 16 bytes")


def test_maps_that_break_a_rule_are_refused(run_program: Run) -> None:
    """The parameters of each kind of map are read in their order: each case breaks one rule."""
    # Long: a table of cases.
    program = (
        START
        + """
def check(good, *bad):
    print([good(), *(case() for case in bad)])

def good(element=U32, address=1024, dims=(16, 16), strides=(64,), box=(4, 4), **others):
    return tile(element, address, dims, strides, box, **others)

cube = dict(element=F16, dims=(16, 8, 8), strides=(32, 256), box=(16, 8, 8))
check(good, lambda: good(at=0), lambda: good(element=16), lambda: good(element=-1),
      lambda: good(rank=0), lambda: good(rank=6), lambda: good(address=1032), lambda: good(dims=(16, 0)),
      lambda: good(strides=(72,)), lambda: good(box=(4, 257)), lambda: good(box=(3, 4)),
      lambda: good(steps=(1, 9)), lambda: good(modes=(1, 0, 0, 0)))
check(lambda: good(modes=(0, 3, 3, 0)), lambda: good(modes=(3, 0, 0, 0)), lambda: good(modes=(0, 7, 0, 0)),
      lambda: good(modes=(0, 0, 4, 0)), lambda: good(modes=(0, 0, 0, 2)), lambda: good(modes=(0, 0, 0, 1)),
      lambda: good(box=(16, 4), modes=(0, 1, 0, 0)))
check(lambda: good(element=BF16, modes=(0, 1, 0, 1), box=(16, 4)), lambda: good(modes=(0, 6, 0, 0)),
      lambda: good(element=13, dims=(64, 16), box=(32, 4)))
check(lambda: good(modes=(2, 1, 0, 0), **cube), lambda: good(modes=(2, 0, 0, 0), **cube))
check(lambda: im2col((0, -9), (0, 0)), lambda: im2col((0, 0), (0, -9)),
      lambda: im2col((-129, -1), (-1, -1)), lambda: im2col((-1, -1), (-1, 128)),
      lambda: im2col((-1, -1), (-1, -1), 257), lambda: im2col((-1, -1), (-1, -1), 8, 1025),
      lambda: im2col((-1, -1), (-1, -1), modes=(0, 0, 0, 3)))
check(lambda: im2col(-14, 0, wide=0, modes=(0, 2, 0, 0)), lambda: im2col(0, -14, wide=0, modes=(0, 2, 0, 0)),
      lambda: im2col(-1, 0, wide=2, modes=(0, 2, 0, 0)),
      lambda: im2col(-1, 0, wide=0), lambda: im2col(-1 << 16, 0, wide=1, modes=(0, 2, 0, 0)))

small = ctypes.c_uint32(7)

def choose(choice):
    return try_call("cuTensorMapSetAllocationClass", MAP, choice, ctypes.byref(small)), small.value

print([choose(choice) for choice in range(4)])
ctypes.memset(MAP, 0xFF, 128)
print(try_call("cuTensorMapReplaceAddress", MAP, 0), try_call("cuTensorMapSetAllocationClass", MAP, 0, None))
"""
    )
    process = run_program(program)
    assert process.stdout.splitlines() == [
        "[0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
        "[0, 1, 1, 1, 1, 1, 1]",
        "[0, 1, 1]",
        "[0, 1]",
        "[0, 1, 1, 1, 1, 1, 1]",
        "[0, 1, 1, 1, 1]",
        "[(0, 1), (0, 1), (0, 1), (1, 1)]",
        "1 1",
    ]
    messages = [line.removeprefix("pyptx: cuTensorMapEncode") for line in process.stderr.splitlines()]
    assert len(messages) == 11 + 6 + 2 + 1 + 6 + 4 + 2
    for start in (
        "Tiled: tensorDataType is 16; the values are 0, 1, ",
        "Tiled: tensorRank is 6; tensors have 1 to 5 dimensions",
        "Tiled: the stride of dimension 1 must be a multiple of 16 bytes below 2^40, got 72 (pad the rows",
        "Tiled: tensor maps of sm_90a have no B128_ATOM_64B",
        "Im2col: im2col copies 1 to 1024 pixels, got 1025",
        "Im2colWide: mode is 2; the values are 0, 1",
    ):
        assert any(message.startswith(start) for message in messages), start


def test_maps_of_unaligned_structures_are_made_with_a_note(run_program: Run) -> None:
    """As those of cuda.core, which lie where Python puts its objects."""
    process = run_program(
        START
        + """
print([tile(U32, 1024, (16, 16), (64,), (4, 4), at=MAP + offset) for offset in (0, 16, 8)],
      try_call("cuTensorMapReplaceAddress", MAP + 8, 2048))
"""
    )
    assert process.stdout == "[0, 0, 0] 0\n"
    note = "pyptx: the driver's manual requires tensor maps (CUtensorMap) at multiples of 64 bytes\n"
    assert process.stderr == note


def test_maps_are_made_in_a_context_only(run_program: Run) -> None:
    program = f"""{START}
call("cuCtxSetCurrent", 0)
print(tile(U32, 1024, (16, 16), (64,), (4, 4)), im2col((-1, -1), (-1, -1)), im2col(-1, 0, wide=0, modes=(0, 2, 0, 0)))
"""
    assert run_program(program).stdout == "201 201 201\n"
