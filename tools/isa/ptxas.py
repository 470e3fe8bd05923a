"""Runs ptxas on many instructions at once: one module for each target and version, parsed but not compiled.

ptxas reports every semantic error of a module, but stops at a fatal or syntax error, and one kind of error can hide
another. So rejected lines are removed and the module is tried again until ptxas accepts the rest.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyptx.isa.targets import ASSEMBLED
from pyptx.toolchain import find_tool
from tools.isa.synthesize import declarations, function_labels, module_variables

Version = tuple[int, int]


@dataclass(frozen=True)
class Case:
    """One instruction under one module header. Only cases of the same `group` share a function."""

    text: str
    target: str
    version: Version
    group: str = ""


OLDEST_PTX: Version = (3, 0)
"""The oldest version whose modules ptxas 13.5 reads as 64-bit code without errors; older ones get a minimal frame."""

_CHUNK = 20_000
_PLACE = re.compile(r"cases\.ptx, line (\d+); (?:error|fatal)\s*: (.*)")


def ptxas_path() -> str:
    """Return the newest installed ptxas."""
    return find_tool("ptxas").path


def virtual_architecture(target: str) -> str:
    """Return the architecture for which ptxas parses a module of this target without compiling it."""
    name = target.replace("sm_101", "sm_110")
    return name.replace("sm_", "compute_") if name in ASSEMBLED else "compute_75"


def verdicts(cases: Iterable[Case]) -> Iterator[tuple[Case, str | None]]:
    """Yield each case with None if ptxas accepts it, or else its message."""
    by_header: defaultdict[tuple[str, Version, bool], list[Case]] = defaultdict(list)
    for case in cases:
        by_header[case.target, case.version, "q_samplerref" in case.text].append(case)
    for (target, version, _), group in by_header.items():
        group.sort(key=lambda case: case.group)
        for start in range(0, len(group), _CHUNK):
            yield from _judge(group[start : start + _CHUNK], target, version)


def _judge(cases: Sequence[Case], target: str, version: Version) -> Iterator[tuple[Case, str | None]]:
    left = list(cases)
    while left:
        rejections = _run(left, target, version)
        for index, why in rejections.items():
            yield left[index], why
        if not rejections:
            break
        left = [case for index, case in enumerate(left) if index not in rejections]
    for case in left:
        yield case, None


def module_text(cases: Sequence[Case], target: str, version: Version) -> tuple[str, dict[int, int]]:
    """Return a module with one case per line, and the case of each line (counted from 1)."""
    sampler = any("q_samplerref" in case.text for case in cases)
    mode = ", texmode_independent" if sampler else ""
    lines = [f".version {version[0]}.{version[1]}", f".target {target}{mode}"]
    if version >= OLDEST_PTX:
        lines += [".address_size 64", *module_variables(sampler=sampler)]
    elif version >= (1, 5):
        lines += [".global .texref q_texref;", ".global .surfref q_surfref;"]
    case_of_line: dict[int, int] = {}
    group: str | None = None
    for index, case in enumerate(cases):
        if case.group != group:
            lines += _function(len(lines), version, target, closing=group is not None)
            group = case.group
        lines.append(case.text)
        case_of_line[len(lines)] = index
    lines += ["q_label:", "ret;", "}"]
    return "\n".join(lines) + "\n", case_of_line


def _run(cases: Sequence[Case], target: str, version: Version) -> dict[int, str]:
    """Return the rejected cases of one run, by index."""
    text, case_of_line = module_text(cases, target, version)
    run = _parse(text, target)
    errors = {int(m[1]): m[2] for m in _PLACE.finditer(run.stderr + run.stdout)}
    rejections = {case_of_line[line]: why for line, why in errors.items() if line in case_of_line}
    if run.returncode and not errors:
        # An error inside one of ptxas's own macros, or a crash, names no line: halve until one case is left.
        if len(cases) == 1:
            return {0: (run.stderr + run.stdout).partition("\n")[0] or f"exit status {run.returncode}"}
        half = len(cases) // 2
        second = _run(cases[half:], target, version)
        return _run(cases[:half], target, version) | {half + index: why for index, why in second.items()}
    if run.returncode and (not rejections or errors.keys() - case_of_line.keys()):
        raise RuntimeError(f"ptxas rejects the frame of the cases: {(run.stderr + run.stdout)[:2000]}")
    return rejections


def module_error(text: str, target: str) -> str | None:
    """Return the first error of ptxas on a module that it parses for the target, or None if it accepts it."""
    run = _parse(text, target)
    if not run.returncode:
        return None
    error = _PLACE.search(run.stderr + run.stdout)
    return error[2] if error else (run.stderr + run.stdout).strip() or f"exit status {run.returncode}"


def _parse(text: str, target: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.ptx"
        path.write_text(text)
        command = [ptxas_path(), "-arch", virtual_architecture(target), str(path), "-o", f"{folder}/out"]
        return subprocess.run(command, capture_output=True, text=True, timeout=600)


def _function(number: int, version: Version, target: str, *, closing: bool) -> list[str]:
    end = ["q_label:", "ret;", "}"] if closing else []
    arch = int(target.removeprefix("sm_").rstrip("af"))
    if version < OLDEST_PTX:
        return [*end, f".visible .entry q_{number} {{", *declarations(version, arch)]
    return [
        *end,
        f".visible .entry q_{number}(.param .align 128 .b8 q_param[256]) {{",
        *declarations(version, arch),
        *function_labels(version, arch),
    ]
