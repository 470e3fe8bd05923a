"""Functions of CUDA's device runtime library that kernels call, and that a linker would add: the barrier of a grid.

They are PTX of our own, appended to a module that declares them. Other functions of that library launch kernels from
kernels, which is not simulated."""

from __future__ import annotations

import re

_PARTS = {
    "cudaCGGetIntrinsicHandle": """\
.weak .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    st.param.b64 [result], 1;
    ret;
}
""",
    "cudaCGSynchronize": """\
.weak .global .align 4 .u32 __pyptx_grid_arrived;
.weak .global .align 4 .u32 __pyptx_grid_phase;
.weak .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %last, %waiting, %other;
    .reg .b32 %x, %y, %size, %phase, %now;
    barrier.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    or.b32 %x, %x, %y;
    mov.u32 %y, %tid.z;
    or.b32 %x, %x, %y;
    setp.ne.u32 %other, %x, 0;
    @%other bra $done;
    mov.u32 %x, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mul.lo.u32 %size, %x, %y;
    mov.u32 %y, %nctaid.z;
    mul.lo.u32 %size, %size, %y;
    sub.u32 %size, %size, 1;
    ld.relaxed.gpu.global.u32 %phase, [__pyptx_grid_phase];
    atom.acq_rel.gpu.global.inc.u32 %x, [__pyptx_grid_arrived], %size;
    setp.eq.u32 %last, %x, %size;
    @%last red.release.gpu.global.add.u32 [__pyptx_grid_phase], 1;
    @%last bra $done;
$wait:
    ld.acquire.gpu.global.u32 %now, [__pyptx_grid_phase];
    setp.eq.u32 %waiting, %now, %phase;
    @%waiting bra $wait;
$done:
    barrier.sync 0;
    st.param.b32 [result], 0;
    ret;
}
""",
}
"""Each function by its name. The last CTA to arrive resets the count and starts the next phase."""
_DECLARATION = r"\.extern(\s+\.func\s*\([^)]*\)\s*{}\b)"


def link_device_runtime(text: str) -> str:
    """Return PTX with the functions that it declares and a linker would add; its lines keep their numbers."""
    for name, part in _PARTS.items():
        text, count = re.subn(_DECLARATION.format(name), r".weak\1", text) if name in text else (text, 0)
        text += f"\n{part}" if count else ""
    return text
