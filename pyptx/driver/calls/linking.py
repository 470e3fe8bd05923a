"""Linking: PTX from several images becomes one module. What a program gets is PTX, too, which it can only load."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.driver.calls.modules import read_options, write_log
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.device_runtime import link_device_runtime
from pyptx.driver.host_memory import read, read_text, write_pointer
from pyptx.driver.images import read_image
from pyptx.driver.modules import parse_text
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.emitter import emit
from pyptx.ir import Function, Module, Statement, VarDecl
from pyptx.ir.nodes import LinkingDirective
from pyptx.isa.targets import find_target
from pyptx.sim.program.linking import combine_modules, refuse_undefined_functions

_PTX, _LIBRARY = 1, 4
"""Inputs by their number in the enum `CUjitInputType`."""
_DEVICE_RUNTIME = "libcudadevrt.a"
"""NVIDIA's library; `device_runtime` has the functions of it that are simulated."""


@dataclass(eq=False)
class LinkState:
    """What has been added, and the result, which programs may read until they destroy the state."""

    handle: int
    options: dict[int, int]
    texts: list[str] = field(default_factory=list[str])
    result: Any = None


@entry("cuLinkCreate_v2", "uint pointer pointer result")
def create_link(driver: Driver, thread: Thread, count: int, names: int, values: int, result: int) -> None:
    driver.get_context(thread)
    options = read_options(count, names, values)
    write_pointer(result, driver.handles.add(lambda handle: LinkState(handle, options)).handle)


@entry("cuLinkAddData_v2", "pointer int pointer size pointer uint pointer pointer")
def add_data(
    driver: Driver, thread: Thread, handle: int, kind: int, address: int, size: int, name: int, count: int, names: int,
    values: int,
) -> None:  # fmt: skip
    _add(driver, thread, driver.handles.get(handle, LinkState), kind, read(address, size))


@entry("cuLinkAddFile_v2", "pointer int pointer uint pointer pointer")
def add_file(
    driver: Driver, thread: Thread, handle: int, kind: int, name: int, count: int, names: int, values: int
) -> None:
    state, path = driver.handles.get(handle, LinkState), Path(read_text(name))
    try:
        data = path.read_bytes()
    except OSError:
        raise DriverError(Code.ERROR_FILE_NOT_FOUND) from None
    if path.name != _DEVICE_RUNTIME:
        _add(driver, thread, state, kind, data)


def _add(driver: Driver, thread: Thread, state: LinkState, kind: int, data: bytes) -> None:
    """Add the PTX of an image."""
    device = driver.get_context(thread).device
    if kind == _LIBRARY:
        raise DriverError(Code.ERROR_NOT_SUPPORTED, f"only PTX is linked, and of libraries {_DEVICE_RUNTIME}: add PTX")
    buffer = ctypes.create_string_buffer(data)
    target, from_images = find_target(driver.devices[device].target), driver.settings.from_images
    text = read_image(ctypes.addressof(buffer), target, from_images=from_images, size=len(data))
    try:
        parse_text(link_device_runtime(text))
    except DriverError as why:
        write_log(state.options, str(why))
        raise
    state.texts.append(text)


@entry("cuLinkComplete", "pointer pointer pointer")
def complete_link(driver: Driver, thread: Thread, handle: int, address: int, size: int) -> None:
    """Link the images; the result ends with NUL, which is part of its size, as programs copy it before they load it."""
    state = driver.handles.get(handle, LinkState)
    if not state.texts:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    try:
        text = state.texts[0] if len(state.texts) == 1 else emit(_link(state.texts))
        refuse_undefined_functions(parse_text(link_device_runtime(text)))
    except PtxError as why:
        write_log(state.options, str(why))
        raise DriverError(Code.ERROR_INVALID_PTX, str(why)) from None
    state.result = ctypes.create_string_buffer(text.encode("utf-8", "surrogateescape"))
    write_pointer(address, ctypes.addressof(state.result))
    write_pointer(size, len(state.result))


def _link(texts: Sequence[str]) -> Module:
    """Return one module that declares nothing external which it defines, and no function again, as the assembler
    requires. Raise PtxError if names have no definition, or several."""
    module = combine_modules([parse_text(link_device_runtime(text)) for text in texts])
    variables = [item for item in module.directives if isinstance(item, VarDecl) and not _is_external(item)]
    names = {declarator.name for item in variables for declarator in item.declarators}
    functions = {item.name: item for item in module.directives if isinstance(item, Function) and item.definition}
    rest: list[Statement] = []
    declared = set[str]()
    for item in module.directives:
        if isinstance(item, Function):
            if item.definition or item.name not in declared:
                definition = functions.get(item.name) if _is_external(item) else None
                rest.append(item.replace(linking=definition.linking, layout=None) if definition else item)
            declared.add(item.name)
        elif not isinstance(item, VarDecl) or (_is_external(item) and item.declarators[0].name not in names):
            rest.append(item)
    return module.replace(directives=(*variables, *rest), layout=None)


def _is_external(item: Function | VarDecl) -> bool:
    return item.linking is LinkingDirective.EXTERN


@entry("cuLinkDestroy", "pointer")
def destroy_link(driver: Driver, thread: Thread, handle: int) -> None:
    driver.handles.remove(handle, LinkState)
