"""Counts what says how well the package is kept in order, before its last reorganization and now: its size, opcodes
that other modules than the table's compare, imports and circles in the simulator, long functions, names; and its speed,
as the ratios of the benchmarks' baselines, and the time of the last `make test` of this checkout.

python -m tools.audit_measures [--before COMMIT]
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from statistics import geometric_mean

from pyptx.isa import table

ROOT = Path(__file__).parent.parent
BEFORE = "c940b5e6d"
"""The commit before the reorganization."""
BASELINE = "benchmarks/baseline.json"
FIRST_BASELINE = "b5f5bb243"
"""The first commit whose ratios of benchmarks were measured on a clean commit, soon after BEFORE."""
RATIOS = "our time / the peer's, geometric mean"
TEST_RECORD = ROOT / "build" / "tests.xml"
"""What `make test` records."""
LONG = 60
_OPCODES = frozenset(("opcode", "full_opcode"))
_SPELLINGS = _OPCODES | {"modifiers", "words", "flags", "text"}
"""The names of variables and attributes that contain an opcode, modifiers, or both in a text."""
_TABLE = frozenset(table.list_opcodes())
_WORDS = frozenset(word for name in table.meanings() for word in name.split(".")[1:])
"""The modifiers that tell instructions of one opcode apart: `commit_group`, `wait`."""
_IRREGULAR = frozenset("""
    bound broken brought built chosen drawn found given held kept known left lost made met said seen sent shown spoken
    taken thrown told written
""".split())  # fmt: skip
"""Participles that do not end in -ed."""
_NO_PARTICIPLES = frozenset("embed exceed feed need proceed red seed shared speed succeed".split())
_VAGUE = frozenset("at found given it made mine one own some that thing things this those what which".split())
"""Names of locals that do not say what they hold."""
Sources = Mapping[str, ast.Module]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_sources(folder: Path) -> Sources:
    """Return the modules of a package by path."""
    return {
        path.relative_to(folder).as_posix(): ast.parse(path.read_text("utf-8")) for path in sorted(folder.rglob("*.py"))
    }


def count_lines(folder: Path) -> int:
    """Return the lines of a package."""
    return sum(path.read_text("utf-8").count("\n") for path in folder.rglob("*.py"))


def list_comparisons(sources: Sources) -> Iterator[str]:
    """Yield the path of a module outside of the table for each comparison of an opcode with a constant, and for each
    comparison of modifiers with one that tells instructions apart."""
    for path, module in sources.items():
        if not path.startswith("isa/"):
            for node in ast.walk(module):
                yield from [path] * _count_comparisons(node)


def _count_comparisons(node: ast.AST) -> int:
    match node:
        case ast.Match(subject, cases) if _is_opcode(subject):
            return len(cases)
        case ast.Match(subject, cases):
            return sum(_compares(subject, case.pattern) for case in cases)
        case ast.Compare(left, comparators=others):
            sides = [left, *others]
            return any(_compares(side, other) for side in sides for other in sides if side is not other)
        case ast.Subscript(ast.Name() as constant, key) | ast.Call(
            ast.Attribute(ast.Name() as constant, "get"), [key, *_]
        ):
            return _is_opcode(key) and _is_constant(constant)
        case ast.Call(ast.Attribute(text, "startswith" | "endswith"), [word]):
            return _compares(text, word)
        case _:
            return 0


def _compares(spelling: ast.AST, constant: ast.AST) -> bool:
    """Return whether a comparison of these tells instructions apart."""
    if _is_opcode(spelling) and _is_constant(constant):
        return True
    strings = [node.value for node in ast.walk(constant) if isinstance(node, ast.Constant)]
    return any(_find_identifier(node) in _SPELLINGS for node in ast.walk(spelling)) and any(map(_is_word, strings))


def _is_word(value: object) -> bool:
    """Return whether a constant is such a modifier, or the name of an instruction."""
    if not isinstance(value, str):
        return False
    opcode, dot, _ = value.partition(".")
    return value.removeprefix(".").partition("::")[0] in _WORDS or (dot != "" and opcode in _TABLE)


def _is_opcode(node: ast.AST) -> bool:
    return _find_identifier(node) in _OPCODES


def _find_identifier(node: ast.AST) -> str:
    """Return the name of a variable or attribute."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_constant(node: ast.AST) -> bool:
    """Return whether this is a string, several strings, or a constant of the module."""
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return any(map(_is_constant, node.elts))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and not node.value.startswith(".")
    return isinstance(node, ast.Name) and node.id.isupper()


def list_functions(sources: Sources) -> Iterator[Function]:
    """Yield every function and method."""
    for module in sources.values():
        yield from (node for node in ast.walk(module) if isinstance(node, Function))


def has_participle(name: str) -> bool:
    """Return whether a function's name begins with a participle, which says what something is, not what is done."""
    first = name.strip("_").partition("_")[0]
    return first in _IRREGULAR or (first.endswith("ed") and first not in _NO_PARTICIPLES)


def list_locals(function: Function) -> set[str]:
    """Return the names of the arguments and the variables of a function, without those of functions inside."""
    nodes, names = (
        list[ast.AST](function.body),
        {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)},
    )
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            nodes.extend(ast.iter_child_nodes(node))
    return names


def find_imports(sources: Sources) -> dict[str, set[str]]:
    """Return which modules of the simulator each of them imports, for types only included."""
    names = {
        "pyptx." + path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): module
        for path, module in sources.items()
        if path.startswith("sim/")
    }
    imports: dict[str, set[str]] = {}
    for name, module in names.items():
        targets = set[str]()
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                targets |= {item if item in names else node.module for item in _list_items(node)}
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
        imports[name] = (targets & names.keys()) - {name}
    return imports


def _list_items(node: ast.ImportFrom) -> list[str]:
    return [f"{node.module}.{alias.name}" for alias in node.names]


def count_in_circles(imports: Mapping[str, set[str]]) -> int:
    """Return how many modules can reach themselves along imports."""
    return sum(name in _reach(imports, name) for name in imports)


def _reach(imports: Mapping[str, set[str]], start: str) -> set[str]:
    reached, waiting = set[str](), [*imports[start]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(imports[name])
    return reached


def measure(folder: Path) -> dict[str, str]:
    """Return the counts for a package."""
    sources = read_sources(folder)
    functions, imports = list(list_functions(sources)), find_imports(sources)
    comparisons = list(list_comparisons(sources))
    named = [item.name for item in functions if not item.name.startswith("__") and not _is_property(item)]
    variables = [name.strip("_") for item in functions for name in list_locals(item)]
    lengths = [(item.end_lineno or item.lineno) - item.lineno + 1 for item in functions]
    return {
        "modules": f"{len(sources):,}",
        "lines": f"{count_lines(folder):,}",
        "opcodes compared outside of the table": f"{len(comparisons)} in {len(set(comparisons))} modules",
        "modules of the simulator": f"{len(imports)}",
        "imports between them": f"{sum(map(len, imports.values())):,}",
        "of these modules in circles": f"{count_in_circles(imports)}",
        f"functions of more than {LONG} lines": f"{sum(length > LONG for length in lengths)}",
        "functions named by a participle": f"{sum(map(has_participle, named)) / len(named):.1%}",
        "locals with a vague name": f"{sum(name in _VAGUE for name in variables) / len(variables):.1%}",
    }


def _is_property(node: Function) -> bool:
    return any("property" in ast.unparse(item) for item in node.decorator_list)


def measure_commit(commit: str) -> dict[str, str]:
    """Return the counts for the package at a commit."""
    git = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "pyptx"]
    archive = subprocess.run(git, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
        return measure(Path(folder) / "pyptx")


def average_ratios(then: Mapping[str, float], now: Mapping[str, float]) -> dict[str, tuple[int, float, float]]:
    """Return, for each benchmark, how many ratios both baselines have, and the geometric mean of each."""
    groups: dict[str, list[str]] = {}
    for name in now:
        if name in then:
            groups.setdefault(name.partition(":")[0], []).append(name)

    def average(ratios: Mapping[str, float], names: list[str]) -> float:
        return geometric_mean([ratios[name] for name in names])

    return {group: (len(names), average(then, names), average(now, names)) for group, names in groups.items()}


def read_baseline(text: str) -> tuple[str, dict[str, float]]:
    """Return the commit of a baseline and the median of each ratio."""
    baseline = json.loads(text)
    return baseline["commit"], {name: values["median"] for name, values in baseline["ratios"].items()}


def describe_test_run(record: Path) -> str:
    """Return the time of the last `make test`, which records it in JUnit's format."""
    if not record.exists():
        return "not recorded: run `make test`"
    suite = ET.parse(record).find("testsuite")
    assert suite is not None
    bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    day = suite.get("timestamp", "")[:10]
    return f"{int(suite.get('tests', 0)):,} tests in {float(suite.get('time', 0)):,.0f} s, {bad} failed ({day})"


def main(argv: list[str] | None = None) -> int:
    """Print the measures of both commits side by side."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--before", default=BEFORE, metavar="COMMIT")
    before = options.parse_args(argv).before
    then, now = measure_commit(before), measure(ROOT / "pyptx")
    print(f"{'':40}{before:>20}{'now':>20}")
    for name, value in now.items():
        print(f"{name:40}{then[name]:>20}{value:>20}")
    git = ["git", "-C", str(ROOT), "show", f"{FIRST_BASELINE}:{BASELINE}"]
    first = read_baseline(subprocess.run(git, capture_output=True, text=True, check=True).stdout)
    last = read_baseline((ROOT / BASELINE).read_text("utf-8"))
    print(f"\n{RATIOS:40}{first[0]:>20}{last[0]:>20}")
    for name, (count, before_mean, mean) in average_ratios(first[1], last[1]).items():
        print(f"{f'{name} ({count} ratios)':40}{before_mean:>20.3g}{mean:>20.3g}")
    print(f"\nlast `make test`: {describe_test_run(TEST_RECORD)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
