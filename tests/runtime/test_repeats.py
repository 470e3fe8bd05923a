"""Which calls of a kernel are kept to be repeated: the latest shapes, and few kinds."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from pyptx.runtime import extension, fast_calls
from tests.runtime.test_fast_calls import SCALE, count_blocks, make_scale, make_scale_by

pytestmark = pytest.mark.usefixtures("device", "implementation")
torch: Any = import_module("torch")


def test_the_latest_eight_shapes_are_repeated(bindings: list[Any]) -> None:
    scale, x = make_scale(count_blocks), torch.arange(288, dtype=torch.int32)
    sizes = range(32, 320, 32)
    for size in (*sizes, *sizes[1:]):
        assert torch.equal(scale(x[:size]), x[:size] * SCALE)
    assert len(bindings) == 9
    scale(x[:32])
    assert len(bindings) == 10


def test_few_kinds_of_calls_are_kept() -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    for blocks in range(1, 50):
        scale(x, grid=(blocks % 4 + 1, 1, blocks))
    assert len(scale._repeats.calls) == 32  # pyright: ignore[reportPrivateUsage]


@pytest.mark.skipif(extension.load() is None, reason="only the extension repeats calls")
def test_a_number_that_changes_with_every_call_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there are as many as are kept; one that comes back is kept again."""
    made: list[Any] = []
    make_call = fast_calls.make_call

    def note(*words: Any, **options: Any) -> Any:
        made.append(words)
        return make_call(*words, **options)

    monkeypatch.setattr(fast_calls, "make_call", note)
    scale_by, x = make_scale_by(), torch.ones(32)
    for factor in range(2, 66):
        assert scale_by(x, factor=float(factor))[0] == factor
    assert len(made) == 32
    for _ in range(3):
        assert scale_by(x, factor=65.0)[0] == 65
    assert len(made) == 33
