"""A driver of its own in this process, without the library: its entry points, called as the library calls them."""

from __future__ import annotations

import ctypes
from dataclasses import replace

from pyptx.driver.calls import ENTRIES
from pyptx.driver.process import Driver
from pyptx.driver.settings import Settings
from pyptx.driver.signatures import PER_THREAD

Word = int | bytes | ctypes.Array[ctypes.c_uint64]
_NAMES = sorted(ENTRIES)


class Direct:
    """A driver that is initialized, with the primary context of device 0 current in thread 1."""

    def __init__(self, settings: Settings | None = None) -> None:
        settings = replace(settings or Settings(), cache=False)
        self.driver = Driver(settings, [ENTRIES[name] for name in _NAMES])
        self.call("cuInit", 0)
        self.contexts = [self.ask("cuDevicePrimaryCtxRetain", ordinal) for ordinal in range(settings.count)]
        self.call("cuCtxSetCurrent", self.contexts[0])

    def try_call(self, name: str, *words: Word, thread: int = 1, per_thread: bool = False) -> int:
        """Call a driver function and return its code. Bytes and arrays are passed by their addresses."""
        kept = [ctypes.create_string_buffer(word, len(word)) if isinstance(word, bytes) else word for word in words]
        values = [word if isinstance(word, int) else ctypes.addressof(word) for word in kept]
        arguments = ctypes.create_string_buffer(ENTRIES[name].arguments.pack(*values) + b"\0")
        result = ctypes.c_int(-99)
        number = _NAMES.index(name) | PER_THREAD * per_thread
        self.driver.answer(number, ctypes.addressof(arguments), thread, ctypes.addressof(result))
        return result.value

    def call(self, name: str, *words: Word, thread: int = 1) -> None:
        """Call a driver function that must succeed."""
        code = self.try_call(name, *words, thread=thread)
        assert code == 0, f"{name} returned {code}"

    def ask(self, name: str, *words: Word, thread: int = 1) -> int:
        """Call a driver function and return the number that it writes to its first argument."""
        result = make_room(1)
        self.call(name, result, *words, thread=thread)
        return result[0]

    def tell(self, name: str, *words: Word) -> int:
        """Call a driver function and return the number that it writes to its last argument."""
        result = make_room(1)
        self.call(name, *words, result)
        return result[0]


def make_room(size: int, value: int = 0) -> ctypes.Array[ctypes.c_uint64]:
    """Return room for numbers of 64 bits."""
    return (ctypes.c_uint64 * size)(*[value] * size)
