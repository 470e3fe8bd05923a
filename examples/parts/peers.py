"""What the examples are timed against: a library's function that computes the same, by name.

Each takes the kernel's inputs as PyTorch tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Tensors = tuple[Any, ...]


def make_peer(name: str, inputs: Tensors) -> Callable[[], object]:
    """Return a function that submits a library's work on these inputs."""
    import torch

    functional: Any = torch.nn.functional
    peers: dict[str, Callable[[Tensors], object]] = {
        "add": lambda x: torch.add(x[0], x[1]),
        "attention": lambda x: functional.scaled_dot_product_attention(*(tensor[None] for tensor in x)),
        "causal_attention": lambda x: functional.scaled_dot_product_attention(
            *(tensor[None] for tensor in x), is_causal=True
        ),
        "clone": lambda x: x[0].clone(),
        "decode_attention": lambda x: functional.scaled_dot_product_attention(*(tensor[None] for tensor in x[:3])),
        "layer_norm": lambda x: functional.layer_norm(x[0], x[1].shape, x[1], x[2]),
        "matmul": lambda x: torch.matmul(x[0], x[1].T),
        "rms_norm": lambda x: functional.rms_norm(x[0], x[1].shape, x[1]),
        "softmax": lambda x: torch.softmax(x[0], 1),
        "sum": lambda x: x[0].sum(1),
        "swiglu": lambda x: functional.silu(x[0]) * x[1],
        "transpose": lambda x: x[0].T.contiguous(),
    }
    return partial(peers[name], inputs)
