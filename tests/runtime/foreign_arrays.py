"""Arrays of invented libraries over device memory: with `__cuda_array_interface__` only, with DLPack only, and with the
stream of each in `__cuda_stream__`."""

from __future__ import annotations

from typing import Any

from pyptx.runtime.device_array import DeviceArray


class Interface:
    """An array with `__cuda_array_interface__`; keywords replace its entries."""

    def __init__(self, array: DeviceArray, **entries: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **entries}


class Exporter:
    """An array with DLPack, which notes for which streams it was exported."""

    def __init__(self, array: DeviceArray, *, versioned: bool = True) -> None:
        self.array, self.versioned = array, versioned
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object:
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, max_version=max_version if self.versioned else None)


class StreamInterface(Interface):
    """An array whose interface names no stream: the array itself has `__cuda_stream__`."""

    def __init__(self, array: DeviceArray) -> None:
        super().__init__(array, stream=None)

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.array.__cuda_stream__()


class StreamExporter(Exporter):
    """An array with DLPack and `__cuda_stream__`."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.array.__cuda_stream__()
