"""The references in PyTorch, for launches of real size, agree with those in NumPy, and a wrong result is noticed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyptx.driver
from examples.parts.bench import bench, prepare, verify
from examples.parts.example import Example, find_example, list_keywords, load_examples, widen
from examples.parts.torch_inputs import draw_inputs, make_outputs, poison, to_tensor, torch
from examples.parts.torch_references import REFERENCES, compute

EXAMPLES = [example for example in load_examples() if example.name in REFERENCES]


@pytest.fixture
def device() -> Generator[None]:
    """Run kernels on the simulated driver."""
    pyptx.driver.activate("h100")
    yield
    pyptx.driver.deactivate()


def widen_tensor(tensor: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401
    return (tensor.double() if tensor.dtype.is_floating_point else tensor.long()).numpy()


def test_every_example_of_a_real_size_has_a_reference() -> None:
    """NumPy would take minutes on the host, and a job on a GPU has seconds."""
    assert [example.name for example in load_examples() if example.large and example.name not in REFERENCES] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_reference_agrees_with_that_in_numpy(example: Example, seed: int) -> None:
    run = example.runs[seed % len(example.runs)]
    kernel, arrays = example.make(), example.draw_inputs(run)
    expected = example.compute(run, arrays)
    dims = {name for tile in kernel.out_specs for name in tile.symbolic_dims}
    parameters = {name: value for name, value in list_keywords(kernel, run).items() if name not in dims}
    found = compute(example.name, tuple(map(to_tensor, arrays)), **parameters)
    for actual, desired in zip(found, expected, strict=True):
        assert (actual is None) == (desired is None)
        if desired is not None:
            np.testing.assert_allclose(widen_tensor(actual), widen(desired), 1e-4, 1e-3)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_inputs_have_the_shapes_and_types_of_those_in_numpy(example: Example) -> None:
    run = example.runs[0]
    for tensor, array in zip(draw_inputs(example, run), example.draw_inputs(run), strict=True):
        assert tuple(tensor.shape) == array.shape
        assert str(tensor.dtype) == f"torch.{array.dtype.name}"


def test_a_single_wrong_element_and_one_not_written_are_noticed(device: None) -> None:
    example = find_example("any/rmsnorm")
    case = prepare(example, replace(example.runs[1], shape={"m": 64, "n": 1302}))
    right = case.expected[0].float()
    report = bench(case, example.make("sm_90a"))
    assert report.error < 1e-6
    assert verify(case, [right]) < 1e-6
    for value in (float("nan"), 3.0):
        wrong = right.clone()
        wrong[-1, -1] = value
        with pytest.raises(AssertionError, match=r"1 elements are off|error nan"):
            verify(case, [wrong])
    with pytest.raises(AssertionError, match=r"output 0: error 0\.001"):
        verify(case, [right * 1.001])


def test_outputs_start_as_nan() -> None:
    example = find_example("hopper/warp_specialized")
    (output,) = make_outputs(example, example.make(), example.runs[0])
    assert torch.isnan(output.float()).all()
    assert torch.isnan(poison(torch.zeros(4))).all()
