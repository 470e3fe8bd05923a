"""What `make gpu` runs on a GPU runs on the simulated driver, and says what it needs."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pyptx.driver
from examples.parts.example import find_example
from pyptx import PtxError
from pyptx.runtime.bindings import call
from tools import audit_gpu
from tools.audit_gpu import KINDS
from tools.examples import readme
from tools.gpu import jax_kernels, kernels, launches, models, several, torch_compilers
from tools.gpu.__main__ import main
from tools.gpu.checks import CHECKS, Machine, check
from tools.gpu.children import run_all, run_part

VECTOR_ADD = find_example("any/vector_add")


@pytest.fixture(autouse=True)
def leave_the_driver() -> Generator[None]:
    """Make kernels run in CPU memory again after each test."""
    yield
    pyptx.driver.deactivate()


def test_example_kernels_run_on_the_simulated_driver(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    device = KINDS[seed % len(KINDS)]
    assert main(["--simulated", device, "--sample", "3", "--seed", str(seed)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "example-kernels: ok, " in lines[1]
    assert "3 runs" in lines[1]
    needy = [check for check in CHECKS if not {*check.needs} <= {"PyTorch", "two GPUs"}]
    assert "example-times: ok, 3 kernels ran on the simulated driver" in "\n".join(lines)
    assert sum(": not run, needs " in line for line in lines) == len(needy)


def test_the_audit_says_what_became_of_each_check(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    device = KINDS[seed % len(KINDS)]
    assert audit_gpu.main(["jit-log", "launch-streams", "tensor-map-bits", "--devices", device]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "    launch-streams                passed, 20 launches",
        "    tensor-map-bits               not run, needs a GPU",
        "    jit-log                       passed, 1 diagnostics",
        "2 passed, 1 not run, 0 FAILED",
    ]


def test_a_check_that_fails_or_lacks_what_a_simulator_has_fails_the_audit() -> None:
    output = """\
sm_90a, simulated
torch-llama: ok, not run, the kernels are for Hopper, 0.0 s
example-times: not run, needs PyTorch
bugs-sanitized: not run, needs a GPU, compute-sanitizer
jit-log: FAILED
no log
  a: failed"""
    names = ["jit-log", "example-times", "bugs-sanitized", "torch-llama", "peer-access"]
    assert [str(outcome) for outcome in audit_gpu.read_outcomes(output, "Traceback\nKeyError: 7\n", names)] == [
        "jit-log                       FAILED, no log\n  a: failed",
        "example-times                 FAILED, needs PyTorch",
        "bugs-sanitized                not run, needs a GPU, compute-sanitizer",
        "torch-llama                   not run, the kernels are for Hopper",
        "peer-access                   FAILED, no result\nTraceback\nKeyError: 7",
    ]


def test_the_audit_fails_if_a_check_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(audit_gpu, "ABSENT", frozenset[str]())
    assert audit_gpu.main(["tensor-map-bits", "--devices", "h100"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "NVIDIA H100 80GB HBM3, sm_90a",
        "    tensor-map-bits               FAILED, needs a GPU",
        "0 passed, 0 not run, 1 FAILED",
    ]


@pytest.mark.parametrize("name", ["second-device", "devices-together", "peer-access", "torch-second-device"])
def test_checks_of_several_gpus_need_a_second_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (chosen,) = (check for check in CHECKS if check.name == name)
    pyptx.driver.activate("h100")
    assert "two GPUs" in chosen.find_missing(Machine("sm_90a", is_simulated=True))
    assert main(["--simulated", "h100", name]) == 0
    needs = "not run, needs PyTorch with CUDA" if name.startswith("torch") else "ok, "
    assert f"{name}: {needs}" in capsys.readouterr().out


def test_without_peer_access_the_kernel_on_the_second_gpu_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    pyptx.driver.activate("h100", count=2)

    def call_without_access(name: str, *args: object) -> object:
        return None if name == "cuCtxEnablePeerAccess" else call(name, *args)

    monkeypatch.setattr(several, "call", call_without_access)
    with pytest.raises(PtxError, match="ILLEGAL_ADDRESS"):
        several.peer_access(Machine("sm_90a", is_simulated=True))


def test_a_wrong_result_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(VECTOR_ADD, reference=np.subtract, runs=VECTOR_ADD.runs[:1])
    monkeypatch.setattr(kernels, "load_examples", lambda: [wrong])
    assert main(["--simulated", "h100", "example-kernels"]) == 1
    assert "example-kernels: FAILED" in (printed := capsys.readouterr().out)
    assert "any/vector_add: " in printed


@pytest.mark.parametrize(
    ("example", "code"),
    [("ampere/pipelined_gemm", "sm_90"), ("hopper/tma_ring", "sm_90a"), ("blackwell/ring_gemm", None)],
)
def test_products_are_summed_as_the_code_of_the_device_does(example: str, code: str | None) -> None:
    assert kernels.choose_code(find_example(example), "sm_90a") == code


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


def test_a_check_of_models_holds_on_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "STEPS", 2)
    assert models.torch_llama(Machine("sm_80", is_simulated=True)) == "not run, the kernels are for Hopper"
    assert models.compare(Machine("sm_90a", is_simulated=True), "llama_torch", {}) == "1 × 2 steps"


def test_parts_run_in_processes_of_their_own() -> None:
    (chosen,) = (check for check in CHECKS if check.name == "example-kernels")
    machine, options = Machine("sm_90a", is_simulated=True, sample=2), ["--simulated", "h100", "--sample", "2"]
    ended = list(run_all([chosen], machine, options, jobs=2))
    assert [part.status for part in ended] == [0] * len(kernels.list_names(machine))
    assert {part.part for part in ended} == {*kernels.list_names(machine)}
    assert all(str(part).startswith(f"example-kernels {part.part}: ok, 1 kernels, ") for part in ended)


def test_a_part_that_fails_or_never_ends_says_so() -> None:
    (chosen,) = (check for check in CHECKS if check.name == "example-kernels")
    options = ["--simulated", "h100"]
    endless = run_part(replace(chosen, limit=0.01), "any/vector_add", options)
    assert str(endless).startswith("example-kernels any/vector_add: FAILED, not ended after 0 s")
    failed = run_part(chosen, "any/vector_add", ["--simulated", "absent"])
    assert str(failed).splitlines()[0] == "example-kernels any/vector_add: FAILED, exit status 1"


def test_stored_outputs_are_compared_with_the_simulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = Machine("sm_90a", is_simulated=True, part="any/vector_add", folder=tmp_path)
    pyptx.driver.activate("h100")
    kernels.example_kernels(chosen)
    pyptx.driver.deactivate()
    recorded = replace(chosen, is_recorded=True)
    assert " runs are equal, 0 approximate" in kernels.example_kernels_bit_for_bit(recorded)
    path = kernels.find_file(tmp_path, VECTOR_ADD, VECTOR_ADD.runs[0])
    with np.load(path) as stored:
        (values,) = (stored[name] for name in stored.files)
    values.flat[0] ^= 1
    np.savez_compressed(path, values)
    with pytest.raises(AssertionError, match=r"differ: any/vector_add .*: 1 elements"):
        kernels.example_kernels_bit_for_bit(recorded)


def test_a_fault_is_explained_on_the_simulated_driver() -> None:
    pyptx.driver.activate("h100")
    message = launches.launch_fault(Machine("sm_90a", is_simulated=True))
    assert message.startswith("`store_at` cannot be launched: ")


def test_outcomes_of_bugs_are_words() -> None:
    assert readme.describe_outcome("right 500 times") == "always right"
    assert readme.describe_outcome("wrong 337 times, right 163 times") == "right 163 times, wrong 337 times"
    assert readme.describe_outcome("never ended 1 times") == "never ended"
    (outcomes,) = readme.read_outcomes().values()
    assert outcomes["hangs"] == "never ended"
