"""What examples are timed against computes what they do; what needs a GPU says so."""

from __future__ import annotations

from typing import Any, cast

import pytest

from examples.parts.bench import compute
from examples.parts.example import Example, Run, load_examples
from examples.parts.peers import Tensors, list_peers
from examples.parts.torch_inputs import torch

NEEDS_GPU = {"cudnn_attention", "mxfp8_matmul", "nvfp4_matmul", "rms_norm_backward"}
"""Peers that PyTorch does not have on a CPU."""
PLACES = {"hopper/attention_backward_dkv": (1, 2), "hopper/attention_backward_dq": (0,)}
"""The results of a peer that an example computes, if not the first."""
UNSCALED = {"hopper/fp8_gemm", "rtx/fp8_gemm"}
"""Examples whose peer has no factors."""
PARTS = {"any/rmsnorm_backward", "hopper/decode_attention", "patterns/grid_barrier", "any/reduction"}
"""Examples of which only the first output is what the peer computes."""
EXAMPLES = [example for example in load_examples() if example.peer]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_peer_computes_the_same(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    run = example.runs[1] if example.fixed else example.runs[0]
    inputs, expected = compute(example, run)
    peers = list_peers(example, inputs, causal=run.shape.get("causal", False))
    assert set(peers) == {f"torch {name}" for name in example.peer.split() if name not in NEEDS_GPU}
    for name in NEEDS_GPU.intersection(example.peer.split()):
        assert f"no peer {name}: " in capsys.readouterr().out
    for work in peers.values():
        if example.name not in UNSCALED:
            assert_same(example, run, work(), expected)


def assert_same(example: Example, run: Run, result: Any, expected: Tensors) -> None:  # noqa: ANN401
    results = cast("Tensors", result if isinstance(result, tuple) else (result,))
    for place, output in zip(PLACES.get(example.name, range(len(results))), expected, strict=False):
        if output is None or (example.name in PARTS and place):
            continue
        actual, desired = (torch.as_tensor(tensor).double().flatten() for tensor in (results[place], output))
        error = (actual - desired).norm() / desired.norm()
        assert error < 8e-3, f"{run}: result {place} is off by {error:.2g}"
