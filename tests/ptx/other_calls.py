"""Calls that are neither in `async_calls` nor table-driven: registers, shared memory, control flow, descriptors,
variables, special registers. Each is the body of a separate kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

from pyptx import TensorSpec, Tile, ptx, reg, smem
from pyptx.isa.special import SPECIAL_REGISTERS
from pyptx.isa.targets import ASSEMBLED, NEWEST_PTX, find_target
from pyptx.types import ALL, bf16, e4m3, f16, f32, pred, s8, s32, s64, tf32, u8, u16, u32, u64


class Body(NamedTuple):
    """A kernel's body with its name, and with the targets and options that it needs."""

    name: str
    make: Callable[..., Any]
    targets: tuple[str, ...] = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
    options: dict[str, Any] = {}  # noqa: RUF012


HOPPER, BLACKWELL = ("sm_90a",), ("sm_100a", "sm_103a")
STORED = [t for t in ALL if t.kind != "opaque" and 8 <= t.bits <= 64 and t.name != "e2m1x2"]
"""Types that a register can hold and a load can read."""


def bodies() -> Iterator[Body]:
    """Yield every body."""
    for group in (registers, memory, control, text, barriers, descriptors, special, functions):
        yield from group()


def registers() -> Iterator[Body]:
    """`pyptx.reg`: every type."""
    for dtype in [*STORED, pred]:
        yield Body(f"reg.alloc {dtype}", lambda t=dtype: ptx.mov(t, reg.alloc(t), reg.scalar(t)))
        yield Body(f"reg.from_ {dtype}", lambda t=dtype: reg.from_(reg.scalar(t), t))
        yield Body(f"reg.array {dtype}", lambda t=dtype: _fill_arrays(reg.array(t, 3), reg.alloc_array(t, 2), t))
        if dtype.kind in "bus" and "x" not in dtype.name:
            yield Body(f"reg.scalar {dtype}", lambda t=dtype: (reg.scalar(t, 1), reg.scalar(t, 7, name="x")))
    for dtype, m, n in product((f32, f16, s32), (64, 128), (8, 256)):
        yield Body(f"reg.wgmma_frag {dtype}", lambda t=dtype, m=m, n=n: reg.wgmma_frag(m=m, n=n, dtype=t, name="acc"))
    yield Body("reg.Reg", lambda: [reg.scalar(u32, 1, name="x"), reg.Reg("%x", u32).max(3), reg.Reg("%x", u32).min(3)])


def _fill_arrays(first: Any, second: Any, dtype: Any) -> None:
    value = reg.scalar(dtype)
    first[0] = second[-1] = value
    assert len(first.regs()) == 3
    assert first.hw_order(reverse=True)[0] is first[2]


def memory() -> Iterator[Body]:
    """`pyptx.smem` and the parameters: every type, swizzle, major."""
    for dtype in STORED:
        yield Body(f"smem.alloc {dtype}", lambda t=dtype: _elements(t))
    for dtype, swizzle, align in product((u8, bf16, f32), (None, "32B", "64B", "128B"), (None, 16, 2048)):
        yield Body("smem.alloc", lambda t=dtype, s=swizzle, a=align: ptx.ld(
            t, reg.scalar(t), smem.alloc(t, (8, 8), s, a, "tile")[1], space="shared"))  # fmt: skip
        if align is None:
            yield Body("smem.apply_swizzle", lambda s=swizzle: smem.apply_swizzle(reg.scalar(u32, 64), s))
    for dtype, major, width in product((bf16, f16, tf32, e4m3, s8), ("K", "MN"), (16, 32, 64, 128)):
        columns = width * 8 // dtype.bits
        yield Body("smem.wgmma_tile", lambda t=dtype, m=major, c=columns: smem.wgmma_tile(t, (64, c), m).address())
    yield Body("smem.mbarrier", lambda: [ptx.mbarrier.init(smem.mbarrier(4, name="b")[i], 1) for i in range(4)])
    for name, symbol in ((None, True), ("mine", False)):
        yield Body("smem.base", lambda n=name: smem.load(u32, smem.base(n)),
                   options={"smem": 1024, "extern_smem": symbol})  # fmt: skip
    for space, link in product(("shared", "global", "local", "const"), (None, "visible", "extern")):
        if (space, link) not in (("local", "visible"), ("local", "extern"), ("shared", "visible")):
            yield Body(f"var {space}", lambda s=space, k=link: ptx.var(
                s, f32, "v", size=None if (s, k) == ("shared", "extern") else 4, align=16, linking=k))  # fmt: skip
    yield Body("global_ptrs", _tensors, options={"in_specs": (Tile(8, f32), Tile(8, f32))})
    for dtype in (u32, s64, f32, u16):
        yield Body(f"param {dtype}", lambda t=dtype: (ptx.param(t, "n"), ptx.param(t, "n", reg.scalar(t))),
                   options={"raw_params": [(dtype.name, "n")]})  # fmt: skip
    yield Body("param array", lambda: ptx.param(u64, "table"), options={"raw_params": [("b8[64]", "table")]})
    for base, offset in product((u64, u32), (None, 4, -4, u32, s32)):
        yield Body("addr", lambda b=base, o=offset: _load_with_offset(b, o))


def _elements(dtype: Any) -> None:
    tile, line = smem.alloc(dtype, (4, 8)), smem.alloc(dtype, 8)
    i, x = reg.scalar(u32, 1), reg.scalar(dtype)
    tile[1, 2] = x
    tile[i, 2] = tile[1, i]
    smem.store(dtype, line[3], smem.load(dtype, tile[i]))


def _tensors(x: TensorSpec, y: TensorSpec) -> None:
    pointers = ptx.global_ptrs(x, y)
    ptx.cvta.to_global(pointers[0], pointers[1])
    ptx.cvta.param(x.tma_desc())


def _load_with_offset(base: Any, offset: Any) -> None:
    space = "global" if base is u64 else "shared"
    index = reg.scalar(offset, 4) if offset in (u32, s32) else offset
    ptx.ld(f32, reg.scalar(f32), ptx.addr(reg.scalar(base, 64), index), space=space)


def control() -> Iterator[Body]:
    """Control flow, with predicates of both signs and bounds of every kind."""
    for is_negated in (False, True):
        yield Body("if_", lambda n=is_negated: _branches(n))
        yield Body("loop", lambda n=is_negated: _loops(n))
        yield Body("bra", lambda n=is_negated: _jumps(n))
    bounds = [(0, 8, 1), (8, 0, -3), (4, 4, 1), (0, 1 << 33, 1 << 20)]
    for start, stop, step in bounds:
        yield Body("range_", lambda a=start, b=stop, c=step: _count(a, b, c))
    for dtype in (s32, u32, s64, u64):
        for places in ("start", "stop", "step", "start stop step"):
            yield Body(f"range_ {dtype}", lambda t=dtype, p=places: _count(
                *(reg.scalar(t, v) if name in p.split() else v for name, v in (("start", 1), ("stop", 9), ("step", 2)))
            ))  # fmt: skip
    for total, unroll in ((7, 2), (None, 1), (None, 4)):
        yield Body("kloop", lambda n=total, u=unroll: ptx.kloop(
            reg.scalar(u32, 9) if n is None else n, unroll=u, body=lambda: ptx.bar.sync(0), loop_label="k"),
        )  # fmt: skip
    yield Body("scope", lambda: _group())
    for cursor, phase in product((None, u32, s32), (None, u32)):
        yield Body("pipeline", lambda c=cursor, p=phase: ptx.pipeline(
            4, cursor=c and reg.scalar(c, 0), phase=p and reg.scalar(p, 0)).advance())  # fmt: skip
    for barrier, count in product((1, u32), (None, 64, u32)):
        yield Body("named_barrier", lambda b=barrier, c=count: ptx.named_barrier(
            b if isinstance(b, int) else reg.scalar(b, 1), count=c if isinstance(c, int | None) else reg.scalar(c, 64)
        ).sync(pred=reg.scalar(pred)))  # fmt: skip


def _branches(is_negated: bool) -> None:
    x = reg.scalar(u32, 1)
    p = x == 1
    with ptx.if_(~p if is_negated else p):
        with ptx.if_(x == 2):
            ptx.ret(pred=p)
        with ptx.else_():
            ptx.ret()
    with ptx.elif_(x == 3):
        ptx.bar.sync(1)
    with ptx.else_():
        ptx.bar.sync(2)


def _loops(is_negated: bool) -> None:
    x = reg.scalar(u32, 1)
    with ptx.loop("top", pred=lambda: x == 1):
        ptx.break_(pred=~(x == 2) if is_negated else x == 2)
    with ptx.loop("ever"):
        ptx.continue_(pred=x == 3)
        ptx.break_()
    with ptx.while_(lambda: x < 9):
        ptx.add(u32, x, x, 1)


def _jumps(is_negated: bool) -> None:
    p = reg.scalar(u32, 1) == 1
    ptx.label("here")
    ptx.bra("here", pred=~p if is_negated else p)
    ptx.bra("there")
    ptx.label("there")


def _count(start: Any, stop: Any, step: Any) -> None:
    for i in ptx.range_(start, stop, step):
        ptx.add(i.dtype, i, i, 0)
        ptx.break_(pred=i == 5)
        ptx.continue_(pred=i == 6)


def _group() -> None:
    x = reg.scalar(u32, 1)
    with ptx.scope():
        reg.scalar(u32, 2)
    with ptx.expr():
        ptx.pipe(x).add.u32(reg.scalar(u32), 1)


def text() -> Iterator[Body]:
    """Text, directives, literals."""
    yield Body("raw", lambda: ptx.raw(".reg .u32 t; mov.u32 t, 1; L: @!p0 bra L;".replace("@!p0 ", "")))
    for value in ("nounroll", "used_bytes_mask 0xff"):
        yield Body("pragma", lambda v=value: ptx.pragma(v))
    yield Body("file_", lambda: (ptx.file_(1, "a.py"), ptx.loc(1, 2), ptx.loc(1, 2, 3), ptx.ret()))
    for literal in ("0x10", "16", "0b101", "020", "16U"):
        yield Body("imm", lambda v=literal: ptx.inst.mov.u32(reg.scalar(u32), ptx.imm(v)))
    for part in ("b0", "b3", "h1"):
        yield Body("sel", lambda p=part: ptx.inst.vadd.u32.u32.u32(
            reg.scalar(u32), ptx.sel(reg.scalar(u32, 1), p), reg.scalar(u32, 1)))  # fmt: skip


def barriers() -> Iterator[Body]:
    """Rings of barriers: at a symbol, a register, an allocation; by number and by register."""
    for base in ("symbol", "register", "allocation"):
        for stage in (1, u32):
            yield Body("mbarrier.array", lambda b=base, s=stage: _ring(b, s), HOPPER)


def _ring(base: str, stage: Any) -> None:
    memory_ = smem.alloc(u64, 8, name="ring")
    base_operand: Any = {"symbol": "ring", "register": memory_.address(), "allocation": memory_}[base]
    ring = ptx.mbarrier.array(base_operand, 16, 4)
    ring.init_all(1)
    slot = ring[stage] if isinstance(stage, int) else ring.at(reg.scalar(stage, 1))
    slot.init(1)
    slot.wait(0, pred=reg.scalar(pred))
    slot.arrive(sem="release", scope="cluster")
    slot.arrive_expect_tx(64)
    slot.arrive_remote(1)
    ptx.ld(u64, reg.scalar(u64), slot.address_operand(), space="shared")
    assert slot.addr_reg() is not None
    assert slot.byte_offset % 8 == 0
    ring.arrive_remote_all(1, 2)


def descriptors() -> Iterator[Body]:
    """Matrix descriptors with every swizzle."""
    W, T = ptx.wgmma, ptx.tcgen05  # noqa: N806
    for swizzle, base in product((W.SWIZZLE_NONE, W.SWIZZLE_32B, W.SWIZZLE_64B, W.SWIZZLE_128B), (0, 3)):
        yield Body("wgmma.make_descriptor", lambda s=swizzle, b=base: W.make_descriptor(
            reg.scalar(u32, 0), leading_byte_offset=16, stride_byte_offset=1024, swizzle=s, base_offset=b,
            addr_byte_offset=64), HOPPER)  # fmt: skip
    for dtype, major, width in product((bf16, tf32, e4m3), ("K", "MN"), (16, 64, 128)):
        columns = width * 8 // dtype.bits
        yield Body("wgmma.auto_descriptor", lambda t=dtype, m=major, c=columns: W.auto_descriptor(
            reg.scalar(u32, 0), dtype=t, shape=(64, c), major=m), HOPPER)  # fmt: skip
    for offset in (0, 256):
        yield Body("wgmma.masked_descriptor", lambda o=offset: W.masked_descriptor(
            smem.alloc(bf16, (64, 64)), byte_offset=o), HOPPER)  # fmt: skip
        yield Body("tcgen05.masked_descriptor", lambda o=offset: T.masked_descriptor(
            smem.alloc(bf16, (64, 64)), byte_offset=o), BLACKWELL)  # fmt: skip
    modes = [*product(("NONE", "32B", "64B", "128B", "128B_BASE32B"), (0,)), ("128B", 1)]
    for swizzle, mode in modes:
        yield Body("tcgen05.descriptor", lambda s=swizzle, m=mode: T.descriptor(
            reg.scalar(u32, 0), stride_bytes=1024, leading_bytes=16, swizzle=s, lbo_mode=m), ("sm_103a",))  # fmt: skip
    for kind, a, b in product(("bf16", "f16", "tf32"), ("K", "MN"), ("K", "MN")):
        yield Body("tcgen05.make_instr_desc_f16bf16_f32", lambda k=kind, a=a, b=b: T.mma.async_2sm(
            reg.scalar(u32, 0), reg.scalar(u64, 0), reg.scalar(u64, 0),
            T.make_instr_desc_f16bf16_f32(ab_dtype=k, a_major=a, b_major=b), kind="tf32" if k == "tf32" else "f16"),
            BLACKWELL)  # fmt: skip
    yield Body("stmatrix_x4_trans_f32_bf16", lambda: ptx.stmatrix_x4_trans_f32_bf16(
        frag=reg.array(f32, 16), smem_base=smem.alloc(bf16, (32, 72)), lane=ptx.special.tid.x(), row_stride=72),
        HOPPER)  # fmt: skip


def special() -> Iterator[Body]:
    """Every special register, by name and by its own function."""
    for register in SPECIAL_REGISTERS:
        targets = tuple(name for name in ASSEMBLED if register.available.on(find_target(name), NEWEST_PTX))
        last = (targets[0], targets[-1]) if targets else ()
        for name in [f"{register.name[1:]}.{c}" for c in "xyz"] if register.vector else [register.name[1:]]:
            options = {"raw_directives": [("minperctamemory", (16,))]} if name.startswith("perctamemory") else {}
            yield Body(f"sreg {name}", lambda n=name: ptx.sreg(n), last, options)
            yield Body(f"special.{name}", lambda n=name: _reach(ptx.special, n)(), last, options)
    yield Body("ctaid_x", lambda: (ptx.ctaid_x(), ptx.ctaid_y()))


def _reach(owner: Any, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


def functions() -> Iterator[Body]:
    """Device functions, messages, traps."""
    yield Body("func", lambda: _call_functions())
    yield Body("printf", lambda: ptx.printf("%d %f\n", reg.scalar(u32, 1), reg.scalar(f32, 1.0)))
    for count in (24, 40, 232, 256):
        yield Body("setmaxnreg", lambda n=count: (ptx.setmaxnreg_dec(n), ptx.setmaxnreg_inc(n)), HOPPER, {"block": 128})
    yield Body("trap", lambda: (ptx.assert_(reg.scalar(u32, 1) == 1, "never"), ptx.trap()))  # noqa: PT009


def _call_functions() -> None:
    @ptx.func(params=[u32], returns=[u32])
    def double(x: Any) -> Any:
        return x + x

    double(reg.scalar(u32, 1))
