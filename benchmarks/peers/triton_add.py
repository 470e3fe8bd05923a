"""A kernel of Triton with the parameters of the one in launch.py, and the ways to launch it."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import triton
import triton.language as tl
from triton.backends.nvidia import driver as nvidia


@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):  # noqa: N803
    """Do nothing: nobody runs it."""


class Driver(nvidia.CudaDriver):
    """Triton's driver, for tensors on the CPU in place of a device's."""

    def __init__(self) -> None:
        self.utils, self.launcher_cls = nvidia.CudaUtils(), nvidia.CudaLauncher
        self.get_device_capability = lambda device=0: (9, 0)
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda device=0: 0
        self.set_current_device = id


def make_call(a: object, b: object, c: object) -> Callable[[], object]:
    """Return a call of the kernel, which looks up what was compiled for such arguments."""
    triton.runtime.driver.set_active(Driver())
    return lambda: add[(1,)](a, b, c, 1024, BLOCK=1024)


def make_launch(a: object, b: object, c: object) -> Callable[[], object]:
    """Return a launch of the compiled kernel."""
    compiled = make_call(a, b, c)()[(1, 1, 1)]
    return lambda: compiled(a, b, c, 1024, 1024)
