"""What `make gpu` runs on a GPU runs on the simulated driver, and says what it needs."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import pytest

import pyptx.driver
from examples.parts.example import find_example
from tools.gpu import jax_kernels, kernels, torch_compilers
from tools.gpu.__main__ import main
from tools.gpu.checks import CHECKS, Machine, check

VECTOR_ADD = find_example("any/vector_add")

DEVICES = ("a100", "h100", "b200")


@pytest.fixture(autouse=True)
def leave_the_driver() -> Generator[None]:
    """Make kernels run in CPU memory again after each test."""
    yield
    pyptx.driver.deactivate()


def test_example_kernels_run_on_the_simulated_driver(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    device = DEVICES[seed % len(DEVICES)]
    assert main(["--simulated", device, "--sample", "3", "--seed", str(seed)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "example-kernels: ok, " in lines[1]
    assert "3 runs" in lines[1]
    needy = [check for check in CHECKS if check.needs not in ((), ("PyTorch",))]
    assert "example-times: ok, 3 kernels ran on the simulated driver" in "\n".join(lines)
    assert sum(": not run, needs " in line for line in lines) == len(needy)


def test_a_wrong_result_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(VECTOR_ADD, reference=np.subtract, runs=VECTOR_ADD.runs[:1])
    monkeypatch.setattr(kernels, "load_examples", lambda: [wrong])
    assert main(["--simulated", "h100", "example-kernels"]) == 1
    assert "example-kernels: FAILED" in (printed := capsys.readouterr().out)
    assert "any/vector_add: " in printed


def test_checks_are_listed_with_their_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("except after approximations (needs a GPU)")
    with pytest.raises(SystemExit):
        main(["absent"])
    assert "no check absent; there are example-kernels, " in capsys.readouterr().err
    with pytest.raises(ValueError, match="no such need: a TPU"):
        check("nothing", "a TPU")


def test_outputs_that_a_kernel_leaves_unwritten_are_no_match() -> None:
    pyptx.driver.activate("h100")
    kernel = VECTOR_ADD.make()
    values = np.ones(1024, np.float32)
    (found,) = kernels.run_on_device(kernel, [values, values], grid=VECTOR_ADD.module.grid(1024), n=1024)
    assert found.tolist() == [2.0] * 1024
    (found,) = kernels.run_on_device(kernel, [np.ones(2048, np.float32)] * 2, grid=VECTOR_ADD.module.grid(1024), n=2048)
    assert np.isnan(found[1024:]).all()


@pytest.mark.parametrize(
    "name", ["jax-example-kernels", "jax-transformations", "jax-initial-values", "jax-devices"]
)  # fmt: skip
def test_checks_of_jax_hold_on_its_cpu(seed: int, name: str) -> None:
    machine = Machine("sm_90a", is_simulated=True, sample=1, seed=seed)
    (chosen,) = (check for check in CHECKS if check.name == name)
    assert chosen.find_missing(machine) == [jax_kernels.JAX]
    assert chosen.run(machine)


def test_a_check_of_pytorch_holds_on_its_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_compilers, "DEVICE", "cpu")
    monkeypatch.setattr(torch_compilers, "BACKEND", "aot_eager")
    assert torch_compilers.torch_gradients(Machine("sm_90a", is_simulated=True)) == "2 functions"
