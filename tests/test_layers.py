"""Rules that the contracts of pyproject.toml cannot express: the core imports only the standard library, and imports
are lazy."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "pyptx"
BOTTOM = ["tensormap", "wgmma_layout", "specs", "types", "diagnostics", "cache", "lazy_names", "numbers"]
CORE = [
    "isa", "ir", "parser", "emitter", "check", "tensormap", "wgmma_layout.py", "specs.py", "types.py", "diagnostics.py",
    "cache.py", "lazy_names.py", "numbers.py", "__init__.py", "cli", "__main__.py",
]  # fmt: skip


TAKES_ARRAYS = {PACKAGE / "cli" / "sim_arguments.py", PACKAGE / "cli" / "sim_outputs.py"}
"""Parts of the one command that runs kernels, loaded only with it."""


def _core_files() -> Iterator[Path]:
    for name in CORE:
        paths = sorted((PACKAGE / name).rglob("*.py")) if not name.endswith(".py") else [PACKAGE / name]
        yield from (path for path in paths if path not in TAKES_ARRAYS)


def _list_imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


@pytest.mark.parametrize("path", list(_core_files()), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_core_file_imports_the_standard_library_and_pyptx_only(path: Path) -> None:
    roots = {name.split(".")[0] for name in _list_imports(ast.parse(path.read_text("utf-8")))}
    assert roots <= {*sys.stdlib_module_names, "pyptx"}


def _modules_after(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    return set(process.stdout.split())


def test_importing_pyptx_loads_no_submodule_and_nothing_foreign() -> None:
    modules = _modules_after("import pyptx")
    assert {name for name in modules if name.startswith("pyptx")} == {"pyptx"}
    assert {name.split(".")[0] for name in modules} <= {*sys.stdlib_module_names, "pyptx"}


@pytest.mark.parametrize("layer", ["parser", "emitter", "check", "toolchain", "cli"])
def test_importing_a_layer_loads_nothing_foreign(layer: str) -> None:
    modules = _modules_after(f"import pyptx.{layer}")
    assert {name.split(".")[0] for name in modules} <= {*sys.stdlib_module_names, "pyptx"}


def test_every_lazy_name_resolves() -> None:
    import pyptx

    for name in pyptx.__all__:
        assert getattr(pyptx, name) is not None
    assert set(pyptx.__all__) <= set(dir(pyptx))
    assert "sim" in dir(pyptx)
    assert _modules_after("import pyptx; pyptx.sim.run") > {"pyptx.sim", "numpy"}
    with pytest.raises(AttributeError, match="no attribute 'nothing_here'"):
        _ = pyptx.nothing_here  # type: ignore[attr-defined]


LAZY = ["check", "codegen", "emitter", "ir", "parser", "ptx", "sim", "testing", "toolchain"]


@pytest.mark.parametrize("layer", LAZY)
def test_a_package_imports_its_names_on_first_use(layer: str) -> None:
    """The names that type checkers see, those of `import *`, and those of `dir` are the same."""
    package = importlib.import_module(f"pyptx.{layer}")
    path = PACKAGE / layer / "__init__.py"
    imports = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    declared = {
        alias.asname or alias.name: node.module
        for node in imports
        if node.module and node.module.startswith(f"pyptx.{layer}")
        for alias in node.names
    }
    assert declared.keys() == set(dir(package)) == set(package.__all__)
    for name, module in declared.items():
        is_module = module == package.__name__
        home = importlib.import_module(f"{module}.{name}" if is_module else module)
        assert getattr(package, name) is (home if is_module else getattr(home, name))
    with pytest.raises(AttributeError, match=f"^module 'pyptx.{layer}' has no attribute 'nothing_here'$"):
        _ = package.nothing_here
    modules = _modules_after(f"import pyptx.{layer}")
    assert {name for name in modules if name.startswith("pyptx.")} == {"pyptx.lazy_names", f"pyptx.{layer}"}


LAYERS = [
    "cli", "testing", "torch_support", "jax_support", "decorator", "tuning", "benchmark", "runtime", "codegen", "ptx",
    "reg", "smem", "dsl", "driver", "sim", "toolchain", "highlighting", "check", "parser", "emitter", "ir", "isa",
    *BOTTOM,
]  # fmt: skip
SIMULATOR = [
    "base", "engines", "execution", "hazards", "images", "launch", "numerics", "observers", "program", "reports",
    "rules", "scheduling", "semantics", "state",
]  # fmt: skip
_TYPE_ONLY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import "
PLANTED = {
    "upward import": ("isa", "import pyptx.parser"),
    "siblings": ("parser", "import pyptx.emitter"),
    "foreign import in the core": ("check", "import numpy"),
    "a module without a place": ("stray", ""),
    "upward import in the simulator": ("sim/program", "import pyptx.sim.state"),
    "a machine that knows an observer": ("sim/execution", "import pyptx.sim.observers"),
    "a machine that knows the type of an observer": ("sim/state", _TYPE_ONLY + "pyptx.sim.hazards"),
    "a hazard engine that knows the machine": ("sim/hazards", "import pyptx.sim.state"),
    "a loose module in the simulator": ("sim/stray", ""),
}


@pytest.mark.parametrize(("module", "text"), list(PLANTED.values()), ids=list(PLANTED))
def test_the_contracts_notice(module: str, text: str, tmp_path: Path) -> None:
    package = tmp_path / "pyptx"
    package.mkdir()
    (package / "__init__.py").touch()
    for layer in LAYERS:
        (package / f"{layer}.py").touch()
    (package / "sim.py").unlink()
    (package / "sim").mkdir()
    for name in ["__init__", *SIMULATOR]:
        (package / "sim" / f"{name}.py").touch()
    assert _lint(tmp_path).returncode == 0
    (package / f"{module}.py").write_text(text)
    assert _lint(tmp_path).returncode == 1


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    config = str(PACKAGE.parent / "pyproject.toml")
    return subprocess.run(
        [sys.executable, "-c", command, "--no-cache", "--config", config],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )


def test_no_code_means_two_things() -> None:
    from pyptx.cli.explain import collect_rules
    from pyptx.sim.rules import RULES as HAZARDS
    from pyptx.sim.rules.faults import RULES as MACHINE

    codes = [rule.code for rule in {*collect_rules(), *HAZARDS, *MACHINE}]
    assert len(codes) == len(set(codes)), sorted(code for code in set(codes) if codes.count(code) > 1)
