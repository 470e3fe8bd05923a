"""Loads kernels from Python files for `pyptx sim` and `pyptx compile`: `gemm.py:gemm` names a kernel, or a function
that returns one."""

from __future__ import annotations

import inspect
import re
import runpy
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyptx import Kernel
from pyptx.cli.sim_arguments import Unusable, Value
from pyptx.cli.sources import Unreadable
from pyptx.diagnostics import PtxError
from pyptx.ptx.transcript import ExactModule
from pyptx.sim import Result
from pyptx.sim.rules import UNINITIALISED_GLOBAL, UNWRITTEN

_NAMED = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)")
_FAILURES = (
    ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, NameError, OSError,
    RuntimeError, SyntaxError, SystemExit, TypeError, ValueError,
)  # fmt: skip
"""What a user's Python file may raise; exceptions of its own classes keep their traceback."""
_UNDECORATED = "; a function that is the kernel itself needs @kernel"
OF_THE_KERNEL = ("block", "cluster", "shared", "cooperative")
"""Options of a PTX launch that a Python kernel defines itself."""
_REMEDIES = {
    UNINITIALISED_GLOBAL.code: "write every element before it is read, or pass the output with values as another --arg",
    UNWRITTEN.code: "let the grid cover the whole output, tail included, or pass the output with values as another "
    "--arg",
}
"""Remedies that differ between Python and the command line."""


def load_kernel(text: str, values: Mapping[str, Any] | None = None) -> tuple[Kernel | None, dict[str, Any]]:
    """Return the kernel that a text names, or None for a PTX file, and those values that the kernel takes. A function
    that returns a kernel is called with its share of the values; None: the command line has none."""
    match = _NAMED.fullmatch(text)
    if match is None:
        return None, {}
    path, name = Path(match["path"]), match["name"]
    if not path.is_file():
        raise Unreadable(f"{path}: {'is a directory' if path.is_dir() else 'no such file'}")
    sys.path.insert(0, str(path.resolve().parent))
    rest = dict(values or {})
    try:
        namespace = runpy.run_path(str(path))
        kernel: Any = namespace.get(name)
        if not isinstance(kernel, Kernel) and inspect.isfunction(inspect.unwrap(kernel)):
            kernel, rest = _call_factory(kernel, path, name, values)
    except (PtxError, Unusable):
        raise
    except _FAILURES as why:
        raise Unreadable(_format_reason(why, str(path))) from None
    if not isinstance(kernel, Kernel):
        if isinstance(namespace.get("module"), ExactModule):
            raise Unusable(
                f"{path} has no kernels in Python, it emits PTX: `python {path} --no-assembly | pyptx sim - --entry "
                f"{name}`, with --grid, --block and --arg, runs it"
            )
        names = ", ".join(key for key, value in namespace.items() if isinstance(value, Kernel)) or "none"
        raise Unusable(
            f"{path} has no kernel `{name}`, nor a function of this name that returns one; its kernels: {names}"
        )
    return kernel, rest


def _call_factory(
    factory: Callable[..., Any], path: Path, name: str, values: Mapping[str, Any] | None
) -> tuple[Kernel, dict[str, Any]]:
    """Return the kernel that a function returns for the values of its parameters, and the values that the kernel takes:
    a name that both have has one value."""
    code = inspect.unwrap(factory).__code__
    place = f"{path}:{code.co_firstlineno}" if code.co_filename == str(path) else str(path)
    signature, passed = inspect.signature(factory), values or {}
    parameters = {n: p for n, p in signature.parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in passed]
    if missing:
        remedy = f"add {' '.join(f'{n}=VALUE' for n in missing)}"
        if values is None:
            remedy = "give defaults, or add a function without parameters that calls it"
        raise Unusable(f"{place}: `{name}` needs {', '.join(missing)}: {remedy}{_UNDECORATED}")
    bound = inspect.BoundArguments(signature, OrderedDict((n, passed[n]) for n in parameters if n in passed))
    kernel = factory(*bound.args, **bound.kwargs)
    if not isinstance(kernel, Kernel):
        raise Unusable(f"{place}: expected `{name}` to return a kernel, found {type(kernel).__name__}{_UNDECORATED}")
    own = (*kernel.shape_variables, *kernel.template_params)
    unknown = [n for n in passed if n not in parameters and n not in own]
    if unknown:
        choices = ", ".join(dict.fromkeys((*parameters, *own))) or "nothing"
        raise Unusable(
            f"{place}: neither `{name}` nor its kernel `{kernel.name}` takes {', '.join(unknown)}; they take {choices}"
        )
    return kernel, {n: value for n, value in passed.items() if n in own}


def _format_reason(why: BaseException, path: str) -> str:
    """Return the error in a Python file, with its line."""
    if isinstance(why, SyntaxError) and why.filename == path:
        return f"{path}:{why.lineno}: {type(why).__name__}: {why.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(why.__traceback__) if frame.filename == path]
    return f"{path}{f':{lines[-1]}' if lines else ''}: {type(why).__name__}: {why}"


def list_names(kernel: Kernel) -> list[str]:
    """Return the names of a kernel's tensors: its inputs, which are arguments here, then its outputs."""
    parameters = inspect.signature(kernel).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def launch(kernel: Kernel, values: Sequence[Value], options: dict[str, Any]) -> tuple[Result, list[Value]]:
    """Run a kernel and return its arguments followed by its outputs; Unusable if they do not fit."""
    launch_options = {name: value for name, value in options.items() if name not in OF_THE_KERNEL}
    grid, count = launch_options.pop("grid"), len(kernel.in_specs)
    try:
        result = kernel.simulate(
            *values[:count], out=tuple(values[count:]) or None, grid=None if grid == (1,) else grid, **launch_options
        )
    except (TypeError, ValueError) as why:
        raise Unusable(f"{kernel.name}: {why}") from None
    for finding in result.hazards:
        finding.help = finding.help or _REMEDIES.get(finding.rule.code, "")
    return result, [*values[:count], *(result.outputs[name] for name in list_names(kernel)[count:])]
