"""Finding NVIDIA's programs. The stand-ins are real executable files, found through the real search order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyptx.diagnostics import PtxError
from pyptx.isa.targets import ASSEMBLED
from pyptx.toolchain import ToolMissing, find_tool, supported_targets
from tests.toolchain.modules import SMALL


def _stand_in(folder: Path, name: str, version: str = "1.2.3") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "release {version[:3]}, V{version}"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide site-packages, as on a machine that has only a CUDA toolkit."""
    monkeypatch.setattr(sys, "path", [p for p in sys.path if "site-packages" not in p])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)


@pytest.mark.parametrize("name", ["ptxas", "fatbinary", "nvdisasm", "cuobjdump"])
def test_the_wheels_tools_are_found_with_their_versions(name: str) -> None:
    tool = find_tool(name)
    assert tool.source == "wheel"
    assert tool.version.split(".")[0].isdigit()
    assert int(tool.version.split(".")[0]) >= 13


def test_a_wheel_wins_over_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _stand_in(tmp_path, "ptxas")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tool("ptxas").source == "wheel"


@pytest.mark.usefixtures("no_wheels")
def test_path_comes_before_cuda_home_and_that_before_cuda_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for source in ("CUDA_PATH", "CUDA_HOME", "PATH"):
        folder = tmp_path / source
        path = _stand_in(folder if source == "PATH" else folder / "bin", "ptxas", "9.8.7")
        monkeypatch.setenv(source, str(folder))
        tool = find_tool("ptxas")
        assert (tool.source, tool.path, tool.version) == (source, str(path), "9.8.7")


@pytest.mark.usefixtures("no_wheels")
def test_a_file_that_cannot_run_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _stand_in(tmp_path / "old" / "bin", "ptxas").chmod(0o644)
    good = _stand_in(tmp_path / "new" / "bin", "ptxas")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "new"))
    assert find_tool("ptxas").path == str(good)


@pytest.mark.usefixtures("no_wheels")
@pytest.mark.parametrize(("name", "old"), [
    ("ptxas", "cuda_nvcc"), ("fatbinary", "cuda_nvcc"), ("nvdisasm", "cuda_nvdisasm"),
    ("cuobjdump", "cuda_cuobjdump"),
])  # fmt: skip
def test_of_several_wheels_that_of_the_newest_toolkit_wins(
    name: str, old: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for folder in (old, "cu9", "cu13", "cu14", "culib"):
        path = _stand_in(tmp_path / "nvidia" / folder / "bin", name)
        newest = tmp_path / "nvidia" / ("cu14" if folder == "culib" else folder)
        assert (find_tool(name).path, find_tool(name).source) == (str(newest / "bin" / name), "wheel")
        assert path.exists()


def test_an_upgraded_tool_states_its_new_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _stand_in(tmp_path, "some-tool", "1.0.0")
    assert find_tool("some-tool").version == "1.0.0"
    (tmp_path / "some-tool").unlink()
    _stand_in(tmp_path, "some-tool", "2.0.0")
    assert find_tool("some-tool").version == "2.0.0"


@pytest.mark.usefixtures("no_wheels")
@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("ptxas", "nvidia-cuda-nvcc"),
        ("fatbinary", "nvidia-cuda-nvcc"),
        ("nvdisasm", "nvidia-cuda-nvdisasm"),
        ("cuobjdump", "nvidia-cuda-cuobjdump"),
    ],
)
def test_a_missing_tool_names_the_package_and_the_extra(name: str, package: str) -> None:
    with pytest.raises(ToolMissing) as excinfo:
        find_tool(name)
    text = str(excinfo.value)
    assert package in text
    assert "pip install '.[tools]'" in text
    assert "install pyptx" not in text


@pytest.mark.parametrize("name", ["../ptxas", "a b", "", "ptxas\0"])
def test_a_name_that_is_no_program_is_missing(name: str) -> None:
    with pytest.raises(ToolMissing):
        find_tool(name)


def test_without_ptxas_nvjitlink_assembles(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os\nfrom pyptx.toolchain import assemble\n"
        f"os.access = lambda *_: False\nprint(assemble({SMALL!r}).producer)\n"
    )
    monkeypatch.setenv("PATH", "/nonexistent")
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.startswith("nvJitLink 13.")


def test_a_missing_nvjitlink_names_its_packages() -> None:
    code = (
        "import sys\n"
        "sys.modules['cuda'] = None\n"
        "from pyptx.toolchain import ToolMissing, assemble_with_nvjitlink\n"
        "try:\n    assemble_with_nvjitlink('.version 8.0')\n"
        "except ToolMissing as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "nvidia-nvjitlink cuda-bindings" in out
    assert "pip install '.[tools]'" in out


def test_the_isa_table_knows_exactly_the_targets_of_the_newest_ptxas() -> None:
    assert supported_targets() == ASSEMBLED


def test_importing_the_toolchain_loads_nothing_else() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nimport pyptx.toolchain\n"
        "loaded = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(loaded - set(sys.stdlib_module_names)), 'subprocess' in sys.modules)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split("\n")[0] == "['pyptx'] False"


def test_every_public_name_loads() -> None:
    import pyptx.toolchain as toolchain

    for name in toolchain.__all__:
        assert getattr(toolchain, name) is not None
    assert issubclass(toolchain.ToolMissing, PtxError)
    with pytest.raises(AttributeError):
        _ = toolchain.no_such_name  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
