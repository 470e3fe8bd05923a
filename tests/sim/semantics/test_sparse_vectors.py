"""spdecompress against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.lanes import compute


@pytest.mark.parametrize(
    ("num", "stored_count", "of", "element", "index"),
    [(2, 2, 4, 8, 2), (2, 2, 4, 16, 4), (1, 1, 4, 8, 2), (4, 1, 2, 16, 2), (2, 4, 8, 8, 4), (1, 2, 16, 16, 4)],
)
def test_elements_return_to_their_places(num: int, stored_count: int, of: int, element: int, index: int) -> None:
    random, lanes = np.random.default_rng(1), 40
    counts = [max(1, -(-num * bits // 32)) for bits in (stored_count * index, stored_count * element, of * element)]
    metadata, values = (np.zeros((count, lanes), "u4") for count in counts[:2])
    expected = np.zeros((num * of, lanes), "u4")
    for lane in range(lanes):
        for group in range(num):
            for n, place in enumerate(sorted(random.choice(of, stored_count, replace=False).tolist())):
                number, code = group * stored_count + n, int(random.integers(1, 1 << element))
                metadata[number * index // 32, lane] |= np.uint32(place << number * index % 32)
                values[number * element // 32, lane] |= np.uint32(code << number * element % 32)
                expected[group * of + place, lane] = code
    inputs = {f"m{n}": word for n, word in enumerate(metadata)} | {f"v{n}": word for n, word in enumerate(values)}
    outputs = [f"d{n}" for n in range(counts[2])]
    groups = [
        "{" + ", ".join(f"%{letter}{n}" for n in range(count)) + "}"
        for letter, count in zip("mvd", counts, strict=True)
    ]
    code = f"spdecompress.x{num}.sp::{stored_count}:{of}.b{element}.b{index} {groups[2]}, {groups[0]}, {groups[1]};"
    got = compute(code, inputs, dict.fromkeys(outputs, np.uint32), version="9.4", target="sm_107a")
    output = np.stack([got[name] for name in outputs], axis=1)
    elements = np.ascontiguousarray(output).view(f"u{element // 8}").T[: num * of]
    np.testing.assert_array_equal(elements, expected)
