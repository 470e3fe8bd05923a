"""Transpiles every file of the corpus with `--sugar`, runs the result, and compares tokens and machine code.

python -m tools.audit_sugar [--tokens] [FILE ...]        --tokens: without ptxas
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyptx.codegen import ptx_to_python
from pyptx.diagnostics import PtxError
from pyptx.ir import LocDirective, Module, Statement, module_tokens, replace_statements
from pyptx.parser import parse
from pyptx.toolchain import assemble, sass

ROOT = Path(__file__).parent.parent
CORPUS, GOLDENS = ROOT / "tests" / "corpus", ROOT / "tests" / "examples" / "goldens"
TEN = (
    "examples/hopper_gemm.ptx", "tests/examples/goldens/hopper/05_cluster_gemm.ptx",
    "tests/corpus/cutlass/cute_hopper.sm_90a.ptx",
    "tests/corpus/cutlass/cutlass_gemm.sm_90a.hopper.ptx", "tests/corpus/triton/matmul_f16.sm_90a.ptx",
    "tests/corpus/triton/attention.sm_80.ptx", "tests/corpus/cutedsl/wgmma_bf16.sm_90a.ptx",
    "tests/corpus/pallas/mosaic_wgmma.sm_90a.ptx", "tests/corpus/nvrtc/reduce.sm_80.ptx",
    "tests/corpus/numba/matmul_tiled.sm_100.ptx",
)  # fmt: skip
"""Kernels of different producers."""
EXTERNAL = "Unresolved extern function"


class Result(NamedTuple):
    """The result for one file."""

    path: Path
    source: str
    python: str
    instructions: int
    microseconds: float
    wrong: str | None

    @property
    def ptx_lines(self) -> int:
        """Lines of the PTX, without blank lines and comments."""
        return sum(1 for line in self.source.split("\n") if line.strip() and not line.strip().startswith("//"))

    def count(self, pattern: str) -> int:
        """How often a pattern occurs in the Python."""
        return len(re.findall(pattern, self.python))

    @property
    def deepest(self) -> int:
        """The maximum nesting depth of blocks."""
        return max(len(line) - len(line.lstrip()) for line in self.python.split("\n") if "ptx." in line) // 4 - 1


def stream(module: Module) -> list[str]:
    """Return the tokens that sugar keeps: all except `.loc`, which only a module for debuggers keeps."""
    if any("debug" in name for name in module.target.targets):
        return module_tokens(module)

    def bare(statement: Statement) -> Statement | None:
        return None if isinstance(statement, LocDirective) else statement

    return module_tokens(replace_statements(module, bare))


def trace_file(python: str) -> str:
    """Return the PTX that a generated file prints."""
    namespace = types.ModuleType("generated")
    exec(compile(python, "<generated>", "exec"), namespace.__dict__)
    return namespace.__dict__["module"].ptx()


def difference(source: str, output: str) -> str | None:
    """Return where two texts differ, or None if they have the same tokens."""
    before, after = stream(parse(source)), stream(parse(output))
    if before == after:
        return None
    index = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    return (
        f"token {index}: {' '.join(before[index - 8 : index + 6])!r} became {' '.join(after[index - 8 : index + 6])!r}"
    )


def compare_machine_code(source: str, output: str) -> str | None:
    """Return how the machine code of two texts differs, or None."""
    return None if sass(assemble(source)) == sass(assemble(output)) else "different machine code"


def audit_file(path: Path, with_sass: bool) -> Result:
    """Transpile a file, run it, compare."""
    source = path.read_bytes().decode()
    count = max(sum(1 for token in stream(parse(source)) if token == ";"), 1)
    start = time.process_time()
    python = ptx_to_python(source, sugar=True)
    microseconds = (time.process_time() - start) / count * 1e6
    output = trace_file(python)
    wrong = difference(source, output)
    if wrong is None and with_sass:
        try:
            wrong = compare_machine_code(source, output)
        except PtxError as error:
            # A file that must be linked with another does not assemble alone.
            wrong = None if EXTERNAL in str(error) else str(error)
    return Result(path, source, python, count, microseconds, wrong)


def by_producer(results: list[Result]) -> Iterator[str]:
    """Yield the table of producers."""
    yield f"{'producer':10}{'files':>6}{'same':>6}{'PTX lines':>11}{'Python':>8}{'ptx.inst':>10}{'labels':>8}{'us':>6}"
    names = sorted({result.path.parent.name for result in results})
    for name in [*names, "all"]:
        subset = [r for r in results if name in (r.path.parent.name, "all")]
        total = sum(r.instructions for r in subset)
        lines, python = sum(r.ptx_lines for r in subset), sum(r.python.count("\n") for r in subset)
        left, labels = sum(r.count(r"ptx\.inst\b") for r in subset), sum(r.count(r"ptx\.label\(") for r in subset)
        cost = sum(r.microseconds * r.instructions for r in subset) / total
        equal_count = sum(r.wrong is None for r in subset)
        yield f"{name:10}{len(subset):6}{equal_count:6}{lines:11}{python:8}{left / total:10.1%}{labels:8}{cost:6.0f}"


def ten(results: list[Result]) -> Iterator[str]:
    """Yield the table of ten kernels."""
    yield f"{'file':58}{'PTX lines':>10}{'Python lines':>14}{'ptx.inst':>10}{'labels':>8}{'gotos':>7}{'deepest':>9}"
    for result in results:
        share = result.count(r"ptx\.inst\b") / result.instructions
        name, lines = str(result.path.relative_to(ROOT)), result.python.count("\n")
        yield (f"{name:58}{result.ptx_lines:10}{lines:14}{share:10.1%}"
               f"{result.count(r'ptx.label[(]'):8}{result.count(r'ptx.bra[(]'):7}{result.deepest:9}")  # fmt: skip


def structure(results: list[Result]) -> Iterator[str]:
    """Yield the control flow of the example kernels, by their labels, and how much of it was recovered."""
    yield f"{'kernel':16}{'loops':>12}{'ifs':>10}{'waits':>10}{'wide operands as arrays':>26}"
    for result in results:
        loops = len(re.findall(r"^\s*\$(?:range|while|kloop)\w*(?<!_end)(?<!_next):", result.source, re.M))
        ifs = len(re.findall(r"^\s*\$if\d+_else\d*:", result.source, re.M))
        waits = len(re.findall(r"^\s*\$mbarrier_wait\w*(?<!_skip):", result.source, re.M))
        wide = len(re.findall(r"\{[^{}]*(?:,[^{},]*){15,}\}", result.source))
        lists = result.count(r"\[(?:[^\[\]]*(?:\[\w+\])?,){15,}")
        counts = result.count(r"ptx\.loop\("), result.count(r"ptx\.if_\("), result.count(r"ptx\.mbarrier\.wait\(")
        pairs = [f"{a} of {b}" for a, b in zip(counts, (loops, ifs, waits), strict=True)]
        yield f"{result.path.stem:16}{pairs[0]:>12}{pairs[1]:>10}{pairs[2]:>10}{f'{wide - lists} of {wide}':>26}"


def main() -> int:
    """Print the tables; exit 1 if anything differs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tokens", action="store_true")
    options.add_argument("files", nargs="*", type=Path)
    arguments = options.parse_args()
    ptx_to_python((GOLDENS / "any" / "01_vector_add.ptx").read_text(), sugar=True)
    results = [audit_file(path, not arguments.tokens) for path in arguments.files or sorted(CORPUS.glob("*/*.ptx"))]
    print("\n".join(by_producer(results)))
    examples = (
        [] if arguments.files else [audit_file(path, not arguments.tokens) for path in sorted(GOLDENS.glob("*/*.ptx"))]
    )
    if examples:
        print("\n" + "\n".join(ten([audit_file(ROOT / name, not arguments.tokens) for name in TEN])))
        print("\n" + "\n".join(structure(examples)))
    wrong = [result for result in (*results, *examples) if result.wrong is not None]
    print("\n".join(["", *(f"{result.path}: {result.wrong}" for result in wrong), f"{len(wrong)} differ"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
