"""Copies of the tree, each running tests in one process at a time: instrumented, or with one file changed.

Compiled files are validated by the hash of their source, so that two changes within a second are both seen.
"""

from __future__ import annotations

import ast
import compileall
import contextlib
import importlib.util
import marshal
import os
import py_compile
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.tidy import list_files

PLUGIN = Path(__file__).with_name("plugin.py")
HUNG = 124
HITS = """\
import mmap, os, pathlib
with pathlib.Path(__file__).with_suffix(".bin").open("r+b") as _file:
    memory = mmap.mmap(_file.fileno(), 0)
hits = memory
if "MUTATION_COMPILED" in os.environ:
    import torch

    @torch._dynamo.assume_constant_result
    def _record(place):
        memory[place] = 1

    class _Hits:
        def __setitem__(self, place, value):
            _record(place)

    hits = _Hits()
"""
"""`torch.compile` refuses functions that write to mapped memory. With MUTATION_COMPILED set, it calls `_record` while
it compiles; each statement then takes longer."""
_HEADER = "from mutation_hits import hits as __hit__"


@dataclass(frozen=True)
class Point:
    """A statement: its file, function and first line, unaffected by edits elsewhere."""

    path: str
    function: str
    text: str


@dataclass(frozen=True)
class Tree:
    """A copy of a project's files in its own directory."""

    folder: Path
    package: str

    @property
    def root(self) -> Path:
        return self.folder / "tree"

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], seconds: float) -> int:
        """Run pytest and return its exit status, or HUNG on a timeout; kill remaining processes."""
        # To rewrite assertions, pytest would compile a package that has a plugin, and ignore the instrumented files.
        options = ["-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "mutation_plugin"]
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        variables = {**os.environ, **environment, "PYTHONPATH": f"{self.root}{os.pathsep}{self.folder}"}
        variables["TMPDIR"] = str(self.folder / "tmp")
        with (self.folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.root, env=variables, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                return process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                return HUNG
            finally:
                _kill_group(process)
                shutil.rmtree(self.folder / "tmp", ignore_errors=True)
                (self.folder / "tmp").mkdir()


def copy_tree(root: Path, folder: Path, package: str) -> Tree:
    """Copy the files that git tracks or would track into `folder`, with the package's built extensions, and compile
    them."""
    extensions = [path.relative_to(root) for path in (root / package).rglob("*.so")]
    for name in (*list_files(root), *extensions):
        target = folder / "tree" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target)
    shutil.copy2(PLUGIN, folder / "mutation_plugin.py")
    (folder / "tmp").mkdir()
    tree = Tree(folder, package)
    compile_plain(tree)
    return tree


def compile_plain(tree: Tree) -> None:
    """Compile the unmodified package."""
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(tree.root / tree.package, quiet=1, force=True, invalidation_mode=mode)


def compile_counting(tree: Tree) -> list[Point]:
    """Compile the package so that each executed statement sets its byte of the hits; return the statements."""
    points: list[Point] = []
    for path in sorted((tree.root / tree.package).rglob("*.py")):
        source = path.read_bytes()
        name = path.relative_to(tree.root).as_posix()
        code = compile(_counting(name, source.decode(), points), str(path), "exec", dont_inherit=True)
        head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
        bytecode_path = Path(importlib.util.cache_from_source(str(path)))
        bytecode_path.parent.mkdir(exist_ok=True)
        bytecode_path.write_bytes(head + marshal.dumps(code))
    (tree.root / "mutation_hits.py").write_text(HITS, "utf-8")
    (tree.root / "mutation_hits.bin").write_bytes(bytes(len(points)))
    return points


def _counting(path: str, source: str, points: list[Point]) -> ast.Module:
    tree = ast.parse(source)
    lines = source.splitlines()
    for owner, body in list(_bodies(tree)):
        statements: list[ast.stmt] = []
        for place, node in enumerate(body):
            if not _silent(node, place):
                hit = ast.parse(f"__hit__[{len(points)}] = 1").body[0]
                for part in ast.walk(hit):
                    ast.copy_location(part, node)
                statements.append(hit)
                points.append(Point(path, owner, lines[node.lineno - 1].strip()))
            statements.append(node)
        body[:] = statements
    start = sum(_silent(node, place) for place, node in enumerate(tree.body[:2]))
    tree.body.insert(start, ast.parse(_HEADER).body[0])
    return tree


def _silent(node: ast.stmt, place: int) -> bool:
    docstring = place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _bodies(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield each list of statements with the name of its function or class."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        owner, node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            owner = f"{owner}.{node.name}".lstrip(".")
        for name in ("body", "orelse", "finalbody"):
            body: list[ast.stmt] = getattr(node, name, [])
            if body:
                yield owner, body
        parts = (ast.stmt, ast.excepthandler, ast.match_case)
        waiting += [(owner, child) for child in ast.iter_child_nodes(node) if isinstance(child, parts)]


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
