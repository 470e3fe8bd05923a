"""Block-scaled operands as tensors: their values, for launches of real size.

The orders of the factors are those of `examples/parts/scales.py` for tcgen05, and of rtx/03_block_scaled_gemm.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

torch: Any = import_module("torch")
FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
GROUPS = {"torch.float8_e4m3fn": 32, "torch.uint8": 16}
"""Elements along K that share a factor: of mxfp8, and of nvfp4, with two elements in a byte."""


def draw_factors(shape: tuple[int, ...], low: int, high: int, device: str) -> Any:
    """Return words of four random factors, whose codes are from `low` to below `high`."""
    codes = torch.randint(low, high, (*shape, 4), dtype=torch.uint8, device=device)
    return codes.view(torch.uint32)[..., 0]


def scale_blocks(elements: Any, words: Any) -> Any:
    """Return values in f32, for factors in blocks of 128 rows as tcgen05 reads them."""
    codes = (
        words.view(torch.uint8).reshape(len(words), -1, 32, 4, 4).permute(0, 3, 2, 1, 4).reshape(len(words) * 128, -1)
    )
    return scale(elements, codes[: len(elements)])


def scale_columns(elements: Any, words: Any) -> Any:
    """Return values in f32, for factors of which row i has the words of a part of K, one for each row of the matrix."""
    return scale(elements, words.T.flatten().view(torch.uint8).reshape(len(elements), -1))


def scale(elements: Any, codes: Any) -> Any:
    """Return elements times their factors, whose codes are in the order of the elements."""
    group = GROUPS[str(elements.dtype)]
    factors = codes.float().sub_(127).exp2_() if group == 32 else codes.view(torch.float8_e4m3fn).float()
    values = elements.float() if group == 32 else unpack(elements)
    return values.mul_(factors.repeat_interleave(group, 1)[:, : values.shape[1]])


def unpack(pairs: Any) -> Any:
    """Return elements of 4 bits, two in a byte, the lower half first."""
    values = torch.tensor([*FP4, *(-value for value in FP4)], device=pairs.device)
    return torch.stack([values[(pairs & 15).int()], values[(pairs >> 4).int()]], 2).reshape(len(pairs), -1)
