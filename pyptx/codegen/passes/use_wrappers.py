"""Writes instructions with the wrappers of their families: `ptx.ld`, `ptx.wgmma.mma_async`, `ptx.mbarrier.init`.

Contract: as for `use_operators`. The bench rejects a wrapper call that emits something else or that the target does not
support, so the candidates may be generous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyptx.codegen.passes.use_families import FAMILIES, omit_usual
from pyptx.codegen.plan import Attribute, Call, Expr, Literal, build_path, call
from pyptx.codegen.sugar_site import Site
from pyptx.ir.operands import AddressOperand, LabelOperand, Operand, VectorOperand
from pyptx.isa.special import find_special_register

Ways = Callable[[Site], Iterator[Expr | None]]


def spell_with_wrappers(site: Site) -> Iterator[Expr]:
    """Yield calls of wrappers for an instruction."""
    ways = WAYS.get(site.opcode) or FAMILIES.get(site.opcode)
    if ways is not None:
        for candidate in ways(site):
            if candidate is not None:
                yield candidate


def _spell_mov(site: Site) -> Iterator[Expr | None]:
    kind = site.kind
    source = site.actuals[1]
    name = getattr(source, "name", "")
    if site.fresh and site.pred is None and name.startswith("%") and find_special_register(name) is not None:
        yield call(build_path(f"ptx.special.{name[1:]}"))
    if kind is None:
        return
    if site.fresh:
        yield site.build_call("ptx.mov", site.name_type(kind), site.build_operand(1))
        home = site.find_home(site.actuals[0])
        if home is not None:
            yield site.build_call("ptx.bitcast", site.name_type(home), site.build_operand(1))
    else:
        yield site.build_call("ptx.mov", site.name_type(kind), site.build_operand(0), site.build_operand(1))


def _spell_ld(site: Site) -> Iterator[Expr | None]:
    kind = site.kind
    if kind is None:
        return
    words = list(site.words[:-1])
    address = site.actuals[1] if len(site.actuals) > 1 else None
    plain = isinstance(address, AddressOperand) and address.offset is None and not address.rest
    if words == ["param"] and plain and site.pred is None and site.fresh:
        assert isinstance(address, AddressOperand)
        if site.operands.get_variable(address.base) is None:
            yield call(build_path("ptx.param"), site.name_type(kind), site.operands.build_name(address.base))
    if len(site.actuals) != 2 or _is_single(site.actuals[0]):
        return
    lanes = words.pop() if words and words[-1] in ("v2", "v4", "v8") else None
    space = words.pop(0) if words and words[0] in _SPACES else ""
    if words and words[0] in _ORDERS:
        return
    options = {"space": omit_usual(space, "global"), "cache": omit_usual(".".join(words), "")}
    if site.fresh:
        vec = None if lanes is None else Literal(int(lanes[1:]))
        yield site.build_call("ptx.ld", site.name_type(kind), site.build_operand(1), vec=vec, **options)
    else:
        yield site.build_call("ptx.ld", site.name_type(kind), site.build_operand(0), site.build_operand(1), **options)


def _is_single(operand: Operand) -> bool:
    """Tell whether an operand is a vector of one, which no wrapper writes."""
    return isinstance(operand, VectorOperand) and len(operand.elements) == 1


_ORDERS = frozenset("volatile relaxed acquire release weak mmio".split())
_SPACES = frozenset("global shared local const param shared::cta shared::cluster param::entry param::func".split())


def _list_unusual(text: str, usual: str) -> tuple[Expr, ...]:
    """Return the argument of a parameter that has a default."""
    return () if text == usual else (Literal(text),)


def _spell_st(site: Site) -> Iterator[Expr | None]:
    kind = site.kind
    words = list(site.words[:-1])
    if kind is None or len(site.actuals) != 2 or _is_single(site.actuals[1]):
        return
    if words and words[-1] in ("v2", "v4", "v8"):
        words.pop()
    space = words.pop(0) if words and words[0] in _SPACES else ""
    if words and words[0] in _ORDERS:
        return
    options = {"space": omit_usual(space, "global"), "cache": omit_usual(".".join(words), "")}
    yield site.build_call("ptx.st", site.name_type(kind), site.build_operand(0), site.build_operand(1), **options)


def _spell_mul(site: Site) -> Iterator[Expr | None]:
    if site.kind is None or len(site.words) != 2:
        return
    first = () if site.fresh else (site.build_operand(0),)
    mode = None if site.words[0] == "lo" else Literal(site.words[0])
    yield site.build_call(
        "ptx.mul", site.name_type(site.kind), *first, site.build_operand(1), site.build_operand(2), mode=mode
    )


def _spell_mad(site: Site) -> Iterator[Expr | None]:
    if site.kind is None or len(site.words) != 2 or site.fresh:
        return
    mode = None if site.words[0] in ("lo", "rn") else Literal(site.words[0])
    yield site.build_call("ptx.mad", site.name_type(site.kind), *site.build_operands(0), mode=mode)


def _make_plain(name: str) -> Ways:
    """Return candidates for a wrapper `name(dtype, dst, …)` without a short form, if the destination exists."""

    def spell_plain(site: Site) -> Iterator[Expr | None]:
        if site.kind is not None and not site.fresh and len(site.words) == 1:
            yield site.build_call(name, site.name_type(site.kind), *site.build_operands(0))

    return spell_plain


def _spell_not(site: Site) -> Iterator[Expr | None]:
    if site.kind is not None and len(site.words) == 1:
        yield site.build_call("ptx.not_", site.name_type(site.kind), *site.build_operands(1 if site.fresh else 0))


def _spell_setp(site: Site) -> Iterator[Expr | None]:
    if site.kind is not None and not site.fresh and len(site.words) in (2, 3):
        comparison = Literal(".".join(site.words[:-1]))
        yield site.build_call("ptx.setp", comparison, site.name_type(site.kind), *site.build_operands(0))


def _spell_selp(site: Site) -> Iterator[Expr | None]:
    if site.kind is not None:
        yield site.build_call("ptx.selp", site.name_type(site.kind), *site.build_operands(1 if site.fresh else 0))


def _spell_cvt(site: Site) -> Iterator[Expr | None]:
    words = list(site.words)
    if len(words) < 2:
        return
    source, target = words.pop(), words.pop()
    if source not in site.types or target not in site.types:
        return
    flags = {word: Literal(True) for word in ("ftz", "sat") if word in words}
    rounding = ".".join(word for word in words if word not in flags)
    sources = site.build_operands(1)
    operands: tuple[Expr | None, ...] = sources if len(sources) == 1 else (site.build_list(sources),)
    first = () if site.fresh else (site.build_operand(0),)
    options = {"rounding": Literal(rounding) if rounding else None, **flags}
    yield site.build_call("ptx.cvt", site.name_type(target), site.name_type(source), *first, *operands, **options)


def _spell_cvta(site: Site) -> Iterator[Expr | None]:
    words = list(site.words[:-1])
    if not words or site.words[-1] != "u64":
        return
    name = "_".join(words)
    name = "global_" if name == "global" else name
    dst = None if site.fresh else site.build_operand(0)
    yield site.build_call(f"ptx.cvta.{name}", site.build_operand(1), dst=dst)


def _spell_bra(site: Site) -> Iterator[Expr | None]:
    if len(site.actuals) == 1 and isinstance(site.actuals[0], LabelOperand):
        uni = Literal(True) if site.words == ("uni",) else None
        yield site.build_call("ptx.bra", Literal(site.actuals[0].name), uni=uni)


def _make_bare(name: str) -> Ways:
    def spell_bare(site: Site) -> Iterator[Expr | None]:
        yield site.build_call(name, *site.build_operands(0))

    return spell_bare


def _spell_bar(site: Site) -> Iterator[Expr | None]:
    words = ".".join(site.words)
    if words == "sync":
        if site.build_operands(0) == (Literal(0),):
            yield site.build_call("ptx.bar.sync")
        yield site.build_call("ptx.bar.sync", *site.build_operands(0))
    elif words == "warp.sync":
        if site.build_operands(0) == (Literal(0xFFFFFFFF),):
            yield site.build_call("ptx.bar.warp_sync")
        yield site.build_call("ptx.bar.warp_sync", *site.build_operands(0))
    elif words == "arrive":
        yield site.build_call("ptx.bar.arrive", *site.build_operands(0))
    elif site.words[0] == "red" and site.fresh:
        threads = site.build_operand(2) if len(site.actuals) == 4 else None
        yield site.build_call(
            f"ptx.bar.red_{site.words[1]}",
            site.build_operand(len(site.actuals) - 1),
            site.build_operand(1),
            count=threads,
        )


def _spell_barrier(site: Site) -> Iterator[Expr | None]:
    words = list(site.words)
    if words[:1] == ["cluster"] and len(words) > 1 and words[1] in ("arrive", "wait"):
        is_aligned = Literal(True) if "aligned" in words else None
        orders = [word for word in words[2:] if word != "aligned"]
        sem = Literal(orders[0]) if orders else None
        yield site.build_call(f"ptx.cluster.{words[1]}", aligned=is_aligned, sem=sem)


def _spell_fence(site: Site) -> Iterator[Expr | None]:
    words = ".".join(site.words)
    for prefix in ("sc", "acq_rel", "acquire", "release"):
        if words.startswith(f"{prefix}."):
            yield site.build_call(f"ptx.fence.{prefix}", *_list_unusual(words[len(prefix) + 1 :], "gpu"))
    name = words.replace("::", "_").replace(".", "_")
    name = {
        "mbarrier_init_release_cluster": "mbarrier_init",
        "proxy_async_generic_acquire_sync_restrict_shared_cluster_cluster": (
            "proxy_async_generic_acquire_shared_cluster"
        ),
        "proxy_async_generic_release_sync_restrict_shared_cta_cluster": "proxy_async_generic_release_shared_cta",
        "acquire_sync_restrict_shared_cluster_cluster": "acquire_shared_cluster",
        "release_sync_restrict_shared_cta_cluster": "release_shared_cta",
    }.get(name, name)
    for kind in ("release", "acquire"):
        stem = f"proxy_tensormap_generic_{kind}_"
        if name.startswith(stem):
            yield site.build_call(f"ptx.fence.proxy_tensormap_{kind}", *site.build_operands(0)[:1],
                            scope=omit_usual(name.removeprefix(stem), "gpu"))  # fmt: skip
    if not site.actuals:
        yield Call(Attribute(build_path("ptx.fence"), name), (), site.build_guard())


def _spell_membar(site: Site) -> Iterator[Expr | None]:
    yield site.build_call("ptx.fence.membar", *_list_unusual(".".join(site.words), "gl"))


WAYS: dict[str, Ways] = {
    "mov": _spell_mov, "ld": _spell_ld, "st": _spell_st, "mul": _spell_mul, "mad": _spell_mad, "fma": _spell_mad,
    "setp": _spell_setp, "selp": _spell_selp, "cvt": _spell_cvt, "cvta": _spell_cvta, "bra": _spell_bra,
    "ret": _make_bare("ptx.ret"), "bar": _spell_bar, "barrier": _spell_barrier, "fence": _spell_fence,
    "membar": _spell_membar, "add": _make_plain("ptx.add"), "sub": _make_plain("ptx.sub"),
    "shl": _make_plain("ptx.shl"), "shr": _make_plain("ptx.shr"), "and": _make_plain("ptx.and_"),
    "or": _make_plain("ptx.or_"), "xor": _make_plain("ptx.xor_"), "not": _spell_not, "trap": _make_bare("ptx.trap"),
}  # fmt: skip
