"""Equal products of many CTAs, run as one batched product: most products of most kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.isa.descriptors import InstructionDescriptor, Tcgen05Descriptor
from pyptx.sim.base.formats import Array, dtype_of
from pyptx.sim.numerics.arrays import quiet
from pyptx.sim.numerics.fast_dot import multiply
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.plain_dots import integer_dot
from pyptx.sim.numerics.products import multiply_matrices
from pyptx.sim.numerics.rounding import canonicalize_nan
from pyptx.sim.numerics.workspace import get_scratch
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.memory import Memory
from pyptx.sim.state.tracing import is_only_traced, record_touch

_ROWS = 128
_LANES = np.arange(_ROWS)


def multiply_together(memory: Memory, ctas: Array, descriptor: InstructionDescriptor, operands: dict[str, Any]) -> bool:
    """Multiply dense matrices of shared memory in these CTAs, `[group, 1 or 2]`, if D has a row in every lane; tell
    whether that was possible."""
    if descriptor.a.bits < 8 or descriptor.b.bits < 8 or descriptor.d.bits != 32:
        return False
    groups, pair = ctas.shape
    if descriptor.m != _ROWS * pair or operands["d"] >> 16:
        return False
    flat = ctas.reshape(-1)
    column, tensor = operands["d"], memory.tensor
    if not tensor.are_allocated(flat, np.array(column), np.array(column + descriptor.n - 1)).all():
        return False
    b_columns = _read_rows(
        memory,
        flat,
        operands["b"],
        ("B", descriptor.b.name),
        descriptor.n // pair,
        descriptor.k,
        descriptor.transpose_b,
    )
    a_rows = _read_rows(
        memory, flat, operands["a"], ("A", descriptor.a.name), _ROWS, descriptor.k, descriptor.transpose_a
    )
    x = a_rows.reshape(groups, pair, _ROWS, descriptor.k)
    y = b_columns.reshape(groups, 1, descriptor.n, descriptor.k).swapaxes(-1, -2)
    x, y = (-x if descriptor.negate_a else x), (-y if descriptor.negate_b else y)
    accumulates, scale = bool(operands["accumulate"]), operands.get("scale")
    for writes in (False, True) if accumulates else (True,):
        record_touch(memory.trace, flat, _LANES, column, descriptor.n, writes=writes)
    if is_only_traced(memory.trace):
        return True
    if descriptor.d.name == "f32" and not tensor.exact and not scale and x.dtype == y.dtype == np.float32:
        _add(tensor.cells, flat, column, x, y, accumulates)
        return True
    cells = tensor.cells[flat, :, column : column + descriptor.n].view(dtype_of(descriptor.d.name))
    start = cells.reshape(groups, pair, _ROWS, descriptor.n)
    if not accumulates:
        start = np.zeros_like(start)
    if scale:
        start = np.ldexp(start, -scale)
    if descriptor.d.name == "s32":
        result = integer_dot(x, y, start, satfinite=descriptor.saturate)
    else:
        names = descriptor.d.name, descriptor.a.name, descriptor.b.name
        result = multiply_matrices(x, y, start, names, instruction="tcgen05", sm=tensor.exact)
    tensor.cells[flat, :, column : column + descriptor.n] = result.reshape(len(flat), _ROWS, descriptor.n).view(
        np.uint32
    )
    return True


def _add(cells: Array, ctas: Array, column: int, x: Array, y: Array, accumulates: bool) -> None:
    """Write x @ y, or add it to the accumulators, in float32."""
    shape = len(ctas), _ROWS, y.shape[-1]
    sums = get_scratch("tcgen05", shape, np.float32)
    with quiet():
        multiply(x, y, sums.reshape(*x.shape[:-1], shape[-1]))
        is_contiguous = int(ctas[-1]) - int(ctas[0]) + 1 == len(ctas)
        cta_index = slice(int(ctas[0]), int(ctas[-1]) + 1) if is_contiguous else ctas
        accumulators = cells.view(np.float32)[cta_index, :, column : column + shape[-1]]
        np.add(sums, accumulators if accumulates else np.float32(0), out=sums)
    cells.view(np.float32)[cta_index, :, column : column + shape[-1]] = canonicalize_nan(sums)


def _read_rows(
    memory: Memory, ctas: Array, bits: int, operand: tuple[str, str], rows: int, depth: int, across: bool
) -> Array:
    """Return a matrix of every CTA, `[cta, row, element of K]`."""
    descriptor, name = Tcgen05Descriptor.decode(bits), operand[1]
    raw = wg.load_shared_matrix(
        memory, ctas[:, None, None], descriptor, rows, depth, dtype_of(name).str, across, operand=operand
    )  # fmt: skip
    return raw if name in ("s8", "u8") else decode(raw, name)
