"""Copies of boxes against a model of their bytes."""

from __future__ import annotations

import ctypes
import random
import struct
from dataclasses import dataclass

import pytest

from tests.driver.direct import Direct

HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4
SIZE = 1024


@dataclass(frozen=True)
class Place:
    """Where a box is on one side: its first byte, and what lies between rows and between slices."""

    memory: int
    address: int
    x: int
    y: int
    z: int
    pitch: int
    rows: int

    def pack(self, *, is_flat: bool) -> bytes:
        host, device = (self.address, 7) if self.memory == HOST else (7, self.address)
        if is_flat:
            return struct.pack("<QQI4xQQQQ", self.x, self.y, self.memory, host, device, 0, self.pitch)
        words = self.x, self.y, self.z, 0, self.memory, host, device, 0, 0, self.pitch, self.rows
        return struct.pack("<4QI4x6Q", *words)

    def list_offsets(self, width: int, height: int, depth: int) -> list[int]:
        """Return the offset of each byte of the box."""
        pitch, rows = self.pitch or width, self.rows or height
        return [
            ((self.z + z) * rows + self.y + y) * pitch + self.x + x
            for z in range(depth)
            for y in range(height)
            for x in range(width)
        ]


def test_boxes_are_copied_to_their_places(seed: int) -> None:
    draw, direct = random.Random(seed), Direct()
    stream, codes = direct.ask("cuStreamCreate", 0), set[int]()
    buffer = ctypes.create_string_buffer(SIZE)
    address = {HOST: ctypes.addressof(buffer), DEVICE: direct.ask("cuMemAlloc_v2", SIZE)}
    address[UNIFIED] = direct.ask("cuMemAllocManaged", SIZE, 1)
    for _ in range(200):
        is_flat = draw.random() < 0.5
        width, height = draw.randrange(1, 6), draw.randrange(1, 4)
        depth = 1 if is_flat else draw.randrange(1, 4)
        kinds = draw.sample((HOST, DEVICE, UNIFIED), 2)
        source, target = (
            Place(
                kind, address[kind], draw.randrange(4), draw.randrange(3), 0 if is_flat else draw.randrange(3),
                draw.choice((0, 4, 5, 9)), 0 if is_flat else draw.choice((0, 2, 3, 5)),
            )
            for kind in kinds
        )  # fmt: skip
        before = [draw.randbytes(SIZE) for _ in range(2)]
        for place, data in zip((source, target), before, strict=True):
            ctypes.memmove(place.address, data, SIZE)
        words = source.pack(is_flat=is_flat) + target.pack(is_flat=is_flat)
        words += struct.pack("<QQ", width, height) if is_flat else struct.pack("<QQQ", width, height, depth)
        name, rest = f"cuMemcpy{2 if is_flat else 3}D", () if draw.random() < 0.5 else (stream,)
        code = direct.try_call(f"{name}Async_v2" if rest else f"{name}_v2", words, *rest)
        is_wrong = any(0 < place.pitch < width or 0 < place.rows < height for place in (source, target))
        assert code == is_wrong
        codes.add(code)
        expected = bytearray(before[1])
        if not is_wrong:
            offsets = (place.list_offsets(width, height, depth) for place in (source, target))
            for start, end in zip(*offsets, strict=True):
                expected[end] = before[0][start]
        assert ctypes.string_at(target.address, SIZE) == expected
        assert ctypes.string_at(source.address, SIZE) == before[0]
    assert codes == {0, 1}


def test_a_box_ends_with_its_memory() -> None:
    direct = Direct()
    first, second = (direct.ask("cuMemAlloc_v2", 64) for _ in range(2))
    # Rows of 8 bytes: one that begins at byte 56 is the last, whatever the pitch.
    for pitch, height, code in ((16, 1, 0), (16, 4, 0), (16, 5, 1), (20, 3, 0), (20, 4, 1)):
        place = Place(DEVICE, first + (64 - 8 if height == 1 else 0), 0, 0, 0, pitch, 0)
        other = Place(DEVICE, second, 0, 0, 0, 8, 0)
        for source, target in ((place, other), (other, place)):
            words = source.pack(is_flat=True) + target.pack(is_flat=True) + struct.pack("<QQ", 8, height)
            assert direct.try_call("cuMemcpy2D_v2", words) == code
            assert direct.try_call("cuMemcpy2DUnaligned_v2", words) == code
    assert direct.try_call("cuMemcpy2D_v2", place.pack(is_flat=True) * 2 + struct.pack("<QQ", 0, 9)) == 0


def test_arrays_and_unknown_memory_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    direct = Direct()
    memory = direct.ask("cuMemAlloc_v2", 64)
    for kind in (0, ARRAY, 5):
        for kinds in ((kind, DEVICE), (DEVICE, kind)):
            sides = [Place(item, memory, 0, 0, 0, 0, 0).pack(is_flat=True) for item in kinds]
            code = direct.try_call("cuMemcpy2D_v2", b"".join(sides) + struct.pack("<QQ", 4, 4))
            assert code == (801 if kind == ARRAY else 1)
            text = "pyptx: cuMemcpy2D_v2: copies of CUDA arrays are not simulated\n"
            assert capsys.readouterr().err == (text if kind == ARRAY else "")
