"""What the attention kernels compute, in f64, and how much arithmetic it takes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from examples.parts.example import Array, Run, Shape, widen


def draw(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return q, k and v. With `special`, a query is NaN, a key has no weight because all its scores are -inf, and a
    value is infinite."""
    q, k, v = _draw_heads(3, run, random)
    if run.special:
        q[0, 3, 0], v[0, 1, 2] = math.nan, math.inf
    return q, k, v


def draw_backward(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return q, k, v, the results of the forward pass, and the gradient of the first of these. With `special`, a key
    has no weight, and the gradient of a row is NaN."""
    q, k, v, do = _draw_heads(4, run, random)
    o, lse = attend(q, k, v, causal=run.shape.get("causal", False))
    if run.special:
        do[0, 5, 0] = math.nan
    return q, k, v, o.astype(q.dtype), lse.astype(np.float32), do


def _draw_heads(count: int, run: Run, random: np.random.Generator) -> list[Array]:
    """Return random tensors of all heads, of which the first are q and k."""
    dims = [run.shape[name] for name in "hsd"]
    q, k, *others = (random.standard_normal(dims) * run.scale for _ in range(count))
    if run.special:
        q[0, :, 1] = abs(q[0, :, 1]) + 1
        k[0, dims[1] // 2, 1] = -math.inf
    return [values.astype(ml_dtypes.bfloat16) for values in (q, k, *others)]


def attend(q: Array, k: Array, v: Array, *, causal: bool = False) -> tuple[Array, Array]:
    """Return softmax(q @ k.T / sqrt(d)) @ v for every head, and the log-sum-exp of each row of scores."""
    q, k, v = (widen(x) for x in (q, k, v))
    scores = score(q, k, causal)
    peaks = scores.max(axis=2, keepdims=True)
    weights = np.exp(scores - peaks)
    totals = weights.sum(axis=2, keepdims=True)
    return weights / totals @ v, (peaks + np.log(totals))[:, :, 0]


def differentiate(q: Array, k: Array, v: Array, do: Array, *, causal: bool = False) -> tuple[Array, Array, Array]:
    """Return the gradients of `attend` with respect to q, k and v, for a gradient of its first result."""
    q, k, v, do = (widen(x) for x in (q, k, v, do))
    o, lse = attend(q, k, v, causal=causal)
    weights = np.exp(score(q, k, causal) - lse[:, :, None])
    slopes = do @ v.transpose(0, 2, 1) - (do * o).sum(axis=2, keepdims=True)
    gradients = weights * slopes / math.sqrt(q.shape[2])
    return gradients @ k, gradients.transpose(0, 2, 1) @ q, weights.transpose(0, 2, 1) @ do


def score(q: Array, k: Array, causal: bool) -> Array:
    """Return the scaled scores; a causal head has none for keys after the query."""
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2])
    if causal:
        scores[:, ~np.tri(q.shape[1], dtype=bool)] = -np.inf
    return scores


def count_flops(shape: Shape) -> int:
    """Return the floating-point operations of both products of a forward pass; a causal head has half of them."""
    return 4 * shape["h"] * shape["s"] ** 2 * shape["d"] // (2 if shape.get("causal") else 1)
