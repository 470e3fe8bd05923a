"""Tidy's rules, each with a planted violation and a look-alike that must pass."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import tidy

PLANTED = [
    ("pyptx/a.py", "try:\n    f()\nexcept Exception:\n    pass\n", 3, "catches everything"),
    ("pyptx/a.py", "try:\n    f()\nexcept (OSError, BaseException) as e:\n    pass\n", 3, "catches everything"),
    ("pyptx/a.py", "try:\n    f()\nexcept:\n    pass\n", 3, "catches everything"),
    ("docs/a.md", "one\ntwo TODO three\n", 2, "do it"),
    ("README.md", "pip install pyptx\n", 1, "installs by name"),
    ("README.md", "python3 -m pip install --upgrade 'pyptx[tools]'\n", 1, "installs by name"),
    ("README.md", "uv add pyptx\n", 1, "installs by name"),
    ("pyptx/a.py", 'help = "install pyptx[tools]"\n', 1, "requires by name"),
    ("pyproject.toml", 'all = ["pyptx == 0.1"]\n', 1, "requires by name"),
    ("tools/build.sh", "cp /work/venv/x .\n", 1, "path on somebody's machine"),
    ("docs/a.md", "see ../shared/DESIGN.md\n", 1, "path on somebody's machine"),
    ("pyptx/a.py", "node.raw_source = text\n", 1, "saved copy of source"),
    ("pyptx/a.py", "raw_line: str\n", 1, "saved copy of source"),
    ("pyptx/utils.py", "", 1, "meaningless"),
    ("pyptx/ir/nodes_v2.py", "", 1, "meaningless"),
    ("pyptx/new_parser.py", "", 1, "meaningless"),
    ("pyptx/helpers/a.py", "", 1, "meaningless"),
    ("pyptx/a.py.orig", "", 1, "meaningless"),
]


@pytest.mark.parametrize("path", ["graph", "\x01", "tests/a b.py", "tests/\udcff", "notes.md"])
def test_a_file_that_does_not_belong_is_found(path: str) -> None:
    found = [text for text in tidy.violations({path: ""}) if "belong" in text]
    assert found == [f"{path!a}:1: a file that does not belong here"]


def test_files_with_strange_names_are_listed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in ("\x01", "a b", "\udcff"):
        (tmp_path / name).touch()
    assert tidy.list_files(tmp_path) == ["\x01", "a b", "\udcff"]


@pytest.mark.parametrize(("path", "text", "line", "why"), PLANTED)
def test_a_planted_violation_is_found_where_it_is(path: str, text: str, line: int, why: str) -> None:
    violations = [v for v in tidy.violations({path: text, "Makefile": "pyptx/a.py"}) if why in v]
    assert len(violations) == 1
    assert violations[0].startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    f()\nexcept OSError:\n    pass\n",
        "x = '.common .global workgroup framework/work'\n",
        "# pip install -e '.[tools]'; then run pyptx check\n",
        "# pip install git+https://example.org/x/pyptx.git\n",
    ],
)
def test_a_look_alike_passes(text: str) -> None:
    assert list(tidy.violations({"pyptx/a.py": text, "Makefile": "pyptx/a.py"})) == []


def test_a_module_that_hides_a_public_name_is_found() -> None:
    files = {
        "pyptx/__init__.py": "from pyptx.box import kernel\n__all__ = ['kernel', 'resources']\n",
        "pyptx/kernel.py": "",
        "pyptx/ir/__init__.py": "if TYPE_CHECKING:\n    from pyptx.ir.walk import walk\n",
        "pyptx/ir/walk.py": "",
        "pyptx/box.py": "kernel = 1\n",
        "pyptx/resources/__init__.py": "",
        "README.md": "pyptx.kernel pyptx.box pyptx.resources pyptx.ir",
    }
    violations = list(tidy.violations(files))
    assert [v.split("'")[1] for v in violations] == ["kernel", "resources", "walk"]


def test_importing_a_submodule_itself_hides_nothing() -> None:
    files = {"pyptx/__init__.py": "from pyptx import box\n", "pyptx/box.py": ""}
    assert list(tidy.violations(files)) == []


def test_a_file_that_nobody_uses_is_found() -> None:
    files = {"pyptx/lonely.py": "", "pyptx/used.py": "", "tests/test_used.py": "from pyptx.used import x\n"}
    assert list(tidy.violations(files)) == ["pyptx/lonely.py:1: nothing imports or names this file"]


def test_relative_imports_and_mentions_count_as_use() -> None:
    files = {
        "pyptx/a/__init__.py": "from .b import x\nfrom . import c\n",
        "pyptx/a/b.py": "",
        "pyptx/a/c.py": "",
        "tools/d.py": "",
        "Makefile": "python tools/d.py",
        "pyptx/cli/e.py": "",
        "pyptx/cli/__init__.py": "import_module(f'pyptx.cli.{name}')\n",
    }
    assert list(tidy.violations(files)) == []


def test_long_files_and_functions_are_printed_unless_they_say_why() -> None:
    body = "def f() -> None:\n" + "    x = 1\n" * 70
    long_function = "def g() -> None:\n    # Long: a table of cases.\n" + "    x = 1\n" * 70
    files = {
        "pyptx/a.py": body + long_function,
        "pyptx/b.py": "x = 1\n" * 601,
        "pyptx/isa/table/c.py": "x = 1\n" * 201,
        "pyptx/d.py": '"""Long: generated tables."""\n' + "x = 1\n" * 700,
        "pyptx/e.pyi": "x = 1\n" * 700,
    }
    outliers = list(tidy.outliers(files))
    assert [line.split()[2].split(":")[0] for line in outliers] == ["pyptx/a.py", "pyptx/b.py", "pyptx/isa/table/c.py"]
    assert "f has 71 lines" in outliers[0]


def test_the_exit_status_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("fine\n")
    assert tidy.main(["tidy", str(tmp_path)]) == 0
    (tmp_path / "README.md").write_text("pip install pyptx\n")
    assert tidy.main(["tidy", str(tmp_path)]) == 1
    assert "README.md:1: installs by name" in capsys.readouterr().err
