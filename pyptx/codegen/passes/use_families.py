"""Wrapper calls for the asynchronous and matrix families: copies, barriers, products, warps, atomics.

Contract: as for `use_wrappers`, of which this is the second half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyptx.codegen.passes.use_matrices import MATRICES
from pyptx.codegen.plan import Expr, Literal, Tuple
from pyptx.codegen.sugar_operands import NONE
from pyptx.codegen.sugar_site import Site
from pyptx.ir.operands import AddressOperand, ImmediateOperand, PipeOperand, VectorOperand

Ways = Callable[[Site], Iterator[Expr | None]]
_TRUE = Literal(True)
_ALL = 0xFFFFFFFF


def omit_usual(text: str, usual: str) -> Expr | None:
    """Return the value of a keyword, None if it is the default."""
    return None if text == usual else Literal(text)


def _spell_cp(site: Site) -> Iterator[Expr | None]:
    words = site.words
    text = ".".join(words)
    if text in ("async.commit_group", "async.wait_all"):
        yield site.build_call(f"ptx.cp.async_.{words[1]}")
    elif text == "async.wait_group":
        yield site.build_call("ptx.cp.async_.wait_group", site.build_operand(0))
    elif text == "async.bulk.commit_group":
        yield site.build_call("ptx.cp.async_.bulk.commit_group")
    elif text.startswith("async.bulk.wait_group"):
        yield site.build_call(
            "ptx.cp.async_.bulk.wait_group", site.build_operand(0), read=_TRUE if words[-1] == "read" else None
        )
    elif text.startswith("async.mbarrier.arrive"):
        yield site.build_call(
            "ptx.cp.async_.mbarrier_arrive", site.build_operand(0), noinc=_TRUE if "noinc" in words else None
        )
    elif words[:2] == ("async", "bulk") and "tensor" in words:
        yield from _spell_tensor(site)
    elif words[:2] == ("async", "bulk"):
        yield from _spell_bulk(site)
    elif words[1:2] in (("ca",), ("cg",)):
        yield from _spell_small(site)


def _spell_small(site: Site) -> Iterator[Expr | None]:
    words = list(site.words[4:])
    values = list(site.build_operands(0))
    if len(values) < 3:
        return
    keywords: dict[str, Expr | None] = {}
    if "L2::cache_hint" in words:
        words.remove("L2::cache_hint")
        keywords["cache_hint"] = values.pop()
    if words:
        keywords["prefetch"] = Literal(words[0])
    if len(values) == 4:
        keywords["src_size"] = values.pop()
    yield site.build_call(f"ptx.cp.async_.{site.words[1]}", *values, **keywords)


def _spell_tensor(site: Site) -> Iterator[Expr | None]:
    words = site.words
    rank = next((word for word in words if word in ("1d", "2d", "3d", "4d", "5d")), None)
    load = "mbarrier::complete_tx::bytes" in words
    map_index = 1 if load else 0
    if len(site.actuals) < map_index + 2:
        return
    address = site.actuals[map_index]
    if not isinstance(address, AddressOperand) or len(address.rest) != 1 or address.offset is not None:
        return
    desc, coordinates = site.operands.build_name(address.base), address.rest[0]
    if not isinstance(coordinates, VectorOperand):
        return
    elements = [site.operands.build_expression(element) for element in coordinates.elements]
    if None in elements:
        return
    coord = Tuple(tuple([element for element in elements if element is not None]))
    extras = list(site.actuals[3 if load else 2 :])
    keywords: dict[str, Expr | None] = {}
    if "L2::cache_hint" in words and extras:
        keywords["cache_hint"] = site.operands.build_expression(extras.pop())
    if "multicast::cluster" in words and extras:
        keywords["multicast_mask"] = site.operands.build_expression(extras.pop(0))
    if "cta_group::2" in words:
        keywords["cta_group"] = Literal(2)
    if extras or (keywords and None in keywords.values()):
        return
    box = f"ptx.cp.async_.bulk.tensor_{rank}"
    if load:
        kind = f"{box}.shared_cta_global_tile" if words[4] == "shared::cta" else box
        yield site.build_call(
            kind, dst=site.build_operand(0), src=desc, coord=coord, mbar=site.build_operand(2), **keywords
        )
        return
    if words[0] != "reduce":
        if "tile" not in words:
            yield site.build_call(f"{box}.store", dst=desc, src=site.build_operand(1), coord=coord, **keywords)
        yield site.build_call(f"{box}.store_tile", desc, site.build_operand(1), coord, **keywords)


def _spell_bulk(site: Site) -> Iterator[Expr | None]:
    words = site.words
    values = list(site.build_operands(0))
    keywords: dict[str, Expr | None] = {}
    if "L2::cache_hint" in words:
        keywords["cache_hint"] = values.pop()
    if "multicast::cluster" in words:
        keywords["multicast_mask"] = values.pop()
    source, target = (words[3], words[2]) if len(words) > 3 else ("", "")
    names = {
        ("global", "shared::cluster"): "global_to_shared",
        ("global", "shared::cta"): "global_to_shared_cta",
        ("shared::cta", "shared::cluster"): "shared_to_shared",
        ("shared::cta", "global"): "shared_to_global",
    }
    name = names.get((source, target))
    if name is not None:
        yield site.build_call(f"ptx.cp.async_.bulk.{name}", *values, **keywords)


def _spell_mbarrier(site: Site) -> Iterator[Expr | None]:
    words = list(site.words)
    op = words.pop(0)
    space = next((word for word in words if word.startswith("shared")), "")
    values = list(site.build_operands(0))
    order = _find_order(words)
    if op in ("init", "inval"):
        usual = "shared::cta" if op == "init" else "shared"
        yield site.build_call(f"ptx.mbarrier.{op}", *values, space=omit_usual(space, usual))
    elif op in ("expect_tx", "complete_tx"):
        yield site.build_call(f"ptx.mbarrier.{op}", *values, space=omit_usual(space, "shared"))
    elif op in ("arrive", "arrive_drop"):
        yield from _spell_arrival(site, op, space, values, order)
    elif op in ("try_wait", "test_wait") and site.fresh:
        keywords = order if len(values) < 4 else {**order, "suspend_hint": values.pop()}
        parity = None if "parity" in words else Literal(False)
        yield site.build_call(
            f"ptx.mbarrier.{op}", *values[1:], parity=parity, space=omit_usual(space, "shared"), **keywords
        )
    elif op == "pending_count" and site.fresh:
        yield site.build_call("ptx.mbarrier.pending_count", *values[1:])


def _find_order(words: list[str]) -> dict[str, Expr | None]:
    orders = [word for word in words if word in ("release", "acquire", "relaxed")]
    scopes = [word for word in words if word in ("cta", "cluster")]
    return {"sem": Literal(orders[0]) if orders else None, "scope": Literal(scopes[0]) if scopes else None}


def _spell_arrival(
    site: Site, op: str, space: str, values: list[Expr | None], order: dict[str, Expr | None]
) -> Iterator[Expr | None]:
    tail = "_expect_tx" if "expect_tx" in site.words else "_no_complete" if "noComplete" in site.words else ""
    count = values.pop() if not tail and len(values) == 3 else None
    if space == "shared::cluster" and values[0] == NONE and op == "arrive":
        yield site.build_call(f"ptx.mbarrier.arrive{tail}_mapped", *values[1:], count=count, **order)
    elif site.fresh:
        usual = "shared::cta" if tail == "_expect_tx" else "shared"
        yield site.build_call(
            f"ptx.mbarrier.{op}{tail}", *values[1:], count=count, space=omit_usual(space, usual), **order
        )
    elif values[0] == NONE and op == "arrive":
        usual = "shared::cta" if tail == "_expect_tx" else "shared"
        yield site.build_call(
            f"ptx.mbarrier.arrive{tail}", *values[1:], count=count, space=omit_usual(space, usual),
            state=Literal(False), **order,
        )  # fmt: skip


def _spell_shfl(site: Site) -> Iterator[Expr | None]:
    if not site.fresh or site.words[:1] != ("sync",) or len(site.actuals) != 5:
        return
    mode, clamp, mask = site.words[1], site.actuals[3], site.actuals[4]
    is_full = isinstance(mask, ImmediateOperand) and mask.text == str(_ALL)
    pair = isinstance(site.actuals[0], PipeOperand)
    if isinstance(clamp, ImmediateOperand) and not pair:
        width = 32 - (int(clamp.value) >> 8)
        yield site.build_call(
            f"ptx.warp.shfl_{mode}", site.build_operand(1), site.build_operand(2),
            width=None if width == 32 else Literal(width),
            mask=None if is_full else site.build_operand(4),
        )  # fmt: skip
    last = () if is_full else (site.build_operand(4),)
    yield site.build_call(
        "ptx.warp.shfl", Literal(mode), *site.build_operands(1)[:3], *last, valid=_TRUE if pair else None
    )


def _spell_vote(site: Site) -> Iterator[Expr | None]:
    if site.fresh and len(site.words) == 3:
        name = "ballot" if site.words[1] == "ballot" else f"vote_{site.words[1]}"
        mask = site.actuals[2]
        is_full = isinstance(mask, ImmediateOperand) and mask.text == str(_ALL)
        yield site.build_call(
            f"ptx.warp.{name}", site.build_operand(1), mask=None if is_full else site.build_operand(2)
        )


def _spell_match(site: Site) -> Iterator[Expr | None]:
    if site.fresh and site.words[:2] == ("any", "sync"):
        yield site.build_call("ptx.warp.match_any", site.build_operand(1), mask=site.build_operand(2))


def _spell_redux(site: Site) -> Iterator[Expr | None]:
    op = site.words[1] if len(site.words) > 2 else ""
    dst = None if site.fresh else site.build_operand(0)
    yield site.build_call("ptx.warp.redux", Literal(op), site.build_operand(1), dst=dst, mask=site.build_operand(2))


def _spell_elect(site: Site) -> Iterator[Expr | None]:
    pair = site.actuals[0]
    if not isinstance(pair, PipeOperand):
        return
    mask = site.actuals[1]
    is_full = isinstance(mask, ImmediateOperand) and mask.text == str(_ALL)
    if site.fresh:
        alone = getattr(pair.left, "name", "") == "_"
        operands = () if is_full else (site.build_operand(1),)
        yield site.build_call("ptx.warp.elect", *operands, leader=Literal(False) if alone else None)
    else:
        left, right = site.operands.build_expression(pair.left), site.operands.build_expression(pair.right)
        yield site.build_call("ptx.elect_sync", left, right, site.build_operand(1))


def _make_atomic(family: str) -> Ways:
    def spell_atomic(site: Site) -> Iterator[Expr | None]:
        if site.kind is None or "async" in site.words:
            return
        words = list(site.words[:-1])
        op = next((word for word in words if word in _OPERATIONS), None)
        if op is None:
            return
        sem = next((word for word in words if word in ("relaxed", "acquire", "release", "acq_rel")), None)
        scope = next((word for word in words if word in ("cta", "cluster", "gpu", "sys")), None)
        space = next((word for word in words if word in _SPACES), "")
        options = {
            "space": omit_usual(space, "global"),
            "sem": None if sem is None else Literal(sem),
            "scope": None if scope is None else Literal(scope),
        }
        name = f"{op}_" if op in ("and", "or") else "xor_" if op == "xor" else op
        operands = (site.build_new_types(), *site.build_operands(1)) if site.fresh else site.build_operands(0)
        yield site.build_call(f"ptx.{family}.{name}", site.name_type(site.kind), *operands, **options)

    return spell_atomic


_OPERATIONS = frozenset("add min max inc dec and or xor exch cas".split())
_SPACES = frozenset("global shared shared::cta shared::cluster".split())


def _spell_prefetch(site: Site) -> Iterator[Expr | None]:
    if site.words[-1:] == ("tensormap",):
        yield site.build_call(
            "ptx.prefetch_tensormap", site.build_operand(0), space=omit_usual(".".join(site.words[:-1]), "")
        )
    elif len(site.words) == 2:
        space, level = site.words
        yield site.build_call(
            "ptx.prefetch", site.build_operand(0), level=omit_usual(level, "L2"), space=omit_usual(space, "global")
        )


def _spell_griddepcontrol(site: Site) -> Iterator[Expr | None]:
    yield site.build_call(f"ptx.griddepcontrol.{site.words[0]}")


def _spell_setmaxnreg(site: Site) -> Iterator[Expr | None]:
    yield site.build_call(f"ptx.setmaxnreg_{site.words[0]}", site.build_operand(0))


def _spell_mapa(site: Site) -> Iterator[Expr | None]:
    if site.fresh:
        yield site.build_call("ptx.cluster.map_shared_u32", site.build_operand(1), site.build_operand(2))


def _spell_activemask(site: Site) -> Iterator[Expr | None]:
    if site.fresh:
        yield site.build_call("ptx.warp.activemask")


FAMILIES: dict[str, Ways] = {
    "cp": _spell_cp, "mbarrier": _spell_mbarrier, "shfl": _spell_shfl, "vote": _spell_vote, "match": _spell_match,
    "redux": _spell_redux, "elect": _spell_elect, "atom": _make_atomic("atom"), "red": _make_atomic("red"),
    "prefetch": _spell_prefetch, "griddepcontrol": _spell_griddepcontrol, "setmaxnreg": _spell_setmaxnreg,
    "mapa": _spell_mapa, "activemask": _spell_activemask, **MATRICES,
}  # fmt: skip
