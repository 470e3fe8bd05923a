"""Manual: tcgen05.mma, dense, of one CTA. Block-scaled, sparse and weight-stationary products have no semantics yet."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.descriptors import InstructionDescriptor, Tcgen05Descriptor
from pyptx.isa.fragments.tensor_memory import LANES, datapath
from pyptx.isa.model import Kind, Match
from pyptx.sim import bulk, rules
from pyptx.sim import warpgroups as wg
from pyptx.sim.engines import chosen
from pyptx.sim.formats import Array
from pyptx.sim.lanes import Lanes
from pyptx.sim.memory import Site
from pyptx.sim.numerics.dot import fast_dot
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.plain_dots import integer_dot
from pyptx.sim.semantics.tcgen05 import wrong_place
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory

_KINDS = ("f16", "tf32", "f8f6f4", "i8")
_RAW = {"f16": "u2", "bf16": "u2", "tf32": "u4", "e4m3": "u1", "e5m2": "u1", "s8": "u1", "u8": "u1"}
_RESULT = {"f16": "f2", "f32": "f4", "s32": "i4"}


def _mma(match: Match, signature: Signature) -> Operation | None:
    flags = match.modifiers
    kind = next((m.removeprefix("kind::") for m in flags if m.startswith("kind::")), "")
    if {"sp", "ws", "cta_group::2", "ashift"} & set(flags) or kind not in _KINDS or "decompress" in ".".join(flags):
        return None
    names = tuple(o.name for o in signature if o.kind is not Kind.ADDRESS)
    return memory(partial(_multiply, kind, "a" not in names, names))


def _multiply(
    kind: str, from_tensor: bool, names: tuple[str, ...], site: Site, group: Lanes, mask: Any, *given: Any
) -> None:
    """Multiply in every CTA whose lane issues the instruction. Given are the addresses, no outputs, the operands."""
    count = 4 if from_tensor else 2
    named = dict(zip(names, given[count + 1 :], strict=True))
    a = given[3] if from_tensor else named["a"]
    none = np.array(0)
    some, (target, first, second, bits, keeps, disabled, scale) = chosen(
        group, mask, given[1], a, named["b"], named["idesc"], named["accumulate"], named.get("disabled", (none,) * 4),
        named.get("scale", none),
    )  # fmt: skip
    if some is None:
        return
    for at, one in bulk.one_by_one(some):
        try:
            found = InstructionDescriptor.decode(kind, int(bits[at]))
            left = (
                _tensor_rows(site, one, found, int(first[at]))
                if from_tensor
                else _shared(site, one, found, int(first[at]), 0)
            )
            right = _shared(site, one, found, int(second[at]), 1)
            off = [int(word[at]) for word in disabled]
            _accumulate(site, one, found, int(target[at]), (left, right), bool(keeps[at]), off, int(scale[at]))
        except (ValueError, IndexError) as why:
            raise wrong_place(site, one, 0, str(why)) from None


def _accumulate(
    site: Site, one: Lanes, found: InstructionDescriptor, address: int, factors: tuple[Array, Array], keeps: bool,
    disabled: list[int], scale: int,
) -> None:  # fmt: skip
    memory, cta = site.memory, one.cta
    column = address & 0xFFFF
    if not memory.tensor.allocated(cta, np.array([column]), np.array([column + found.n - 1])).all():
        raise IndexError(f"columns {column} … {column + found.n - 1} of D are not allocated")
    path = datapath(found.m)
    rows = np.array([path.locate(row, 0, found.n)[1] for row in range(found.m)]) + (address >> 16)
    cells = memory.tensor.cells[int(cta[0])]
    part = cells[rows, column : column + found.n]
    start = _decoded(part, found.d.name) if keeps else np.zeros(part.shape, "i4" if found.d.name == "s32" else "f4")
    if scale:
        start = np.ldexp(start, -scale)
    x, y = factors[0], factors[1].T
    if found.d.name == "s32":
        made = integer_dot(x, y, start, satfinite=found.saturate)
    else:
        x, y = (-x if found.negate_a else x), (-y if found.negate_b else y)
        made = fast_dot(x, y, start.astype(np.float32), found.d.name)
    writes = np.array([not disabled[row // 32] >> row % 32 & 1 for row in rows]) if any(disabled) else slice(None)
    cells[rows[writes], column : column + found.n] = _encoded(made, found.d.name)[writes]


def _decoded(part: Array, kind: str) -> Array:
    if kind == "f16":
        return part.astype(np.uint16).view(np.float16).astype(np.float32)
    return part.view(_RESULT[kind])


def _encoded(made: Array, kind: str) -> Array:
    made = np.ascontiguousarray(made.astype(_RESULT[kind], copy=False))
    return made.view(np.uint16).astype(np.uint32) if kind == "f16" else made.view(np.uint32)


def _shared(site: Site, one: Lanes, found: InstructionDescriptor, bits: int, which: int) -> Array:
    """Return A, M x K, or B, N x K, from shared memory."""
    kind = (found.a, found.b)[which].name
    rows, across = (found.m, found.transpose_a) if which == 0 else (found.n, found.transpose_b)
    if kind not in _RAW:
        raise rules.error(
            rules.UNSUPPORTED, site.origin, f"`{site.instruction.full_opcode}` of {kind} is not simulated"
        )
    descriptor = Tcgen05Descriptor.decode(bits)
    raw = wg.shared_matrix(site.memory, int(one.cta[0]), descriptor, rows, found.k, _RAW[kind], across)
    return _values(raw, kind)


def _tensor_rows(site: Site, one: Lanes, found: InstructionDescriptor, address: int) -> Array:
    """Return A from tensor memory: a row in each lane, elements packed into columns."""
    kind = found.a.name
    if found.m != LANES or kind not in _RAW:
        text = f"`{site.instruction.full_opcode}` with {found.m} rows of {kind} in tensor memory is not simulated"
        raise rules.error(rules.UNSUPPORTED, site.origin, text)
    column, count = address & 0xFFFF, found.k * np.dtype(_RAW[kind]).itemsize // 4
    if not site.memory.tensor.allocated(one.cta, np.array([column]), np.array([column + count - 1])).all():
        raise IndexError(f"columns {column} … {column + count - 1} of A are not allocated")
    part = np.ascontiguousarray(site.memory.tensor.cells[int(one.cta[0])][:, column : column + count])
    return _values(part.view(_RAW[kind]), kind)


def _values(raw: Array, kind: str) -> Array:
    if kind in ("s8", "u8"):
        return raw.view(np.int8) if kind == "s8" else raw
    return decode(raw, kind)


BUILDERS: dict[str, Builder] = {"tcgen05": _mma}
