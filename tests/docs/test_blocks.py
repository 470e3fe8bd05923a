"""Every code block of the README and the docs is run, as what its language says.

`ptx`: parses and checks without errors, or, with `reports PTX0123` after the language, is reported with that code; a
first line `// name.ptx` also saves it for the blocks below. `python`: runs, in one namespace per page; a first line
`# name.py` saves it too, and `python program` is only saved. `cpp`: saved under the name in its first line
`// name.cpp`; it builds without a warning, together with the exported launcher that it includes, and runs on the
simulated driver without a finding. `cuda`: saved under the name in its first line. `console`: each `$ pyptx …` and
`$ nvcc …` prints exactly what stands below it, except for addresses and where `…` leaves something out;
`console in audit_driver` runs in that audit, which installs the packages. `sh`: each line is a make target that
exists. `text`: nothing to run.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.driver.build import find_compiler
from pyptx.driver.launcher import make_environment
from pyptx.driver.library import find_library
from pyptx.driver.settings import Settings
from pyptx.parser import parse
from pyptx.toolchain import find_tool
from tools import audit_driver
from tools.generate import GENERATED
from tools.page_blocks import FENCE, ROOT, Block, list_blocks, run_commands, save

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# The blocks of generated pages are rows of the table and examples of rules, which the tests of those layers run.
WRITTEN = [page for page in PAGES if page.relative_to(ROOT).as_posix() not in GENERATED]


def run_ptx(block: Block, folder: Path, names: dict[str, object]) -> None:
    save(block, folder)
    module, syntax = parse(block.text, recover=True)
    findings = list(syntax or check(module))
    expected = re.fullmatch(r"reports (PTX\d{4})", block.argument)
    if expected:
        assert expected[1] in {d.code for d in findings}
    else:
        assert [str(d.message) for d in findings if d.severity is Severity.ERROR] == []


def run_python(block: Block, folder: Path, names: dict[str, object]) -> None:
    is_saved = save(block, folder)
    if block.argument:
        assert (block.argument, is_saved) == ("program", True)
    else:
        exec(compile("\n" * block.line + block.text, "page", "exec"), names)


def run_cpp(block: Block, folder: Path, names: dict[str, object]) -> None:
    name = re.match(r"// (\w+)\.cpp\n", block.text)
    (header,) = re.findall(r'^#include "(\w+)\.h"$', block.text, re.MULTILINE)
    assert name
    save(block, folder)
    (launcher,) = folder.glob(f"*/{header}.c")
    include = Path(find_tool("ptxas").path).parents[1] / "include"
    options = ["-Wall", "-Wextra", "-Werror", f"-I{launcher.parent}", f"-I{include}", "-o", name[1]]
    sources = ["-x", "c++", f"{name[1]}.cpp", launcher, "-x", "none", find_library()]
    build = [*find_compiler(), *options, *map(str, sources)]
    process = subprocess.run(build, cwd=folder, capture_output=True, text=True, timeout=300)
    assert process.stderr == ""
    assert process.returncode == 0
    environment = make_environment(Settings(from_images=True))
    process = subprocess.run([f"./{name[1]}"], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def run_cuda(block: Block, folder: Path, names: dict[str, object]) -> None:
    assert save(block, folder)


def run_console(block: Block, folder: Path, names: dict[str, object]) -> None:
    assert block.argument in ("", audit_driver.IN_AUDIT)
    if "$ nvcc " in block.text and shutil.which("g++") is None:
        pytest.skip("nvcc needs a compiler for the host")
    if not block.argument:
        run_commands(block, folder)


def run_sh(block: Block, folder: Path, names: dict[str, object]) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in block.text.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "make"
        assert set(arguments) <= targets


def run_text(block: Block, folder: Path, names: dict[str, object]) -> None:
    assert block.argument == ""


RUN = {
    "ptx": run_ptx, "python": run_python, "cpp": run_cpp, "cuda": run_cuda, "console": run_console, "sh": run_sh,
    "text": run_text,
}  # fmt: skip


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    names: dict[str, object] = {"__name__": "page"}
    try:
        for block in list_blocks(page.read_text("utf-8")):
            RUN[block.language](block, tmp_path, names)
    finally:
        for path in tmp_path.glob("*.py"):
            sys.modules.pop(path.stem, None)


@pytest.mark.parametrize(
    "text",
    [
        "```ptx\n.version 8.0\n.target sm_90\n.address_size 64\nnonsense\n```",
        "```ptx reports PTX0001\n.version 8.0\n.target sm_90\n.address_size 64\n```",
        "```python\nassert 1 == 2\n```",
        "```console\n$ pyptx --version\npyptx 99.0\n```",
        "```console\n$ pyptx --version\npyptx …99.0\n```",
        "```console\n$ ls\n```",
        "```console elsewhere\n$ pyptx --version\n…\n```",
        "```python program\nprint()\n```",
        "```cuda\nint main() {}\n```",
        "```sh\nmake coffee\n```",
        "```sh\nrm file\n```",
        "```text with argument\n```",
        '```cpp\n#include "transpose.h"\nint main() { return 0; }\n```',
    ],
)
def test_a_wrong_block_fails(text: str, tmp_path: Path) -> None:
    (block,) = list_blocks(text)
    with pytest.raises(AssertionError):
        RUN[block.language](block, tmp_path, {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text("utf-8")))
    targets = [link for link in re.findall(r"\]\(([^)#\s]+)", prose) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name != "index.md"]
    assert [path.name for path in pages if f"]({path.name})" not in index] == []
