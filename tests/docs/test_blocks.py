"""Every code block of the README and the docs is run, as what its language says.

`ptx`: parses and checks without errors, or, with `reports PTX0123` after the language, is reported with that code; a
first line `// name.ptx` also saves it for the blocks below. `python`: runs, in one namespace per page; a first line
`# name.py` saves it too. `cpp`: saved under the name in its first line `// name.cpp`; it builds without a warning,
together with the exported launcher that it includes, and runs on the simulated driver without a finding. `console`:
each `$ pyptx …` prints exactly what stands below it. `sh`: each line is a make target that exists. `text`: nothing to
run.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
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
from tools.generate import GENERATED

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# The blocks of generated pages are rows of the table and examples of rules, which the tests of those layers run.
WRITTEN = [page for page in PAGES if page.relative_to(ROOT).as_posix() not in GENERATED]
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its first line, its text and its line in the page."""

    language: str
    argument: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    page_blocks: list[Block] = []
    for match in FENCE.finditer(page):
        language, _, argument = match["info"].partition(" ")
        page_blocks.append(Block(language, argument, match["text"], page.count("\n", 0, match.start()) + 1))
    return page_blocks


def run_ptx(block: Block, folder: Path, names: dict[str, object]) -> None:
    name = re.match(r"// (\w+\.ptx)\n", block.text)
    if name:
        (folder / name[1]).write_text(block.text)
    module, syntax = parse(block.text, recover=True)
    findings = list(syntax or check(module))
    expected = re.fullmatch(r"reports (PTX\d{4})", block.argument)
    if expected:
        assert expected[1] in {d.code for d in findings}
    else:
        assert [str(d.message) for d in findings if d.severity is Severity.ERROR] == []


def run_python(block: Block, folder: Path, names: dict[str, object]) -> None:
    name = re.match(r"# (\w+\.py)\n", block.text)
    if name:
        (folder / name[1]).write_text(block.text)
    exec(compile("\n" * block.line + block.text, "page", "exec"), names)


def run_cpp(block: Block, folder: Path, names: dict[str, object]) -> None:
    name = re.match(r"// (\w+)\.cpp\n", block.text)
    (header,) = re.findall(r'^#include "(\w+)\.h"$', block.text, re.MULTILINE)
    assert name
    (folder / f"{name[1]}.cpp").write_text(block.text)
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


def run_console(block: Block, folder: Path, names: dict[str, object]) -> None:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "pyptx"
        process = subprocess.run(
            [sys.executable, "-m", "pyptx", *arguments],
            cwd=folder,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert process.stdout == expected


def run_sh(block: Block, folder: Path, names: dict[str, object]) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in block.text.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "make"
        assert set(arguments) <= targets


def run_text(block: Block, folder: Path, names: dict[str, object]) -> None:
    assert block.argument == ""


RUN = {"ptx": run_ptx, "python": run_python, "cpp": run_cpp, "console": run_console, "sh": run_sh, "text": run_text}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    names: dict[str, object] = {"__name__": "page"}
    try:
        for block in blocks(page.read_text("utf-8")):
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
        "```sh\nmake coffee\n```",
        "```sh\nrm file\n```",
        "```text with argument\n```",
        '```cpp\n#include "transpose.h"\nint main() { return 0; }\n```',
    ],
)
def test_a_wrong_block_fails(text: str, tmp_path: Path) -> None:
    (block,) = blocks(text)
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
