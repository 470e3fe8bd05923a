"""The tests mirror the package: a test file has the name of a module, or is listed with the reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"tools": ROOT / "tools", "docs": ROOT / "docs"}
"""Folders of tests for something else than the package."""
SEVERAL: dict[str, tuple[str, str]] = {
    "check": ("the checker on whole files, and on edited ones", "corpus replacements"),
    "cli": (
        "all commands, as processes or with every option; and the GitHub action that runs them",
        "action commands hostile_launches options standard_streams untrusted_text",
    ),
    "codegen": ("the Python of whole modules, and what it emits", "corpus edits exact hostile malformed"),
    "codegen/passes": ("all passes one after the other", "mutations spellings"),
    "corpus": ("files that are no code of the project", "manifest signatures"),
    "docs": ("all pages", "blocks"),
    "driver": ("programs that call functions of several modules", "faults programs queries together"),
    "dsl": (
        "kernels as users write them, right and wrong",
        "block_errors errors float_literals kernel mistakes programs random_programs",
    ),
    "examples": ("the same property of several examples", "block_scales row_kernels"),
    "isa/table": ("rows of several files, and all rows", "arithmetic availability matrix"),
    "parser": ("the whole parser, and both of its paths", "fuzz limits lossless ptxas underlines"),
    "ptx": (
        "wrappers of several modules: their text, their signatures, their refusals",
        "async_calls async_kernel async_mistakes async_text completion interface member_completion refusals "
        "tensor_interface tensor_spellings units wrappers wrong_arguments",
    ),
    "runtime": (
        "calls through all modules: the order of launches, their arrays, their errors, together with cuda.core",
        "cuda_core empty_arrays ordering tracebacks",
    ),
    "sim": (
        "whole kernels, and what an addition to the simulator takes",
        "corpus edits field new_format new_instruction",
    ),
    "sim/engines": ("asynchronous products in every engine", "late_products"),
    "sim/engines/copies": ("limits of memory, in copies of each direction", "small_buffers"),
    "sim/hazards": ("the engine against models of memory, and its findings", "findings matrix random together"),
    "sim/observers": ("statistics and timelines of the same runs", "observed"),
    "sim/observers/checks": (
        "findings that several checks contribute to, planted in kernels", "report_items scopes warp_operands",
    ),
    "sim/patterns": ("the folder of patterns, and kernels that are changed like them", "kernels together"),
    "sim/scheduling": (
        "what threads see that several modules schedule", "cluster_barrier cluster_launch lockstep",
    ),
    "tools": ("all audits, on samples", "audits small_audits"),
    "": ("the project's own rules and its test runs", "layers mirror project seed"),
}  # fmt: skip
"""Test files that are not about one module, by folder, with the reason."""
TESTS = sorted(path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


def list_names(folder: str) -> set[str]:
    """Return the names that test files of a folder may have."""
    first, _, rest = folder.partition("/")
    sources = [FOLDERS[first] / rest] if first in FOLDERS else [ROOT / "pyptx" / folder]
    if first == "examples":
        sources = [ROOT / "examples", *(path for path in (ROOT / "examples").iterdir() if path.is_dir())]
    names = {re.sub(r"^\d+_|_$", "", name) for source in sources for name in _list_modules(source)}
    return names | {Path(folder).name} | ({"benchmarks"} if not folder else set())


def _list_modules(folder: Path) -> Iterator[str]:
    """Yield modules, folders, sources in C, and pages."""
    paths: Iterable[Path] = [*folder.glob("*"), *folder.glob("csrc/*.c")]
    yield from (path.stem for path in paths if path.suffix in (".py", ".c", ".md") or path.is_dir())


def is_mirrored(test: str) -> bool:
    """Return whether a test file has the name of a module, with or without the aspect that it tests."""
    path = Path(test)
    name, folder = path.stem.removeprefix("test_"), path.parent.as_posix().removeprefix(".")
    return any(name == module or name.startswith(f"{module}_") for module in list_names(folder) if module)


def is_listed(test: str) -> bool:
    """Return whether a test file is listed as one about several modules."""
    path = Path(test)
    _, names = SEVERAL.get(path.parent.as_posix().removeprefix("."), ("", ""))
    return path.stem.removeprefix("test_") in names.split()


@pytest.mark.parametrize("test", TESTS)
def test_a_test_file_has_the_name_of_a_module_or_is_listed(test: str) -> None:
    assert is_mirrored(test) != is_listed(test), (
        "name it after the module that it tests, or list it in SEVERAL with the reason; list no file with such a name"
    )


def test_every_listed_file_exists() -> None:
    listed = [
        f"{folder}/test_{name}.py".lstrip("/") for folder, (_, names) in SEVERAL.items() for name in names.split()
    ]
    assert sorted(listed) == sorted(set(listed) & set(TESTS))


def test_names_are_those_of_the_folder() -> None:
    assert is_mirrored("sim/scheduling/test_hang.py")
    assert is_mirrored("sim/semantics/test_mma_sparse.py")
    assert is_mirrored("driver/test_audit.py")
    assert not is_mirrored("sim/scheduling/test_hangs.py")
    assert not is_mirrored("sim/test_hang.py")
    assert not is_mirrored("test_hang.py")
