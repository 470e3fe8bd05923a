"""The C extension is built, and its source compiles without a warning."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyptx.driver.build import find_compiler
from pyptx.runtime import extension

INCLUDE = Path(sysconfig.get_path("include"))


@pytest.mark.skipif(not (INCLUDE / "Python.h").exists(), reason="without Python's headers, there is no extension")
def test_the_extension_is_built_and_compiles_without_a_warning(tmp_path: Path) -> None:
    source = Path(extension.__file__).parent / "csrc" / "launch.c"
    options = ["-c", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", str(INCLUDE), "-o", str(tmp_path / "launch.o")]
    subprocess.run([*find_compiler(), *options, str(source)], check=True)
    assert extension.load() is not None or shutil.which("cc") is None, "build it: python setup.py build_ext --inplace"


@pytest.mark.parametrize("module", [SimpleNamespace(), SimpleNamespace(VERSION=1)])
def test_an_extension_of_another_version_is_reported_and_not_used(
    module: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyptx.runtime._launch", module)
    with pytest.warns(RuntimeWarning, match=r"from another version of pyptx, so launches take longer; rebuild it"):
        assert extension.load.__wrapped__() is None
