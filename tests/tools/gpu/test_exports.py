"""The checks of exports, of programs and of tuning hold on the simulated driver, and fail if something is wrong."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

import pyptx.driver
from pyptx import PtxError
from tools.gpu import exports, programs, tuning
from tools.gpu.checks import Machine

MACHINE = Machine("sm_90a", is_simulated=True, device="h100")


@pytest.fixture(autouse=True)
def driver() -> Generator[None]:
    """Run on the simulated driver."""
    pyptx.driver.activate("h100")
    yield
    pyptx.driver.deactivate()


def test_exported_kernels_and_launchers_compute_the_same() -> None:
    assert exports.exported_kernels(MACHINE) == "3 kernels"
    assert exports.exported_launchers(MACHINE) == "3 kernels"


def test_other_outputs_and_programs_that_fail_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match=r"any/softmax m=3 n=4: the outputs differ"):
        exports.compare(MACHINE, lambda folder, inputs: b"")
    monkeypatch.setattr(exports, "MAIN", exports.MAIN.replace("return 0;", "return 7;"))
    with pytest.raises(AssertionError, match=r"\./main: exit status 7"):
        exports.exported_launchers(MACHINE)


def test_the_loaded_driver_is_found() -> None:
    assert exports.find_driver().name == "libcuda.so.1"


def test_a_program_keeps_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    assert programs.programs_keep_their_driver(MACHINE).startswith("NVIDIA H100 80GB HBM3 and NVIDIA ")
    monkeypatch.setattr(programs, "PROGRAM", programs.PROGRAM.replace('"simulate", "--device", sys.argv[1], ', ""))
    with pytest.raises(AssertionError, match=r"found .*, expected "):
        programs.programs_keep_their_driver(MACHINE)


def test_tuning_has_a_cost_on_a_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PtxError, match="the simulated driver cannot time a GPU"):
        tuning.tuning_by_time(MACHINE)

    def prefer_wide(configuration: dict[str, Any], launch: Callable[[], object]) -> float:
        launch()
        return 1 / configuration["width"]

    monkeypatch.setattr(tuning, "COST", prefer_wide)
    assert tuning.tuning_by_time(MACHINE) == "width=4: 0.25, width=2: 0.5"
