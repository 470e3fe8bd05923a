"""Modules that a program loads: from the image to kernels that can be launched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pyptx.check import check
from pyptx.diagnostics import PtxError, Severity
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.compiled import CodeFile
from pyptx.driver.device_runtime import link_device_runtime
from pyptx.driver.images import read_image
from pyptx.ir import Function, Module, VarDecl, visit
from pyptx.isa.limits import STATIC_SHARED, THREADS_PER_CTA, entry_registers, sm_limits
from pyptx.isa.targets import find_target
from pyptx.parser import parse
from pyptx.sim.base.formats import Array
from pyptx.sim.execution.codegen import compile_text
from pyptx.sim.launch.hosted import LoadedModule
from pyptx.sim.program.frames import lay_out, measure_declaration

if TYPE_CHECKING:
    from pyptx.driver.process import Driver

_ALIGNMENT = 512
_MOST_PARSED = 256
_PARSED: dict[bytes, Module] = {}
"""The modules of the last images, by the digest of their text: programs load the same module in several contexts."""
MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14
"""Attributes of functions that a program may set, by their number in the enum `CUfunction_attribute`."""


@dataclass(eq=False)
class Kernel:
    """An entry of a loaded module. The handle serves as a function and as a kernel of a library."""

    handle: int
    name: str
    module: LoadedImage
    function: Function
    settings: dict[int, int] = field(default_factory=dict[int, int])
    """Attributes that the program set."""
    layout: list[tuple[int, int]] = field(init=False)
    """The offset and size of each parameter."""
    size: int = field(init=False)

    def __post_init__(self) -> None:
        layout, self.size = lay_out(self.function.params)
        self.layout = [(offset, size) for _, offset, size in layout]

    def find_attribute(self, driver: Driver, attribute: int) -> int | None:
        """Return an attribute by its number, None if there is no such attribute."""
        if attribute in self.settings:
            return self.settings[attribute]
        directives, (major, minor) = self._list_directives(), driver.devices[0].capability
        values = {
            0: self._limit_threads(directives), 2: _measure(self.module.loaded.module.directives, ".const"),
            3: _measure(visit(self.function), ".local"), 4: entry_registers(directives) or 32,
            5: self.module.capability, 6: major * 10 + minor, 7: 0, MAX_DYNAMIC_SHARED: 0, 9: -1,
            10: int("explicitcluster" in directives), 14: 0, 15: 0, 16: 0, 17: 0,
        }  # fmt: skip
        cluster = [*directives.get("reqnctapercluster", ()), 1, 1, 1]
        if "reqnctapercluster" in directives:
            values |= {11 + axis: int(cluster[axis]) for axis in range(3)}
        else:
            values |= {11: 0, 12: 0, 13: 0}
        if attribute in (1, MAX_DYNAMIC_SHARED):
            static = self.measure_shared(driver)
            values |= {1: static, MAX_DYNAMIC_SHARED: max(0, STATIC_SHARED - static)}
        return values.get(attribute)

    def measure_shared(self, driver: Driver) -> int:
        """Return the bytes of static shared memory."""
        checked = driver.settings.check != "none"
        program, _, _ = self.module.loaded.prepare(self.name, is_checked=checked, poison=False)
        variables = program.variables
        return variables.next_shared - variables.shared_base

    def limit_shared(self, driver: Driver, device: int) -> int:
        """Return the most dynamic shared memory that a launch may ask for."""
        chosen = self.settings.get(MAX_DYNAMIC_SHARED)
        if chosen is not None:
            return chosen
        static = self.measure_shared(driver)
        most = sm_limits(driver.devices[device].target).shared_per_cta if static > STATIC_SHARED else STATIC_SHARED
        return most - static

    def _list_directives(self) -> dict[str, Sequence[int | str]]:
        return {directive.name: directive.values for directive in self.function.directives}

    @staticmethod
    def _limit_threads(directives: dict[str, Sequence[int | str]]) -> int:
        block = directives.get("reqntid", directives.get("maxntid"))
        return THREADS_PER_CTA if block is None else prod(int(size) for size in block)


def _measure(nodes: Iterable[object], space: str) -> int:
    """Return the bytes of the variables in a state space."""
    return sum(
        measure_declaration(node, item)[0]
        for node in nodes
        if isinstance(node, VarDecl) and node.state_space.ptx == space
        for item in node.declarators
    )


@dataclass(eq=False)
class LoadedImage:
    """A module or library in a context."""

    handle: int
    loaded: LoadedModule
    code: CodeFile | None = None
    """What earlier processes compiled for it."""
    kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])

    @property
    def capability(self) -> int:
        """The compute capability of the module's target, as the driver encodes it."""
        return int("".join(filter(str.isdigit, self.loaded.module.target.targets[0])))

    def get_kernel(self, name: str) -> Kernel:
        """Return a kernel by its name."""
        kernel = self.kernels.get(name)
        if kernel is None:
            raise DriverError(Code.ERROR_NOT_FOUND)
        return kernel

    def close(self, driver: Driver) -> None:
        """Free the variables, and make the handles invalid."""
        for kernel in self.kernels.values():
            driver.handles.remove(kernel.handle, Kernel)
        self.loaded.unload()
        driver.handles.remove(self.handle, LoadedImage)


def load_image(driver: Driver, address: int, device: int, size: int | None = None) -> LoadedImage:
    """Load the image at an address for a device; the size is known for a file. DriverError for one that cannot be
    loaded; its text explains why."""
    target = find_target(driver.devices[device].target)
    return load_text(driver, read_image(address, target, from_images=driver.settings.from_images, size=size))


def load_text(driver: Driver, text: str) -> LoadedImage:
    """Load PTX."""
    text = link_device_runtime(text)
    module, code = _parse(text), driver.cache and driver.cache.find(text)
    try:
        loaded = LoadedModule.load(module, driver.heap.space, _allocate, code.compile if code else compile_text)
    except PtxError as why:
        raise DriverError(Code.ERROR_INVALID_PTX, str(why)) from None
    image = driver.handles.add(lambda handle: LoadedImage(handle, loaded, code))
    for item in module.directives:
        if isinstance(item, Function) and item.is_entry:
            image.kernels[item.name] = driver.handles.add(
                lambda handle, item=item: Kernel(handle, item.name, image, item)
            )
    return image


def _parse(text: str) -> Module:
    """Return the module of a text, checked like the driver's compiler does."""
    key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    module = _PARSED.pop(key, None)
    if module is None:
        try:
            module = parse(text)
        except PtxError as why:
            raise DriverError(Code.ERROR_INVALID_PTX, str(why)) from None
        errors = [finding for finding in check(module) if finding.severity is Severity.ERROR]
        if errors:
            raise DriverError(Code.ERROR_INVALID_PTX, str(PtxError(errors, text)))
        if len(_PARSED) >= _MOST_PARSED:
            del _PARSED[next(iter(_PARSED))]
    _PARSED[key] = module
    return module


def _allocate(size: int, alignment: int) -> tuple[int, Array]:
    """Return memory of this process for a variable."""
    alignment = max(alignment, _ALIGNMENT)
    buffer = np.zeros(size + alignment, np.uint8)
    start = -buffer.ctypes.data % alignment
    return buffer.ctypes.data + start, buffer[start : start + size]
