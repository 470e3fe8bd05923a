"""A finding with both places for a tile that a tensor copy fills with one swizzle and a product reads with another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.parts.example import find_example
from pyptx import kernel, ptx, reg, sim, smem, types
from pyptx.diagnostics import Severity, Span
from pyptx.ir import Function, Module
from pyptx.parser import parse
from pyptx.sim.hazards import Bytes, Finding, Group, Hazards, Place, Space, store
from pyptx.sim.hazards.rows import make_rows
from pyptx.tensormap import ElementType, Swizzle, TensorMap
from pyptx.types import b32, f32

TCGEN05_GEMM = find_example("blackwell/two_sm_gemm")
TCGEN05_TILE = find_example("blackwell/tcgen05_tile")

Array = np.ndarray[Any, Any]
GEMM = (Path(__file__).parents[4] / "examples" / "hopper_gemm.ptx").read_text("utf-8")
SIZE = 128


def bf16(random: np.random.Generator, rows: int, columns: int) -> Array:
    return (random.integers(-3, 4, (rows, columns)).astype("f4").view("u4") >> 16).astype("u2")


def tensor(array: Array, mode: Swizzle, box: tuple[int, int]) -> sim.Tensor:
    rows, columns = array.shape
    return sim.Tensor(array, TensorMap(ElementType.BF16, 0, (columns, rows), (2 * columns,), box, swizzle=mode))


def multiply_with_maps(a: Swizzle, b: Swizzle, *, text: str = GEMM, **options: Any) -> tuple[list[Finding], Array]:
    """Run the Hopper GEMM, whose descriptors specify the 128-byte swizzle, with maps of these modes."""
    random = np.random.default_rng(1)
    x, y = bf16(random, SIZE, SIZE), bf16(random, SIZE, SIZE)
    d = np.zeros((SIZE, SIZE), "f4")
    args = [tensor(x, a, (64, SIZE)), tensor(y, b, (64, SIZE)), d, SIZE, SIZE // 64]
    findings = sim.run(parse(text), grid=(1, 1), block=384, shared=131072, args=args, **options).hazards
    wide = [(m.astype("u4") << 16).view("f4") for m in (x, y)]
    return findings, d == wide[0] @ wide[1].T


def line_of(text: str, words: str, nth: int = 0) -> int:
    return [number for number, line in enumerate(text.splitlines(), 1) if words in line][nth]


def test_the_same_swizzle_is_fine() -> None:
    findings, right = multiply_with_maps(Swizzle.B128, Swizzle.B128)
    assert right.all()
    assert findings == []


@pytest.mark.parametrize(
    ("mode", "mode_name"), [(Swizzle.NONE, "no swizzle"), (Swizzle.B128_ATOM_32B, "the 128_atom_32b-byte swizzle")]
)
@pytest.mark.parametrize("position", [0, 1])
def test_another_swizzle_is_found_with_both_places(mode: Swizzle, mode_name: str, position: int) -> None:
    modes = [Swizzle.B128, Swizzle.B128]
    modes[position] = mode
    findings, right = multiply_with_maps(*modes)
    assert not right.all()
    assert {finding.rule.code for finding in findings} == {"PTX0985"}
    first = findings[0]
    assert f"with {mode_name}, the descriptor says the 128-byte swizzle" in first.what
    assert first.place.text.startswith("wgmma.mma_async")
    assert first.place.origin is not None
    assert first.place.origin.line in [n for n, line in enumerate(GEMM.splitlines(), 1) if "wgmma.mma_async" in line]
    assert first.other is not None
    assert first.other.origin is not None
    assert first.other.origin.line == line_of(GEMM, "cp.async.bulk.tensor", position)
    assert first.agent is not None


@pytest.mark.parametrize("schedule", ["lazy", "random", "adversarial"])
def test_it_is_found_in_every_schedule(schedule: str) -> None:
    findings, _ = multiply_with_maps(Swizzle.B128, Swizzle.NONE, schedule=schedule)
    assert {finding.rule.code for finding in findings} == {"PTX0985"}
    assert multiply_with_maps(Swizzle.B128, Swizzle.B128, schedule=schedule)[0] == []


def test_it_is_a_class_of_its_own() -> None:
    assert multiply_with_maps(Swizzle.B128, Swizzle.NONE, check="races")[0] == []
    assert multiply_with_maps(Swizzle.B128, Swizzle.NONE, check="layouts")[0] != []


def entry(module: Module) -> Function:
    return next(f for f in module.directives if isinstance(f, Function) and f.is_entry)


def blackwell(a: Swizzle, b: Swizzle, second: str = "sa+32") -> tuple[list[Finding], Array]:
    """Run the product in tensor memory, whose descriptors specify the 128-byte swizzle; the second one of A starts at
    `second`."""
    example = TCGEN05_TILE.make()
    random = np.random.default_rng(2)
    x, y = bf16(random, SIZE, 64), bf16(random, SIZE, 64)
    d = np.zeros((SIZE, SIZE), "f4")
    module = parse(example.ptx().replace("sa+32;", f"{second};"))
    values: dict[str, Any] = {"a": x, "b": y, "c": d}
    maps = {"a": tensor(x, a, (64, SIZE)), "b": tensor(y, b, (64, SIZE))}
    args = {p.name: (maps if p.name.endswith("desc") else values)[p.name[0]] for p in entry(module).params}
    findings = sim.run(module, example.name, block=128, shared=example.dynamic_smem(), args=args).hazards
    wide = [(m.astype("u4") << 16).view("f4") for m in (x, y)]
    return findings, d == wide[0] @ wide[1].T


def test_products_in_tensor_memory() -> None:
    findings, right = blackwell(Swizzle.B128, Swizzle.B128)
    assert right.all()
    assert findings == []
    copies: list[int] = []
    for modes in ((Swizzle.NONE, Swizzle.B128), (Swizzle.B128, Swizzle.NONE)):
        findings, right = blackwell(*modes)
        assert not right.all()
        assert {finding.rule.code for finding in findings} == {"PTX0985"}
        assert findings[0].place.text.startswith("tcgen05.mma")
        (line,) = {finding.other.origin.line for finding in findings if finding.other and finding.other.origin}
        copies.append(line)
    assert copies[0] < copies[1]


@pytest.mark.parametrize("clusters", [1, 2])
def test_pairs_of_ctas_read_the_halves_of_both(clusters: int) -> None:
    example, rows, depth = TCGEN05_GEMM.make(), 256 * clusters, 64
    module = example.module(m=rows, n=256, k=depth)
    random = np.random.default_rng(3)
    x, y, d = bf16(random, rows, depth), bf16(random, 256, depth), np.zeros((rows, 256), "u2")
    for modes in ((Swizzle.B128, Swizzle.B128), (Swizzle.NONE, Swizzle.B128), (Swizzle.B128, Swizzle.NONE)):
        maps = {
            "a": tensor(x, modes[0], (64, 128)), "b": tensor(y, modes[1], (64, 128)),
            "c": tensor(d, Swizzle.B128, (64, 32)),
        }  # fmt: skip
        values: dict[str, Any] = {"a": x, "b": y, "c": d}
        args = {p.name: (maps if p.name.endswith("desc") else values)[p.name[0]] for p in entry(module).params}
        shared = example.dynamic_smem(m=rows, n=256, k=depth)
        findings = sim.run(
            module, example.name, grid=(2 * clusters, 1), cluster=(2, 1), block=128, shared=shared, args=args
        ).hazards  # fmt: skip
        if modes == (Swizzle.B128, Swizzle.B128):
            assert findings == []
            continue
        assert {finding.rule.code for finding in findings} == {"PTX0985"}
        # Every product of 64 elements in steps of 16, in both CTAs of each pair.
        assert sum(finding.count for finding in findings) == 4 * 2 * clusters


COPY, READ, STORE = (Place(Span(line, 1), f"line {line}") for line in (5, 9, 7))


def check_tile(
    size: int, mode: Swizzle, *, stores: tuple[int, int] | None = None, copied_size: int = 0, low: int = 1024
) -> list[tuple[str, int]]:
    """Fill a kilobyte by a copy without swizzle, overwrite some bytes by thread stores or the first ones by another
    copy, and read `size` bytes."""
    engine = Hazards()
    grid = engine.launch(Place(Span(1, 1), "k"), threads=128, shared_bytes=4096)
    engine.start(grid, slots=[0], ctas=[0])
    thread = grid.find_thread(0)
    engine.mbarriers.init(thread, Place(None, "init"), 2048, 1)
    number = engine.copies.bulk_load(thread, COPY, None, [(Bytes.run(Space.SHARED, 0, 1024), 2048)])
    engine.layouts.record_fill(grid, COPY, [0], 1024, Swizzle.NONE)
    engine.copies.land(number)
    if copied_size:
        engine.copies.bulk_load(thread, STORE, None, [(Bytes.run(Space.SHARED, 0, copied_size), 2048)])
    if stores is not None:
        addresses = np.arange(*stores, 4)
        engine.access(store(STORE, Space.SHARED, 4), Group(thread + np.arange(len(addresses))), addresses)
    rows = make_rows(np.array([[0]]), size)
    assert rows is not None
    engine.layouts.check_granules(np.array([thread]), READ, rows, mode, low)
    return [(f.where, f.count) for f in engine.findings if f.rule.code == "PTX0985"]


def test_only_bytes_that_are_still_the_copys_count() -> None:
    assert check_tile(1024, Swizzle.B128) == [("16 bytes at shared 0x80 of CTA 0", 1)]
    assert check_tile(1024, Swizzle.B128, stores=(128, 256)) == [("16 bytes at shared 0x100 of CTA 0", 1)]
    assert check_tile(256, Swizzle.B128, stores=(128, 256)) == []
    assert check_tile(1024, Swizzle.B128, copied_size=512) == [("16 bytes at shared 0x200 of CTA 0", 1)]
    assert check_tile(1024, Swizzle.B128, copied_size=1024) == []


def test_lines_that_both_modes_leave_alone_do_not_count() -> None:
    assert check_tile(128, Swizzle.B128) == []
    assert check_tile(256, Swizzle.B32) == [("16 bytes at shared 0x80 of CTA 0", 1)]
    assert check_tile(1024, Swizzle.NONE) == []


def test_patterns_go_by_addresses() -> None:
    assert check_tile(1024, Swizzle.B128, low=1024 + 128) == [("16 bytes at shared 0x0 of CTA 0", 1)]


def test_copies_that_are_recorded_one_by_one_count() -> None:
    assert {f.rule.code for f in multiply_with_maps(Swizzle.B128, Swizzle.NONE, statistics=True)[0]} == {"PTX0985"}


def start_inside_pattern(swizzle: int, start: int, base_offset: int = 0) -> list[Finding]:
    """Multiply zeros with descriptors of a swizzled tile that start at this offset inside it."""

    @kernel(arch="sm_90a", block=(128, 1, 1))
    def product() -> None:
        tile = smem.alloc(b32, (2560,), align=1024, name="tile")
        for index in range(20):
            smem.store(b32, tile + ptx.special.tid.x() * 4 + 512 * index, 0)
        ptx.fence.proxy_async()
        ptx.bar.sync(0)
        descriptor = ptx.wgmma.make_descriptor(
            tile, leading_byte_offset=16, stride_byte_offset=1024, swizzle=swizzle, addr_byte_offset=start,
            base_offset=base_offset,
        )  # fmt: skip
        sums = reg.array(f32, 4)
        ptx.wgmma.fence()
        ptx.wgmma.mma_async(
            shape=(64, 8, 16), dtype_d=f32, dtype_a=types.bf16, dtype_b=types.bf16, d=sums, a=descriptor, b=descriptor
        )
        ptx.wgmma.commit_group()
        ptx.wgmma.wait_group(0)

    return product.simulate(grid=(1,), on_hazard="report").hazards


@pytest.mark.parametrize(
    ("swizzle", "start", "base_offset"),
    [(1, 0, 0), (1, 96, 0), (1, 1024, 0), (1, 128, 1), (2, 48, 0), (2, 512, 0), (3, 16, 0), (3, 256, 0)],
)
def test_a_descriptor_may_start_in_the_first_line_of_its_pattern(swizzle: int, start: int, base_offset: int) -> None:
    assert start_inside_pattern(swizzle, start, base_offset) == []


@pytest.mark.parametrize(("swizzle", "start", "size"), [(1, 128, 1024), (1, 992, 1024), (2, 64, 512), (3, 32, 256)])
def test_a_descriptor_that_starts_inside_its_pattern_is_reported(swizzle: int, start: int, size: int) -> None:
    first, *remainder = start_inside_pattern(swizzle, start)
    assert (first.rule.code, first.severity, remainder) == ("PTX0914", Severity.WARNING, [])
    assert f"B starts at `tile`+{start} of CTA 0" in first.what
    assert f"byte {start} of a pattern of {size} bytes" in first.what
    assert first.place.text.startswith("wgmma.mma_async")


def test_a_descriptor_of_tensor_memory_products_that_starts_inside_its_pattern_is_reported() -> None:
    findings, _ = blackwell(Swizzle.B128, Swizzle.B128, "sa+160")
    assert [finding.rule.code for finding in findings] == ["PTX0914"]
    assert "A starts at `sa`+160 of CTA 0" in findings[0].what
    assert findings[0].place.text.startswith("tcgen05.mma")
