"""The state of the driver in this process, and the function that answers every call of the library."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from pyptx.diagnostics import escape_unprintable
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.compiled import Cache
from pyptx.driver.demangling import list_names, replace_names
from pyptx.driver.devices import DEVICES, Device, list_attributes
from pyptx.driver.heap import Heap
from pyptx.driver.native_frames import find_native_caller
from pyptx.driver.ordering import Order
from pyptx.driver.pools import Location, Pool
from pyptx.driver.reports import Baseline, Key
from pyptx.driver.settings import LIBRARY, Settings
from pyptx.driver.signatures import PER_THREAD, Entry
from pyptx.driver.watching import WATCHED, HostWatch

if TYPE_CHECKING:
    from pyptx.driver.captures import Capture
    from pyptx.driver.multicasts import Multicast
    from pyptx.driver.sharing import Import

T = TypeVar("T")
INTERRUPTED = -1
"""The result of a call that Control-C ended: the library interrupts the program, as no exception gets through C."""
_FIRST_CONTEXT, _HANDLE_STEP = 0x1000_0000, 0x10
"""The handles of primary contexts, which libraries keep when another driver starts."""
_NUMBERS = count(0x1001_0000, _HANDLE_STEP)
_IDENTITIES = count(1)
"""All other handles: one of an earlier driver, which a library may destroy late, names nothing of this one."""
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", f"{os.sep}lib{os.sep}python3")


@dataclass(eq=False)
class Context:
    """A context: its device, the error that made it unusable, and the limits that a program set."""

    handle: int
    device: int
    is_primary: bool
    flags: int = 0
    references: int = 0
    error: Code | None = None
    is_destroyed: bool = False
    limits: dict[int, int] = field(default_factory=dict[int, int])
    peers: set[int] = field(default_factory=set[int])
    """The devices whose memory its kernels may access."""
    objects: list[Any] = field(default_factory=list[Any])
    """Modules and libraries that end with the context."""
    identity: int = field(default_factory=lambda: next(_IDENTITIES))
    """Of no other context: a primary one that was reset has another, and the same handle."""


@dataclass(slots=True)
class Thread:
    """A thread of the program: its stack of contexts, and whether stream 0 is its own default stream in this call."""

    number: int
    contexts: list[Context] = field(default_factory=list[Context])
    per_thread: bool = False
    capture_mode: int = 0
    """Which captures forbid the calls of this thread that are potentially unsafe."""


class Handles:
    """The objects behind the handles that a program got."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}
        self._kinds: dict[type[Any], dict[int, Any]] = {}
        """The objects again by their kind."""

    def add(self, make: Callable[[int], T], handle: int | None = None) -> T:
        """Create an object with a new handle, or with one that is known."""
        handle = next(_NUMBERS) if handle is None else handle
        value = self._objects[handle] = make(handle)
        self._kinds.setdefault(type(value), {})[handle] = value
        return value

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, handle: int, kind: type[T], code: Code = Code.ERROR_INVALID_HANDLE) -> T:
        """Return the object of a kind; DriverError with the code for any other number."""
        value = self._objects.get(handle)
        if not isinstance(value, kind):
            raise DriverError(code)
        return value

    def remove(self, handle: int, kind: type[T]) -> T:
        """Forget an object and return it."""
        value = self.get(handle, kind)
        del self._objects[handle], self._kinds[type(value)][handle]
        return value

    def discard(self, value: object) -> None:
        """Forget an object that has no handle of its own."""
        kind = type(value)
        for handle in [handle for handle, item in self._kinds[kind].items() if item is value]:
            self.remove(handle, kind)

    def list(self, kind: type[T]) -> list[T]:
        """Return all objects of a kind, without looking at others."""
        return list(self._kinds.get(kind, {}).values())


_NOTHING = nullcontext()


class Driver:
    """The simulated driver of one process."""

    def __init__(self, settings: Settings, entries: list[Entry]) -> None:
        self.settings, self.entries = settings, entries
        self.devices: list[Device] = [DEVICES[settings.device]] * settings.count
        self.attributes = [list_attributes(device, ordinal) for ordinal, device in enumerate(self.devices)]
        self.heap, self.handles = Heap(frozenset({"device", *(WATCHED if settings.watch_host else ())})), Handles()
        self.watch: HostWatch | None = None
        self.cache = Cache.open() if settings.cache else None
        self.is_initialized = False
        self.primary = [
            self.handles.add(
                lambda handle, ordinal=ordinal: Context(handle, ordinal, is_primary=True),
                _FIRST_CONTEXT + ordinal * _HANDLE_STEP,
            )
            for ordinal in range(settings.count)
        ]
        self.threads: dict[int, Thread] = {}
        self.lock = threading.RLock()
        self.change = threading.Condition(self.lock)
        """What calls wait for that end when another thread has done its part."""
        self.default_streams: dict[tuple[int, int | None], Any] = {}
        """The default streams by context and thread; None stands for the legacy stream."""
        self.pools: dict[tuple[Location, int], Pool] = {}
        """The memory pools that the program chose, by location and type of allocations."""
        self.graph_pools: dict[int, Pool] = {}
        """What graphs allocate, by device."""
        self.imports: dict[bytes, Import] = {}
        """The memory of other processes, by its handles."""
        self.multicasts: list[Multicast] = []
        """The multicast objects."""
        self.captures: list[Capture] = []
        """The captures in progress."""
        self.capture_count = 0
        self.order = Order()
        """The work that was submitted, and its order."""
        self.reuses = 0
        """The reuses of addresses that `order` knows."""
        self.notes: set[str] = set()
        """What `note` has printed."""
        self.instructions = 0
        """The instructions of all launches so far, the clock of events."""
        self.baseline = Baseline.read(Path(settings.baseline)) if settings.baseline else None
        self.records: TextIO | None = None
        """The file of records, from the first one on."""
        self.reported: set[Key] = set()
        """What has been found."""
        self.texts: dict[str, Any] = {}
        """Strings that the program may keep pointers to."""

    def answer(self, number: int, arguments: int | None, thread_number: int, result: int) -> None:
        """Answer a call of the library: the number of an entry, the address of its arguments, the calling thread, and
        the address of the result, which says that the call failed until this function has ended."""
        ctypes.c_int.from_address(result).value = self._call(number, arguments or 0, thread_number)

    def _call(self, number: int, arguments: int, thread_number: int) -> int:
        """Call the function that answers an entry, and return its code."""
        entry = self.entries[number & ~PER_THREAD]
        if not self.is_initialized and not entry.is_early:
            return Code.ERROR_NOT_INITIALIZED
        try:
            values = entry.arguments.unpack(ctypes.string_at(arguments, entry.arguments.size))
            if any(kind == "result" and not value for kind, value in zip(entry.kinds, values, strict=True)):
                return Code.ERROR_INVALID_VALUE
            with self.lock:
                thread = self.threads.get(thread_number)
                if thread is None:
                    thread = self.threads[thread_number] = Thread(thread_number)
                thread.per_thread = bool(number & PER_THREAD)
                with self.watch.open_memory() if self.watch else _NOTHING:
                    entry.answer(self, thread, *values)
        except DriverError as why:
            if why.text:
                text = replace_names(why.text, list_names([why.text]))
                sys.stderr.write(f"pyptx: {entry.symbol}: {escape_unprintable(text)}\n")
            return why.code
        except KeyboardInterrupt:
            return INTERRUPTED
        return Code.SUCCESS

    def note(self, text: str) -> None:
        """Print a text that is no error, the first time."""
        if text not in self.notes:
            self.notes.add(text)
            sys.stderr.write(f"pyptx: {text}\n")

    def get_device(self, ordinal: int) -> Device:
        """Return a device by its ordinal."""
        if not 0 <= ordinal < len(self.devices):
            raise DriverError(Code.ERROR_INVALID_DEVICE)
        return self.devices[ordinal]

    def get_context(self, thread: Thread) -> Context:
        """Return the usable current context of a thread."""
        if not thread.contexts:
            raise DriverError(Code.ERROR_INVALID_CONTEXT)
        context = thread.contexts[-1]
        if context.is_destroyed:
            raise DriverError(Code.ERROR_CONTEXT_IS_DESTROYED)
        if context.error is not None:
            raise DriverError(context.error)
        return context


def find_caller() -> str:
    """Return the file and line of the user's Python that made this call, or of C and C++ if no Python did; an empty
    string if neither is known."""
    return next(iter(find_callers(1)), "")


def find_callers(most: int = 8) -> tuple[str, ...]:
    """Return the places of the user's calls that led here, the last call first: of Python, or the place of C or C++ if
    no Python called it."""
    frame, is_native = sys._getframe(1), True  # pyright: ignore[reportPrivateUsage]
    places = list[str]()
    while frame is not None and len(places) < most:
        name = frame.f_code.co_filename
        if not name.startswith(_OWN):
            is_native = False
            if name[:1] != "<" and not any(part in name for part in _PACKAGES):
                places.append(_shorten_here(f"{name}:{frame.f_lineno}"))
        frame = frame.f_back
    library = os.environ.get(LIBRARY) if is_native else None
    native = _shorten_here(find_native_caller(os.path.dirname(library))) if library else ""
    return (native,) if native else tuple(places)


def _shorten_here(place: str) -> str:
    name, colon, line = place.rpartition(":")
    # Unless the program's folder is gone.
    with suppress(FileNotFoundError):
        name = _shorten(name, os.getcwd()) if name else ""
    return f"{name}{colon}{line}"


@cache
def _shorten(name: str, folder: str) -> str:
    """Return the path of a file from the folder of the process, if it is below."""
    short = os.path.relpath(name, folder)
    return name if short.startswith("..") else short


_OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
