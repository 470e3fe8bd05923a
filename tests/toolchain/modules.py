"""Small PTX modules that several test files use."""

from __future__ import annotations

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"

SMALL = (
    HEAD
    + """.visible .entry small(.param .u64 p)
{
    .reg .b64 %rd;
    .reg .b32 %r<3>;
    ld.param.u64 %rd, [p];
    ld.global.u32 %r1, [%rd];
    add.s32 %r2, %r1, 1;
    st.global.u32 [%rd+4], %r2;
    ret;
}
"""
)
"""Line 9 loads, line 10 adds, line 11 stores."""

TWO_KERNELS = (
    HEAD
    + """.file 1 "kernel.py"
.shared .align 16 .b8 tile[1024];
.const .align 4 .f32 table[64] = {1.0, 2.0};
.visible .entry first(.param .u64 p) .maxntid 256, 1, 1
{
    .reg .b64 %rd;
    .reg .b32 %r<3>;
    .loc 1 10 3
    ld.param.u64 %rd, [p];
    ld.global.u32 %r1, [%rd];
    .loc 1 11 3
    bar.sync 3, 64;
    add.s32 %r2, %r1, 1;
    .loc 1 12 3
    st.global.u32 [%rd+4], %r2;
    ret;
}
.visible .entry second(.param .u64 p, .param .u32 i) .reqntid 128, 2, 1
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    .reg .f32 %f;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [i];
    mov.u32 %r2, tile;
    st.shared.u32 [%r2+16], %r1;
    barrier.sync 0;
    ld.shared.u32 %r3, [%r2+20];
    mul.wide.u32 %rd2, %r1, 4;
    mov.u64 %rd3, table;
    add.s64 %rd3, %rd3, %rd2;
    ld.const.f32 %f, [%rd3];
    st.global.u32 [%rd1], %r3;
    st.global.f32 [%rd1+4], %f;
    ret;
}
"""
)


def spilling() -> str:
    """Return a kernel with 200 live values in 32 registers."""
    loads = "".join(f"    ld.volatile.global.u32 %r{i}, [%rd+{4 * i}];\n" for i in range(200))
    stores = "".join(f"    st.volatile.global.u32 [%rd+{4 * i}], %r{i};\n" for i in range(200))
    return (
        HEAD
        + ".visible .entry spilling(.param .u64 p) .maxnreg 32\n{\n    .reg .b64 %rd;\n    .reg .b32 %r<200>;\n"
        + f"    ld.param.u64 %rd, [p];\n{loads}{stores}    ret;\n}}\n"
    )


REGISTER_PARTITION = (
    HEAD
    + """.visible .entry warps(.param .u64 p) .reqntid 384 .maxnreg 168
{
    .reg .b64 %rd;
    setmaxnreg.inc.sync.aligned.u32 240;
    ld.param.u64 %rd, [p];
    st.global.u64 [%rd], %rd;
    ret;
}
"""
)
"""Gives some warps more registers than others, as every warp-specialized Hopper kernel does."""
