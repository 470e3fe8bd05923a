"""The fenced blocks of pages: where they are, how they become files, and what commands shown in them must print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyptx.driver.library import find_library
from pyptx.driver.sources import name_runtime
from pyptx.toolchain import find_tool

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
OMISSION = "…"
_ADDRESS = re.compile(r"\b0x[0-9a-f]{9,}\b")
_SECONDS = 300


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its first line, its text and its line in the page."""

    language: str
    argument: str
    text: str
    line: int


def list_blocks(page: str) -> list[Block]:
    """Return the blocks of a page."""
    page_blocks: list[Block] = []
    for match in FENCE.finditer(page):
        language, _, argument = match["info"].partition(" ")
        page_blocks.append(Block(language, argument, match["text"], page.count("\n", 0, match.start()) + 1))
    return page_blocks


def save(block: Block, folder: Path) -> bool:
    """Write a block to the file that its first line names, and return whether it names one."""
    name = re.match(r"(?:#|//) (\w+\.\w+)\n", block.text)
    if name:
        (folder / name[1]).write_text(block.text, "utf-8")
    return name is not None


def run_commands(
    block: Block, folder: Path, python: str = sys.executable, environment: Mapping[str, str] | None = None
) -> None:
    """Run each `$ pyptx …` and `$ nvcc …` of a block. Raise AssertionError if one prints something else than what
    stands below it, where `…` stands for any text. Addresses are not compared, and the folder is left out."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        program, *arguments = shlex.split(command)
        runners = {"pyptx": [python, "-m", "pyptx"], "nvcc": [str(Path(find_tool("ptxas").path).parent / "nvcc")]}
        assert program in runners
        process = subprocess.run(
            [*runners[program], *arguments],
            cwd=folder,
            env={
                "PYTHONPATH": str(ROOT),
                "PATH": os.defpath,
                **(environment or {}),
                **_list_link_options(folder, program),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
        )
        output = _ADDRESS.sub("0x0", process.stdout.replace(f"{folder}/", ""))
        pattern = ".*".join(map(re.escape, _ADDRESS.sub("0x0", expected).split(OMISSION)))
        assert re.fullmatch(pattern, output, re.DOTALL), f"`{command}` prints:\n{output}"


def _list_link_options(folder: Path, program: str) -> dict[str, str]:
    """Return variables that let nvcc find our runtime library: the test environment has none of NVIDIA's."""
    if program != "nvcc":
        return {}
    libraries = find_library().parent
    (link := folder / "libcudart.so").unlink(missing_ok=True)
    link.symlink_to(libraries / name_runtime(13))
    return {"NVCC_APPEND_FLAGS": f"-L{folder} -Xlinker -rpath-link={libraries}"}
