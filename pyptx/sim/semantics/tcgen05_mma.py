"""Manual: tcgen05.mma, dense, sparse, block-scaled, weight-stationary, of one CTA and of pairs of CTAs.

Collectors are hints. Features of sm_107 alone (kind::ti16, tables for B) have no semantics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pyptx.isa.descriptors import InstructionDescriptor, ZeroColumnMask
from pyptx.isa.fragments.tensor_memory import datapath
from pyptx.isa.model import Kind, Match
from pyptx.sim.base.formats import Array, numpy_code
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk
from pyptx.sim.engines.issuing import issue_operation, select_lanes
from pyptx.sim.numerics.plain_dots import integer_dot
from pyptx.sim.numerics.products import multiply_matrices, multiply_scaled_matrices
from pyptx.sim.semantics import tcgen05_operands as read
from pyptx.sim.semantics.tcgen05_places import find_pair, make_place_error
from pyptx.sim.semantics.tcgen05_together import multiply_together
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory
from pyptx.sim.state.memory import Site
from pyptx.sim.state.tracing import defer_to_lanes, is_only_traced, may_run_together, record_touch


@dataclass(frozen=True, slots=True)
class Spelling:
    """One spelling. `block` is the number of elements that share a scale factor, 0 without; `addresses` and `names`
    are the operands, those in brackets and the others."""

    kind: str
    block: int
    ctas: int
    sparse: bool
    ws: bool
    shifts_a: bool
    addresses: tuple[str, ...]
    names: tuple[str, ...]


def _mma(match: Match, signature: Signature) -> Operation | None:
    flat = [part for m in match.modifiers for part in m.split(".")]
    kind = next(m.removeprefix("kind::") for m in flat if m.startswith("kind::"))
    if kind == "ti16" or any(m.startswith("decompress") for m in flat):
        return None
    block = 0
    if "block_scale" in flat:
        block = 16 if {"block16", "scale_vec::4X"} & set(flat) else 32
    spelling = Spelling(
        kind, block, 2 if "cta_group::2" in flat else 1, "sp" in flat, "ws" in flat, "ashift" in flat,
        tuple(o.name for o in signature if o.kind is Kind.ADDRESS),
        tuple(o.name for o in signature if o.kind is not Kind.ADDRESS),
    )  # fmt: skip
    return memory(partial(_issue, spelling))


def _issue(spelling: Spelling, site: Site, group: Lanes, mask: Any, *arguments: Any) -> None:
    """Multiply for every lane that issues the instruction. The arguments are spaces and addresses, an empty tuple of
    outputs, then the operands."""
    values_by_name = name_operands(spelling, arguments)
    active, values = select_lanes(group, mask, *values_by_name.values())
    if active is None:
        return
    issue_operation(site, active, tuple(values), partial(_run, spelling, site, tuple(values_by_name)))


def _run(spelling: Spelling, site: Site, names: tuple[str, ...], active: Lanes, values: tuple[Any, ...]) -> None:
    """Multiply for these lanes, with the operands of these names."""
    values_by_name = dict(zip(names, values, strict=True))
    if (
        active.n > 1
        and may_run_together(site.memory.trace)
        and _multiply_together(spelling, site, active, values_by_name)
    ) or defer_to_lanes(site.memory.trace):
        return
    for position, issuer in bulk.split_lanes(active):
        operands = {name: read_number(value, position) for name, value in values_by_name.items()}
        try:
            _multiply(spelling, site, issuer, operands)
        except (ValueError, IndexError) as why:
            raise make_place_error(site, issuer, 0, why) from None


def name_operands(spelling: Spelling, operands: tuple[Any, ...]) -> dict[str, Any]:
    """Return the operands by name."""
    count = 2 * len(spelling.addresses)
    by_address = dict(zip(spelling.addresses, operands[1:count:2], strict=True))
    return by_address | dict(zip(spelling.names, operands[count + 1 :], strict=True))


def _multiply_together(spelling: Spelling, site: Site, active: Lanes, values_by_name: dict[str, Any]) -> bool:
    """Multiply in all CTAs at once if all issue the same plain product; tell whether that was possible."""
    if spelling.block or spelling.sparse or spelling.ws or "disabled" in values_by_name or "a" in spelling.addresses:
        return False
    if not all((value == value[0]).all() for value in values_by_name.values()):
        return False
    operands = {name: int(value[0]) for name, value in values_by_name.items()}
    try:
        ctas = active.cta[:, None] if spelling.ctas == 1 else active.cta[:, None] & ~1 | np.arange(2)
        if (spelling.ctas == 2 and site.memory.cluster % 2) or len(np.unique(ctas)) < ctas.size:
            return False
        descriptor = _decode_descriptor(spelling, operands["idesc"])
        return multiply_together(site.memory, ctas, descriptor, operands)
    except (ValueError, IndexError):
        # Products run one by one report which of them is wrong.
        return False


@lru_cache(maxsize=64)
def _decode_descriptor(spelling: Spelling, bits: int) -> InstructionDescriptor:
    """Return the instruction descriptor; ValueError with its fields that the spelling does not allow."""
    descriptor = InstructionDescriptor.decode(spelling.kind, bits)
    wrong = descriptor.problems(cta_group=spelling.ctas, ws=spelling.ws)
    if descriptor.sparse is not spelling.sparse:
        wrong.append(f"the instruction descriptor says {'sparse' if descriptor.sparse else 'dense'}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return descriptor


def read_number(value: Array | tuple[Array, ...], position: int) -> Any:
    """Return an operand of one lane."""
    return tuple(int(word[position]) for word in value) if isinstance(value, tuple) else int(value[position])


def find_halves(spelling: Spelling, site: Site, issuer: Lanes, operands: dict[str, Any]) -> list[read.Half]:
    """Return the shares of the CTAs of a product; ValueError if its descriptor is not legal."""
    descriptor = _decode_descriptor(spelling, operands["idesc"])
    path = datapath(descriptor.m, cta_group=spelling.ctas, ws=spelling.ws, sparse=spelling.sparse)
    lanes = read.find_lanes(path, operands["d"] >> 16)
    if "a" in spelling.addresses and operands["a"] >> 16 != operands["d"] >> 16:
        raise ValueError(f"A starts at lane {operands['a'] >> 16}, D at lane {operands['d'] >> 16}")
    ctas = find_pair(site, issuer) if spelling.ctas == 2 else (int(issuer.cta[0]),)
    return [read.Half(site.memory, cta, descriptor, lanes) for cta in ctas]


def _multiply(spelling: Spelling, site: Site, issuer: Lanes, operands: dict[str, Any]) -> None:
    halves = find_halves(spelling, site, issuer, operands)
    b_columns = read_columns(halves, operands)
    for index, half in enumerate(halves):
        a_rows = read_rows(spelling, half, operands)
        _accumulate(
            spelling, half, a_rows, b_columns, operands, operands.get("disabled", (0,) * 8)[4 * index : 4 * index + 4]
        )


def read_rows(spelling: Spelling, half: read.Half, operands: dict[str, Any]) -> Array:
    """Return A of one CTA, `[part of N or 1, row, element of K]`."""
    if "a" in spelling.addresses:
        a_rows = read.read_tensor_rows(half, operands["a"], spelling.shifts_a)
    else:
        a_rows = read.read_shared_rows(half, operands["a"], half.rows, 0)[None]
    if spelling.sparse:
        if (operands["meta"] >> 16) not in (0, operands["d"] >> 16):
            raise ValueError(f"the metadata starts at lane {operands['meta'] >> 16}, D at lane {operands['d'] >> 16}")
        a_rows = read.expand_rows(half, a_rows, operands["meta"])
    return -a_rows if half.descriptor.negate_a else a_rows


def read_columns(halves: list[read.Half], operands: dict[str, Any]) -> Array:
    """Return B, `[column, element of K]`: every CTA of a pair has half of the columns."""
    descriptor = halves[0].descriptor
    mask = ZeroColumnMask.decode(operands["columns"]) if "columns" in operands else None
    shift = mask.shift if mask is not None else 0
    count = descriptor.n // len(halves) + shift
    b_columns = np.concatenate([read.read_shared_rows(half, operands["b"], count, 1) for half in halves])[shift:]
    if mask is not None:
        bits = mask.columns(descriptor.m, descriptor.n)
        zero = np.array([bits >> column & 1 for column in range(descriptor.n)], np.bool_)
        b_columns = np.where(zero[:, None], b_columns.dtype.type(0), b_columns)
    return -b_columns if descriptor.negate_b else b_columns


def read_scales(spelling: Spelling, half: read.Half, columns: int, operands: dict[str, Any]) -> tuple[Array, Array]:
    """Return the scale factors of A, `[part of N, row, block]`, and of B, `[part of N, block, column]`."""
    # A sparse A has one scale factor for as many stored elements, so for twice as much of K.
    vector = half.descriptor.k // (spelling.block * (2 if half.descriptor.sparse else 1))
    for_a = read.read_scales(half, 0, operands["scale_a"], half.rows, vector)
    return for_a, read.read_scales(half, 1, operands["scale_b"], columns, vector).swapaxes(-1, -2)


def _accumulate(
    spelling: Spelling,
    half: read.Half,
    a_rows: Array,
    b_columns: Array,
    operands: dict[str, Any],
    output_masks: tuple[int, ...],
) -> None:
    descriptor, tensor = half.descriptor, half.memory.tensor
    parts, column = half.lanes.shape[0], operands["d"] & 0xFFFF
    width = descriptor.n // parts
    words = read.read_words(half, "D", half.lanes, operands["d"], width)
    start = (
        decode_words(words, descriptor.d.name)
        if operands["accumulate"]
        else np.zeros(words.shape, numpy_code(descriptor.d.name))
    )
    if operands.get("scale"):
        start = np.ldexp(start.astype(np.float32), -operands["scale"])
    y = b_columns.reshape(parts, width, descriptor.k).swapaxes(-1, -2)
    scales = read_scales(spelling, half, width, operands) if spelling.block else None
    lanes = half.lanes.reshape(-1)
    on = np.array([not output_masks[lane >> 5] >> (lane & 31) & 1 for lane in lanes.tolist()], np.bool_)
    if operands["accumulate"]:
        record_touch(half.memory.trace, half.cta, lanes[on], column, width, writes=False)
    record_touch(half.memory.trace, half.cta, lanes[on], column, width, writes=True)
    if is_only_traced(half.memory.trace):
        return
    result = _encode(_sum_products(half, a_rows, y, start, scales), descriptor.d.name).reshape(len(lanes), width)
    tensor.cells[half.cta][lanes[on], column : column + width] = result[on]


def _sum_products(half: read.Half, x: Array, y: Array, start: Array, scales: tuple[Array, Array] | None) -> Array:
    descriptor, sm = half.descriptor, half.memory.tensor.exact
    if descriptor.d.name == "s32":
        return integer_dot(x, y, start, satfinite=descriptor.saturate)
    names = descriptor.d.name, descriptor.a.name, descriptor.b.name
    if scales is None:
        return multiply_matrices(x, y, start, names, instruction="tcgen05", sm=sm, sparse=descriptor.sparse)
    return multiply_scaled_matrices(
        x, y, scales, start, names[1:], instruction="tcgen05", sm=sm, sparse=descriptor.sparse
    )


def decode_words(part: Array, kind: str) -> Array:
    """Return words of D as numbers."""
    if kind == "f16":
        return part.astype(np.uint16).view(np.float16).astype(np.float32)
    return part.view(numpy_code(kind))


def _encode(result: Array, kind: str) -> Array:
    result = np.ascontiguousarray(result.astype(numpy_code(kind), copy=False))
    return result.view(np.uint16).astype(np.uint32) if kind == "f16" else result.view(np.uint32)


BUILDERS: dict[str, Builder] = {"tcgen05": _mma}
