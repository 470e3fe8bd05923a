"""alloca, stacksave and stackrestore: memory per thread, released on return, separate from the frames of calls."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.messages import raises

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def test_threads_get_memory_of_their_own_size() -> None:
    module = parse(f"""{HEAD}.visible .entry k(.param .u64 out)
{{
.reg .b32 %t, %n, %r<4>; .reg .b64 %p, %q, %s, %o; .reg .pred %c;
.local .align 8 .b8 fixed[16];
ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 8, %o;
st.local.u32 [fixed], 77;
stacksave.u64 %s;
add.u32 %n, %t, 1; mul.wide.u32 %q, %n, 4;
alloca.u64 %p, %q, 16;
and.b64 %q, %p, 15;
mov.u32 %r0, 0; mov.b64 %q, %p;
fill: st.local.u32 [%q], %r0; add.u64 %q, %q, 4; add.u32 %r0, %r0, 1;
setp.lt.u32 %c, %r0, %n;
@%c bra fill;
mov.u32 %r1, 0; mov.u32 %r0, 0; mov.b64 %q, %p;
sum: ld.local.u32 %r2, [%q]; add.u32 %r1, %r1, %r2; add.u64 %q, %q, 4; add.u32 %r0, %r0, 1;
setp.lt.u32 %c, %r0, %n;
@%c bra sum;
ld.local.u32 %r2, [fixed]; add.u32 %r1, %r1, %r2;
st.global.u32 [%o], %r1;
stackrestore.u64 %s;
stacksave.u64 %q; sub.u64 %q, %q, %s;
st.global.u32 [%o+4], %q;
ret;
}}
""")
    out = np.ones((40, 2), "u4")
    sim.run(module, block=40, args=[out])
    threads = np.arange(40)
    np.testing.assert_array_equal(out[:, 0], threads * (threads + 1) // 2 + 77)
    assert not out[:, 1].any()


def test_each_allocation_has_bytes_of_its_own() -> None:
    module = parse(f"""{HEAD}.visible .entry k(.param .u64 out)
{{
.reg .b32 %t, %r<2>; .reg .b64 %p<2>, %n, %o;
ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 8, %o;
mov.u64 %n, 4;
alloca.u64 %p0, %n, 8; st.local.u32 [%p0], 1;
alloca.u64 %p1, %n, 8; st.local.u32 [%p1], 2;
ld.local.u32 %r0, [%p0]; ld.local.u32 %r1, [%p1];
st.global.v2.u32 [%o], {{%r0, %r1}};
ret;
}}
""")
    out = np.zeros((3, 2), "u4")
    sim.run(module, block=3, args=[out])
    np.testing.assert_array_equal(out, [[1, 2]] * 3)


def test_a_return_gives_back_what_its_function_took() -> None:
    module = parse(f"""{HEAD}.func (.param .b32 r) twice(.param .b32 x)
{{
.reg .b32 %r<3>; .reg .b64 %p, %n;
mov.u64 %n, 4096;
ld.param.u32 %r1, [x];
alloca.u64 %p, %n;
st.local.u32 [%p+4092], %r1;
ld.local.u32 %r2, [%p+4092];
add.u32 %r2, %r2, %r2;
st.param.u32 [r], %r2;
ret;
}}
.visible .entry k(.param .u64 out)
{{
.reg .b32 %i, %r<4>; .reg .b64 %o, %p, %n; .reg .pred %c;
ld.param.u64 %o, [out];
mov.u64 %n, 8;
alloca.u64 %p, %n;
st.local.u32 [%p], 5;
mov.u32 %i, 0; mov.u32 %r1, 1;
again:
{{
.param .b32 a; .param .b32 b;
st.param.b32 [a], %r1;
call (b), twice, (a);
ld.param.b32 %r2, [b];
}}
add.u32 %r1, %r2, 1;
add.u32 %i, %i, 1;
setp.lt.u32 %c, %i, 1000;
@%c bra again;
ld.local.u32 %r3, [%p];
st.global.u32 [%o], %r3;
st.global.u32 [%o+4], %r1;
ret;
}}
""")
    out = np.zeros(2, "u4")
    sim.run(module, args=[out])
    assert out.tolist() == [5, (2**1001 - 1) & 0xFFFFFFFF]


def test_too_much_is_an_error() -> None:
    module = parse(f"""{HEAD}.visible .entry k()
{{
.reg .b64 %p, %n;
mov.u64 %n, 1000000;
alloca.u64 %p, %n;
ret;
}}
""")
    with raises(PtxError, match="bytes of local memory"):
        sim.run(module)


@pytest.mark.parametrize("bits", [32, 64])
def test_a_negative_size_is_an_error_in_the_lanes_that_execute_it(bits: int) -> None:
    text = f"""{HEAD}.visible .entry k()
{{
.reg .b32 %t; .reg .b{bits} %p, %n; .reg .pred %c;
mov.u32 %t, %tid.x; cvt.s{bits}.s32 %n, %t; sub.s{bits} %n, 3, %n;
setp.lt.u32 %c, %t, THREADS;
@%c alloca.u{bits} %p, %n;
@%c alloca.u{bits} %p, 16, 32;
ret;
}}
"""
    sim.run(parse(text.replace("THREADS", "4")), block=8)
    with raises(PtxError, match=f"`alloca.u{bits}` of -1 bytes") as excinfo:
        sim.run(parse(text.replace("THREADS", "8")), block=8)
    assert excinfo.value.diagnostics[0].line == 9
    assert "thread (4, 0, 0)" in str(excinfo.value)
