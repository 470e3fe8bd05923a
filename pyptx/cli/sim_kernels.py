"""Loads kernels from Python files for `pyptx sim`: `gemm.py:gemm` names a kernel, or a function that returns one."""

from __future__ import annotations

import inspect
import re
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyptx import Kernel
from pyptx.cli.sim_arguments import Unusable, Value
from pyptx.cli.sources import Unreadable
from pyptx.diagnostics import PtxError
from pyptx.sim import Result
from pyptx.sim.rules import UNINITIALISED_GLOBAL, UNWRITTEN

_NAMED = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)")
_FAILURES = (
    ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, NameError, OSError,
    RuntimeError, SyntaxError, SystemExit, TypeError, ValueError,
)  # fmt: skip
"""What a user's Python file may raise; exceptions of its own classes keep their traceback."""
OF_THE_KERNEL = ("block", "cluster", "shared", "cooperative")
"""Options of a PTX launch that a Python kernel defines itself."""
_REMEDIES = {
    UNINITIALISED_GLOBAL.code: "write every element before it is read, or pass the output with values as another --arg",
    UNWRITTEN.code: "let the grid cover the whole output, tail included, or pass the output with values as another "
    "--arg",
}
"""Remedies that differ between Python and the command line."""


def load_kernel(text: str) -> Kernel | None:
    """Return the kernel that a text names, or None for a PTX file."""
    match = _NAMED.fullmatch(text)
    if match is None:
        return None
    path = Path(match["path"])
    if not path.is_file():
        raise Unreadable(f"{path}: no such file")
    sys.path.insert(0, str(path.resolve().parent))
    try:
        kernel = runpy.run_path(str(path)).get(match["name"])
        kernel = kernel() if inspect.isfunction(kernel) else kernel
    except PtxError:
        raise
    except _FAILURES as why:
        raise Unreadable(_format_reason(why, str(path))) from None
    if not isinstance(kernel, Kernel):
        raise Unusable(f"{path} has no kernel `{match['name']}`, nor a function of this name that returns one")
    return kernel


def _format_reason(why: BaseException, path: str) -> str:
    """Return the error in a Python file, with its line."""
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
