"""Plans a call of a kernel: what shapes, dtypes and keywords determine, before any memory is touched.

Knows descriptions of arrays, so that a compiler's abstract values get the checks of real ones; knows no memory, and
not what runs the plan.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, NotRequired, Protocol, TypedDict, Unpack

from pyptx.diagnostics import PtxError, PythonFrame
from pyptx.dsl.finish import Traced
from pyptx.dsl.origin import find_caller, find_definition, is_ours
from pyptx.dsl.run import Definition, parse_raw_parameter
from pyptx.ir import Function, Module
from pyptx.runtime import arguments
from pyptx.runtime.arguments import write_extents
from pyptx.runtime.arrays import Described, DeviceView, Unusable
from pyptx.runtime.rules import DRIVER, GRID
from pyptx.sim.launch.arguments import Buffers, encode_parameters
from pyptx.sim.program.shapes import LARGE_BLOCK, LARGE_GRID, MUCH_SHARED, PART_OF_CLUSTER
from pyptx.sim.state.address_space import AddressSpace
from pyptx.specs import Tile

MAP_SUFFIX = "_tma_desc"
"""What follows a tensor's name in the name of the parameter that holds its tensor map."""


class Traceable(Protocol):
    """What a plan needs of a kernel."""

    in_specs: tuple[Tile, ...]
    out_specs: tuple[Tile, ...]
    grid: Any
    template_params: dict[str, Any]

    @property
    def definition(self) -> Definition:
        """The checked arguments of `@kernel`."""
        ...

    @property
    def shape_variables(self) -> tuple[str, ...]:
        """The named dimensions of the tensors."""
        ...

    def trace(self, **kwargs: Any) -> tuple[Module, Traced]:
        """Return the module for these shape variables and template parameters, and its trace."""
        ...

    def check_arguments(self, **kwargs: Any) -> None:
        """Refuse keywords with which there is no trace."""
        ...


class Call(TypedDict):
    """What a call passes besides arrays for its tensors."""

    grid: Any
    positional: Sequence[Any] | None
    """The raw parameters in their order."""
    keywords: Mapping[str, Any]
    options: Collection[str]
    """Keywords that are never raw parameters."""
    memory: NotRequired[Sequence[tuple[Any, ...]]]
    """The shapes of arrays for which numbers stand among the raw parameters."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch without memory. Two calls whose arrays have equal descriptions and that pass equal keywords have equal
    plans."""

    definition: Definition
    traced: tuple[Module, Traced] | None
    """The module and its trace; None if the grid is empty, which needs none."""
    dims: dict[str, int]
    """The shape variables."""
    scalars: dict[str, Any]
    """The raw parameters by name; arrays stand for their addresses."""
    grid: tuple[int, ...]
    outputs: tuple[Described, ...]
    """The arrays to allocate or, if the caller passed arrays for the outputs, those."""

    @property
    def is_empty(self) -> bool:
        """Whether the grid is empty: then nothing is launched."""
        return self.traced is None

    @property
    def module(self) -> Module:
        """The module. PtxError if the grid is empty."""
        return self._require_trace()[0]

    @property
    def kernel_trace(self) -> Traced:
        """The trace of the module. PtxError if the grid is empty."""
        return self._require_trace()[1]

    def _require_trace(self) -> tuple[Module, Traced]:
        if self.traced is None:
            text = f"the grid {write_extents(self.grid)} is empty: there is no launch"
            raise PtxError([GRID.report(find_place(self.definition), text, help="pass arrays with elements")])
        return self.traced

    def find_entry(self) -> Function:
        """Return the kernel's function."""
        return next(
            function
            for function in self.module.directives
            if isinstance(function, Function) and function.name == self.definition.name
        )


def make_plan(
    kernel: Traceable,
    inputs: Sequence[Described | Unusable],
    targets: Sequence[Described | Unusable],
    **call: Unpack[Call],
) -> Plan:
    """Plan a call on arrays of these descriptions; PtxError with everything that does not fit. `targets` are arrays for
    the outputs, or none to allocate them."""
    with locate_errors(kernel.definition):
        return _make_plan(kernel, inputs, targets, **call)


def _make_plan(
    kernel: Traceable,
    inputs: Sequence[Described | Unusable],
    targets: Sequence[Described | Unusable],
    **call: Unpack[Call],
) -> Plan:
    definition, keywords = kernel.definition, call["keywords"]
    tensors, count = definition.tensors, len(kernel.in_specs)
    sizes = {name: value for name, value in keywords.items() if name in kernel.shape_variables}
    bound = arguments.bind(definition.name, tensors[:count], inputs, tensors[count:], targets)
    env = arguments.merge_dimensions(bound, sizes)
    outputs = tuple(t for t in targets if isinstance(t, Described)) or arguments.describe_outputs(tensors[count:], env)
    scalars = arguments.collect_scalars(definition.raw_params, call["positional"], keywords, call["options"])
    template = {name: value for name, value in keywords.items() if name not in scalars and name not in env}
    if template:
        names = (*kernel.shape_variables, *kernel.template_params, *(name for _, name in definition.raw_params))
        arguments.check_keywords(definition.name, template, names, call["options"])
    dims = {name: value for name, value in env.items() if name in kernel.shape_variables}
    kernel.check_arguments(**dims, **template)
    grid = kernel.grid if call["grid"] is None else call["grid"]
    described = (array.shape for array in (*inputs, *targets, *outputs) if isinstance(array, Described))
    shapes = (*described, *(array.shape for array in arguments.list_arrays(scalars).values()), *call.get("memory", ()))
    has_empty = any(0 in shape for shape in shapes)
    extents = arguments.resolve_grid(grid, dims, {**kernel.template_params, **template}, may_be_empty=has_empty)
    if 0 not in extents:
        return Plan(definition, kernel.trace(**dims, **template), dims, scalars, extents, outputs)
    if not targets:
        arguments.check_undefined(tensors[count:], outputs, extents)
    plan = Plan(definition, None, dims, scalars, extents, outputs)
    check_numbers(plan)
    return plan


def check_numbers(plan: Plan) -> None:
    """Refuse raw parameters whose values do not fit their types."""
    params = [parse_raw_parameter(*param) for param in plan.definition.raw_params]
    values = {
        name: value.address if isinstance(value, DeviceView) else value
        for name, value in plan.scalars.items()
        if value is not None
    }
    encode_parameters([param for param in params if param.name in values], values, Buffers(AddressSpace()), None)


@contextmanager
def locate_errors(definition: Definition) -> Generator[None]:
    """Give errors without a place that of the kernel's definition."""
    try:
        yield
    except PtxError as error:
        if any(finding.origin is None for finding in error.diagnostics):
            place = find_place(definition)
            error.diagnostics = tuple(f if f.origin else f.move_to(place) for f in error.diagnostics)
        raise


def find_call(definition: Definition) -> PythonFrame | None:
    """Return the place of the user's call, or else of the kernel's definition: threads of PyTorch have no callers."""
    return find_caller() or find_place(definition)


def find_place(definition: Definition) -> PythonFrame | None:
    """Return the place of the function that defines a kernel, None for an exported one."""
    place = find_definition(definition.function)
    return None if place is None or is_ours(place.code) else place


def suggest_simulating(definition: Definition) -> str:
    """Return a clause that says how to run a call on the simulator. An exported kernel has no method for it."""
    variable = "PYPTX_SIMULATE=1 in the environment"
    if find_place(definition) is None:
        return f"with {variable}, the same call checks the kernel on the CPU"
    return f"{definition.name}.simulate(…) with the same arguments, or {variable}, checks the kernel on the CPU"


def check_limits(
    plan: Plan, where: str, grid: Sequence[int], block: Sequence[int], threads: int, shared: int, static: int
) -> None:
    """Raise PtxError if a launch exceeds the limits of a device: of each extent of grids and blocks, of a block's
    threads, and of bytes of shared memory, of which the kernel declares those that are static."""
    subject = f"bytes of shared memory, {static} of them static," if static else "bytes of dynamic shared memory"
    definition, extents = plan.definition, (*plan.grid, 1, 1)[:3]
    checks = [
        *((f"the grid's {axis}", *sizes, LARGE_GRID) for axis, *sizes in zip("xyz", extents, grid, strict=True)),
        *(
            (f"the block's {axis}", *sizes, LARGE_BLOCK)
            for axis, *sizes in zip("xyz", definition.block, block, strict=True)
        ),
        ("threads of a block", prod(definition.block), threads, LARGE_BLOCK),
        (subject, static + plan.kernel_trace.dynamic_shared, shared, MUCH_SHARED),
    ]
    problems = {
        f"{subject} must not exceed {limit}, found {size}": help
        for subject, size, limit, help in checks
        if size > limit
    }
    cluster = (*definition.cluster, 1, 1)[:3]
    if any(size % part for size, part in zip(extents, cluster, strict=True)):
        problem = f"the grid {write_extents(plan.grid)} must be a multiple of the cluster {write_extents(cluster)}"
        problems[problem] = PART_OF_CLUSTER
    if problems:
        message = f"`{definition.name}` {where}: {'; '.join(problems)}"
        help = "; ".join(dict.fromkeys(problems.values()))
        raise PtxError([DRIVER.report(find_place(definition), message, help=help)])
