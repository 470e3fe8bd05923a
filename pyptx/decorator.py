"""`@kernel` and `Kernel`: the front end to tracing, checking and NVIDIA's tools."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from pyptx.check import check as check_module
from pyptx.diagnostics import Diagnostic, PtxError, PythonFrame, hide_frames
from pyptx.dsl import declaration, rules
from pyptx.dsl.device import detect_arch
from pyptx.dsl.exact_lines import match_origins
from pyptx.dsl.finish import Traced, build_module
from pyptx.dsl.lines import map_origins
from pyptx.dsl.registers import Dtype
from pyptx.dsl.report import group_findings, soften
from pyptx.dsl.run import Definition, parse_raw_parameter, trace_entry
from pyptx.dsl.scopes import intrinsic
from pyptx.dsl.trace import CURRENT, Trace, Unit, fail
from pyptx.dsl.traces import DEFAULT_ARCH, Traces
from pyptx.emitter import emit
from pyptx.highlighting import html
from pyptx.ir.directives import Module
from pyptx.ir.nodes import Function
from pyptx.isa.targets import Version
from pyptx.runtime.registry import register
from pyptx.runtime.repeats import NO_OPTIONS, Repeats
from pyptx.specs import Tile
from pyptx.toolchain import assemble_cached, resources, sass

if TYPE_CHECKING:
    from pyptx.runtime.planning import Plan
    from pyptx.sim import Launch, Result
    from pyptx.sim.observers.checks.choice import Check
    from pyptx.toolchain import Cubin, Resources
    from pyptx.tuning import Cost, Tuned

__all__ = ["Kernel", "combine", "detect_arch", "intrinsic", "kernel"]

_RUN_OPTIONS = tuple("check on_hazard precision timeline statistics max_steps poison watch".split())
_LAUNCH_OPTIONS = tuple("stream cooperative programmatic".split())
RESERVED = frozenset((*"lineinfo annotate out grid args schedule seed".split(), *_RUN_OPTIONS, *_LAUNCH_OPTIONS))


class _Planned(Protocol):
    """A call that is bound to its arrays."""

    @property
    def plan(self) -> Plan:
        """What it does."""
        ...


_Bound = TypeVar("_Bound", bound=_Planned)


class Kernel:
    """A kernel written in Python. Calling a method with shape variables and template parameters traces it for these."""

    def __init__(self, function: Callable[..., Any], definition: Definition, **declared: Any) -> None:
        functools.update_wrapper(cast("Any", self), function)
        self.definition = definition
        self.in_specs: tuple[Tile, ...] = declared["in_specs"]
        self.out_specs: tuple[Tile, ...] = declared["out_specs"]
        self.grid = declared["grid"]
        self.block, self.cluster, self.smem = definition.block, definition.cluster, definition.smem
        self.template_params: dict[str, Any] = declared["template_params"]
        self.arch, self.version = definition.arch, definition.version
        self._traces = Traces(definition, self.template_params)
        self.notes = self._traces.notes
        self.key = register(self)
        self._repeats = Repeats(writes_inputs=not self.out_specs)

    @property
    def name(self) -> str:
        """The name of the entry in PTX."""
        return self.definition.name

    @property
    def raw_parameters(self) -> tuple[str, ...]:
        """The names of the raw parameters, in order."""
        return tuple(parse_raw_parameter(kind, name).name for kind, name in self.definition.raw_params)

    @property
    def shape_variables(self) -> tuple[str, ...]:
        """The named dimensions of the tensors, each once, in order."""
        return self._traces.shape_variables

    @hide_frames
    def ptx(self, *, lineinfo: bool = False, annotate: bool = False, **kwargs: Any) -> str:
        """Return the PTX for these template parameters and shape variables. `lineinfo` adds `.file`/`.loc`, so that
        profilers and debuggers show the Python lines; `annotate` appends each Python line to its statements."""
        trace = self._traces.select(kwargs)
        _warn(trace.kernel_trace, 4)
        return trace.write(lineinfo, annotate)[1]

    @hide_frames
    def module(self, *, lineinfo: bool = False, annotate: bool = False, **kwargs: Any) -> Module:
        """Return the module as nodes."""
        return self._traces.select(kwargs).write(lineinfo, annotate)[0]

    def trace(self, **kwargs: Any) -> tuple[Module, Traced]:
        """Return the module as nodes, and what else its trace says."""
        trace = self._traces.select(kwargs)
        return trace.write()[0], trace.kernel_trace

    def check_arguments(self, **kwargs: Any) -> None:
        """Refuse keywords with which there is no trace."""
        self._traces.split_arguments(kwargs)

    @hide_frames
    def check(self, **kwargs: Any) -> list[Diagnostic]:
        """Return the findings of the checks, at the Python lines."""
        trace = self._traces.select(kwargs)
        findings = soften(check_module(trace.kernel_trace.module), trace.kernel_trace.lenient_origins)
        return [*group_findings(findings), *trace.kernel_trace.warnings]

    @hide_frames
    def cubin(self, *, lineinfo: bool = False, **kwargs: Any) -> Cubin:
        """Return the machine code. ptxas messages refer to the Python lines."""
        module, text = self._traces.select(kwargs).write(lineinfo)
        return self._assemble(module, text, None, lineinfo=lineinfo)

    def _assemble(self, module: Module, text: str, target: str | None, *, lineinfo: bool) -> Cubin:
        origins = match_origins(text, module) if self.definition.exact else map_origins(module)
        return assemble_cached(text, target, lineinfo=lineinfo, origin_of=origins.get)

    @hide_frames
    def export(
        self, directory: str | Path, *, targets: Sequence[str] | None = None, grid: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Write the kernel for these shape variables and template parameters into a directory: PTX, machine code for
        each target (default: the kernel's own), an image of all of them, a launcher in C with its header, and a
        manifest, which is returned. `grid` as in a call. Machine code and image have the Python lines, for profilers
        and simulated runs."""
        from pyptx.runtime.arrays import Described
        from pyptx.runtime.export import check_limits, write_files
        from pyptx.runtime.planning import make_plan

        dims, _ = self._traces.split_arguments(kwargs)
        inputs = [Described(tile.resolve_shape(dims), tile.dtype.name) for tile in self.in_specs]
        plan = make_plan(self, inputs, [], grid=grid, positional=None, keywords=kwargs, options=())
        names = declaration.check_targets(targets, plan.module.target.targets[0])
        module, text = self._traces.select(kwargs).write(lineinfo=True)
        cubins = [self._assemble(module, text, name, lineinfo=True) for name in names]
        check_limits(plan, cubins)
        return write_files(plan, text, cubins, Path(directory))

    @hide_frames
    def sass(self, **kwargs: Any) -> str:
        """Return the machine code as text."""
        return sass(self.cubin(**kwargs))

    @hide_frames
    def resources(self, **kwargs: Any) -> Resources:
        """Return the resources of one CTA: registers and spills as reported by ptxas, and static and dynamic shared
        memory."""
        return resources(self.cubin(**kwargs), dynamic_shared=self.dynamic_smem(**kwargs))[self.name]

    @hide_frames
    def dynamic_smem(self, **kwargs: Any) -> int:
        """Return how many bytes of dynamic shared memory a launch needs."""
        return self._traces.select(kwargs).kernel_trace.dynamic_shared

    @hide_frames
    def simulate(
        self,
        *inputs: Any,
        out: Any = None,
        grid: Any = None,
        args: Sequence[Any] | None = None,
        schedule: str = "eager",
        seed: int = 0,
        check: Check = "all",
        on_hazard: str = "raise",
        stream: Any = None,
        cooperative: bool = False,
        programmatic: bool = False,
        **kwargs: Any,
    ) -> Result:
        """Run the kernel on the simulator: arrays for the inputs, as in a call; the outputs are allocated, and
        undefined until the kernel writes them, or passed as `out=`. Keywords are template parameters, shape variables,
        raw scalar parameters, and the options of `sim.run`: `precision`, `timeline`, `statistics`, `max_steps`,
        `poison`, `watch`. A single launch runs the same in any `stream`, and `programmatic` or not: they are accepted
        so that the arguments of a call are."""
        from pyptx.runtime import calls

        options = {name: kwargs.pop(name) for name in _RUN_OPTIONS if name in kwargs}
        options |= {"schedule": schedule, "seed": seed, "check": check, "on_hazard": on_hazard}
        options["cooperative"] = cooperative
        return calls.simulate(self._bind(calls.bind, inputs, args, out, grid, kwargs, depth=4), **options)[0]

    @hide_frames
    def __call__(
        self,
        *inputs: Any,
        out: Any = None,
        grid: Any = None,
        args: Sequence[Any] | None = None,
        stream: Any = None,
        cooperative: bool = False,
        programmatic: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run the kernel and return its outputs as arrays of the caller's library: one, or a tuple of several. They are
        undefined until the kernel writes them, unless you pass arrays with values as `out=`. `args` are the raw
        parameters in their order, scalars and arrays.

        Arrays in the CPU's memory run on the simulator: errors of the run are raised, warnings are shown as
        `HazardWarning`. Arrays on a CUDA device run there, in its library's current stream or `stream`, a handle or an
        object with `__cuda_stream__`. A `cooperative` launch runs all CTAs at the same time, a `programmatic` one may
        overlap with the preceding one of its stream."""
        torch: Any = sys.modules.get("torch")
        # `torch.compile` must not read the calls: what it compiles would hold for these only.
        is_compiled = torch is not None and torch.compiler.is_compiling()
        if not is_compiled and self._repeats.calls:
            results = self._repeats.run(inputs, out, grid, kwargs, (args, stream, cooperative, programmatic))
            if results is not NotImplemented:
                return results
        options: dict[str, Any] = {
            "grid": grid, "args": args, "stream": stream, "cooperative": cooperative, "programmatic": programmatic,
        }  # fmt: skip
        if torch is not None:
            from pyptx.runtime import torch_calls

            if torch_calls.is_special(inputs, out, args, kwargs):
                return torch_calls.record(self, inputs, out, options, kwargs)
        return self.run(inputs, out, **options, keywords=kwargs)

    def run(
        self,
        inputs: Sequence[Any],
        out: Any = None,
        *,
        grid: Any = None,
        args: Sequence[Any] | None = None,
        stream: Any = None,
        cooperative: bool = False,
        programmatic: bool = False,
        keywords: Mapping[str, Any],
    ) -> Any:
        """Run the kernel as a call does that no compiler records."""
        from pyptx.runtime import arrays, calls

        if arrays.are_run_by_jax((*inputs, *arrays.list_targets(out))):
            from pyptx.runtime import jax_calls

            outputs = jax_calls.run(
                self._bind(jax_calls.bind, inputs, args, out, grid, keywords, depth=5), stream,
                cooperative=cooperative, programmatic=programmatic,
            )  # fmt: skip
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        binding = self._bind(calls.bind, inputs, args, out, grid, keywords, depth=5)
        device, results = calls.execute(binding, stream, cooperative=cooperative, programmatic=programmatic, depth=4)
        if device is not None:
            self._repeats.remember(
                self, inputs, binding, device, out=out, grid=grid, keywords=keywords,
                options=(args, stream, cooperative, programmatic),
            )  # fmt: skip
        return results

    def repeat(self, inputs: tuple[Any, ...]) -> Any:
        """Repeat a call without keywords as it was made before; NotImplemented if it may differ."""
        return self._repeats.run(inputs, None, None, {}, NO_OPTIONS)

    def list_outputs(self) -> list[str]:
        """Return the names of the output tensors."""
        return [name for name, _ in self.definition.tensors[len(self.in_specs) :]]

    def trace_call(self, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> str:
        """Return the PTX that a call on these arrays runs."""
        from pyptx.runtime import calls

        options = dict(keywords)
        out, grid, args = (options.pop(name, None) for name in ("out", "grid", "args"))
        return emit(self._bind(calls.bind, inputs, args, out, grid, options, depth=4).plan.module)

    @hide_frames
    def tune(
        self,
        space: Mapping[str, Iterable[Any]],
        args: Sequence[Any],
        *,
        cost: Cost | None = None,
        check_args: Sequence[Any] | None = None,
        reference: Callable[..., Any] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        check: str = "all",
        key: Sequence[str | int] = (),
        cache: bool = True,
        **kwargs: Any,
    ) -> Tuned:
        """Choose the template parameters of the space that cost least on these arrays, of those whose results are
        right.

        Every combination runs on the simulator first, on `check_args` (smaller arrays; default: `args`), with all
        checks, and its outputs are compared with `reference(*check_args)`, by default with those of the first
        combination that runs. `rtol` and `atol` as in `pyptx.testing.assert_matches`. `cost(configuration, launch)`
        returns a number, the less the better; by default, `pyptx.benchmark` times launches on the GPU. `kwargs` are the
        other arguments of the call.

        What was chosen is kept in the user's cache, by the PTX of all combinations, the shapes and types of the arrays,
        the GPU with its driver and assembler, the other arguments, what `reference` and `cost` do, and `key`;
        `cache=False` tries everything again. If a function reads objects that cannot be described, nothing is kept, and
        the result says why."""
        from pyptx.tuning import Request, tune

        request = Request(
            space,
            args,
            cost,
            args if check_args is None else check_args,
            reference,
            rtol,
            atol,
            check,
            key,
            cache,
            kwargs,
        )
        return tune(self, request)

    @hide_frames
    def stream_launch(
        self,
        *inputs: Any,
        out: Any = None,
        grid: Any = None,
        args: Sequence[Any] | None = None,
        programmatic: bool = False,
        label: str = "",
        **kwargs: Any,
    ) -> Launch:
        """Return a launch for `sim.stream`: this kernel on arrays in the CPU's memory, as in a call. A `programmatic`
        launch may overlap with the preceding one. Pass arrays that another launch uses as `out=`."""
        from pyptx.runtime import calls

        binding = self._bind(calls.bind, inputs, args, out, grid, kwargs, depth=4)
        return replace(calls.create_stream_launch(binding), programmatic=programmatic, label=label)

    def _bind(
        self,
        bind: Callable[..., _Bound],
        inputs: Sequence[Any],
        positional: Sequence[Any] | None,
        out: Any,
        grid: Any,
        kwargs: Mapping[str, Any],
        depth: int,
    ) -> _Bound:
        """Bind a call to its arrays. `depth`: how many calls away the caller is to whom warnings are shown."""
        if CURRENT.get() is not None:
            fail(rules.NESTING, (
                f"the kernel `{self.name}` is called while another kernel is being traced: kernels cannot call "
                "kernels"
            ),
                 help="make it a plain function, or a device function with @ptx.func")  # fmt: skip
        if "out" in self.raw_parameters and not self.out_specs and out is not None:
            kwargs, out = {**kwargs, "out": out}, None
        binding = bind(self, inputs, out, grid=grid, positional=positional, keywords=kwargs, options=RESERVED)
        if not binding.plan.is_empty:
            _warn(binding.plan.kernel_trace, depth + 1)
        return binding

    def __repr__(self) -> str:
        return f"<kernel {self.name} for {self.arch}>"

    @property
    def is_importable(self) -> bool:
        """Whether the kernel's module has it under its own name."""
        place: object = sys.modules.get(self.__module__)
        for part in self.definition.function.__qualname__.split("."):
            place = getattr(place, part, None)
        return place is self

    def __deepcopy__(self, memo: object) -> Kernel:
        """Return the kernel itself, as copying a function does."""
        return self

    def __copy__(self) -> Kernel:
        return self

    def __reduce__(self) -> str:
        """Pickle a kernel by name, like a function."""
        name = self.definition.function.__qualname__
        if not self.is_importable:
            place = PythonFrame.of_definition(self.definition.function.__code__)
            text = (
                f"`{self.name}` is sent to other processes by its name, and {self.__module__}.{name} is not this kernel"
            )
            raise PtxError(
                [rules.COPY.report(place, text, help="define it at module level, or send its PTX: k.ptx(…)")]
            )
        return name

    def _repr_html_(self) -> str:
        """Show the PTX in a notebook: of the latest trace, or of the first if the kernel takes no arguments."""
        try:
            trace = self._traces.latest or self._traces.select({})
        except PtxError as error:
            return f"<pre>{escape(repr(self))}\n{escape(str(error))}</pre>"
        return html(trace.write()[1])

    @hide_frames
    def for_arch(self, arch: str) -> Kernel:
        """Return a kernel of the same function for another target, with everything else unchanged."""
        definition = self.definition._replace(
            arch=declaration.check_arch(arch), version=declaration.check_version(self.version, arch)
        )
        return Kernel(
            definition.function, definition, in_specs=self.in_specs, out_specs=self.out_specs, grid=self.grid,
            template_params=self.template_params,
        )  # fmt: skip

    @hide_frames
    def entry_in(self, unit: Unit, **kwargs: Any) -> tuple[Trace, Function]:
        """Trace the kernel into a module shared with others; `combine` does this."""
        dims, template = self._traces.split_arguments(kwargs)
        trace, function, _ = trace_entry(self.definition, self._traces.find_target(), dims, template, unit)
        return trace, function


def _warn(kernel_trace: Traced, depth: int) -> None:
    """Show a warning. `depth`: how many calls away the caller is to whom it is shown."""
    for warning in kernel_trace.warnings:
        warnings.warn(f"{warning}; {warning.help}", stacklevel=depth)


@hide_frames
def combine(*kernels: Kernel | tuple[Kernel, Mapping[str, Any]]) -> Module:
    """Return one module with several kernels, each alone or as (kernel, arguments); they share device functions, tables
    and strings."""
    unit, entries = Unit(), list[tuple[Trace, Function]]()
    for item in kernels:
        member, arguments = item if isinstance(item, tuple) else (item, dict[str, Any]())
        entries.append(member.entry_in(unit, **arguments))
    targets = {trace.target.name for trace, _ in entries}
    names = [function.name for _, function in entries]
    if len(targets) != 1 or len(set(names)) != len(names):
        fail(
            rules.DECLARATION,
            "a module has one target and kernels with different names, found "
            f"{', '.join(sorted(targets)) or 'nothing'} and {', '.join(names)}",
            help="build a module for each target",
        )
    return build_module([trace for trace, _ in entries], [function for _, function in entries])


@overload
def kernel(fn: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(
    fn: None = None,
    *,
    arch: str = DEFAULT_ARCH,
    version: Version | None = None,
    in_specs: Sequence[Tile] | None = None,
    out_specs: Sequence[Tile] | None = None,
    grid: Any = None,
    block: tuple[int, int, int] = (1, 1, 1),
    cluster: tuple[int, int, int] = (1, 1, 1),
    smem: int = 0,
    raw_params: Sequence[tuple[Dtype, str]] | None = None,
    extern_smem: bool | str = False,
    reqntid: tuple[int, ...] | None = None,
    raw_directives: Sequence[tuple[str, tuple[int | str, ...]]] | None = None,
    exact: bool = False,
) -> Callable[[Callable[..., Any]], Kernel]: ...
@hide_frames
def kernel(
    fn: Callable[..., Any] | None = None,
    *,
    arch: str = DEFAULT_ARCH,
    version: Version | None = None,
    in_specs: Sequence[Tile] | None = None,
    out_specs: Sequence[Tile] | None = None,
    grid: Any = None,
    block: tuple[int, int, int] = (1, 1, 1),
    cluster: tuple[int, int, int] = (1, 1, 1),
    smem: int = 0,
    raw_params: Sequence[tuple[Dtype, str]] | None = None,
    extern_smem: bool | str = False,
    reqntid: tuple[int, ...] | None = None,
    raw_directives: Sequence[tuple[str, tuple[int | str, ...]]] | None = None,
    exact: bool = False,
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function. Its positional arguments are tensors, inputs before outputs; keyword-only ones are
    template parameters.

    `version=None` is the lowest PTX that the target and the instructions need. `grid` is a tuple, or a function of the
    shape variables and of those template parameters that it names. `raw_params` are further scalar parameters, (type,
    name). `extern_smem` names the dynamic shared memory (True: "smem"), `smem` is its size in bytes. `reqntid` and
    `raw_directives` are performance directives.
    With `exact` the body is emitted as written: nothing is hoisted, added, folded or commented, and registers are
    declared by `ptx.decl.reg`.
    """
    options: dict[str, Any] = {
        "in_specs": declaration.check_tiles(in_specs, "in_specs"),
        "out_specs": declaration.check_tiles(out_specs, "out_specs"),
        "grid": grid,
    }  # fmt: skip

    @hide_frames
    def decorate(function: Callable[..., Any]) -> Kernel:
        tiles = (*options["in_specs"], *options["out_specs"])
        names, template = declaration.read_signature(function, tiles, RESERVED)
        definition = Definition(
            function, function.__name__, declaration.check_arch(arch), declaration.check_version(version, arch),
            tuple(zip(names, tiles, strict=True)), declaration.parse_raw_parameters(raw_params),
            declaration.parse_dimensions(block, "block"), declaration.parse_dimensions(cluster, "cluster"),
            declaration.check_shared_bytes(smem),
            "smem" if extern_smem is True else extern_smem or None,
            declaration.build_directives(reqntid, raw_directives),
            exact,
        )  # fmt: skip
        return Kernel(function, definition, template_params=template, **options)

    return decorate if fn is None else decorate(fn)
