"""A simulated CUDA driver: programs that call the driver API run their kernels on the simulator."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

_LIBRARY = "PYPTX_DRIVER_LIBRARY"
"""The environment variable that `pyptx simulate` sets for its program."""
AFTER_RESTART: list[Callable[[], None]] = []
"""What must forget the handles of the driver when `activate` has put another in its place."""


def activate(device: str | None = None, **options: Any) -> None:  # noqa: ANN401
    """Make the simulated driver the CUDA driver of this process. `device` is the GPU to pretend; the options are those
    of `pyptx simulate`: check, count, from_images, order, schedule, seed, stop. Others are as the environment variables
    `PYPTX_DRIVER_*` say. A second call starts a new driver, for which handles of the first are invalid. RuntimeError if
    the process has already loaded another driver."""
    from pyptx.driver.connection import activate  # loads the simulator

    activate(device, options)


def is_active() -> bool:
    """Return whether the simulated driver is the CUDA driver of this process."""
    connection = sys.modules.get("pyptx.driver.connection")
    return _LIBRARY in os.environ or (connection is not None and connection.is_active())


def deactivate() -> None:
    """Make kernels run on arrays in CPU memory as if `activate` had not been called. The driver stays loaded, and
    handles and memory stay valid."""
    from pyptx.driver.connection import deactivate

    deactivate()
