"""ldmatrix of bytes that memory holds in fewer bits, against the bits of Python integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.lanes import compute

LANES = 64
PACKED = {"b8x16.b6x16_p32": (6, False), "b8x16.b4x16_p64": (4, False), "s8.s4": (4, True)}


@pytest.mark.parametrize(
    ("shape", "count", "space", "name"),
    [
        ("m8n16", 1, "", "b8x16.b6x16_p32"), ("m8n16", 4, ".shared", "b8x16.b6x16_p32"),
        ("m16n16", 2, "", "b8x16.b6x16_p32"), ("m8n16", 2, "", "b8x16.b4x16_p64"),
        ("m16n16", 1, ".shared", "b8x16.b4x16_p64"), ("m16n16", 2, ".shared", "b8x16.b4x16_p64"),
        ("m8n16", 1, ".shared", "s8.s4"), ("m8n16", 2, "", "s8.s4"), ("m8n16", 4, ".shared", "s8.s4"),
    ],
)  # fmt: skip
def test_elements_of_fewer_bits_fill_bytes(shape: str, count: int, space: str, name: str) -> None:
    """Elements follow one another from the lowest bit of a row; the padding behind them is ignored."""
    bits, is_signed = PACKED[name]
    random = np.random.default_rng(bits + count)
    a, b = random.integers(0, 1 << 64, (2, LANES), np.uint64)
    offset = (random.permutation(LANES) * 16).astype(np.uint32)
    registers = [f"d{n}" for n in range(count * (2 if shape == "m16n16" else 1))]
    trans = ".trans" if shape == "m16n16" else ""
    code = f"""mov.u32 %r0, box; mov.u32 %r1, %tid.x; mad.lo.u32 %r1, %r1, 16, %r0;
st.shared.v2.b64 [%r1], {{%a, %b}};
bar.sync 0;
add.u32 %r2, %r0, %offset;
ldmatrix.sync.aligned.{shape}.x{count}{trans}{space}.{name} {{{", ".join("%" + r for r in registers)}}}, [%r2];"""
    found = compute(
        code, {"a": a, "b": b, "offset": offset}, dict.fromkeys(registers, np.uint32), version="9.4", block=LANES,
        declare=f".shared .align 16 .b8 box[{16 * LANES}];",
    )  # fmt: skip
    rows = 16 if shape == "m16n16" else 8

    def element(lane: int, matrix: int, row: int, column: int) -> int:
        given = int(offset[lane // 32 * 32 + matrix * rows + row]) // 16
        value = (int(a[given]) | int(b[given]) << 64) >> bits * column & ((1 << bits) - 1)
        return value - 16 & 0xFF if is_signed and value > 7 else value

    for lane in range(LANES):
        quad, group = lane % 4, lane % 32 // 4
        for number, register in enumerate(registers):
            if shape == "m8n16":
                values = [element(lane, number, group, 4 * quad + n) for n in range(4)]
            else:
                matrix, lower = divmod(number, 2)
                places = [(4 * quad + 2 * lower + n % 2, group + 8 * (n // 2)) for n in range(4)]
                values = [element(lane, matrix, *place) for place in places]
            assert found[register][lane].tobytes() == bytes(values), (lane, register)
