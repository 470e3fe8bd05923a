"""The PTX in what programs load: PTX text, so far."""

from __future__ import annotations

from pyptx.driver import host_memory
from pyptx.driver.codes import Code, DriverError

_ELF, _FATBIN, _WRAPPER = b"\x7fELF", b"\x50\xed\x55\xba", b"\xb1\x43\x62\x46"
_NO_PTX = (
    "this image is machine code and carries no PTX that can be simulated; give the compiler an option that keeps it: "
    "`-lineinfo`, or `--generate-line-info` for NVRTC, or load PTX"
)


def read_image(address: int) -> str:
    """Return the PTX of an image in memory. DriverError if it has none."""
    if not address:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if host_memory.read(address, 4) in (_ELF, _FATBIN, _WRAPPER):
        raise DriverError(Code.ERROR_NO_BINARY_FOR_GPU, _NO_PTX)
    return host_memory.read_text(address)
