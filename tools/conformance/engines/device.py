"""Runs cases through the CUDA driver of this process, on a GPU or simulated."""

from __future__ import annotations

import ctypes
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.runtime.bindings import CallError, call, check, find_library, retain
from pyptx.tensormap import SIZE, Im2colMode, TensorMap
from pyptx.toolchain import ToolMissing, assemble
from tools.conformance.engines.answers import Answer
from tools.conformance.engines.cases import HEADER, Case, Entry, Inputs, find_key

_ROOM = 1 << 18
"""Bytes of each buffer."""
_MAP_ALIGNMENT = 64
_MOST_IN_MODULE = 10


class FaultError(Exception):
    """The device failed; no further case can run in this process."""


class Device:
    """The first device, with a table, data and an output in its memory, and the kernels that it has loaded."""

    def __init__(self, *, is_simulated: bool) -> None:
        self.is_simulated = is_simulated
        self.library: Any = find_library()
        call("cuCtxSetCurrent", retain(0))
        self.buffers = [int(call("cuMemAlloc", _ROOM)) for _ in range(3)]
        self.kernels: dict[str, int] = {}
        self.refusals: dict[str, str] = {}

    def describe(self) -> str:
        """Return the device and the driver."""
        name = call("cuDeviceGetName", 64, 0).rstrip(b"\0 ").decode()
        return f"{name}, driver {call('cuDriverGetVersion')}"

    def load(self, entries: list[Entry]) -> None:
        """Load kernels, several in a module; if one is refused, its module's one by one."""
        groups = [entries[start : start + _MOST_IN_MODULE] for start in range(0, len(entries), _MOST_IN_MODULE)]
        with ThreadPoolExecutor(4) as pool:
            images = [pool.submit(self._make_image, group) for group in groups]
            for group, image in zip(groups, images, strict=True):
                self._load(group, image)

    def _load(self, entries: list[Entry], image: Future[bytes]) -> None:
        try:
            self._load_image(entries, image.result())
        except (CallError, PtxError) as why:
            if len(entries) == 1:
                self.refusals[entries[0].name] = "not assembled: " + " ".join(str(why).split())[:300]
                return
            for entry in entries:
                self.load([entry])

    def _make_image(self, entries: list[Entry]) -> bytes:
        """Return machine code, or the text for the driver to compile if there is no assembler."""
        text = HEADER + "".join(entry.text for entry in entries)
        if not self.is_simulated:
            try:
                return assemble(text, "sm_90a").data
            except ToolMissing:
                pass
        return text.encode() + b"\0"

    def _load_image(self, entries: list[Entry], image: bytes) -> None:
        module = ctypes.c_void_p()
        check("cuModuleLoadData", self.library.cuModuleLoadData(ctypes.byref(module), image))
        for entry in entries:
            function = ctypes.c_void_p()
            code = self.library.cuModuleGetFunction(ctypes.byref(function), module, entry.name.encode())
            check("cuModuleGetFunction", code)
            self.kernels[entry.name] = function.value or 0

    def run(self, case: Case, seed: int) -> Answer:
        """Return the device's answer; FaultError if the device fails."""
        inputs = case.make_inputs(seed)
        key = find_key(case, inputs)
        address, encoding, error = self.buffers[2 if inputs.map_is_of_output else 1], b"", ""
        if inputs.map is not None:
            error, encoding = self.encode(replace(inputs.map, address=inputs.map.address + address))
        if case.entry is not None:
            error = error or self.refusals.get(case.entry.name, "")
        data = b"" if error or case.entry is None else self._launch(case.entry, inputs, encoding or bytes(SIZE))
        return Answer(case.name, key, error, encoding, address, data)

    def _launch(self, entry: Entry, inputs: Inputs, encoding: bytes) -> bytes:
        library = self.library
        for buffer, content in zip(self.buffers, (inputs.table, inputs.data, inputs.out), strict=True):
            check("cuMemcpyHtoD", library.cuMemcpyHtoD_v2(ctypes.c_uint64(buffer), content, len(content)))
        memory, place = _make_map_memory()
        ctypes.memmove(place, encoding, SIZE)
        parameters = [ctypes.c_uint64(buffer) for buffer in self.buffers]
        addresses = [place, *(ctypes.addressof(parameter) for parameter in parameters)]
        code = library.cuLaunchKernel(
            ctypes.c_void_p(self.kernels[entry.name]), entry.ctas, 1, 1, entry.threads, 1, 1, 0, None,
            (ctypes.c_void_p * len(addresses))(*addresses), None,
        )  # fmt: skip
        del memory
        result = ctypes.create_string_buffer(len(inputs.out))
        try:
            check("cuLaunchKernel", code)
            check("cuCtxSynchronize", library.cuCtxSynchronize())
            check("cuMemcpyDtoH", library.cuMemcpyDtoH_v2(result, ctypes.c_uint64(self.buffers[2]), len(inputs.out)))
        except CallError as why:
            raise FaultError(str(why)) from why
        return result.raw

    def encode(self, tensor: TensorMap) -> tuple[str, bytes]:
        """Return why the driver refuses a map, or the map's bytes."""
        if tensor.swizzle.driver_value is None:
            return "the driver has no such swizzle", b""
        memory, place = _make_map_memory()
        longs, ints = ctypes.c_uint64 * tensor.rank, ctypes.c_uint32 * tensor.rank
        first = (ctypes.c_void_p(place), tensor.dtype.driver_value, tensor.rank, ctypes.c_void_p(tensor.address),
                 longs(*tensor.dims), longs(*tensor.strides))  # fmt: skip
        steps, interleave = ints(*tensor.element_strides), int(tensor.interleave)
        last = tensor.swizzle.driver_value, int(tensor.l2_promotion), int(tensor.fill)
        box = tensor.im2col
        if box is None:
            code = self.library.cuTensorMapEncodeTiled(*first, ints(*tensor.box), steps, interleave, *last)
        elif box.mode is Im2colMode.IM2COL:
            corners = ctypes.c_int * len(box.lower)
            code = self.library.cuTensorMapEncodeIm2col(
                *first, corners(*box.lower), corners(*box.upper), box.channels, box.pixels, steps, interleave, *last
            )
        else:
            mode = 0 if box.mode is Im2colMode.W else 1
            code = self.library.cuTensorMapEncodeIm2colWide(
                *first, box.lower[0], box.upper[0], box.channels, box.pixels, steps, interleave, mode, *last
            )
        encoding = ctypes.string_at(place, SIZE)
        del memory
        return (f"refused: {code}", b"") if code else ("", encoding)


def _make_map_memory() -> tuple[object, int]:
    """Return memory and the aligned address of a map in it."""
    memory = ctypes.create_string_buffer(SIZE + _MAP_ALIGNMENT)
    return memory, -(-ctypes.addressof(memory) // _MAP_ALIGNMENT) * _MAP_ALIGNMENT
