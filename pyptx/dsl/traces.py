"""The traces of a kernel, one for each combination of what it depends on: target, template parameters, the shape
variables that it reads, and what its function captures."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.dsl import rules
from pyptx.dsl.device import detect_arch
from pyptx.dsl.finish import Traced
from pyptx.dsl.key import Snapshot, fingerprint, take_snapshot
from pyptx.dsl.lines import add_line_comments, add_line_information
from pyptx.dsl.run import Definition, trace_kernel
from pyptx.dsl.trace import fail
from pyptx.emitter import emit
from pyptx.ir.collection import without_collector
from pyptx.ir.directives import Module

DEFAULT_ARCH = "sm_90a"
_MOST_TRACES = 256


class Specialization:
    """One trace with its key: the variables it read with their values, and what it captured."""

    __slots__ = ("_has_version", "_texts", "dims", "kernel_trace", "snapshot")

    def __init__(self, dims: dict[str, int], snapshot: Snapshot, kernel_trace: Traced, has_version: bool) -> None:
        self.dims, self.snapshot, self.kernel_trace = dims, snapshot, kernel_trace
        self._has_version = has_version
        self._texts: dict[tuple[bool, bool], tuple[Module, str]] = {}

    def write(self, lineinfo: bool = False, annotate: bool = False) -> tuple[Module, str]:
        """Return the module, and its text."""
        entry = self._texts.get((lineinfo, annotate))
        if entry is None:
            with without_collector():
                module = self.kernel_trace.module
                module = add_line_comments(module) if annotate else module
                module = add_line_information(module, fixed=self._has_version) if lineinfo else module
                entry = self._texts[lineinfo, annotate] = module, emit(module)
        return entry


class Traces:
    """The latest traces of a kernel. `notes` say what the choice of the target assumed."""

    def __init__(self, definition: Definition, template_params: dict[str, Any]) -> None:
        self.definition, self.template_params = definition, template_params
        variables = (name for _, tile in definition.tensors for name in tile.symbolic_dims)
        self.shape_variables = tuple(dict.fromkeys(variables))
        self.notes: list[str] = []
        self.latest: Specialization | None = None
        self._traces: dict[object, list[Specialization]] = {}

    def find_target(self) -> str:
        """Return the target to trace for: the declared one, or that of the GPU."""
        if self.definition.arch != "auto":
            return self.definition.arch
        try:
            return detect_arch()
        except PtxError:
            self.notes[:] = [f"arch='auto': no GPU found, traced for {DEFAULT_ARCH}"]
            return DEFAULT_ARCH

    def select(self, kwargs: Mapping[str, Any]) -> Specialization:
        """Return the trace for these arguments, tracing if none fits."""
        dims, template = self.split_arguments(kwargs)
        arch = self.find_target()
        snapshot = take_snapshot(self.definition.function)
        key = (arch, fingerprint(template))
        traces = self._traces.setdefault(key, [])
        for trace in traces:
            if trace.snapshot == snapshot and all(dims[name] == value for name, value in trace.dims.items()):
                return trace
        with without_collector():
            kernel_trace, used = trace_kernel(self.definition, arch, dims, template)
        known_dims, has_version = {name: dims[name] for name in used}, self.definition.version is not None
        trace = Specialization(known_dims, snapshot, kernel_trace, has_version)
        if len(traces) >= _MOST_TRACES:
            del traces[0]
        traces.append(trace)
        self.latest = trace
        return trace

    def split_arguments(self, kwargs: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Any]]:
        """Return the shape variables and the template parameters that these keywords give values to."""
        variables, kernel = self.shape_variables, f"kernel `{self.definition.name}`"
        unknown = [name for name in kwargs if name not in variables and name not in self.template_params]
        template = {**self.template_params, **{n: v for n, v in kwargs.items() if n in self.template_params}}
        missing = [name for name in variables if name not in kwargs]
        missing += [name for name, value in template.items() if value is inspect.Parameter.empty]
        if unknown or missing:
            parts = [
                f"{label}: {', '.join(names)}" for label, names in (("missing", missing), ("unknown", unknown)) if names
            ]
            choices = ", ".join([*variables, *self.template_params]) or "nothing"
            fail(rules.SPECIALISATION, f"{kernel}: {'; '.join(parts)}", help=f"pass by keyword: {choices}")
        dims = {name: kwargs[name] for name in variables}
        wrong = [f"{n}={v!r}" for n, v in dims.items() if isinstance(v, bool) or not isinstance(v, int) or v < 0]
        if wrong:
            fail(
                rules.SPECIALISATION,
                f"{kernel}: shape variables must be integers of at least 0, found {', '.join(wrong)}",
            )
        return dims, template
