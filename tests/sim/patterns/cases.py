"""The launch of each pattern, and the results of its correct version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pyptx import sim
from pyptx.tensormap import ElementType, TensorMap
from tests.sim.patterns import products
from tests.sim.patterns.launches import Array, Launch, words


@dataclass(frozen=True, slots=True)
class Case:
    """The shape of a launch; `make` draws new arguments."""

    make: Callable[[np.random.Generator], Launch]
    block: int = 32
    grid: int = 1
    cluster: int = 1


def through(expected: Callable[[Array], Array], *shape: int) -> Callable[[np.random.Generator], Launch]:
    """Return a launch with one input array and one output array."""

    def make(random: np.random.Generator) -> Launch:
        source = words(random, *shape)
        right = expected(source)
        output = np.zeros_like(right)
        return Launch([source, output], [(output, right)])

    return make


def boxes(rows: int, columns: int, array: Array, height: int) -> sim.Tensor:
    """Return the map of a matrix of words, with boxes of whole rows."""
    return sim.Tensor(array, TensorMap(ElementType.U32, 0, (columns, rows), (4 * columns,), (columns, height)))


def _tma_ring(random: np.random.Generator) -> Launch:
    source, output = words(random, 32, 32), np.zeros((32, 32), "u4")
    return Launch([boxes(32, 32, source, 8), output], [(output, source)])


def _tma_store(random: np.random.Generator) -> Launch:
    source, output = words(random, 32, 32), np.zeros((32, 32), "u4")
    return Launch([source, boxes(32, 32, output, 16)], [(output, source)])


def _handover(copies: int) -> Callable[[np.random.Generator], Launch]:
    def make(random: np.random.Generator) -> Launch:
        source, via, flag, output = words(random, 4), np.zeros(4, "u4"), np.zeros(1, "u4"), np.zeros((copies, 4), "u4")
        return Launch([source, via, flag, output], [(output, np.broadcast_to(source, (copies, 4)))])

    return make


def _bulk_reduce(random: np.random.Generator) -> Launch:
    source, total, count, output = words(random, 3, 32), np.zeros(32, "u4"), np.zeros(1, "u4"), np.zeros(32, "u4")
    return Launch([source, total, count, output], [(output, source.sum(0, dtype="u4"))])


def _cluster_swap(random: np.random.Generator) -> Launch:
    source, output = words(random, 2, 32), np.zeros((4, 32), "u4")
    peers = source[::-1]
    return Launch([source, output], [(output, np.concatenate([peers[:, ::-1], source[:, ::-1]]))])


def _multicast(random: np.random.Generator) -> Launch:
    source, output = words(random, 2, 32), np.zeros((2, 2, 32), "u4")
    return Launch([source, output], [(output, np.stack([source, source]))])


def _through_memory(expected: Callable[[Array], Array], count: int) -> Callable[[np.random.Generator], Launch]:
    """Return a launch with an array for the data passed on and a flag."""

    def make(random: np.random.Generator) -> Launch:
        source, via, flag = words(random, count), np.zeros(count, "u4"), np.zeros(1, "u4")
        output = np.zeros(count, "u4")
        return Launch([source, via, flag, output], [(output, expected(source))])

    return make


def _cluster_global(random: np.random.Generator) -> Launch:
    source, via, output = words(random, 32), np.zeros(32, "u4"), np.zeros(32, "u4")
    return Launch([source, via, output], [(output, source[::-1])])


def _counter(random: np.random.Generator) -> Launch:
    source, via, count, output = words(random, 4), np.zeros(4, "u4"), np.zeros(1, "u4"), np.zeros(2, "u4")
    return Launch([source, via, count, output], [(output, source[:2])])


def _lock(random: np.random.Generator) -> Launch:
    source, total, lock = words(random, 4), np.zeros(1, "u4"), np.zeros(1, "u4")
    return Launch([source, total, lock], [(total, source.sum(keepdims=True, dtype="u4"))])


def _overwrite(random: np.random.Generator) -> Launch:
    source, output = words(random, 32), np.zeros(32, "u4")
    index = np.arange(32, dtype="u4") ^ 3
    return Launch([source, output], [(output, index + source[index])])


def _tensormap(random: np.random.Generator) -> Launch:
    first, second, map_bytes = words(random, 4, 32), words(random, 4, 32), np.zeros(128, "u1")
    output = np.zeros((2, 4, 32), "u4")
    return Launch([boxes(4, 32, first, 4), map_bytes, first, second, output], [(output, np.stack([first, second]))])


def _warps(random: np.random.Generator) -> Launch:
    source, output = words(random, 256), np.zeros(256, "u4")
    pair_sums = source + source[np.arange(256) ^ 1]
    total = np.repeat(pair_sums.reshape(8, 32).sum(1, dtype="u4"), 32)
    leaders = (np.arange(256) % 32 == 0).astype("u4")
    return Launch([source, output], [(output, pair_sums + total + leaders)])


def _cluster_step(random: np.random.Generator) -> Launch:
    source, via, output = words(random, 128), np.zeros(128, "u4"), np.zeros(128, "u4")
    return Launch([source, via, output], [(output, source[::-1])])


CASES: dict[str, Case] = {
    "bar": Case(through(lambda x: (x + x[::-1])[::-1], 128), 128),
    "named": Case(through(lambda x: x[:, ::-1], 4, 64), 128),
    "lanes": Case(through(lambda x: x[np.arange(32) ^ 1] + x[1], 32)),
    "mbarrier": Case(through(lambda x: x[:, ::-1], 4, 32), 64),
    "tma_ring": Case(_tma_ring, 64),
    "bulk_ring": Case(through(lambda x: x, 3, 64), 96),
    "tma_store": Case(_tma_store, 128),
    "store_exit": Case(through(lambda x: x, 32)),
    "bulk_handover": Case(_handover(2), 1, 2),
    "generic_handover": Case(_handover(1), 1, 2),
    "bulk_reduce": Case(_bulk_reduce, 32, 3),
    "cp_async": Case(through(lambda x: x[:, ::-1], 3, 128), 128),
    "cp_async_mbarrier": Case(through(lambda x: x[::-1], 32), 64),
    "dsmem": Case(_cluster_swap, 32, 2),
    "remote_ring": Case(through(lambda x: x[:, ::-1], 3, 32), 32, 2),
    "cluster_global": Case(_cluster_global, 32, 2),
    "st_async": Case(through(lambda x: x[::-1], 2, 32), 32, 2),
    "multicast": Case(_multicast, 64, 2),
    "flag": Case(_through_memory(lambda x: x, 1), 1, 2),
    "flag_fences": Case(_through_memory(lambda x: x[::-1], 64), 64, 2),
    "counter": Case(_counter, 1, 3),
    "lock": Case(_lock, 1, 4),
    "turns": Case(_lock, 1, 4),
    "ticket": Case(_counter, 1, 3),
    "overwrite": Case(_overwrite, 32),
    "stmatrix": Case(through(lambda x: x, 2, 128), 32),
    "wgmma_shared": Case(products.shared, 128),
    "wgmma_registers": Case(products.registers, 128),
    "wgmma_ring": Case(products.ring, 160),
    "cp_async_wgmma": Case(products.multiply_once, 128),
    "tensormap": Case(_tensormap, 64),
    "warps": Case(_warps, 256),
    "cluster_step": Case(_cluster_step, 64, 2),
    "tcgen05_cp": Case(products.tensor_copied, 128),
    "dependent": Case(through(lambda x: x, 32), 32),
    "launch_control": Case(through(lambda x: x, 6, 64), 64, 6),
    "issuer_fence": Case(through(lambda x: x, 2, 64), 64),
    "tcgen05_mma": Case(products.tensor_ring, 192),
    "tcgen05_relaxed": Case(products.tensor_part, 160),
    "tcgen05_st": Case(products.tensor_stored, 128),
}
