"""The names of registers after their roles, and the lines that assign those of declared ranges."""

from __future__ import annotations

import pytest

from tests.codegen.sugared import find_difference, statements

NAMES = {
    "components of special registers": (
        """
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ctaid.y;
mov.u32 %r4, %laneid;
mov.u32 %r5, %ntid.z;
add.u32 %r6, %r1, %r2;
add.u32 %r7, %r3, %r4;
add.u32 %r8, %r5, %r6;
st.shared.v4.u32 [%r50], {%r1, %r2, %r3, %r4};
st.shared.v4.u32 [%r50], {%r5, %r6, %r7, %r8};
st.shared.v4.u32 [%r50], {%r8, %r7, %r6, %r5};
""",
        """
with ptx.names(r[1:9]):
tid = ptx.special.tid.x()
ctaid_x = ptx.special.ctaid.x()
ctaid_y = ptx.special.ctaid.y()
laneid = ptx.special.laneid()
ntid_z = ptx.special.ntid.z()
r6 = tid + ctaid_x
r7 = ctaid_y + laneid
r8 = ntid_z + r6
ptx.st(u32, r[50], [tid, ctaid_x, ctaid_y, laneid], space="shared")
ptx.st(u32, r[50], [ntid_z, r6, r7, r8], space="shared")
ptx.st(u32, r[50], [r8, r7, r6, ntid_z], space="shared")
""",
    ),
    "lanes, warps and warpgroups": (
        """
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 31;
shr.u32 %r3, %r1, 5;
shr.u32 %r4, %r1, 7;
shr.u32 %r5, %r1, 6;
and.b32 %r6, %r1, 63;
and.b32 %r7, %r5, 31;
st.shared.v4.u32 [%r50], {%r2, %r3, %r4, %r5};
st.shared.v4.u32 [%r50], {%r5, %r4, %r3, %r2};
st.shared.v4.u32 [%r50], {%r6, %r6, %r7, %r7};
""",
        """
with ptx.names(r[1:8]):
tid = ptx.special.tid.x()
lane = tid & 31
warp = tid >> 5
warpgroup = tid >> 7
r5 = tid >> 6
r6 = tid & 63
r7 = r5 & 31
ptx.st(u32, r[50], [lane, warp, warpgroup, r5], space="shared")
ptx.st(u32, r[50], [r5, warpgroup, warp, lane], space="shared")
ptx.st(u32, r[50], [r6, r6, r7, r7], space="shared")
""",
    ),
    "lanes of the first of two axes": (
        """
mov.u32 %r1, %tid.x;
mov.u32 %r9, %tid.y;
and.b32 %r2, %r1, 31;
and.b32 %r3, %r9, 31;
st.shared.v4.u32 [%r50], {%r2, %r3, %r2, %r3};
st.shared.v2.u32 [%r50], {%r1, %r9};
""",
        """
with ptx.names(r[1], r[9], r[2:4]):
tid_x = ptx.special.tid.x()
tid_y = ptx.special.tid.y()
lane = tid_x & 31
r3 = tid_y & 31
ptx.st(u32, r[50], [lane, r3, lane, r3], space="shared")
ptx.st(u32, r[50], [tid_x, tid_y], space="shared")
""",
    ),
    "parameters and pointers to global memory": (
        """
ld.param.u64 %rd1, [k_param_3];
ld.param.u64 %rd2, [k_param_3+8];
ld.param.u64 %rd3, [weird];
ld.param.u64 %rd4, [%rd1];
cvta.to.global.u64 %rd5, %rd1;
cvta.to.global.u64 %rd6, %rd5;
cvta.to.global.u64 %rd7, %rd3;
st.shared.v2.u64 [%r50], {%rd2, %rd4};
st.shared.v2.u64 [%r50], {%rd4, %rd2};
st.shared.v2.u64 [%r50], {%rd5, %rd6};
st.shared.v2.u64 [%r50], {%rd6, %rd7};
st.shared.v2.u64 [%r50], {%rd7, %rd5};
""",
        """
param_3, param_3_8, weird = rd[1:4]
with ptx.names(rd[4:8]):
ptx.inst.ld.param.u64(param_3, ptx.addr("k_param_3"))
ptx.inst.ld.param.u64(param_3_8, ptx.addr("k_param_3", 8))
ptx.inst.ld.param.u64(weird, ptx.addr("weird"))
rd4 = ptx.ld(u64, param_3, space="param")
param_3_ptr = ptx.cvta.to_global(param_3)
rd6 = ptx.cvta.to_global(param_3_ptr)
weird_ptr = ptx.cvta.to_global(weird)
for x, y in (
(param_3_8, rd4), (rd4, param_3_8), (param_3_ptr, rd6), (rd6, weird_ptr), (weird_ptr, param_3_ptr),
):
ptx.st(u64, r[50], [x, y], space="shared")
""",
    ),
    "addresses of symbols": (
        """
mov.b64 %rd1, k_param_2;
mov.u64 %rd2, plain;
mov.u64 %rd3, _ZN1a4partE;
mov.u64 %rd4, _under;
mov.u64 %rd5, %rd4;
cvta.global.u64 %rd6, %rd2;
st.shared.v2.u64 [%r50], {%rd1, %rd1};
st.shared.v2.u64 [%r50], {%rd2, %rd3};
st.shared.v2.u64 [%r50], {%rd3, %rd4};
st.shared.v2.u64 [%r50], {%rd5, %rd5};
st.shared.v2.u64 [%r50], {%rd6, %rd6};
""",
        """
param_2_addr, plain_addr, part_addr = rd[1:4]
with ptx.names(rd[5:7]):
ptx.inst.mov.b64(param_2_addr, "k_param_2")
ptx.inst.mov.u64(plain_addr, "plain")
ptx.inst.mov.u64(part_addr, "_ZN1a4partE")
ptx.inst.mov.u64(rd[4], "_under")
rd5 = ptx.mov(u64, rd[4])
plain_ptr = ptx.cvta.global_(plain_addr)
ptx.st(u64, r[50], [param_2_addr, param_2_addr], space="shared")
ptx.st(u64, r[50], [plain_addr, part_addr], space="shared")
ptx.st(u64, r[50], [part_addr, rd[4]], space="shared")
ptx.st(u64, r[50], [rd5, rd5], space="shared")
ptx.st(u64, r[50], [plain_ptr, plain_ptr], space="shared")
""",
    ),
    "counters of loops": (
        """
mov.u32 %r1, 0;
mov.u32 %r3, 0;
mov.b64 %rd1, 0;
mov.u32 %r5, 0;
mov.u32 %r7, 0;
L:
add.s32 %r1, %r1, 1;
add.u32 %r3, %r3, 4;
add.s64 %rd1, %rd1, 1;
add.u32 %r5, %r5, %r9;
sub.u32 %r7, %r7, 1;
st.shared.v2.u32 [%r50], {%r1, %r7};
st.shared.v2.u32 [%r51], {%r3, %r5};
st.shared.u64 [%r50], %rd1;
bra L;
""",
        """
rd1 = rd[1].s64
i_2 = r[3]
i = r[1].s32
ptx.mov(u32, i, 0)
ptx.mov(u32, i_2, 0)
ptx.mov(b64, rd1, 0)
ptx.mov(u32, r[5], 0)
ptx.mov(u32, r[7], 0)
with ptx.loop("L"):
i += 1
i_2 += 4
rd1 += 1
r[5] += r[9]
r[7] -= 1
ptx.st(u32, r[50], [i, r[7]], space="shared")
ptx.st(u32, r[51], [i_2, r[5]], space="shared")
ptx.st(u64, r[50], rd1, space="shared")
""",
    ),
    "few and many uses as another type": (
        """
add.f32 %f1, %f1, %f2;
add.s32 %r1, %r1, %r40;
add.f32 %f1, %f1, %f2;
add.s32 %r2, %r2, %r40;
setp.lt.s32 %p2, %r2, 5;
add.f32 %f1, %f1, %f2;
add.s32 %r3, %r3, %r40;
setp.lt.s32 %p3, %r3, 5;
setp.lt.s32 %p3, %r3, 5;
""",
        """
r3 = r[3].s32
with ptx.names(p[2]):
f[1] += f[2]
ptx.add(s32, r[1].s32, r[1].s32, r[40].s32)
f[1] += f[2]
ptx.add(s32, r[2].s32, r[2].s32, r[40].s32)
r[2].s32 < 5
f[1] += f[2]
r3 += r[40].s32
ptx.setp("lt", s32, p[3], r3, 5)
ptx.setp("lt", s32, p[3], r3, 5)
""",
    ),
    "registers declared one by one": (
        """
.reg .b32 One, %two, r7x;
mov.b32 One, %r9;
L:
add.u32 One, One, %r8;
add.u32 %two, One, r7x;
add.s32 r7x, r7x, %two;
bra L;
""",
        """
with ptx.names(two):
ptx.mov(b32, one, r[9])
with ptx.loop("L"):
one += r[8]
ptx.add(s32, r7x, r7x, (one + r7x).s32)
""",
    ),
    "registers declared late or in a block": (
        """
mov.u32 %r1, %r9;
.reg .b32 %y<4>, %z;
add.s32 %y1, %r1, 2;
mov.u32 %z, %y1;
L:
add.u32 %y1, %y1, 1;
add.u32 %z, %z, 1;
{
.reg .b32 %q<3>;
add.u32 %q1, %q2, %y1;
add.u32 %q2, %q1, %z;
}
bra L;
""",
        """
with ptx.names(r[1]):
r1 = ptx.mov(u32, r[9].s32).s32
ptx.add(s32, y[1], r1, 2)
ptx.mov(u32, z, y[1])
with ptx.loop("L"):
y[1] += 1
z += 1
with ptx.block():
ptx.add(u32, q[1], q[2], y[1])
ptx.add(u32, q[2], q[1], z)
""",
    ),
    "elements of vectors": (
        """
ld.shared.v2.u32 {%r1, %r2}, [%r50];
ld.shared.v2.f32 {%f1, %f2}, [%r50];
ld.shared.v2.u32 {%r3, %r3}, [%r50];
ld.shared.v2.u32 {%r5, _}, [%r50];
mov.b64 {%r6, %r7}, %rd9;
add.f32 %f3, %f1, %f2;
st.shared.v4.u32 [%r50], {%r1, %r2, %r3, %r5};
st.shared.v4.u32 [%r50], {%r5, %r6, %r7, %r1};
st.shared.v2.f32 [%r50], {%f3, %f3};
""",
        """
r5 = r[5]
with ptx.names(r[1:3], r[6:8], f[1:4]):
v = ptx.ld(u32, r[50], vec=2, space="shared")
v_2 = ptx.ld(f32, r[50], vec=2, space="shared")
ptx.ld(u32, [r[3], r[3]], r[50], space="shared")
ptx.ld(u32, [r5, None], r[50], space="shared")
r6, r7 = ptx.inst.mov.b64([b32] * 2, rd[9])
f3 = v_2[0] + v_2[1]
ptx.st(u32, r[50], [v[0], v[1], r[3], r5], space="shared")
ptx.st(u32, r[50], [r5, r6, r7, v[0]], space="shared")
ptx.st(f32, r[50], [f3, f3], space="shared")
""",
    ),
    "accumulators and descriptors": (
        """
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, %rd3, 1, 1, 1, 0;
add.u64 %rd1, %rd1, %rd9;
add.u64 %rd2, %rd2, %rd9;
add.u64 %rd3, %rd3, %rd1;
""",
        """
acc = f[1:5]
acc_2 = r[1:5]
desc_a, desc_b, desc_b_2 = rd[1:4]
ptx.wgmma.mma_async(
shape=(64, 8, 16), dtype_d=f32, dtype_a=f16, dtype_b=f16, d=acc, a=desc_a, b=desc_b, scale_d=True,
)
ptx.wgmma.mma_async(
shape=(64, 8, 16), dtype_d=f32, dtype_a=f16, dtype_b=f16, d=acc, a=acc_2, b=desc_b_2, scale_d=True,
)
desc_a += rd[9]
desc_b += rd[9]
desc_b_2 += desc_a
""",
    ),
    "barriers": (
        """
mov.u32 %r1, %r9;
mbarrier.init.shared.b64 [%r1], 1;
mbarrier.arrive.shared.b64 %rd1, [%r2];
add.u32 %r2, %r1, %r2;
st.shared.v2.b64 [%r1], {%rd1, %rd1};
""",
        """
mbar_2 = r[2]
with ptx.names(r[1], rd[1]):
mbar = ptx.mov(u32, r[9])
ptx.mbarrier.init(mbar, 1, space="shared")
rd1 = ptx.mbarrier.arrive(mbar_2)
ptx.add(u32, mbar_2, mbar, mbar_2)
ptx.st(b64, mbar, [rd1, rd1], space="shared")
""",
    ),
    "neighbors are assigned together, up to eight": (
        """
ld.param.u64 %rd1, [a1];
ld.param.u64 %rd2, [a2];
ld.param.u64 %rd3, [a3];
ld.param.u64 %rd4, [a4];
ld.param.u64 %rd5, [a5];
ld.param.u64 %rd6, [a6];
ld.param.u64 %rd7, [a7];
ld.param.u64 %rd8, [a8];
ld.param.u64 %rd9, [a9];
ld.param.u64 %rd10, [a10];
ld.param.u64 %rd12, [a12];
add.s64 %rd10, %rd10, -1;
setp.lt.s64 %p1, %rd10, 0;
@%p1 ret;
setp.gt.s64 %p1, %rd10, 9;
@%p1 ret;
add.s64 %rd20, %rd20, -1;
setp.lt.s64 %p1, %rd20, 0;
@%p1 ret;
setp.gt.s64 %p1, %rd20, 9;
@%p1 ret;
add.s64 %rd21, %rd21, -1;
setp.lt.s64 %p1, %rd21, 0;
@%p1 ret;
setp.gt.s64 %p1, %rd21, 9;
@%p1 ret;
add.s64 %rd30, %rd30, -1;
setp.lt.s64 %p1, %rd30, 0;
@%p1 ret;
setp.gt.s64 %p1, %rd30, 9;
@%p1 ret;
""",
        """
a10 = rd[10].s64
rd20, rd21 = rd.view(s64)[20:22]
rd30 = rd[30].s64
a1, a2, a3, a4, a5, a6, a7, a8 = rd[1:9]
a9 = rd[9]
a12 = rd[12]
for x, y in (
(a1, "a1"), (a2, "a2"), (a3, "a3"), (a4, "a4"), (a5, "a5"), (a6, "a6"), (a7, "a7"), (a8, "a8"), (a9, "a9"),
(a10, "a10"), (a12, "a12"),
):
ptx.inst.ld.param.u64(x, ptx.addr(y))
a10 += -1
ptx.setp("lt", s64, p[1], a10, 0)
ptx.ret(pred=p[1])
ptx.setp("gt", s64, p[1], a10, 9)
ptx.ret(pred=p[1])
rd20 += -1
ptx.setp("lt", s64, p[1], rd20, 0)
ptx.ret(pred=p[1])
ptx.setp("gt", s64, p[1], rd20, 9)
ptx.ret(pred=p[1])
rd21 += -1
ptx.setp("lt", s64, p[1], rd21, 0)
ptx.ret(pred=p[1])
ptx.setp("gt", s64, p[1], rd21, 9)
ptx.ret(pred=p[1])
rd30 += -1
ptx.setp("lt", s64, p[1], rd30, 0)
ptx.ret(pred=p[1])
ptx.setp("gt", s64, p[1], rd30, 9)
ptx.ret(pred=p[1])
""",
    ),
    "neighbors of two types": (
        """
ld.param.u32 %r1, [a];
ld.param.u32 %r2, [b];
ld.param.u32 %r3, [c];
add.s32 %r1, %r1, -1;
setp.lt.s32 %p1, %r1, 0;
@%p1 ret;
add.s32 %r2, %r2, -1;
setp.lt.s32 %p1, %r2, 0;
@%p1 ret;
xor.b32 %r3, %r3, 5;
st.shared.v2.b32 [%r50], {%r3, %r1};
st.shared.v2.b32 [%r50], {%r3, %r2};
""",
        """
c = r[3]
a, b = r.view(s32)[1:3]
ptx.inst.ld.param.u32(a, ptx.addr("a"))
ptx.inst.ld.param.u32(b, ptx.addr("b"))
ptx.inst.ld.param.u32(c, ptx.addr("c"))
a += -1
ptx.setp("lt", s32, p[1], a, 0)
ptx.ret(pred=p[1])
b += -1
ptx.setp("lt", s32, p[1], b, 0)
ptx.ret(pred=p[1])
c ^= 5
ptx.st(b32, r[50], [c, a], space="shared")
ptx.st(b32, r[50], [c, b], space="shared")
""",
    ),
    "predicates of wait loops": (
        """
.reg .pred %flag<4>;
V:
mbarrier.try_wait.parity.shared.b64 %flag1, [%r1], %r2;
@!%flag1 bra V;
W:
mbarrier.try_wait.parity.shared.b64 %flag1, [%r1], %r2;
@!%flag1 bra W;
@%flag1 ret;
""",
        """
flag1 = flag[1]
mbar, phase = r[1:3]
ptx.mbarrier.wait(mbar, phase, labels=("V",), predicate=flag1)
ptx.mbarrier.wait(mbar, phase, labels=("W",), predicate=flag1)
ptx.ret(pred=flag1)
""",
    ),
    "names that a person chose": (
        """
.reg .b32 %mine<4>, Own;
mov.u32 %mine1, %tid.x;
mov.u32 Own, %ctaid.x;
and.b32 %mine2, %mine1, 31;
st.shared.v4.b32 [%r50], {%mine1, Own, %mine2, %mine1};
st.shared.v2.b32 [%r50], {Own, %mine2};
""",
        """
with ptx.names(mine[1], own, mine[2]):
mine1 = ptx.special.tid.x()
own = ptx.special.ctaid.x()
mine2 = mine1 & 31
ptx.st(b32, r[50], [mine1, own, mine2, mine1], space="shared")
ptx.st(b32, r[50], [own, mine2], space="shared")
""",
    ),
    "a register of a block has no role": (
        """
{
.reg .b32 %r100;
mov.u32 %r100, %tid.x;
add.u32 %r100, %r100, %r9;
st.shared.b32 [%r50], %r100;
}
""",
        """
with ptx.block():
ptx.mov(u32, r100, "%tid.x")
r100 += r[9]
ptx.st(b32, r[50], r100, space="shared")
""",
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_how_registers_are_named(name: str) -> None:
    ptx, python = NAMES[name]
    assert statements(ptx) == python.split("\n")[1:-1]
    assert find_difference(ptx) is None
