"""Runs a kernel function once and returns the finished module."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyptx.diagnostics import PtxError
from pyptx.dsl import rules
from pyptx.dsl.exact import Exact
from pyptx.dsl.finish import Traced, build_body, build_entry, build_module
from pyptx.dsl.linear_access import find_linear_accesses
from pyptx.dsl.rewrite import iterate_instructions
from pyptx.dsl.shared import SharedMemory, compute_dynamic_bytes, declare_dynamic, get_memory, list_dynamic_offsets
from pyptx.dsl.tensors import DESCRIPTOR_BYTES, TensorSpec
from pyptx.dsl.trace import CURRENT, Trace, Unit, fail
from pyptx.emitter.styles import DEFAULT
from pyptx.ir.kinds import ScalarType, StateSpace
from pyptx.ir.nodes import Function, FunctionDirective, Param
from pyptx.isa.limits import entry_registers
from pyptx.isa.targets import Version, find_target
from pyptx.specs import Tile

TENSOR_ALIGN = 16
_RAW = re.compile(r"(?:\.?align\s+(?P<align>\d+)\s+)?\.?(?P<type>[a-z]\w*)(?:\s*\[(?P<size>\d+)\])?", re.ASCII)
_SIZED = re.compile(r"(?P<name>[\w$%]+)(?:\s*\[(?P<size>\d+)\])?", re.ASCII)


class Definition(NamedTuple):
    """The checked arguments of `@kernel`."""

    function: Callable[..., Any]
    name: str
    arch: str
    version: Version | None
    tensors: tuple[tuple[str, Tile], ...]
    raw_params: tuple[tuple[str, str], ...]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    smem: int
    extern_smem: str | None
    directives: tuple[FunctionDirective, ...]
    exact: bool = False


def trace_kernel(
    definition: Definition, arch: str, dims: Mapping[str, int], template: Mapping[str, Any]
) -> tuple[Traced, frozenset[str]]:
    """Return the kernel's module for these shape variables and template values, and the variables that were read."""
    trace, function, used = trace_entry(definition, arch, dims, template, Unit())
    module = build_module([trace], [function])
    memory = get_memory(trace)
    maps, warnings = tuple(trace.maps), tuple(trace.warnings)
    lenient_origins = frozenset(trace.lenient_origins)
    return Traced(
        module, compute_dynamic_bytes(memory), maps, warnings, list_dynamic_offsets(memory), lenient_origins
    ), used


def trace_entry(
    definition: Definition, arch: str, dims: Mapping[str, int], template: Mapping[str, Any], unit: Unit
) -> tuple[Trace, Function, frozenset[str]]:
    """Return the trace of a kernel in a module that others may share, its entry, and the shape variables it read."""
    used: set[str] = set()

    def read(name: str) -> int:
        used.add(name)
        return dims[name]

    trace = Trace(find_target(arch), definition.version, definition.name, unit)
    trace.facts["shared"] = SharedMemory(definition.smem, definition.extern_smem)
    if definition.exact:
        trace.exact = Exact(trace, DEFAULT)
    params = _declare_parameters(trace, definition)
    specs = [TensorSpec(name, tile, read, trace) for name, tile in definition.tensors]
    if definition.extern_smem is not None:
        declare_dynamic(trace, get_memory(trace))
    run_function(trace, definition.function, *specs, **template)
    trace.warnings += find_linear_accesses(trace, (*trace.prologue, *trace.statements), specs)
    body = build_body(trace, definition.function)
    params = (*params, *map(_make_map_parameter, trace.maps))
    function = build_entry(definition.name, params, body, _collect_directives(trace, definition), definition.function)
    return trace, function, frozenset(used)


def run_function(trace: Trace, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Call the user's function with the trace current. Frames stop here: the callers are not part of the kernel."""
    trace.root = run_function.__code__
    token = CURRENT.set(trace)
    try:
        result = function(*args, **kwargs)
        if inspect.isgenerator(result) or inspect.iscoroutine(result):
            result.close()
            fail(rules.DECLARATION, f"`{trace.name}` returned a {type(result).__name__} without running",
                 help="a decorator wraps a generator or async function: use a plain function")  # fmt: skip
    except ValueError as wrapper:
        # NumPy wraps a register's refusal to become a number in an error of its own.
        if isinstance(wrapper.__cause__, PtxError):
            raise wrapper.__cause__ from None
        raise
    finally:
        CURRENT.reset(token)


def _declare_parameters(trace: Trace, definition: Definition) -> tuple[Param, ...]:
    params: list[Param] = []
    for name, _ in definition.tensors:
        trace.declare_parameter(trace.claim(name, "parameter"), "u64")
        params.append(
            Param(StateSpace.PARAM, ScalarType.U64, name, ptr_state_space=StateSpace.GLOBAL, ptr_alignment=TENSOR_ALIGN)
        )
    for kind, name in definition.raw_params:
        parameter = parse_raw_parameter(kind, name)
        trace.declare_parameter(trace.claim(parameter.name, "parameter"), parameter.type.ptx[1:])
        if parameter.array_size is not None:
            trace.array_parameters.add(parameter.name)
        params.append(parameter)
    return tuple(params)


def parse_raw_parameter(kind: str, name: str) -> Param:
    """Return the parameter that `("u32", "n")`, `("b8[64]", "config")` or `("align 64 b8", "map[128]")` declares."""
    type_match, name_match = _RAW.fullmatch(kind.strip()), _SIZED.fullmatch(name.strip())
    if type_match is None or name_match is None:
        fail(rules.DECLARATION, "a raw parameter must be (type, name) such as ('u32', 'n') or ('b8[128]', 'map'), "
                                f"found ({kind!r}, {name!r})")  # fmt: skip
    try:
        scalar = ScalarType.from_ptx(type_match["type"])
    except ValueError as wrong:
        fail(rules.DECLARATION, str(wrong))
    size = type_match["size"] or name_match["size"]
    align = int(type_match["align"]) if type_match["align"] else None
    return Param(StateSpace.PARAM, scalar, name_match["name"], int(size) if size else None, align)


def _make_map_parameter(name: str) -> Param:
    return Param(StateSpace.PARAM, ScalarType.B8, name, DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)


def _collect_directives(trace: Trace, definition: Definition) -> tuple[FunctionDirective, ...]:
    directives = list(definition.directives)
    have = {directive.name for directive in directives}
    if definition.cluster != (1, 1, 1) and trace.target.arch < 90:
        fail(
            rules.DECLARATION,
            f"clusters need sm_90 or newer, but the kernel is for {trace.target}",
            help="omit cluster",
        )
    if definition.cluster != (1, 1, 1) and not have & {"reqnctapercluster", "maxclusterrank"}:
        directives.append(FunctionDirective("reqnctapercluster", definition.cluster))
    changes = any(getattr(spelling, "opcode", "") == "setmaxnreg" for spelling in trace.plans)
    block_sizes = have & {"maxntid", "reqntid"}
    if changes and entry_registers({directive.name: directive.values for directive in directives}) is None:
        # ptxas ignores setmaxnreg unless the register count at entry is fixed.
        if not block_sizes and definition.block == (1, 1, 1):
            kernel_instructions = iterate_instructions([*trace.prologue, *trace.statements])
            place = next((node.origin for node in kernel_instructions if node.opcode == "setmaxnreg"), None)
            raise PtxError([rules.DECLARATION.report(
                place, "`setmaxnreg` needs a fixed register count at kernel entry",
                help="pass the block size, block=(384, 1, 1), or raw_directives=[('maxnreg', (168,))]",
            )])  # fmt: skip
        if not block_sizes:
            directives.append(FunctionDirective("maxntid", definition.block))
        if "minnctapersm" not in have:
            directives.append(FunctionDirective("minnctapersm", (1,)))
    return tuple(directives)
