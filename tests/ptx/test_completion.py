"""Completion by `dir()` in notebooks and consoles offers the public interface and nothing else."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any

import pytest

import pyptx
from pyptx import ptx, reg, smem, types
from pyptx.isa.special import SPECIAL_REGISTERS
from pyptx.isa.table import list_opcodes
from tests.ptx.test_interface import entries, path_of

LAZY = ["check", "codegen", "emitter", "ir", "parser", "sim"]


@pytest.mark.parametrize("name", LAZY)
def test_a_package_whose_names_load_on_first_use_offers_them(name: str) -> None:
    module = importlib.import_module(f"pyptx.{name}")
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def _modules() -> list[ModuleType]:
    """Return the package, `ptx`, `reg`, `smem`, `types`, and the families at any depth."""
    modules: list[ModuleType] = [pyptx, reg, smem, types]
    for module in modules:
        inner = [getattr(module, name) for name in dir(module)]
        modules += [value for value in inner if inspect.ismodule(value) and value not in modules]
    return modules


MODULES = _modules()


def test_the_families_are_reached() -> None:
    names = {module.__name__ for module in MODULES}
    assert {"pyptx.ptx.mbarrier", "pyptx.ptx.cp.tensor", "pyptx.ptx.tcgen05", "pyptx.ptx.special"} <= names


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_module_offers_no_imports_and_no_internals(module: ModuleType) -> None:
    names = dir(module)
    assert [name for name in names if name.startswith("_") and name != "__version__"] == []
    for name in names:
        value: Any = getattr(module, name)
        if isinstance(value, UnionType):
            continue
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", module.__name__)
        assert home.startswith("pyptx"), f"{module.__name__}.{name} is {home}'s"
        assert not home.startswith(("pyptx.dsl.emit", "pyptx.dsl.trace", "pyptx.dsl.rules")), f"{name} is internal"


@pytest.mark.parametrize("module", [m for m in MODULES if hasattr(m, "__all__")], ids=lambda module: module.__name__)
def test_a_module_offers_what_it_exports(module: ModuleType) -> None:
    exceptions = {"sim"} if module is pyptx else set[str]()
    assert set(dir(module)) == {*module.__all__, *exceptions}


def _list_public_names(module: ModuleType) -> set[str]:
    """Return the public names of a module for an editor: those it assigns, defines or reexports."""
    path = Path(module.__file__ or "")
    stub = path.with_suffix(".pyi")
    names = set[str]()
    for node in ast.parse((stub if stub.exists() else path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names if alias.asname == alias.name}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("module", [m for m in MODULES if m not in (pyptx, types)], ids=lambda module: module.__name__)
def test_an_editor_reads_no_other_names_in_a_module(module: ModuleType) -> None:
    assert _list_public_names(module) <= set(dir(module))


def test_the_public_interface_is_offered() -> None:
    for name, entry in entries():
        owner: Any = sys.modules.get(name)
        if owner is pyptx or owner not in MODULES:
            continue
        for step in path_of(entry).split("."):
            assert step in dir(owner), f"{name}: {entry}"
            owner = getattr(owner, step, None)
            if not inspect.ismodule(owner):
                break


def test_special_registers_and_their_components_are_offered() -> None:
    assert dir(ptx.special) == sorted(register.name[1:] for register in SPECIAL_REGISTERS)
    assert dir(ptx.special.tid) == ["w", "x", "y", "z"]
    assert dir(ptx.special.laneid) == dir(ptx.special.tid.x) == []


def test_opcodes_are_offered() -> None:
    assert len(dir(ptx.inst)) == len(list_opcodes())
    assert {"add", "wgmma", "and_"} <= set(dir(ptx.inst))
