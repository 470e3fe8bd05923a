"""Loaded modules: the machine code of a trace in a context, loaded once, and unloaded when the trace is gone."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from pyptx.diagnostics import Origin, PtxError
from pyptx.driver import AFTER_RESTART, is_active
from pyptx.dsl.lines import add_line_information, map_origins
from pyptx.emitter import emit
from pyptx.ir import Param
from pyptx.isa.targets import FIRST_PTX, Target, find_target
from pyptx.runtime.bindings import CallError, call, get_capability, identify, load_api, relax_captures
from pyptx.runtime.failures import make_load_error
from pyptx.runtime.launch_limits import check_limits
from pyptx.runtime.planning import Plan, find_place
from pyptx.runtime.rules import DRIVER
from pyptx.sim.program.frames import lay_out
from pyptx.toolchain import assemble_cached
from pyptx.toolchain.tools import ToolMissing

_LOG_SIZE = 16384
_PORTABLE_CLUSTER = 8
_DESTROYED = ("CUDA_ERROR_CONTEXT_IS_DESTROYED", "CUDA_ERROR_INVALID_CONTEXT")


@dataclass(eq=False, slots=True)
class Loaded:
    """A kernel in a context."""

    context: int
    module: int
    function: int
    layout: list[tuple[Param, int, int]]
    """Each parameter with its offset and size."""
    is_captured: bool = False
    """Whether a graph may contain it: then it stays loaded."""


_LOCK = threading.RLock()
_LOADED: dict[int, dict[int, Loaded]] = {}
"""By the identities of the trace and of the context."""
_RETIRED: list[tuple[int, Loaded]] = []
"""What belongs to traces that are gone, with the identity of its context. A finalizer may run anywhere, even inside of
a call of the driver, so the next load unloads these."""


def find_loaded(plan: Plan, context: int, device: int, *, unloads: bool = True) -> Loaded:
    """Return a plan's kernel in a context, the current one; load it if needed. A load also unloads what is gone, unless
    a capture forbids to wait for the device."""
    key, identity = id(plan.kernel_trace), identify(context)
    loaded = _LOADED.get(key, {}).get(identity)
    if loaded is None:
        with _LOCK:
            loaded = _LOADED.get(key, {}).get(identity)
            if loaded is None:
                if unloads:
                    unload_retired()
                with relax_captures():
                    loaded = _load(plan, context, device)
                if key not in _LOADED:
                    _LOADED[key] = {}
                    weakref.finalize(plan.kernel_trace, _retire, key).atexit = False
                _LOADED[key][identity] = loaded
    return loaded


def _retire(key: int) -> None:
    _RETIRED.extend(_LOADED.pop(key, {}).items())


def unload_retired() -> None:
    """Unload the modules of traces that are gone, once their launches have ended."""
    with _LOCK:
        # Others only append, at any time.
        retired = [_RETIRED.pop() for _ in range(len(_RETIRED))]
        for identity, loaded in retired:
            if not loaded.is_captured:
                _unload(identity, loaded.context, loaded.module)


def _unload(identity: int, context: int, module: int) -> None:
    """Unload a module, unless its context is gone, and the module with it."""
    try:
        if identify(context) != identity:
            return
        call("cuCtxPushCurrent", context)
    except CallError as error:
        if error.name in _DESTROYED:
            return
        raise
    try:
        call("cuCtxSynchronize")
        call("cuModuleUnload", module)
    finally:
        call("cuCtxPopCurrent")


def forget() -> None:
    """Forget the modules of a driver that has been replaced."""
    with _LOCK:
        _LOADED.clear()
        _RETIRED.clear()


AFTER_RESTART.append(forget)


def count_loaded() -> int:
    """Return how many modules are loaded, those to be unloaded included."""
    return sum(map(len, _LOADED.values())) + len(_RETIRED)


def _load(plan: Plan, context: int, device: int) -> Loaded:
    target = choose_target(plan, device)
    is_simulated = is_active()
    # Findings of the simulated driver name the lines of the kernel.
    module = add_line_information(plan.module) if is_simulated else plan.module
    text, origins = emit(module), map_origins(module)
    image = text.encode()
    if not is_simulated:
        # Without the tools, the driver compiles the PTX.
        with suppress(ToolMissing):
            image = plan.kernel_trace.image or assemble_cached(text, target, origin_of=origins.get).data
    handle = _load_image(plan, image + b"\0", text, origins, device)
    function = int(call("cuModuleGetFunction", handle, plan.definition.name.encode()))
    loaded = Loaded(context, handle, function, lay_out(plan.find_entry().params)[0])
    try:
        _allow(plan, function)
    except CallError:
        attribute = load_api().CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        static = call("cuFuncGetAttribute", attribute, function)
        call("cuModuleUnload", handle)
        check_limits(plan, device, static)
        raise
    return loaded


def choose_target(plan: Plan, device: int) -> str:
    """Return the target to assemble for. PtxError if the device cannot run the kernel's."""
    name, (major, minor) = plan.module.target.targets[0], get_capability(device)
    capability = 10 * major + minor
    own = Target(capability, "a" if f"sm_{capability}a" in FIRST_PTX else "")
    target = find_target(name)
    if not own.provides(target):
        message = f"`{plan.definition.name}` is for {name}, but device {device} is sm_{capability}"
        help = f'{plan.definition.name}.for_arch("{own}") returns a kernel for it, if that target has its instructions'
        raise PtxError([DRIVER.report(find_place(plan.definition), message, help=help)])
    return name if target.suffix or f"sm_{capability}" not in FIRST_PTX else f"sm_{capability}"


def _load_image(plan: Plan, image: bytes, text: str, origins: Mapping[int, Origin | None], device: int) -> int:
    options = load_api().CUjit_option
    log = bytes(_LOG_SIZE)  # the driver writes into it, as cuda-bindings has it
    names = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    try:
        return int(call("cuModuleLoadDataEx", image, len(names), names, [log, _LOG_SIZE]))
    except CallError as why:
        messages = log.rstrip(b"\0").decode("utf-8", "replace")
        raise make_load_error(plan, why, device, messages, text, origins.get) from None


def _allow(plan: Plan, function: int) -> None:
    """Raise the limits of a function to what its launches need."""
    attribute = load_api().CUfunction_attribute
    # Static shared memory lowers the limit of dynamic memory.
    if plan.kernel_trace.dynamic_shared:
        name = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, name, plan.kernel_trace.dynamic_shared)
    x, y, z = plan.definition.cluster
    if x * y * z > _PORTABLE_CLUSTER:
        call("cuFuncSetAttribute", function, attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
