"""Calls of every wrapper that synchronizes, copies or exchanges, with every value of its options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from pyptx import ptx, reg, smem
from pyptx.types import (
    b16,
    b32,
    b64,
    b128,
    bf16,
    bf16x2,
    e4m3x2,
    e4m3x4,
    e5m2x4,
    f16,
    f16x2,
    f32,
    f64,
    pred,
    s32,
    s64,
    u16,
    u32,
    u64,
)


class Operands:
    """Operands that calls name: registers of each kind, an allocation, a barrier; created on first use."""

    def __getattr__(self, name: str) -> Any:
        kind, _, count = name.partition("_")
        dtype = TYPES[kind]
        registers = [reg.alloc(dtype) for _ in range(int(count))] if count else reg.alloc(dtype)
        self.__dict__[name] = registers
        return registers

    @cached_property
    def tile(self) -> Any:
        return smem.alloc(f32, (4, 64))[1]

    @cached_property
    def bar(self) -> Any:
        return smem.mbarrier(4)[3]

    @cached_property
    def not_p(self) -> Any:
        return ~self.pred

    @cached_property
    def coordinates(self) -> Any:
        return ptx.addr(self.b64, [1, self.s32])


TYPES = {
    t.name: t
    for t in (b16, b32, b64, b128, bf16, bf16x2, e4m3x4, e5m2x4, f16, f16x2, f32, f64, pred, s32, s64, u16, u32, u64)
}


@dataclass(frozen=True)
class Of:
    """A value of `Operands`, by name."""

    name: str


class Alternatives(tuple[Any, ...]):
    """Alternatives: one call for each."""

    __slots__ = ()


def any_of(*values: Any) -> Alternatives:
    """Return alternatives; strings that begin with `%` name operands."""
    return Alternatives(operand(value) for value in values)


def operand(value: Any) -> Any:
    """Return a string that begins with `%` as the name of an operand."""
    return Of(value[1:]) if isinstance(value, str) and value.startswith("%") else value


@dataclass(frozen=True)
class Call:
    """One call: the path of the wrapper under `ptx`, and its arguments."""

    path: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]

    def make(self, operands: Operands) -> Any:
        """Call the wrapper in a kernel."""

        def resolve(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(resolve, value))  # pyright: ignore[reportUnknownArgumentType]
            return getattr(operands, value.name) if isinstance(value, Of) else value

        wrapper: Any = ptx
        for name in self.path.split("."):
            wrapper = getattr(wrapper, name)
        return wrapper(*map(resolve, self.args), **{name: resolve(value) for name, value in self.kwargs})

    def __str__(self) -> str:
        arguments = [*map(str, self.args), *(f"{name}={value}" for name, value in self.kwargs)]
        return f"ptx.{self.path}({', '.join(arguments)})"


def calls(path: str, *args: Any, **kwargs: Any) -> Iterator[Call]:
    """Return a call for every combination of the alternatives."""
    args = tuple(map(operand, args))
    kwargs = {name: operand(value) for name, value in kwargs.items()}
    sets = [value if isinstance(value, Alternatives) else (value,) for value in (*args, *kwargs.values())]
    for choice in product(*sets):
        yield Call(path, choice[: len(args)], tuple(zip(kwargs, choice[len(args) :], strict=True)))


GUARD = any_of(None, "%pred", "%not_p")
HINT = any_of(None, "%b64")
RELEASE = {"sem": any_of(None, "release", "relaxed"), "scope": any_of(None, "cta", "cluster")}
ACQUIRE = {"sem": any_of(None, "acquire", "relaxed"), "scope": any_of(None, "cta", "cluster")}
BARRIER = any_of("%bar", "%u32", "%tile")
NUMBER = any_of(64, "%u32")
COUNT = any_of(None, 2, "%u32")
SCOPES = any_of("cta", "cluster", "gpu", "sys")


def barriers() -> Iterator[Call]:
    """Yield calls of memory barriers."""
    yield from calls("mbarrier.init", BARRIER, NUMBER, pred=GUARD)
    yield from calls("mbarrier.inval", BARRIER, pred=GUARD)
    for name in ("arrive", "arrive_drop"):
        yield from calls(f"mbarrier.{name}", "%bar", count=COUNT, **RELEASE, pred=GUARD)
        yield from calls(f"mbarrier.{name}_expect_tx", "%bar", NUMBER, **RELEASE, pred=GUARD)
        yield from calls(f"mbarrier.{name}_no_complete", BARRIER, NUMBER, pred=GUARD)
    yield from calls("mbarrier.arrive_mapped", "%u32", count=COUNT, **RELEASE, pred=GUARD)
    yield from calls("mbarrier.arrive_expect_tx_mapped", "%u32", NUMBER, **RELEASE, pred=GUARD)
    for name in ("expect_tx", "complete_tx"):
        spaces = any_of("shared", "shared::cta", "shared::cluster")
        yield from calls(f"mbarrier.{name}", BARRIER, NUMBER, space=spaces, pred=GUARD)
    yield from calls("mbarrier.pending_count", any_of("%b64", "%u64"))
    yield from calls("mbarrier.check_layout", "%bar", any_of("v0", "v1"), pred=GUARD)
    phases = any_of(0, 1, "%u32", "%s32")
    yield from calls("mbarrier.try_wait", "%bar", phases, suspend_hint=any_of(None, 100, "%u32"), **ACQUIRE)
    yield from calls("mbarrier.try_wait", BARRIER, "%b64", parity=False, suspend_hint=COUNT, **ACQUIRE, pred=GUARD)
    yield from calls("mbarrier.test_wait", "%bar", phases, **ACQUIRE, pred=GUARD)
    yield from calls("mbarrier.test_wait", BARRIER, "%b64", parity=False, **ACQUIRE)
    yield from calls("mbarrier.wait", BARRIER, phases, **ACQUIRE, pred=GUARD)


def fences() -> Iterator[Call]:
    """Yield calls of fences, barriers of the CTA and of the cluster, and dependent launch."""
    names = (
        "proxy_async", "proxy_async_global", "proxy_async_shared_cta", "proxy_async_shared_cluster", "proxy_alias",
        "proxy_async_generic_acquire_shared_cluster", "proxy_async_generic_release_shared_cta", "mbarrier_init",
        "acquire_shared_cluster", "release_shared_cta",
    )  # fmt: skip
    for name in names:
        yield from calls(f"fence.{name}", pred=GUARD)
    for name in ("sc", "acq_rel", "acquire", "release", "proxy_tensormap_release"):
        yield from calls(f"fence.{name}", SCOPES, pred=GUARD)
    yield from calls("fence.proxy_tensormap_acquire", "%b64", SCOPES, pred=GUARD)
    yield from calls("fence.membar", any_of("cta", "gl", "sys"), pred=GUARD)
    numbers, counts = any_of(0, 15, "%u32"), any_of(None, 64, "%u32")
    yield from calls("bar.sync", numbers, counts, pred=GUARD)
    yield from calls("bar.arrive", numbers, NUMBER, pred=GUARD)
    for name in ("red_popc", "red_and", "red_or"):
        yield from calls(f"bar.{name}", any_of("%pred", "%not_p"), numbers, counts, pred=GUARD)
    yield from calls("bar.warp_sync", any_of(0xFFFFFFFF, "%b32"), pred=GUARD)
    yield from calls("griddepcontrol.launch_dependents", pred=GUARD)
    yield from calls("griddepcontrol.wait", pred=GUARD)


def clusters() -> Iterator[Call]:
    """Yield calls for clusters, address conversion and launch control."""
    flags = any_of(False, True)
    scope = any_of(None, "cluster")
    yield from calls("cluster.arrive", aligned=flags, sem=any_of(None, "release", "relaxed"), scope=scope, pred=GUARD)
    yield from calls("cluster.wait", aligned=flags, sem=any_of(None, "acquire"), scope=scope, pred=GUARD)
    yield from calls("cluster.sync", aligned=flags, pred=GUARD)
    yield from calls("cluster.rank", any_of(0, "%u32", "%s32"))
    yield from calls("cluster.map_shared_u32", BARRIER, any_of(1, "%u32"), pred=GUARD)
    yield from calls("cluster.getctarank", BARRIER, pred=GUARD)
    yield from calls("cluster.arrive_remote", BARRIER, any_of(1, "%u32"), NUMBER, **RELEASE)
    yield from calls("cluster.arrive_remote", BARRIER, any_of(1, "%u32"), pred=GUARD)
    yield from calls("cluster.arrive_multicast", BARRIER, any_of(1, 5, 0xFFFF, "%u32"), NUMBER, pred=GUARD)
    yield from calls("cluster.arrive_multicast", "%bar", any_of(1, "%b32"), **RELEASE)
    for name in ("param", "to_global", "to_shared", "to_local", "to_const", "to_param", "global_", "local", "const"):
        yield from calls(f"cvta.{name}", any_of("%b64", "%u64"), any_of(None, "%u64"), pred=GUARD)
    yield from calls("cvta.shared", any_of("%b64", "%tile", "%bar"), any_of(None, "%u64"), pred=GUARD)
    spaces = any_of("const", "global", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry")
    yield from calls("cvta.isspacep", spaces, "%b64", pred=GUARD)
    yield from calls("clusterlaunchcontrol.try_cancel", "%tile", BARRIER, multicast=flags, pred=GUARD)
    yield from calls("clusterlaunchcontrol.is_canceled", "%b128", pred=GUARD)
    yield from calls("clusterlaunchcontrol.get_first_ctaid", "%b128", pred=GUARD)
    yield from calls("clusterlaunchcontrol.get_first_ctaid_dim", "%b128", any_of("x", "y", "z"), pred=GUARD)


def copies() -> Iterator[Call]:
    """Yield calls of non-tensor copies and of cache operations."""
    levels = any_of(None, "L2::64B", "L2::128B", "L2::256B")
    options: dict[str, Any] = {"cache_hint": HINT, "prefetch": levels, "pred": GUARD}
    for name, sizes in (("cg", any_of(16)), ("ca", any_of(4, 8, 16))):
        path = f"cp.async_.{name}"
        yield from calls(path, any_of("%tile", "%u32"), any_of("%b64", "%u64"), sizes, **options)
        yield from calls(path, "%tile", "%b64", sizes, src_size=any_of(0, 4, "%u32"), **options)
        yield from calls(path, "%tile", "%b64", sizes, ignore_src=any_of("%pred", "%not_p"), **options)
    yield from calls("cp.async_.commit_group", pred=GUARD)
    yield from calls("cp.async_.wait_group", any_of(0, 7), pred=GUARD)
    yield from calls("cp.async_.wait_all", pred=GUARD)
    yield from calls("cp.async_.mbarrier_arrive", BARRIER, noinc=any_of(False, True), pred=GUARD)
    bulk, size = "cp.async_.bulk", any_of(16, 1048560, "%u32")
    source, target = "%b64", any_of("%tile", "%u32")
    masks = any_of(None, 3, "%u16")
    yield from calls(f"{bulk}.global_to_shared", target, source, size, "%bar", multicast_mask=masks, cache_hint=HINT,
                     pred=GUARD)  # fmt: skip
    left_out = any_of(None, (0, 15), (Of("u32"), Of("u32")))
    yield from calls(f"{bulk}.global_to_shared_cta", target, source, size, "%bar", ignore_bytes=left_out,
                     cache_hint=HINT, pred=GUARD)  # fmt: skip
    yield from calls(f"{bulk}.shared_to_shared", "%u32", "%tile", size, "%u32", pred=GUARD)
    yield from calls(f"{bulk}.shared_to_global", source, target, size, cache_hint=HINT, byte_mask=masks, pred=GUARD)
    for op, kinds in SUMS_AND_BITS.items():
        yield from calls(f"{bulk}.reduce_to_global", op, kinds, source, target, size, cache_hint=HINT)
    for op, kinds in NEAR_SUMS_AND_BITS.items():
        yield from calls(f"{bulk}.reduce_to_shared", op, kinds, "%u32", "%tile", size, "%u32", pred=GUARD)
    yield from calls(f"{bulk}.prefetch", source, size, cache_hint=HINT, pred=GUARD)
    yield from calls(f"{bulk}.commit_group", pred=GUARD)
    yield from calls(f"{bulk}.wait_group", any_of(0, 3), read=any_of(False, True), pred=GUARD)


SUMS_AND_BITS = {
    "add": any_of(u32, s32, u64, s64, b32, f32, f64, f16, bf16), "min": any_of(u32, s32, u64, s64, f16, bf16),
    "max": any_of(u32, s32, u64, s64, f16, bf16), "inc": any_of(u32), "dec": any_of(u32, b32),
    "and": any_of(b32, b64, u32), "or": any_of(b32, u64), "xor": any_of(s32, b64),
}  # fmt: skip
NEAR_SUMS_AND_BITS = {
    "add": any_of(u32, s32, u64, b32), "min": any_of(u32, s32), "max": any_of(u32, s32), "inc": any_of(u32),
    "dec": any_of(u32), "and": any_of(b32), "or": any_of(u32), "xor": any_of(s32),
}  # fmt: skip


def tensors() -> Iterator[Call]:
    """Yield calls of tensor copies and tensor maps."""
    bulk = "cp.async_.bulk"
    groups, masks = any_of(1, 2), any_of(None, 3, "%u16")
    for rank in range(1, 6):
        coord = tuple(Of("s32") if index % 2 else index for index in range(rank))
        load: dict[str, Any] = {"cta_group": groups, "cache_hint": HINT}
        yield from calls(f"{bulk}.tensor_{rank}d", dst="%tile", src="%b64", coord=coord, mbar=BARRIER,
                         multicast_mask=masks, **load, pred=GUARD)  # fmt: skip
        yield from calls(f"{bulk}.tensor_{rank}d.store", dst="%b64", src="%tile", coord=coord, cache_hint=HINT,
                         pred=GUARD)  # fmt: skip
        yield from calls(f"{bulk}.tensor_{rank}d.shared_cta_global_tile", dst="%tile", src="%b64", coord=coord,
                         mbar="%bar", **load, pred=GUARD)  # fmt: skip
        yield from calls(f"{bulk}.tensor.tile_{rank}d", "%u32", "%b64", coord, mbar="%bar", multicast_mask=masks,
                         **load)  # fmt: skip
        yield from calls(f"{bulk}.tensor.store_{rank}d", "%b64", "%u32", coord, cache_hint=HINT, pred=GUARD)
        ops = any_of("add", "min", "max", "inc", "dec", "and", "or", "xor")
        yield from calls(f"{bulk}.tensor.reduce_{rank}d", ops, "%b64", "%tile", coord, cache_hint=HINT, pred=GUARD)
        yield from calls(f"{bulk}.tensor.prefetch_{rank}d", "%b64", coord, cache_hint=HINT, pred=GUARD)
        if rank >= 3:
            yield from image_calls(rank, coord, load)
    rows = (0, 1, Of("s32"), 3, 4)
    yield from calls(f"{bulk}.tensor.gather4_2d", "%tile", "%b64", rows, mbar="%bar", multicast_mask=masks,
                     cta_group=groups, cache_hint=HINT, pred=GUARD)  # fmt: skip
    yield from calls(f"{bulk}.tensor.scatter4_2d", "%b64", "%tile", rows, cache_hint=HINT, pred=GUARD)
    yield from calls(f"{bulk}.tensor.prefetch_2d", "%b64", rows, mode="tile::gather4", cache_hint=HINT)
    yield from calls(f"{bulk}.tensor_2d", dst="%tile", src="%coordinates", mbar="%bar")
    columns = any_of(64, "%u32", "%s32")
    yield from calls("tma.load_3d", "%tile", "%b64", any_of(1, "%u32"), columns, "%bar", pred=GUARD)
    yield from calls("tma.load_3d", "%tile", "%b64", mbar="%bar", coords=(0, Of("s32"), 2))
    yield from calls("tma.load_3d_multicast", "%tile", "%b64", 1, columns, "%bar", any_of(3, "%u16"),
                     issuer=any_of(None, 0, "%pred", "%not_p"), pred=GUARD)  # fmt: skip
    yield from calls("tma.store_3d", "%b64", "%tile", 1, columns, pred=GUARD)
    wide = any_of("%b64", 1 << 40)
    spaces = any_of("global", "shared::cta")
    yield from calls("tensormap.replace", "global_address", "%b64", wide, space=spaces, pred=GUARD)
    yield from calls("tensormap.replace", "global_stride", "%b64", wide, dim=any_of(0, 4), space=spaces)
    for field in ("box_dim", "global_dim", "element_stride"):
        yield from calls("tensormap.replace", field, "%b64", any_of(8, "%u32"), dim=any_of(0, 4), space=spaces)
    for field, largest in (("elemtype", 12), ("interleave_layout", 2), ("swizzle_mode", 3), ("fill_mode", 1)):
        yield from calls("tensormap.replace", field, "%b64", any_of(*range(largest + 1)), space=spaces)
    yield from calls("tensormap.replace", "elemtype", "%b64", any_of(13, 14, 15), space=spaces)
    yield from calls("tensormap.replace", "swizzle_atomicity", "%b64", any_of(0, 1, 2, 3), space=spaces)
    yield from calls("tensormap.replace", "rank", "%b64", any_of(4, "%u32"), space=spaces)
    yield from calls("tensormap.cp_fenceproxy", "%b64", "%tile", scope=SCOPES, pred=GUARD)


def image_calls(rank: int, coord: tuple[Any, ...], load: dict[str, Any]) -> Iterator[Call]:
    """Yield calls of tensor copies of one rank in the im2col modes."""
    tensor, masks = "cp.async_.bulk.tensor", any_of(None, 3)
    offsets = tuple(Of("u16") if index else 1 for index in range(rank - 2))
    yield from calls(f"{tensor}.im2col_{rank}d", "%tile", "%b64", coord, offsets=offsets, mbar="%bar",
                     multicast_mask=masks, **load)  # fmt: skip
    yield from calls(f"{tensor}.im2col_{rank}d", "%tile", "%b64", coord, offsets=(1, Of("u16")), mbar="%bar",
                     mode=any_of("im2col::w", "im2col::w::128"), multicast_mask=masks, **load)  # fmt: skip
    yield from calls(f"{tensor}.store_im2col_{rank}d", "%b64", "%tile", coord, cache_hint=HINT, pred=GUARD)
    yield from calls(f"{tensor}.reduce_{rank}d", "add", "%b64", "%tile", coord, mode="im2col_no_offs")
    yield from calls(f"{tensor}.prefetch_{rank}d", "%b64", coord, mode="im2col", offsets=offsets, cache_hint=HINT)
    yield from calls(f"{tensor}.prefetch_{rank}d", "%b64", coord, mode="im2col::w", offsets=(1, 2))


SPACES = any_of("", "global", "shared", "shared::cta", "shared::cluster")
ATOMIC = {
    "add": "u32 s32 u64 s64 b32 f32 f64 f16 f16x2 bf16 bf16x2", "min": "u32 s32 u64 s64 b32", "inc": "u32 b32",
    "max": "u32 s32 u64 s64 b64", "dec": "u32", "and_": "b32 b64 u32", "or_": "b32 u64", "xor_": "s32 b64",
    "exch": "b32 b64 u32 f32 b128",
}  # fmt: skip


def atomics() -> Iterator[Call]:
    """Yield calls of atomic operations: synchronous, asynchronous, and multi-device."""
    orders: dict[str, Any] = {"scope": any_of(None, "cta", "cluster", "gpu", "sys")}
    for op, names in ATOMIC.items():
        for name in names.split():
            kind = TYPES[name]
            register = f"%{name}"
            yield from calls(f"atom.{op}", kind, any_of(None, register), "%u64", register, space=SPACES, pred=GUARD)
            yield from calls(f"atom.{op}", kind, register, "%u64", register, space="global", cache_hint="%b64")
            if op != "exch":
                yield from calls(f"red.{op}", kind, "%u64", register, space=SPACES, pred=GUARD)
                yield from calls(f"red.{op}", kind, "%u64", register, space=any_of("global", ""), cache_hint="%b64")
    sems = any_of(None, "relaxed", "acquire", "release", "acq_rel")
    yield from calls("atom.add", u32, "%u32", "%u64", any_of(1, "%u32"), space=SPACES, sem=sems, **orders)
    yield from calls("red.add", u32, "%u64", any_of(1, "%u32"), space=SPACES, sem=any_of(None, "relaxed", "release"),
                     **orders)  # fmt: skip
    for name in ("b16", "b32", "b64", "b128", "u32", "f64"):
        kind = f"%{name}"
        yield from calls("atom.cas", TYPES[name], any_of(None, kind), "%u64", kind, kind, space=SPACES, sem=sems,
                         pred=GUARD)  # fmt: skip
    for op, vectors in (("add", "f32_2 f32_4 f16_2 f16_8 bf16x2_4"), ("min", "f16_4 bf16x2_2"), ("max", "bf16_8")):
        for name in vectors.split():
            kind = TYPES[name.split("_")[0]]
            yield from calls(
                f"atom.{op}", kind, f"%{name}", "%u64", f"%{name}", cache_hint=HINT, space=any_of("", "global")
            )
            yield from calls(f"red.{op}", kind, "%u64", f"%{name}", sem=any_of(None, "relaxed"), cache_hint=HINT)
    yield from far_stores()
    yield from devices()


def far_stores() -> Iterator[Call]:
    """Yield calls of asynchronous stores and reductions."""
    for name in ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64", "b32_2", "f64_2", "f32_4", "b128"):
        kind = TYPES[name.split("_")[0]]
        yield from calls("st_async", kind, "%u32", f"%{name}", "%u32", pred=GUARD)
    for op, kinds in {**NEAR_SUMS_AND_BITS, "add": any_of(u32, s32, u64, s64)}.items():
        for kind in kinds:
            yield from calls("red_async", op, kind, "%u32", f"%{kind}", "%u32", pred=GUARD)
            yield from calls("red_async_global", op, kind, "%u64", f"%{kind}", scope=any_of("gpu", "sys"))
            yield from calls("red_async_global", op, kind, "%u64", f"%{kind}", mmio=True, pred=GUARD)
    for kind in (b16, b32, b64, f32):
        yield from calls("st_async_global", kind, "%u64", f"%{kind}", scope=any_of("gpu", "sys"), pred=GUARD)
        yield from calls("st_async_global", kind, "%u64", f"%{kind}", mmio=True)
    yield from calls("st_bulk", any_of("%tile", "%u32"), any_of(64, "%u32", "%u64"), pred=GUARD)
    yield from calls("prefetch", "%b64", level=any_of("L1", "L2"), space=any_of("global", "local", ""), pred=GUARD)
    yield from calls("prefetch", "%b64", level=any_of("L2::evict_last", "L2::evict_normal"), pred=GUARD)
    yield from calls("prefetch_tensormap", "%b64", space=any_of("", "param", "const"), pred=GUARD)
    yield from calls("prefetchu", "%b64", pred=GUARD)
    yield from calls("applypriority", "%b64", pred=GUARD)
    yield from calls("discard", "%b64", pred=GUARD)
    first = any_of("evict_last", "evict_normal", "evict_first", "evict_unchanged")
    second = any_of(None, "evict_first", "evict_unchanged")
    yield from calls("createpolicy_fractional", first, second, fraction=any_of(None, 0.5, 1.0, "%f32"), pred=GUARD)
    yield from calls("createpolicy_range", "%b64", NUMBER, NUMBER, first, second, pred=GUARD)
    yield from calls("createpolicy_cvt", "%b64", pred=GUARD)


def devices() -> Iterator[Call]:
    """Yield calls of multi-device memory operations."""
    loads: dict[str, Any] = {"sem": any_of(None, "weak"), "scope": None}
    strong: dict[str, Any] = {"sem": any_of("relaxed", "acquire"), "scope": SCOPES}
    stores: dict[str, Any] = {"sem": any_of("relaxed", "release"), "scope": SCOPES}
    for op, names in (("add", "u32 s32 u64 s64"), ("min", "u32 s32 u64 s64"), ("max", "s32"), ("and", "b32 u64"),
                      ("or", "b64"), ("xor", "b32")):  # fmt: skip
        for name in names.split():
            kind = TYPES[name]
            for order in (loads, strong):
                yield from calls("multimem.ld_reduce", op, kind, f"%{name}", "%u64", **order, pred=GUARD)
            yield from calls("multimem.red", op, kind, "%u64", f"%{name}", **stores, pred=GUARD)
            yield from calls("multimem.red", op, kind, "%u64", f"%{name}", space=any_of("", "global"))
    for name in ("f32", "f32_2", "f32_4", "f64", "f16x2", "f16x2_2", "bf16x2_4"):
        kind = TYPES[name.split("_")[0]]
        yield from calls("multimem.ld_reduce", "add", kind, f"%{name}", "%u64", **loads)
        yield from calls("multimem.red", "add", kind, "%u64", f"%{name}")
        yield from calls("multimem.st", kind, "%u64", f"%{name}", **stores)
        yield from calls("multimem.st", kind, "%u64", f"%{name}", **loads, pred=GUARD)
    for kind, name in ((f16x2, "f16x2_4"), (bf16x2, "bf16x2"), (f16, "b16_8")):
        yield from calls("multimem.ld_reduce", "add", kind, f"%{name}", "%u64", acc=any_of(None, f32))
        yield from calls("multimem.ld_reduce", any_of("min", "max"), kind, f"%{name}", "%u64")
    for kind, name in ((e5m2x4, "b32"), (e4m3x4, "b32_4"), (e4m3x2, "b16_8")):
        yield from calls("multimem.ld_reduce", "add", kind, f"%{name}", "%u64", acc=any_of(None, f16))
        yield from calls("multimem.st", kind, "%u64", f"%{name}")
    masks = any_of(None, 3, "%u16")
    yield from calls("multimem.cp_async_bulk", "%b64", "%tile", any_of(16, "%u32"), byte_mask=masks, pred=GUARD)
    for op, kinds in SUMS_AND_BITS.items():
        yield from calls("multimem.cp_reduce_async_bulk", op, kinds, "%b64", "%tile", any_of(16, "%u32"))


def warps() -> Iterator[Call]:
    """Yield calls of warp-wide operations."""
    masks, widths = any_of(0xFFFFFFFF, "%b32"), any_of(2, 4, 8, 16, 32)
    for name in ("bfly", "up", "down", "idx"):
        for kind in ("b32", "u32", "s32", "f32", "f16x2", "u16", "f16", "bf16", "b64", "f64", "s64"):
            yield from calls(f"warp.shfl_{name}", f"%{kind}", any_of(1, "%u32"), valid=any_of(None, "%pred"))
        yield from calls(f"warp.shfl_{name}", "%f32", 1, width=widths, mask=masks, pred=GUARD)
    for name in ("vote_all", "vote_any", "vote_uni", "ballot"):
        yield from calls(f"warp.{name}", any_of("%pred", "%not_p"), mask=masks, pred=GUARD)
    for name in ("match_any", "match_all"):
        yield from calls(f"warp.{name}", any_of("%b32", "%u32", "%f32", "%s64", "%b64"), mask=masks, pred=GUARD)
    yield from calls("warp.activemask")
    yield from calls("warp.elect", masks, leader=any_of(True, False))
    yield from calls(
        "warp.shfl", any_of("up", "bfly"), "%b32", any_of(1, "%u32"), 0, masks, valid=any_of(True, False), pred=GUARD
    )
    yield from calls("warp.sync", masks, pred=GUARD)
    for op in ("sum", "add", "min", "max"):
        yield from calls("warp.redux", op, any_of("%u32", "%s32", "%b32"), dst=any_of(None, "%u32"), mask=masks)
    yield from calls("warp.redux", any_of("and", "or", "xor"), any_of("%u32", "%s32", "%b32"), mask=masks, pred=GUARD)
    flags = any_of(False, True)
    yield from calls("warp.redux", any_of("min", "max"), "%f32", abs_=flags, nan=flags, pred=GUARD)
    numbers = ("u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "u16")
    values = any_of(*(f"%{name}" for name in numbers))
    for name in ("sum", "max", "min"):
        yield from calls(f"warp.reduce_{name}", values, width=widths)
        yield from calls(f"warp.all_reduce_{name}", "%f32")
    yield from calls("warp.reduce", any_of("sum", "max", "min"), values, width=any_of(8, 32))
    yield from calls("warp.all_reduce", any_of("and", "or", "xor"), any_of("%u32", "%b64", "%s32"), width=widths)


GROUPS: dict[str, Callable[[], Iterator[Call]]] = {
    "barriers": barriers, "fences": fences, "clusters": clusters, "copies": copies, "tensors": tensors,
    "atomics": atomics, "warps": warps,
}  # fmt: skip
SEVERAL = frozenset(
    ("mbarrier.wait", "cluster.sync", "cluster.rank", "cluster.arrive_remote", "cluster.arrive_multicast")
)
"""Wrappers that emit several instructions, in a named scope."""
