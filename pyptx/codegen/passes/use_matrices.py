"""Wrapper calls for matrix products and their operands: `wgmma`, `mma`, `tcgen05`, `ldmatrix`, `stmatrix`.

Contract: as for `use_wrappers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pyptx.codegen.plan import Attribute, Call, Expr, Literal, Tuple, build_path
from pyptx.codegen.sugar_site import Site
from pyptx.ir.operands import ImmediateOperand

Ways = Callable[[Site], Iterator[Expr | None]]
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_TRUE = Literal(True)


def _find_shape(words: tuple[str, ...]) -> Expr | None:
    for word in words:
        match = _SHAPE.fullmatch(word)
        if match is not None:
            return Tuple(tuple([Literal(int(part)) for part in match.groups()]))
    return None


def _spell_wgmma(site: Site) -> Iterator[Expr | None]:
    words = site.words
    if words[:1] in (("fence",), ("commit_group",)):
        yield site.build_call(f"ptx.wgmma.{words[0]}")
    elif words[:1] == ("wait_group",):
        yield site.build_call("ptx.wgmma.wait_group", site.build_operand(0))
    elif words[:1] == ("mma_async",) and "sp" not in words:
        yield from _spell_wgmma_product(site)


def _spell_wgmma_product(site: Site) -> Iterator[Expr | None]:
    words = [word for word in site.words if word not in ("and", "popc")]
    types = [word for word in words[3:] if word in site.types]
    values = list(site.build_operands(0))
    if len(types) != 3 or len(values) < 4:
        return
    d, a, b, scale_d = values[:4]
    immediates = [g.value if isinstance(g, ImmediateOperand) else None for g in site.actuals[4:]]
    if None in immediates:
        return
    usual: dict[str, object] = {}
    if len(immediates) >= 2:
        usual |= {"scale_a": immediates[0], "scale_b": immediates[1]}
    if len(immediates) == 4:
        usual |= {"trans_a": immediates[2], "trans_b": immediates[3]}
    elif len(immediates) == 3:
        usual |= {"trans_b": immediates[2]}
    defaults = {"scale_a": 1, "scale_b": 1, "trans_a": 0, "trans_b": 0}
    flags = {name: Literal(int(str(value))) for name, value in usual.items() if value != defaults[name]}
    if isinstance(scale_d, Literal):
        scale_d = Literal(bool(scale_d.value))
    yield site.build_call(
        "ptx.wgmma.mma_async", shape=_find_shape(site.words), dtype_d=site.name_type(types[0]),
        dtype_a=site.name_type(types[1]),
        dtype_b=site.name_type(types[2]), d=d, a=a, b=b, scale_d=scale_d,
        satfinite=_TRUE if "satfinite" in words else None, **flags,
    )  # fmt: skip


def _spell_mma(site: Site) -> Iterator[Expr | None]:
    words = site.words
    if "sp" in words or any(word.startswith(("sp::", "block_scale", "scale_vec")) for word in words):
        return
    types = [word for word in words if word in site.types]
    values = site.build_operands(0)
    if words[:2] != ("sync", "aligned") or len(types) != 4 or len(values) != 4:
        return
    rounding = next((word for word in words if word in ("rn", "rz", "rm", "rp")), None)
    kind = next((word for word in words if word.startswith("kind::")), None)
    layouts = [word for word in words if word in ("row", "col")]
    a_layout, b_layout = (*layouts, "row", "col")[:2]
    d = site.build_new_types() if site.fresh else values[0]
    yield site.build_call(
        "ptx.mma.sync", shape=_find_shape(words), dtype_d=site.name_type(types[0]), dtype_a=site.name_type(types[1]),
        dtype_b=site.name_type(types[2]), dtype_c=site.name_type(types[3]), d=d, a=values[1], b=values[2], c=values[3],
        a_layout=None if a_layout == "row" else Literal(a_layout),
        b_layout=None if b_layout == "col" else Literal(b_layout),
        satfinite=_TRUE if "satfinite" in words else None, rounding=None if rounding is None else Literal(rounding),
        bit_op=Literal("xor") if "xor" in words else None,
        kind=None if kind is None else Literal(kind.removeprefix("kind::")),
    )  # fmt: skip


def _spell_ldmatrix(site: Site) -> Iterator[Expr | None]:
    words = list(site.words)
    if words[:2] != ["sync", "aligned"] or len(words) < 5:
        return
    shape, count = words[2], words[3]
    space = next((word for word in words if word.startswith("shared")), None)
    layout = count if shape == "m8n8" else f"{shape}.{count}"
    dtype = words[-1]
    dst = site.build_new_types() if site.fresh else site.build_operand(0)
    yield site.build_call(
        "ptx.ldmatrix", dst=dst, src=site.build_operand(1), layout=None if layout == "x4" else Literal(layout),
        trans=_TRUE if "trans" in words else None, dtype=None if dtype == "b16" else Literal(dtype),
        space=None if space == "shared" else Literal(space),
    )  # fmt: skip


def _spell_stmatrix(site: Site) -> Iterator[Expr | None]:
    words = list(site.words)
    if words[:2] != ["sync", "aligned"] or len(words) < 5:
        return
    shape, count = words[2], words[3]
    space = next((word for word in words if word.startswith("shared")), None)
    layout = count if shape == "m8n8" else f"{shape}.{count}"
    yield site.build_call(
        "ptx.stmatrix", smem=site.build_operand(0), regs=site.build_operand(1),
        layout=None if layout == "x4" else Literal(layout),
        trans=_TRUE if "trans" in words else None, space=None if space == "shared" else Literal(space),
    )  # fmt: skip


def _spell_tcgen05(site: Site) -> Iterator[Expr | None]:
    words = site.words
    op = words[0]
    if op.startswith(("fence::", "wait::")):
        yield Call(Attribute(build_path("ptx.tcgen05"), op.replace("::", "_")), (), site.build_guard())
        return
    group = Literal(2) if "cta_group::2" in words else None
    values = list(site.build_operands(0))
    if op in ("alloc", "dealloc", "relinquish_alloc_permit", "shift"):
        yield site.build_call(f"ptx.tcgen05.{op}", *values, cta_group=group)
    elif op == "commit":
        mask = values[1] if len(values) > 1 else None
        space = None if "shared::cluster" in words else Literal("")
        yield site.build_call("ptx.tcgen05.commit", values[0], cta_group=group, multicast_mask=mask, space=space)
    elif op == "mma" and "ws" not in words and "sp" not in words and len(values) == 5:
        kind = next((word for word in words if word.startswith("kind::")), "kind::f16").removeprefix("kind::")
        tensor = isinstance(values[1], Call)
        yield site.build_call(
            "ptx.tcgen05.mma", *values[:4], cta_group=group, kind=None if kind == "f16" else Literal(kind),
            a_is_tmem=_TRUE if tensor else None, enable_input_d=values[4],
        )  # fmt: skip
    elif op in ("ld", "st") and words[1:3] == ("sync", "aligned") and len(values) == 2:
        yield from _spell_tensor_memory(site, values)
    elif op == "cp":
        size = ".".join(words[2:])
        yield site.build_call("ptx.tcgen05.cp", *values, cta_group=group, size=Literal(size))


def _spell_tensor_memory(site: Site, values: list[Expr | None]) -> Iterator[Expr | None]:
    words = site.words
    options = {
        "shape": Literal(words[3]), "count": Literal(int(words[4][1:])) if words[4][1:].isdigit() else None,
        "dtype": None if words[-1] == "b32" else Literal(words[-1]),
    }  # fmt: skip
    if words[0] == "ld":
        dst = site.build_new_types() if site.fresh else values[0]
        pack = _TRUE if "pack::16b" in words else None
        yield site.build_call("ptx.tcgen05.ld", dst, values[1], pack=pack, **options)
    else:
        unpack = _TRUE if "unpack::16b" in words else None
        yield site.build_call("ptx.tcgen05.st", *values, unpack=unpack, **options)


MATRICES: dict[str, Ways] = {
    "wgmma": _spell_wgmma, "mma": _spell_mma, "ldmatrix": _spell_ldmatrix, "stmatrix": _spell_stmatrix,
    "tcgen05": _spell_tcgen05,
}  # fmt: skip
