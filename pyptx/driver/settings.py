"""What a user chooses for a simulated driver, from the environment variables `PYPTX_DRIVER_*`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from pyptx.driver.devices import DEVICES
from pyptx.sim.scheduling.schedules import SCHEDULES

PREFIX = "PYPTX_DRIVER_"
LIBRARY = PREFIX + "LIBRARY"
"""The environment variable that names the library."""
ORDERS = ("sync", "deferred")
_MOST_DEVICES = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of a simulated driver; `pyptx simulate --help` explains each."""

    device: str = "h100"
    count: int = 1
    check: str = "all"
    schedule: str = "eager"
    seed: int = 0
    order: str = "sync"
    """When work of streams runs: `sync`, when it is submitted, or `deferred`, when the host waits for it."""
    stop: bool = False
    """Whether a finding that is an error makes the launch fail, like a fault."""
    from_images: bool = False
    """Whether the PTX that compilers store in cubins and fatbins is simulated."""
    line_info: bool = True
    """Whether NVRTC and nvJitLink get the option that stores PTX, with `from_images`."""
    audit: bool = True
    """Whether the dynamic linker is audited: without, programs get no options, and find the driver by its folder."""
    cache: bool = True
    """Whether code that is compiled for kernels is kept for later processes."""
    baseline: str = ""
    """A report whose findings are not printed again."""
    dump: str = ""
    """The folder for the PTX and timelines of kernels."""
    leaks: bool = False
    """Whether memory that is never freed is reported."""
    watch_host: bool = False
    """Whether the program's own accesses to managed and page-locked memory are observed."""
    records: str = ""
    """The folder for records of launches."""

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise ValueError(f"no device {self.device!r}; the devices are {', '.join(DEVICES)}")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"no schedule {self.schedule!r}; the schedules are {', '.join(SCHEDULES)}")
        if self.order not in ORDERS:
            raise ValueError(f"no order {self.order!r}; the orders are {', '.join(ORDERS)}")
        if not 1 <= self.count <= _MOST_DEVICES:
            raise ValueError(f"{self.count} devices; there can be 1 to {_MOST_DEVICES}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Return the settings that a parent process chose. Raise ValueError for an impossible one."""
        values: dict[str, object] = {}
        for item in fields(cls):
            name = PREFIX + item.name.upper()
            if name in environment:
                values[item.name] = _read(name, environment[name], getattr(cls(), item.name))
        return cls(**values)  # pyright: ignore[reportArgumentType]

    def to_environment(self) -> dict[str, str]:
        """Return the environment variables that pass the settings to child processes."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            PREFIX + name.upper(): str(int(value)) if isinstance(value, bool) else str(value)
            for name, value in values.items()
        }


def _read(name: str, text: str, default: object) -> object:
    """Return the value of an environment variable, of the type of the default."""
    if isinstance(default, bool):
        if text not in ("0", "1"):
            raise ValueError(f"{name} is {text!r}; expected 0 or 1")
        return text == "1"
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{name} is {text!r}; expected a whole number") from None
    return text
