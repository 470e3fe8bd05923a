"""Transpile every file of the corpus with `--sugar`, run what comes out, and compare tokens and machine code.

python -m tools.sugar [--sass] [--write] [FILE …]
"""

from __future__ import annotations

import argparse
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path

from pyptx.codegen.plain import ptx_to_python
from pyptx.ir import LocDirective, Module, Statement, module_tokens, replace_statements
from pyptx.parser import parse

CORPUS = Path("tests/corpus")


def files() -> list[Path]:
    """Return the files of the corpus, and the long example."""
    return [*sorted(CORPUS.glob("*/*.ptx")), Path("examples/hopper_gemm.ptx")]


def stream(module: Module) -> list[str]:
    """Return the tokens that sugar keeps: all but those of `.loc`, which only a module made for a debugger keeps."""
    if any("debug" in name for name in module.target.targets):
        return module_tokens(module)

    def bare(statement: Statement) -> Statement | None:
        return None if isinstance(statement, LocDirective) else statement

    return module_tokens(replace_statements(module, bare))


def traced(python: str) -> str:
    """Return the PTX that a generated file makes."""
    made = types.ModuleType("generated")
    exec(compile(python, "<generated>", "exec"), made.__dict__)
    return made.__dict__["module"].ptx()


def difference(source: str, made: str) -> str | None:
    """Say where two texts differ; None where they have the same tokens."""
    before, after = stream(parse(source)), stream(parse(made))
    if before == after:
        return None
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    return f"token {at}: {' '.join(before[at - 8 : at + 6])!r} became {' '.join(after[at - 8 : at + 6])!r}"


def same_machine_code(source: str, made: str) -> str | None:
    """Say which functions got other machine code; None where all are alike."""
    from pyptx.toolchain import assemble, sass

    before, after = sass(assemble(source)), sass(assemble(made))
    return None if before == after else "other machine code"


def audited(paths: list[Path], with_sass: bool) -> Iterator[str]:
    """Yield a line for every file."""
    for path in paths:
        source = path.read_text(encoding="utf-8", errors="surrogateescape")
        count = sum(1 for token in stream(parse(source)) if token == ";") or 1
        start = time.perf_counter()
        python = ptx_to_python(source, sugar=True)
        spent = (time.perf_counter() - start) / count * 1e6
        made = traced(python)
        wrong = difference(source, made)
        if wrong is None and with_sass:
            wrong = same_machine_code(source, made)
        left = python.count("ptx.inst")
        lines = python.count("\n")
        yield f"{wrong or 'same':6} {lines:6} lines {left / count:6.1%} inst {spent:5.0f} us  {path}"


def main() -> int:
    """Print a line for every file and a summary."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sass", action="store_true")
    options.add_argument("files", nargs="*", type=Path)
    given = options.parse_args()
    bad = 0
    for line in audited(given.files or files(), given.sass):
        bad += not line.startswith("same")
        print(line, flush=True)
    print(f"{bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
