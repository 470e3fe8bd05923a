"""What the examples compute, in PyTorch and in higher precision, to verify launches of real size on the GPU.

The tests compare these with the references in NumPy. Knows tensors, not kernels.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from examples.parts.example import find_example
from examples.parts.torch_scales import scale_blocks, scale_columns

Tensors = tuple[Any, ...]
"""Inputs, or one tensor per output, None for a workspace."""
EPSILON = 1e-5
BLOCK = 128
"""Elements that share a scale of the fp8 product."""
torch: Any = import_module("torch")


def compute(name: str, inputs: Tensors, **parameters: Any) -> Tensors:
    """Return what the outputs of an example should be. LookupError if it has no reference here."""
    expected = REFERENCES[name](*inputs, **parameters)
    return cast("Tensors", expected if isinstance(expected, tuple) else (expected,))


def multiply(a: Any, b: Any, **parameters: Any) -> Any:
    """Return a @ b.T in f32."""
    del parameters
    return a.float() @ b.float().T


def multiply_scaled(a: Any, a_scale: Any, b: Any, b_scale: Any, **parameters: Any) -> Any:
    """Return the product of operands times the scales of their blocks."""
    del parameters
    a_scale = a_scale.repeat_interleave(BLOCK, 1)[:, : a.shape[1]]
    b_scale = b_scale.repeat_interleave(BLOCK, 0)[: b.shape[0]].repeat_interleave(BLOCK, 1)[:, : b.shape[1]]
    return multiply(a.float() * a_scale, b.float() * b_scale)


def multiply_blocks(a: Any, b: Any, a_scales: Any, b_scales: Any, alpha: Any) -> Any:
    """Return alpha times the product of block-scaled operands, with factors in the order of tcgen05."""
    return alpha * multiply(scale_blocks(a, a_scales), scale_blocks(b, b_scales))


def multiply_columns(a: Any, b: Any, a_scales: Any, b_scales: Any) -> Any:
    """Return the product of block-scaled operands, with factors in the order of `mma.sync`."""
    return multiply(scale_columns(a, a_scales), scale_columns(b, b_scales))


def multiply_and_scale(a: Any, b: Any, scale: Any) -> Any:
    """Return the product times one factor."""
    return multiply(a, b) * scale


def multiply_groups(a: Any, b: Any, sizes: Any, **parameters: Any) -> Any:
    """Return the product of each group's rows and its weights."""
    del parameters
    return torch.cat([multiply(rows, weights) for rows, weights in zip(a.split(sizes.tolist()), b, strict=True)])


def score(q: Any, k: Any, causal: bool) -> Any:
    """Return the scaled scores of a head."""
    scores = multiply(q, k) / math.sqrt(q.shape[1])
    if causal:
        later = torch.ones(scores.shape, dtype=torch.bool, device=scores.device).triu(1)
        scores.masked_fill_(later, -math.inf)
    return scores


def attend(q: Any, k: Any, v: Any, *, causal: bool = False) -> Tensors:
    """Return the result of attention and the log-sum-exp, head by head: the scores of one head fill gigabytes."""
    results, logarithms = list[Any](), list[Any]()
    for head in range(len(q)):
        scores = score(q[head], k[head], causal)
        logarithms.append(scores.logsumexp(1))
        results.append(scores.sub_(logarithms[-1][:, None]).exp_() @ v[head].float())
    return torch.stack(results), torch.stack(logarithms)


def attend_only(q: Any, k: Any, v: Any) -> Any:
    """Return the result of attention without the log-sum-exp."""
    return attend(q, k, v)[0]


def attend_to_cache(q: Any, k: Any, v: Any, lengths: Any) -> Tensors:
    """Return the result of decode attention; workspaces hold anything, and the counters return to zero."""
    results = torch.zeros(q.shape, device=q.device)
    for head in range(len(q)):
        if length := int(lengths[head * len(lengths) // len(q)]):
            results[head] = attend(q[[head]], k[[head], :length], v[[head], :length])[0][0]
    return results, None, None, torch.zeros(len(q), dtype=torch.int32, device=q.device)


def differentiate(q: Any, k: Any, v: Any, do: Any, *, causal: bool = False) -> Tensors:
    """Return the gradients of attention with respect to q, k and v, and rowsum(do * o)."""
    heads = list[Tensors]()
    for head in range(len(q)):
        weights = score(q[head], k[head], causal).softmax(1)
        slopes, gradient = multiply(do[head], v[head]), do[head].float()
        delta = (gradient * (weights @ v[head].float())).sum(1)
        gradients = weights * (slopes - delta[:, None]) / math.sqrt(q.shape[2])
        heads.append((gradients @ k[head].float(), gradients.T @ q[head].float(), weights.T @ gradient, delta))
    return tuple(map(torch.stack, zip(*heads, strict=True)))


def differentiate_queries(q: Any, k: Any, v: Any, o: Any, lse: Any, do: Any, *, causal: bool = False) -> Tensors:
    """Return the gradient of the queries and delta."""
    del lse
    return differentiate(q, k, v, do, causal=causal)[0], (do.float() * o.float()).sum(2)


def differentiate_keys(q: Any, k: Any, v: Any, lse: Any, delta: Any, do: Any, *, causal: bool = False) -> Tensors:
    """Return the gradients of the keys and values."""
    del lse, delta
    return differentiate(q, k, v, do, causal=causal)[1:3]


def normalize_by_square(x: Any, w: Any) -> Any:
    """Return RMSNorm."""
    wide = x.double()
    return wide * (wide.square().mean(1, keepdim=True) + EPSILON).rsqrt() * w.double()


def normalize(x: Any, w: Any, b: Any) -> Any:
    """Return LayerNorm."""
    return torch.nn.functional.layer_norm(x.double(), w.shape, w.double(), b.double(), EPSILON)


def activate(gate: Any, up: Any) -> Any:
    """Return SwiGLU."""
    return torch.nn.functional.silu(gate.double()) * up.double()


def activate_backward(gate: Any, up: Any, dy: Any) -> Tensors:
    """Return the gradients of SwiGLU."""
    gate, up, dy = gate.double(), up.double(), dy.double()
    share = gate.sigmoid()
    return dy * share * up * (1 + gate * (1 - share)), dy * share * gate


def normalize_by_square_backward(x: Any, w: Any, dy: Any) -> Tensors:
    """Return the gradient of RMSNorm for x, and the parts of that for w: of each CTA's rows."""
    x, w, dy = x.double(), w.double(), dy.double()
    scale = (x.square().mean(1, keepdim=True) + EPSILON).rsqrt()
    products = (x * w * dy).mean(1, keepdim=True)
    dx, slopes = scale * (w * dy - x * scale.square() * products), dy * x * scale
    parts: int = find_example("any/rmsnorm_backward").module.PARTS
    return dx, torch.stack([slopes[part::parts].sum(0) for part in range(parts)])


def rotate(x: Any, cos: Any, sin: Any) -> Any:
    """Return the rotary embedding."""
    a, b = x.double().chunk(2, 2)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], 2)


def sum_parts(x: Any) -> Any:
    """Return the sums of the columns."""
    return x.double().sum(0)


def sum_rows(x: Any, **parameters: Any) -> Tensors:
    """Return the sums of the rows, a workspace, and zeroed counters."""
    del parameters
    return x.double().sum(1), None, torch.zeros(len(x), dtype=torch.int32, device=x.device)


def sum_columns(x: Any) -> Any:
    """Return the sums of the rows."""
    return x.double().sum(1)


def multiply_with_workspace(a: Any, b: Any, **parameters: Any) -> Tensors:
    """Return a @ b.T, a workspace and flags."""
    return multiply(a, b, **parameters), None, None


def multiply_plain(a: Any, b: Any) -> Any:
    """Return a @ b in f32."""
    return a.float() @ b.float()


def count_bytes(data: Any) -> Any:
    """Return how often each byte occurs."""
    return torch.bincount(data.int(), minlength=256)


def exponentiate(x: Any) -> Any:
    """Return softmax."""
    return x.double().softmax(1)


def transpose(a: Any) -> Any:
    """Return a.T."""
    return a.T


def copy(x: Any) -> Any:
    """Return the input."""
    return x


def copy_with_times(x: Any) -> Tensors:
    """Return the input, and times, which are not compared."""
    return x, None


def normalize_by_sum(x: Any) -> Tensors:
    """Return x / sum(x) and a workspace."""
    return x.double() / x.double().sum(), None, None


REFERENCES: dict[str, Callable[..., Any]] = {
    "ampere/fp8_gemm": multiply,
    "ampere/one_warp_gemm": multiply,
    "ampere/pipelined_gemm": multiply,
    "ampere/stream_k_gemm": multiply_with_workspace,
    "ampere/two_stage_gemm": multiply,
    "any/column_sums": sum_parts,
    "any/histogram": count_bytes,
    "any/layernorm": normalize,
    "any/reduction": sum_rows,
    "any/rmsnorm": normalize_by_square,
    "any/rmsnorm_backward": normalize_by_square_backward,
    "any/rotary": rotate,
    "any/softmax": exponentiate,
    "any/swiglu": activate,
    "any/swiglu_backward": activate_backward,
    "any/transpose": transpose,
    "any/vector_add": operator.add,
    "blackwell/attention": attend_only,
    "blackwell/block_scaled_gemm": multiply_blocks,
    "blackwell/grouped_gemm": multiply_groups,
    "blackwell/nvfp4_gemm": multiply_blocks,
    "blackwell/persistent_gemm": multiply,
    "blackwell/ring_gemm": multiply,
    "blackwell/tcgen05_tile": multiply,
    "blackwell/two_sm_gemm": multiply,
    "hopper/attention": attend,
    "hopper/attention_backward_dkv": differentiate_keys,
    "hopper/attention_backward_dq": differentiate_queries,
    "hopper/attention_overlap": attend,
    "hopper/cluster_gemm": multiply,
    "hopper/decode_attention": attend_to_cache,
    "hopper/fp8_gemm": multiply_scaled,
    "hopper/grouped_gemm": multiply_groups,
    "hopper/persistent_gemm": multiply,
    "hopper/tma_copy": copy,
    "hopper/tma_ring": multiply,
    "hopper/warp_specialized": multiply,
    "hopper/wgmma_tile": multiply_plain,
    "patterns/cluster_reduction": sum_columns,
    "patterns/dependent_launch": operator.mul,
    "patterns/grid_barrier": normalize_by_sum,
    "patterns/kernel_timeline": copy_with_times,
    "rtx/bf16_gemm": multiply,
    "rtx/block_scaled_gemm": multiply_columns,
    "rtx/fp8_gemm": multiply_and_scale,
}
