"""Instructions: `ptx.inst` for every instruction of the table, wrappers for common ones, control flow, and instruction
families as modules.

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.ptx import (
        atom,
        bar,
        cluster,
        clusterlaunchcontrol,
        cp,
        cvta,
        decl,
        fence,
        griddepcontrol,
        mbarrier,
        mma,
        multimem,
        op,
        red,
        special,
        tcgen05,
        tensormap,
        tma,
        warp,
        wgmma,
    )
    from pyptx.ptx.arithmetic import (
        abs,  # noqa: A004 - the instruction's own name
        add,
        and_,
        bfe,
        bfi,
        bfind,
        bmsk,
        brev,
        clmad,
        clz,
        cnot,
        copysign,
        cos,
        div,
        ex2,
        fma,
        fns,
        lg2,
        lop3,
        mad24,
        max,  # noqa: A004 - the instruction's own name
        min,  # noqa: A004 - the instruction's own name
        mul,
        mul24,
        neg,
        or_,
        popc,
        rcp,
        rem,
        rsqrt,
        sad,
        shf,
        shl,
        shr,
        sin,
        sqrt,
        sub,
        szext,
        tanh,
        testp,
        xor_,
    )
    from pyptx.ptx.async_memory import red_async, red_async_global, st_async, st_async_global, st_bulk
    from pyptx.ptx.branches import bra, label, ret
    from pyptx.ptx.cache import (
        applypriority,
        createpolicy_cvt,
        createpolicy_fractional,
        createpolicy_range,
        discard,
        prefetch,
        prefetch_tensormap,
        prefetchu,
    )
    from pyptx.ptx.chain import inst, pipe
    from pyptx.ptx.conditionals import elif_, else_, if_
    from pyptx.ptx.control import expr, file_, loc, pragma, scope
    from pyptx.ptx.counting import kloop, range_
    from pyptx.ptx.directives import directive
    from pyptx.ptx.exact import Style, block, close_block, inline_asm, layout, names, open_block
    from pyptx.ptx.functions import const, func, trap
    from pyptx.ptx.loops import break_, continue_, loop, while_
    from pyptx.ptx.matrix import ldmatrix, movmatrix, stmatrix, stmatrix_x4_trans_f32_bf16
    from pyptx.ptx.memory import addr, global_ptrs, imm, ld, param, sel, st, var
    from pyptx.ptx.printing import assert_, printf
    from pyptx.ptx.rings import NamedBarrier, PipelineState, named_barrier, pipeline
    from pyptx.ptx.scalar import (
        bitcast,
        ctaid_x,
        ctaid_y,
        cvt,
        elect_sync,
        mad,
        mov,
        not_,
        selp,
        setmaxnreg,
        setmaxnreg_dec,
        setmaxnreg_inc,
        setp,
        sreg,
    )
    from pyptx.ptx.text import raw
    from pyptx.ptx.transcript import module

_NAMES_OF = {
    "": "atom bar cluster clusterlaunchcontrol cp cvta decl fence griddepcontrol mbarrier mma multimem op red special "
    "tcgen05 tensormap tma warp wgmma",
    "arithmetic": "abs add and_ bfe bfi bfind bmsk brev clmad clz cnot copysign cos div ex2 fma fns lg2 lop3 mad24 "
    "max min mul mul24 neg or_ popc rcp rem rsqrt sad shf shl shr sin sqrt sub szext tanh testp xor_",
    "async_memory": "red_async red_async_global st_async st_async_global st_bulk",
    "cache": "applypriority createpolicy_cvt createpolicy_fractional createpolicy_range discard prefetch "
    "prefetch_tensormap prefetchu",
    "chain": "inst pipe",
    "branches": "bra label ret",
    "conditionals": "elif_ else_ if_",
    "control": "expr file_ loc pragma scope",
    "loops": "break_ continue_ loop while_",
    "counting": "kloop range_",
    "directives": "directive",
    "exact": "Style block close_block inline_asm layout names open_block",
    "functions": "const func trap",
    "matrix": "ldmatrix movmatrix stmatrix stmatrix_x4_trans_f32_bf16",
    "memory": "addr global_ptrs imm ld param sel st var",
    "printing": "assert_ printf",
    "rings": "NamedBarrier PipelineState named_barrier pipeline",
    "scalar": "bitcast ctaid_x ctaid_y cvt elect_sync mad mov not_ selp setmaxnreg setmaxnreg_dec setmaxnreg_inc setp "
    "sreg",
    "text": "raw",
    "transcript": "module",
}
__all__ = [
    "NamedBarrier", "PipelineState", "Style", "abs", "add", "addr", "and_", "applypriority", "assert_", "atom", "bar",
    "bfe", "bfi", "bfind", "bitcast", "block", "bmsk", "bra", "break_", "brev", "clmad", "close_block", "cluster",
    "clusterlaunchcontrol", "clz", "cnot", "const", "continue_", "copysign", "cos", "cp", "createpolicy_cvt",
    "createpolicy_fractional", "createpolicy_range", "ctaid_x", "ctaid_y", "cvt", "cvta", "decl", "directive",
    "discard", "div", "elect_sync", "elif_", "else_", "ex2", "expr", "fence", "file_", "fma", "fns", "func",
    "global_ptrs", "griddepcontrol", "if_", "imm", "inline_asm", "inst", "kloop", "label", "layout", "ld", "ldmatrix",
    "lg2", "loc", "loop", "lop3", "mad", "mad24", "max", "mbarrier", "min", "mma", "module", "mov", "movmatrix", "mul",
    "mul24", "multimem", "named_barrier", "names", "neg", "not_", "op", "open_block", "or_", "param", "pipe",
    "pipeline", "popc", "pragma", "prefetch", "prefetch_tensormap", "prefetchu", "printf", "range_", "raw", "rcp",
    "red", "red_async", "red_async_global", "rem", "ret", "rsqrt", "sad", "scope", "sel", "selp", "setmaxnreg",
    "setmaxnreg_dec", "setmaxnreg_inc", "setp", "shf", "shl", "shr", "sin", "special", "sqrt", "sreg", "st", "st_async",
    "st_async_global", "st_bulk", "stmatrix", "stmatrix_x4_trans_f32_bf16", "sub", "szext", "tanh", "tcgen05",
    "tensormap", "testp", "tma", "trap", "var", "warp", "wgmma", "while_", "xor_",
]  # fmt: skip
_ELSEWHERE = {
    "syncthreads": "ptx.bar.sync(0)", "syncwarp": "ptx.bar.warp_sync()", "threadIdx": "ptx.special.tid",
    "blockIdx": "ptx.special.ctaid", "blockDim": "ptx.special.ntid", "gridDim": "ptx.special.nctaid",
    "for_": "ptx.range_", "exp": "ptx.ex2", "exp2": "ptx.ex2", "log2": "ptx.lg2", "where": "ptx.selp",
    "smem": "from pyptx import smem", "reg": "from pyptx import reg", "shared": "smem.alloc",
}  # fmt: skip
"""Names that CUDA users may look for here, with what to use."""


def _suggest(name: str) -> str:
    """Return what to use for an unknown name: every instruction of the table is available in `ptx.inst`."""
    if name.startswith("_"):
        return ""
    from pyptx.isa.table import find_rows

    replacement = f"ptx.inst.{name}" if find_rows(name.rstrip("_")) else _ELSEWHERE.get(name)
    return f"; write {replacement}" if replacement else ""


__getattr__, __dir__ = defer_imports(__name__, _NAMES_OF, _suggest)
