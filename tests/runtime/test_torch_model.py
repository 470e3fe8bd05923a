"""A model made of kernels trains under torch.compile as the same model of PyTorch's own operations does."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tests.runtime.conftest import Activate
from tests.runtime.torch_model import SIZE, Block

torch: Any = import_module("torch")


def train(model: Any, call: Any, steps: int) -> list[float]:
    """Return the loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(2)
    x, y = (torch.randn(SIZE, SIZE, generator=generator) for _ in range(2))
    losses: list[float] = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (call(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("on_device", [False, True], ids=["simulator", "device"])
def test_a_model_of_kernels_trains_when_compiled(on_device: bool, activate: Activate) -> None:
    if on_device:
        activate()
    model, reference = Block(uses_kernels=True), Block(uses_kernels=False)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    losses, expected = train(model, compiled, 3), train(reference, reference, 3)
    assert losses[0] > losses[1] > losses[2]
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-5, atol=0)
    for (name, parameter), other in zip(model.named_parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(parameter, other, rtol=1e-4, atol=1e-5, msg=name)
