"""What the driver refused, as diagnostics that name the kernel, where it is defined, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from math import prod

from pyptx.diagnostics import Origin, PtxError, PythonFrame
from pyptx.dsl.run import Definition
from pyptx.runtime.arguments import write_extents
from pyptx.runtime.bindings import CallError, call, get_capability, load_api
from pyptx.runtime.planning import Plan, find_place, suggest_simulating
from pyptx.runtime.rules import DRIVER
from pyptx.toolchain.messages import parse_log
from pyptx.toolchain.tools import INSTALL

FAULTS = frozenset((700, 702, 710, 714, 715, 716, 717, 718, 719))
"""Codes of kernels that failed while they ran, after which their context is unusable."""
_NO_MEMORY, _NO_RESOURCES, _TOO_MANY_CTAS, _CAPTURE_ISOLATION, _NO_CLUSTER = 2, 701, 720, 905, 912


@contextmanager
def explain_failures(plan: Plan) -> Generator[None]:
    """Turn what the driver refuses while a plan runs into a PtxError."""
    try:
        yield
    except CallError as why:
        raise make_error(plan, why) from None


def make_error(plan: Plan, why: CallError, function: int = 0) -> PtxError:
    """Return the error for a call that failed while a plan was launched, as this function of the driver if it was
    loaded."""
    definition = plan.definition
    shape = f"grid {write_extents(plan.grid)}, block {write_extents(definition.block)}"
    if definition.cluster != (1, 1, 1):
        shape += f", clusters of {write_extents(definition.cluster)}"
    notes = [f"the launch: {shape}, {plan.kernel_trace.dynamic_shared} bytes of dynamic shared memory"]
    if why.code in FAULTS:
        notes.append("launches are asynchronous: an earlier launch, perhaps of another kernel, may be the cause")
        notes.append("the context is lost: all further launches of this process on this device fail")
    elif function:
        # The error is the launch's, whatever the driver says of it now.
        with suppress(CallError):
            notes += _list_shortages(plan, function, why.code)
    message = f"`{definition.name}` cannot be launched: {why}"
    help = _write_help(definition, why.code)
    return PtxError([DRIVER.report(find_place(definition), message, notes=notes, help=help)])


def _list_shortages(plan: Plan, function: int, code: int) -> Sequence[str]:
    """Return what the driver says of a launch for which the device has not enough registers, or not enough SMs."""
    api, threads, device = load_api(), prod(plan.definition.block), int(call("cuCtxGetDevice"))
    if code == _NO_RESOURCES:
        names = api.CUfunction_attribute
        registers = call("cuFuncGetAttribute", names.CU_FUNC_ATTRIBUTE_NUM_REGS, function)
        most = call("cuFuncGetAttribute", names.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function)
        text = f"with {registers} registers per thread, a block on device {device} has at most {most} threads"
        return [f"{text}; this one has {threads}"] if threads > most else ()
    if code == _TOO_MANY_CTAS:
        sms = call("cuDeviceGetAttribute", api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)
        shared = plan.kernel_trace.dynamic_shared
        fits = call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, shared)
        return [
            f"device {device} can run {fits * sms} CTAs at the same time, {fits} on each SM; "
            f"the grid has {prod(plan.grid)}"
        ]
    return ()


def _write_help(definition: Definition, code: int) -> str:
    """Return what to do about a code."""
    if code == _CAPTURE_ISOLATION:
        return "a capture cannot wait for the stream of an array: make the arrays in the stream that is captured"
    remedy, simulating = _find_remedy(definition, code), suggest_simulating(definition)
    if remedy:
        return f"{remedy}; {simulating}, which has no such limit"
    # Arrays in a lost context cannot be read any more.
    return f"{'in a new process, ' if code in FAULTS else ''}{simulating} and finds the cause"


def _find_remedy(definition: Definition, code: int) -> str:
    """Return how a launch needs less of what a device has too little of, empty for other failures."""
    if code == _NO_MEMORY:
        return "free memory of the device, or use smaller arrays"
    remedies = {
        _NO_RESOURCES: "use a smaller block",
        _TOO_MANY_CTAS: "use a smaller grid: a cooperative launch runs all its CTAs at the same time",
        _NO_CLUSTER: "use a smaller cluster: more than 8 CTAs fit on few GPUs only",
    }
    remedy = remedies.get(code, "")
    if remedy and find_place(definition) is not None:
        if code == _NO_RESOURCES and not _BOUNDS & {directive.name for directive in definition.directives}:
            remedy += f", or let ptxas fit registers to it with raw_directives=[('maxntid', {definition.block})]"
        remedy += f"; {definition.name}.resources(…) lists what a CTA needs"
    return remedy


_BOUNDS = frozenset(("maxntid", "reqntid", "maxnreg"))
"""Directives that limit the registers of a thread."""


def make_load_error(
    plan: Plan, why: CallError, device: int, log: str, text: str, origin_of: Callable[[int], Origin | None]
) -> PtxError:
    """Return the error for a module that the driver does not load, with what the log of its compiler says, at the lines
    of Python from which the lines of the PTX text come."""
    definition, module = plan.definition, plan.module
    version, target = module.version, module.target.targets[0]
    major, minor = get_capability(device)
    cuda, rest = divmod(int(call("cuDriverGetVersion")), 1000)
    findings = parse_log(log, text, origin_of)
    notes = [
        f"the kernel is PTX {version.major}.{version.minor} for {target}; device {device} is sm_{major}{minor}, and "
        f"its driver supports CUDA {cuda}.{rest // 10}"
    ]

    def locate(match: re.Match[str]) -> str:
        origin = origin_of(int(match[1]))
        return f"{origin}, line {match[1]} of the PTX" if isinstance(origin, PythonFrame) else match[0]

    if not findings:
        notes += [_PTX_PLACE.sub(locate, line) for line in log.splitlines()]
    message = f"`{definition.name}` cannot be loaded: {why}"
    first = DRIVER.report(find_place(definition), message, notes=notes, help=_write_load_help(definition, why.code))
    return PtxError([first, *findings], text)


_PTX_PLACE = re.compile(r"<ptx>:(\d+):\d+")
"""A place in PTX text, as the simulated driver writes it."""


def _write_load_help(definition: Definition, code: int) -> str:
    name = definition.name
    if find_place(definition) is None:
        return "export the kernel again, for this device and with this driver's version of PTX"
    return _LOAD_REMEDIES.get(code) or (
        f"{name}.check(…) and {name}.cubin(…), which needs ptxas, report errors in the PTX, at its Python lines"
    )


_COMPILER = f"install ptxas, which compiles the kernel instead of the driver: {INSTALL}"
_LOAD_REMEDIES = {
    _NO_MEMORY: "free memory of the device",
    209: "make a kernel for the device with for_arch(…); if it is one, install a newer driver, or an older ptxas",
    221: _COMPILER,
    222: "install a newer driver, or omit version= of the kernel, which then is the lowest that works",
    223: _COMPILER,
}
