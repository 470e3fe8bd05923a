"""What the tiles of a kernel that are in flight at a time read: what L2 has to keep, and what memory delivers.

L2 is taken to keep what a wave reads and no more, and groups to have equally many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from examples.parts.example import Example, Shape
from examples.parts.tile_order import HeadOrder, TileOrder
from tools.examples.machines import Machine

Place = tuple[int, int]
"""Row and column of a tile; the column of a tile of attention is its head."""


@dataclass(frozen=True)
class Wave:
    """The tiles that are in flight at a time: how many, their distinct rows and columns, and the bytes that they
    read."""

    tiles: int
    rows: int
    columns: int
    bytes: int


def list_waves(example: Example, machine: Machine, resident: int) -> list[Wave]:
    """Return the waves of the large shape, for so many CTAs on an SM."""
    order, shape = example.order, example.large
    if order is None:
        return []
    if isinstance(order, HeadOrder):
        tiles = list(order.list_tiles(shape["h"], shape["s"]))
        return [measure_wave(order, shape, wave) for wave in split(tiles, machine.sms * resident)]
    tiles = list(order.list_tiles(*find_sizes(shape)))
    waves = cut(tiles, shape["ctas"]) if order.is_cut else split(tiles, machine.sms * resident // order.ctas)
    return [measure_wave(order, shape, wave) for wave in waves]


def find_sizes(shape: Shape) -> tuple[int, int, int]:
    """Return the rows and columns of a product, and its groups."""
    return shape["t"] if "t" in shape else shape["m"], shape["n"], shape.get("g", 1)


def split(tiles: Sequence[Place], count: int) -> list[Sequence[Place]]:
    """Return the tiles in waves of so many."""
    return [tiles[start : start + count] for start in range(0, len(tiles), count)]


def cut(tiles: Sequence[Place], ctas: int) -> list[Sequence[Place]]:
    """Return the waves of CTAs that have equal parts of the sequence of tiles."""
    bounds = [cta * len(tiles) // ctas for cta in range(ctas + 1)]
    parts = (tiles[start:end] for start, end in pairwise(bounds))
    return [[tile for tile in wave if tile is not None] for wave in zip_longest(*parts)]


def measure_wave(order: TileOrder | HeadOrder, shape: Shape, tiles: Sequence[Place]) -> Wave:
    """Return what tiles in flight read."""
    rows, columns = ({tile[axis] for tile in tiles} for axis in (0, 1))
    if isinstance(order, HeadOrder):
        lines = order.own * sum(measure_part(row, order.rows, shape["s"]) for row in rows)
        lines += order.whole * shape["s"] * len(columns)
        length = shape["d"] * order.bytes
    else:
        m, n, groups = find_sizes(shape)
        lines = sum(measure_part(row, order.rows, m // groups) for row in rows)
        lines += sum(measure_part(column, order.columns, n) for column in columns)
        length = shape["k"] * order.bytes
    return Wave(len(tiles), len(rows), len(columns), lines * length)


def measure_part(part: int, size: int, total: int) -> int:
    """Return the lines of a part, of which each `total` has some that are `size` high and the rest."""
    return min(size, total - part % -(-total // size) * size)


def describe_order(example: Example, waves: Sequence[Wave]) -> str:
    """Return what the tiles in flight share, and what memory delivers."""
    order = example.order
    if order is None:
        return "order: any, each byte moves once" if example.traffic else ""
    if not waves:
        return ""
    first, total = waves[0], sum(wave.bytes for wave in waves)
    if isinstance(order, HeadOrder):
        name, shared = "order", f"{first.columns} heads"
    else:
        name = "grid order" if order.is_grid and "g" not in example.large else "order"
        shared = f"{first.rows} rows and {first.columns} columns of tiles"
    return (
        f"{name}: {first.tiles} tiles in flight read {shared}, {first.bytes / 1e6:,.1f} MB in L2, "
        f"{total / 1e6:,.0f} MB from memory in all"
    )


def count_memory_clocks(example: Example, machine: Machine, waves: Sequence[Wave]) -> float:
    """Return the clocks, of all SMs together, in which memory moves what the large shape must move, or what its waves
    of tiles read."""
    moved = example.traffic(example.large) if example.traffic else sum(wave.bytes for wave in waves)
    if machine.memory is None:
        return 0.0
    return moved / (machine.memory * 1e9) * machine.clock * 1e6 * machine.sms
