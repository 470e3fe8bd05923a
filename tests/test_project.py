"""Repeated parts of pyproject.toml are equal, and everything it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pyptx

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def test_the_extra_all_is_the_union_of_the_others() -> None:
    union = {line for name in ("tools", "cuda", "torch", "jax") for line in EXTRAS[name]}
    assert set(EXTRAS["all"]) == union


def _names(lines: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", line)[0] for line in lines}


def test_the_extra_test_has_the_tools() -> None:
    assert _names(EXTRAS["tools"]) <= _names(EXTRAS["test"])


def test_the_extra_test_pins_whatever_the_type_check_reads() -> None:
    """Stubs differ between versions, and an index serves other versions to other Pythons."""
    read = _names(PROJECT["dependencies"] + EXTRAS["torch"] + EXTRAS["jax"]) | {"cuda-bindings", "pytest", "pygments"}
    pins = _names([line for line in EXTRAS["test"] if "==" in line])
    assert read <= pins


def test_an_editable_install_is_a_path_that_type_checkers_follow() -> None:
    """Unless the root has its place by name, setuptools writes an import hook instead, which type checkers cannot
    follow."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert settings["package-dir"] == {"": "."}


def test_no_requirement_names_this_package() -> None:
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
    assert [line for line in lines if line.startswith("pyptx")] == []


def test_the_installed_version_is_the_one_in_the_package() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert pyptx.__version__.startswith("0.1.")


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "pyptx" / "py.typed").is_file()


LAZY = ("pyptx", *(f"pyptx.{name}" for name in ("check", "codegen", "emitter", "ir", "parser", "sim", "toolchain")))


@pytest.mark.parametrize("name", LAZY)
def test_a_package_that_imports_on_demand_has_its_names(name: str) -> None:
    code = """
import importlib, sys
module = importlib.import_module(sys.argv[1])
for name in module.__all__:
    assert name in dir(module), name
    first = getattr(module, name)
    assert first is not None and first is getattr(module, name), name
try:
    module.nosuch
except AttributeError as error:
    assert str(error) == f"module {sys.argv[1]!r} has no attribute 'nosuch'", error
else:
    raise AssertionError("nosuch is there")
"""
    subprocess.run([sys.executable, "-c", code, name], check=True)
