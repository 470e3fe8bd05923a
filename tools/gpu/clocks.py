"""Samples the clock and the power of a GPU while something runs on it, through NVML. Knows nothing of kernels."""

from __future__ import annotations

import statistics
import threading
from importlib import import_module
from types import TracebackType
from typing import Any

_INTERVAL = 0.01


class Sampler:
    """Samples between `with` and its end; without NVML, nothing."""

    def __init__(self) -> None:
        self._clocks, self._watts, self._reasons = list[int](), list[float](), 0
        self._done, self._problem = threading.Event(), ""
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def summarize(self) -> dict[str, Any]:
        """Return the range of clocks in MHz, the largest power in W, and NVML's mask of what limited the clock."""
        if not self._clocks:
            return {"clocks": self._problem} if self._problem else {}
        cuts = min(self._clocks), round(statistics.median(self._clocks)), max(self._clocks)
        return {"mhz": cuts, "watts": max(self._watts), "limits": hex(self._reasons)}

    def _sample(self) -> None:
        try:
            nvml: Any = import_module("pynvml")
        except ImportError:
            return
        try:
            nvml.nvmlInit()
            device = nvml.nvmlDeviceGetHandleByIndex(0)
            while not self._done.wait(_INTERVAL):
                self._clocks.append(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM))
                self._watts.append(nvml.nvmlDeviceGetPowerUsage(device) / 1e3)
                self._reasons |= nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device)
        except (AttributeError, nvml.NVMLError) as why:
            self._problem = str(why)
