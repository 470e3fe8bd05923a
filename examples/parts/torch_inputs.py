"""Inputs and outputs of launches of real size, as tensors: drawn on the GPU, which takes milliseconds.

Knows PyTorch, and which examples need inputs other than normal numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from examples.parts import torch_references
from examples.parts.example import Array, Example, Run, find_dtype
from examples.parts.torch_references import Tensors
from examples.parts.torch_scales import draw_factors
from pyptx import Kernel, Tile

torch: Any = import_module("torch")
POISON = 0xFF
"""Fills outputs before a launch: as f32, bf16 or e4m3 it is NaN, so that an element that is not written is no match."""


def find_device() -> str:
    """Return where tensors are: on the GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def draw_inputs(example: Example, run: Run) -> Tensors:
    """Return inputs of a run, the same for each call."""
    torch.manual_seed(0)
    tiles = example.make().in_specs
    special = _DRAWS.get(example.name)
    return special(tiles, run) if special else tuple(draw(tile, run) for tile in tiles)


def draw(tile: Tile, run: Run) -> Any:
    """Return normal numbers, or integers of the whole range."""
    dims, dtype = tile.resolve_shape(dict(run.shape)), getattr(torch, find_dtype(tile).name)
    if tile.dtype.kind == "u":
        return torch.randint(0, 1 << tile.dtype.bits, dims, dtype=dtype, device=find_device())
    return (torch.randn(dims, device=find_device()) * run.scale).to(dtype)


def make_outputs(example: Example, kernel: Kernel, run: Run) -> list[Any]:
    """Return poisoned outputs, except for what the kernel expects to have a value."""
    if example.outputs is None:
        tiles = [(tile.resolve_shape(dict(run.shape)), find_dtype(tile).name) for tile in kernel.out_specs]
        return [poison(torch.empty(dims, dtype=getattr(torch, name), device=find_device())) for dims, name in tiles]
    outputs = [to_tensor(array) for array in example.outputs(run.shape)]
    return [poison(tensor) if tensor.dtype.is_floating_point else tensor for tensor in outputs]


def poison(tensor: Any) -> Any:
    """Fill a tensor with bytes that are no result, and return it."""
    tensor.view(torch.uint8).fill_(POISON)
    return tensor


def to_tensor(array: Array) -> Any:
    """Return a tensor with an array's values, on the GPU if there is one."""
    small = {"bfloat16": torch.bfloat16, "float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}
    if array.dtype.name in small:
        bits = array.view(np.int16 if array.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(bits).view(small[array.dtype.name]).to(find_device())
    return torch.from_numpy(array).to(find_device())


def _draw_scaled(tiles: tuple[Tile, ...], run: Run) -> Tensors:
    """Return operands, and scales from 0.5 to 2."""
    a, a_scale, b, b_scale = (draw(tile, run) for tile in tiles)
    return a, a_scale.clamp(-1, 1).exp2(), b, b_scale.clamp(-1, 1).exp2()


def _draw_groups(tiles: tuple[Tile, ...], run: Run) -> Tensors:
    """Return operands, and random sizes of groups, some of them 0."""
    a, b = (draw(tile, run) for tile in tiles[:2])
    random = np.random.default_rng(0)
    weights = random.random(len(b)) * (random.random(len(b)) < 0.8) + 1e-9
    return a, b, to_tensor(random.multinomial(len(a), weights / weights.sum()).astype(find_dtype(tiles[2])))


def _draw_blocks(tiles: tuple[Tile, ...], run: Run) -> Tensors:
    """Return operands, factors near 1, as powers of two or e4m3, and alpha if the kernel takes it."""
    operands = tuple(draw(tile, run) for tile in tiles[:2])
    low, high = (124, 131) if operands[0].dtype == torch.float8_e4m3fn else (0x30, 0x41)
    shapes = [tuple(tile.resolve_shape(dict(run.shape))) for tile in tiles[2:4]]
    factors = tuple(draw_factors(shape, low, high, find_device()) for shape in shapes)
    return (*operands, *factors, *(torch.full((1,), 0.5, device=find_device()) for _ in tiles[4:]))


def _draw_cache(tiles: tuple[Tile, ...], run: Run) -> Tensors:
    """Return queries and full caches."""
    lengths = torch.full((run.shape["b"],), run.shape["s"], dtype=torch.int32, device=find_device())
    return *(draw(tile, run) for tile in tiles[:3]), lengths


def _draw_gradients(tiles: tuple[Tile, ...], run: Run) -> tuple[Tensors, Tensors]:
    """Return q, k, v and do, and the results of the forward pass."""
    q, k, v, do = (draw(tiles[0], run) for _ in range(4))
    return (q, k, v, do), torch_references.attend(q, k, v, causal=run.shape.get("causal", False))


def _draw_for_queries(tiles: tuple[Tile, ...], run: Run) -> Tensors:
    (q, k, v, do), (o, lse) = _draw_gradients(tiles, run)
    return q, k, v, o.to(q.dtype), lse, do


def _draw_for_keys(tiles: tuple[Tile, ...], run: Run) -> Tensors:
    (q, k, v, do), (o, lse) = _draw_gradients(tiles, run)
    return q, k, v, lse, (do.float() * o).sum(2), do


def _draw_positive(tiles: tuple[Tile, ...], run: Run) -> Tensors:
    """Return numbers from 1 to 2: their sum is far from zero."""
    return (1 + torch.rand(tiles[0].resolve_shape(dict(run.shape)), device=find_device()),)


def _draw_rotation(tiles: tuple[Tile, ...], run: Run) -> Tensors:
    """Return values and the cosines and sines of random angles."""
    angles = draw(tiles[1], run)
    return draw(tiles[0], run), angles.cos(), angles.sin()


_DRAWS: dict[str, Callable[[tuple[Tile, ...], Run], Tensors]] = {
    "any/rotary": _draw_rotation,
    "blackwell/block_scaled_gemm": _draw_blocks,
    "blackwell/grouped_gemm": _draw_groups,
    "blackwell/nvfp4_gemm": _draw_blocks,
    "hopper/attention_backward_dkv": _draw_for_keys,
    "hopper/attention_backward_dq": _draw_for_queries,
    "hopper/decode_attention": _draw_cache,
    "hopper/fp8_gemm": _draw_scaled,
    "hopper/grouped_gemm": _draw_groups,
    "patterns/grid_barrier": _draw_positive,
    "rtx/block_scaled_gemm": _draw_blocks,
}
