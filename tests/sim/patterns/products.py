"""Operands and results of the tensor-core patterns: images of shared memory without swizzle, fragments of registers."""

from __future__ import annotations

import numpy as np

from pyptx.isa import fragments
from pyptx.types import f32
from tests.sim.patterns.launches import Array, Launch


def whole(random: np.random.Generator, rows: int, k: int = 16) -> Array:
    """Return a matrix of small integers, which bf16 represents exactly."""
    return random.integers(-8, 9, (rows, k)).astype("f4")


def bits(matrix: Array) -> Array:
    """Return the bf16 bits of numbers that bf16 represents exactly."""
    return (matrix.view("u4") >> 16).astype("u2")


def image(matrix: Array) -> Array:
    """Return rows of 16 bf16 as 8 x 8 matrices, rows of a matrix 16 bytes apart, along K first."""
    rows = len(matrix)
    return np.ascontiguousarray(bits(matrix).reshape(rows // 8, 8, 2, 8).transpose(0, 2, 1, 3)).reshape(-1)


def accumulators(d: Array) -> Array:
    """Return the registers of every thread of a warpgroup for a 64 x 8 result."""
    fragment, output = fragments.wgmma_accumulator(8, f32), np.zeros((128, 4), "f4")
    for (row, col), value in np.ndenumerate(d):
        place = fragment.place(row, col)
        output[place.lane, place.register] = value
    return output


def operand(a: Array) -> Array:
    """Return the registers of every thread for a 64 x 16 operand."""
    fragment, output = fragments.wgmma_a(16, 16), np.zeros((128, 4), "u4")
    for (row, col), value in np.ndenumerate(bits(a)):
        place = fragment.place(row, col)
        output[place.lane, place.register] |= np.uint32(value) << np.uint32(place.bit)
    return output


def _pair(random: np.random.Generator, m: int, n: int) -> tuple[Array, Array]:
    """Return the image of both operands, and the product."""
    a, b = whole(random, m), whole(random, n)
    return np.concatenate([image(a), image(b)]), a @ b.T


def shared(random: np.random.Generator) -> Launch:
    source, d = _pair(random, 64, 8)
    output = np.zeros((128, 4), "f4")
    return Launch([source, output], [(output, accumulators(5 * d))])


def multiply_once(random: np.random.Generator) -> Launch:
    source, d = _pair(random, 64, 8)
    output = np.zeros((128, 4), "f4")
    return Launch([source, output], [(output, accumulators(d))])


def ring(random: np.random.Generator) -> Launch:
    pairs = [_pair(random, 64, 8) for _ in range(3)]
    output = np.zeros((128, 4), "f4")
    source = np.concatenate([image for image, _ in pairs])
    return Launch([source, output], [(output, accumulators(np.sum([d for _, d in pairs], axis=0)))])


def registers(random: np.random.Generator) -> Launch:
    a, b = [whole(random, 64) for _ in range(3)], whole(random, 8)
    output = np.zeros((2, 128, 4), "f4")
    first, second = accumulators((a[0] + a[2]) @ b.T), accumulators(a[1] @ b.T)
    return Launch([np.stack([operand(rows) for rows in a]), image(b), output], [(output, np.stack([first, second]))])


def tensor_ring(random: np.random.Generator) -> Launch:
    pairs = [_pair(random, 128, 16) for _ in range(2)]
    output = np.zeros((2, 128, 16), "f4")
    return Launch([np.concatenate([image for image, _ in pairs]), output], [(output, np.stack([d for _, d in pairs]))])


def tensor_part(random: np.random.Generator) -> Launch:
    source, d = _pair(random, 128, 16)
    output = np.zeros((128, 4), "f4")
    return Launch([source, output], [(output, d[:, :4])])


def tensor_stored(random: np.random.Generator) -> Launch:
    a, b = whole(random, 128), whole(random, 16)
    output = np.zeros((128, 16), "f4")
    return Launch([bits(a), image(b), output], [(output, a @ b.T)])


def tensor_copied(random: np.random.Generator) -> Launch:
    pairs = [_pair(random, 128, 16) for _ in range(2)]
    output = np.zeros((128, 16), "f4")
    return Launch([np.concatenate([image for image, _ in pairs]), output], [(output, pairs[0][1] + pairs[1][1])])
