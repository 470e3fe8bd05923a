"""The handler for the CPU, called with frames made by hand."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Thread
from typing import Any

import jax
import numpy as np
import pytest

from pyptx.runtime import simulation, xla_frames
from pyptx.runtime.jax_attributes import KEY, read_attributes, write_attributes
from pyptx.runtime.jax_handler import HANDLER
from pyptx.runtime.xla_frames import INITIALIZE

from .test_calls import add_scaled, tensor_copy
from .test_launching import plan_call, write_ranks
from .xla_calls import Xla

X = np.arange(32, dtype=np.float32)


def describe(array: np.ndarray[Any, Any]) -> tuple[int, tuple[int, ...]]:
    """Return what a buffer knows of an array."""
    return array.ctypes.data, array.shape


def test_attributes_say_what_the_launch_is() -> None:
    plan = plan_call(write_ranks)
    found = read_attributes(write_attributes(plan, ["uint32"], cooperative=True, programmatic=False))
    assert (found.module, found.entry, found.shared) == (plan.module, "write_ranks", 4 * 16384)
    assert (found.grid, found.block, found.cluster) == ((2, 1, 1), (32, 1, 1), (2, 1, 1))
    assert (found.parts, found.dtypes, found.outputs) == ({"smem_1": 0}, ("uint32",), 1)
    assert found.is_cooperative


@pytest.mark.parametrize("minor", [0, 1, 3, 99])
def test_the_handler_suits_any_minor_version(minor: int) -> None:
    metadata = Xla(HANDLER, minor=minor).ask()
    assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, minor, 0)
    assert Xla(HANDLER).ask(silent=True).version.minor == 1


def test_a_frame_runs_the_kernel_on_its_buffers() -> None:
    attributes = write_attributes(
        plan_call(add_scaled, (32,), (32,), scale=2.0), ["float32"] * 3, cooperative=False, programmatic=False
    )
    result = np.empty_like(X)
    assert Xla(HANDLER).call([describe(X), describe(X)], [describe(result)], attributes) is None
    assert np.array_equal(result, 3 * X)


def test_threads_take_turns() -> None:
    attributes = write_attributes(
        plan_call(add_scaled, (32,), (32,), scale=2.0), ["float32"] * 3, cooperative=False, programmatic=False
    )
    result = np.zeros_like(X)
    thread = Thread(target=Xla(HANDLER).call, args=([describe(X), describe(X)], [describe(result)], attributes))
    with simulation.TURN:
        thread.start()
        thread.join(0.05)
        # Outputs are filled with NaN before a run.
        assert np.isnan(result).all() or not result.any()
    thread.join()
    assert np.array_equal(result, 3 * X)


def test_other_stages_run_nothing() -> None:
    assert Xla(HANDLER).call([], [], {}, stage=INITIALIZE) is None


def test_a_mistake_of_the_handler_itself_is_an_error_with_its_place() -> None:
    error = Xla(HANDLER).call([], [], {KEY: np.zeros(16, np.uint8)})
    assert error is not None
    assert "jax_attributes.py" in error
    assert error.endswith("KeyError: 'module'\n")


def test_what_an_exported_program_knows_is_enough_for_tensor_maps() -> None:
    matrix, result = np.arange(512, dtype=np.float32).reshape(16, 32), np.empty((16, 32), np.float32)
    attributes = write_attributes(
        plan_call(tensor_copy, (16, 32)), ["float32"] * 2, cooperative=False, programmatic=False
    )
    # Under another digest, the module is what the text says, as in a process that has not traced the kernel.
    elsewhere = {**attributes, KEY: attributes[KEY] ^ 1}
    assert Xla(HANDLER).call([describe(matrix)], [describe(result)], elsewhere) is None
    assert np.array_equal(result, matrix)


def test_numbers_in_frames_are_those_of_jax() -> None:
    text = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text()
    numbers = {name: int(number) for name, number in re.findall(r"\bXLA_FFI_(\w+) = (\d+)", text)}
    names = ("Extension_Metadata", "ExecutionStage_INITIALIZE", "ExecutionStage_EXECUTE", "Error_Code_INTERNAL")
    own = (xla_frames.METADATA, xla_frames.INITIALIZE, xla_frames.EXECUTE, xla_frames.INTERNAL)
    assert tuple(numbers[name] for name in names) == own
    types = tuple(numbers[name] for name in ("ArgType_BUFFER", "AttrType_ARRAY", "AttrType_STRING"))
    assert types == (xla_frames.BUFFER, xla_frames.ARRAY, xla_frames.STRING)
    dtypes = {
        numbers[f"DataType_{name}"]: dtype for name, dtype in (("S64", "int64"), ("U8", "uint8"), ("U64", "uint64"))
    }
    assert dtypes == xla_frames.DTYPES
