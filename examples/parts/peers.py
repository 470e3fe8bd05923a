"""What the examples are timed against: libraries' functions that compute the same, by name.

With "triton_" before it, a name stands for Triton code that PyTorch's compiler writes. Knows PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from examples.parts.example import Example

torch: Any = import_module("torch")
functional, aten = torch.nn.functional, torch.ops.aten
Tensors = tuple[Any, ...]
Work = Callable[[], object]
Make = Callable[[Tensors, bool], Work]
"""Returns a function that submits work on inputs, of attention with or without a causal mask."""
TRITON, EPSILON = "triton_", 1e-5
ONLY_TRITON = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON"}
"""Options of PyTorch's compiler, which would call cuBLAS for a product."""


def list_peers(example: Example, inputs: Tensors, *, causal: bool = False) -> dict[str, Work]:
    """Return functions that submit libraries' work on these inputs, without those that this PyTorch or device lacks."""
    peers = dict[str, Work]()
    for name in example.peer.split():
        try:
            work = make_peer(name, inputs, causal=causal)
            work()
        except (RuntimeError, AttributeError, ValueError, TypeError) as why:
            print(f"{example.name}: no peer {name}: {str(why).splitlines()[0]}")
            continue
        peers[f"torch {name}"] = work
    return peers


def make_peer(name: str, inputs: Tensors, *, causal: bool = False) -> Work:
    """Return a function that submits a library's work on these inputs. Without a GPU, what Triton would compute is
    traced but not compiled."""
    if not name.startswith(TRITON):
        return PEERS[name](inputs, causal)
    plain = name.removeprefix(TRITON)
    work = {**PEERS, **COMPILED}[plain](inputs, causal)
    options: dict[str, Any] = {"options": ONLY_TRITON} if inputs[0].is_cuda else {"backend": "aot_eager"}
    compiled: Work = torch.compile(work, **options)
    return compiled


def attend(x: Tensors, causal: bool, backend: str = "") -> Work:
    """Return attention of all heads."""
    heads = [tensor[None] for tensor in x[:3]]

    def work() -> object:
        if not backend:
            return functional.scaled_dot_product_attention(*heads, is_causal=causal)
        with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, backend)):
            return functional.scaled_dot_product_attention(*heads, is_causal=causal)

    return work


def attend_by_blocks(x: Tensors, causal: bool) -> Work:
    """Return attention by `flex_attention`, which PyTorch's compiler turns into one kernel."""
    flex: Any = import_module("torch.nn.attention.flex_attention")
    heads, length = [tensor[None] for tensor in x[:3]], x[0].shape[1]

    def is_before(batch: Any, head: Any, query: Any, key: Any) -> Any:
        del batch, head
        return query >= key

    mask = flex.create_block_mask(is_before, None, None, length, length, x[0].device) if causal else None
    return lambda: flex.flex_attention(*heads, block_mask=mask)


def attend_backward(x: Tensors, causal: bool) -> Work:
    """Return the gradients of attention for queries, keys and values, which our kernels compute in two launches."""
    q, k, v, do = (tensor[None] for tensor in (*x[:3], x[-1]))
    if not q.is_cuda:
        o, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)
        return lambda: aten._scaled_dot_product_flash_attention_for_cpu_backward(do, q, k, v, o, lse, 0.0, causal)
    o, lse, *lengths, seed, offset, _ = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)
    return lambda: aten._scaled_dot_product_flash_attention_backward(
        do, q, k, v, o, lse, *lengths, 0.0, causal, seed, offset
    )


def multiply_fp8(x: Tensors, _: bool, *, fast: bool) -> Work:
    """Return a product of fp8 operands with scales of 1; `x` may have a scale after each operand, or one at the end."""
    a, b, one = x[0], x[2] if len(x) == 4 else x[1], torch.ones((), device=x[0].device)
    return lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)


def multiply_blocks(x: Tensors, _: bool, *, element: str, factor: str) -> Work:
    """Return a product of block-scaled operands. Their factors have the order that the library expects only in
    examples/blackwell; others take as long."""
    a, b = (tensor.view(getattr(torch, element)) for tensor in x[:2])
    scales = [words.view(torch.uint8).view(getattr(torch, factor)).flatten() for words in x[2:4]]
    return lambda: torch._scaled_mm(a, b.T, *scales, out_dtype=torch.bfloat16)


def normalize_backward(x: Tensors, _: bool) -> Work:
    """Return the gradients of RMSNorm, from the factors that the forward pass keeps."""
    values, weights, dy = x
    _, factors = aten._fused_rms_norm(values, weights.shape, weights, EPSILON)
    return lambda: aten._fused_rms_norm_backward(dy, values, weights.shape, factors, weights, [True, True])


def normalize_backward_by_hand(x: Tensors, _: bool) -> Work:
    """Return the gradients of RMSNorm, written out."""

    def work() -> object:
        values, weights, dy = (tensor.float() for tensor in x)
        factors = (values.square().mean(1, keepdim=True) + EPSILON).rsqrt()
        products = (values * weights * dy).mean(1, keepdim=True)
        dx = factors * (weights * dy - values * factors.square() * products)
        return dx.to(x[0].dtype), (dy * values * factors).sum(0).to(x[1].dtype)

    return work


def rotate(x: Tensors, _: bool) -> Work:
    """Return the rotary embedding."""

    def work() -> object:
        (a, b), cos, sin = x[0].chunk(2, 2), x[1], x[2]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], 2).to(x[0].dtype)

    return work


PEERS: dict[str, Make] = {
    "add": lambda x, _: lambda: torch.add(x[0], x[1]),
    "attention": attend,
    "attention_backward": attend_backward,
    "bincount": lambda x, _: lambda: torch.bincount(x[0], minlength=256),
    "clone": lambda x, _: lambda: x[0].clone(),
    "column_sums": lambda x, _: lambda: x[0].sum(0).bfloat16(),
    "cudnn_attention": partial(attend, backend="CUDNN_ATTENTION"),
    "decode_attention": attend,
    "divide_by_sum": lambda x, _: lambda: x[0] / x[0].sum(),
    "fp8_matmul": partial(multiply_fp8, fast=False),
    "fp8_matmul_fast": partial(multiply_fp8, fast=True),
    "grouped_matmul": lambda x, _: (
        lambda: torch._grouped_mm(x[0], x[1].mT, offs=x[2].int().cumsum(0, dtype=torch.int32))
    ),
    "layer_norm": lambda x, _: lambda: functional.layer_norm(x[0], x[1].shape, x[1], x[2]),
    "matmul": lambda x, _: lambda: torch.matmul(x[0], x[1].T),
    "multiply": lambda x, _: lambda: torch.mul(x[0], x[1]),
    "mxfp8_matmul": partial(multiply_blocks, element="float8_e4m3fn", factor="float8_e8m0fnu"),
    "nvfp4_matmul": partial(multiply_blocks, element="float4_e2m1fn_x2", factor="float8_e4m3fn"),
    "rms_norm": lambda x, _: lambda: functional.rms_norm(x[0], x[1].shape, x[1], EPSILON),
    "rms_norm_backward": normalize_backward,
    "rotary": rotate,
    "softmax": lambda x, _: lambda: torch.softmax(x[0], 1),
    "sum": lambda x, _: lambda: x[0].sum(1),
    "swiglu": lambda x, _: lambda: functional.silu(x[0]) * x[1],
    "swiglu_backward": lambda x, _: lambda: (aten.silu_backward(x[2] * x[1], x[0]), x[2] * functional.silu(x[0])),
    "transpose": lambda x, _: lambda: x[0].T.contiguous(),
}
COMPILED: dict[str, Make] = {"attention": attend_by_blocks, "rms_norm_backward": normalize_backward_by_hand}
"""What PyTorch's compiler is given, if not the same."""
