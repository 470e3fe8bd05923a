"""Calls of handlers as XLA makes them: a call frame over arrays or addresses, and XLA's functions."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_int, c_int64, c_void_p, pointer
from typing import Any

import numpy as np

from pyptx.runtime.xla_frames import (
    ARRAY,
    BUFFER,
    DTYPES,
    EXECUTE,
    FUNCTION,
    METADATA,
    STRING,
    Api,
    AttributeArray,
    Attributes,
    Buffer,
    Buffers,
    CallFrame,
    ErrorArguments,
    Extension,
    Metadata,
    Span,
    StreamArguments,
    Version,
)  # fmt: skip

Shape = tuple[int, ...]


class Xla:
    """XLA's side: the stream of a call, and the errors that the handler made."""

    def __init__(self, handler: Any, *, stream: int = 0, minor: int = 3) -> None:
        self.handler, self.stream = handler, stream
        self.errors: list[str] = []
        self.stream_error: int | None = None
        self._functions = FUNCTION(self._create_error), FUNCTION(self._get_stream)
        version = Version(ctypes.sizeof(Version), None, 0, minor)
        self.api = Api(
            ctypes.sizeof(Api), None, version, None, self._functions[0], None, None, None, self._functions[1]
        )
        self._kept: list[Any] = []

    def call(
        self,
        inputs: Sequence[tuple[int, Shape]],
        results: Sequence[tuple[int, Shape]],
        attributes: Mapping[str, Any],
        stage: int = EXECUTE,
    ) -> str | None:
        """Call the handler on buffers, given by address and shape; return its error."""
        frame = CallFrame(size=ctypes.sizeof(CallFrame), api=pointer(self.api), stage=stage)
        frame.inputs, frame.results = self._list(inputs), self._list(results)
        frame.attributes = self._write(attributes)
        return self._answer(frame)

    def ask(self, *, silent: bool = False) -> Metadata:
        """Ask the handler for its metadata, `silent` without XLA's functions and version."""
        metadata = Metadata(size=ctypes.sizeof(Metadata))
        extension = Extension(ctypes.sizeof(Extension), METADATA, None, pointer(metadata))
        frame = CallFrame(size=ctypes.sizeof(CallFrame), extension=pointer(extension))
        if not silent:
            frame.api = pointer(self.api)
        assert self._answer(frame) is None
        return metadata

    def _answer(self, frame: CallFrame) -> str | None:
        number: int | None = self.handler(ctypes.addressof(frame))
        return self.errors[number - 1] if number else None

    def _create_error(self, address: int) -> int:
        self.errors.append(ErrorArguments.from_address(address).message.decode())
        return len(self.errors)

    def _get_stream(self, address: int) -> int | None:
        StreamArguments.from_address(address).stream = self.stream
        return self.stream_error

    def _list(self, buffers: Sequence[tuple[int, Shape]]) -> Buffers:
        items = [
            Buffer(ctypes.sizeof(Buffer), None, 0, address, len(shape), (c_int64 * len(shape))(*shape))
            for address, shape in buffers
        ]
        pointers = (POINTER(Buffer) * len(items))(*map(pointer, items))
        types = (c_int * len(items))(*[BUFFER] * len(items))
        self._kept += [items, pointers, types]
        return Buffers(ctypes.sizeof(Buffers), None, len(items), ctypes.cast(types, c_void_p), pointers)

    def _write(self, attributes: Mapping[str, Any]) -> Attributes:
        names, types, items = list[Span](), list[int](), list[Any]()
        for name, value in sorted(attributes.items()):
            names.append(self._make_span(name))
            types.append(STRING if isinstance(value, str) else ARRAY)
            items.append(self._make_span(value) if isinstance(value, str) else self._make_array(value))
        pointers = (c_void_p * len(items))(*map(ctypes.addressof, items))
        self._kept += [items, names]
        return Attributes(
            ctypes.sizeof(Attributes), None, len(items), (c_int * len(types))(*types),
            (POINTER(Span) * len(names))(*map(pointer, names)), pointers,
        )  # fmt: skip

    def _make_span(self, text: str) -> Span:
        data = ctypes.create_string_buffer(text.encode())
        self._kept.append(data)
        return Span(ctypes.addressof(data), len(text.encode()))

    def _make_array(self, array: Any) -> AttributeArray:
        data = np.ascontiguousarray(array)
        self._kept.append(data)
        number = next(number for number, name in DTYPES.items() if name == data.dtype.name)
        return AttributeArray(number, data.size, data.ctypes.data)
