"""One printed seed for everything random, and the `gpu` marker that skips by itself."""

from __future__ import annotations

import ctypes
import os

import pytest
from hypothesis import settings

DEFAULT_SEED = 20250703

settings.register_profile("pyptx", deadline=None, print_blob=True)
settings.load_profile("pyptx")


def _seed_of_run() -> int:
    return int(os.environ.get("PYPTX_SEED", DEFAULT_SEED))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(_seed_of_run())


def pytest_report_header() -> str:
    return f"PYPTX_SEED={_seed_of_run()} (set it to sample other cases)"


@pytest.fixture(scope="session")
def seed() -> int:
    """The seed of this run: `random.Random(seed)` makes a sample that the header's line repeats."""
    return _seed_of_run()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_gpu():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU here"))


def _has_gpu() -> bool:
    """Ask the driver itself, so that finding out needs no package."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
