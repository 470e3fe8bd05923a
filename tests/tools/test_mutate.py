"""The mutation tester on a small package: the changes it makes, their outcomes, and what it prints."""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import mutate
from tools.mutate import (
    ROOT,
    Limits,
    confirm,
    draw,
    exclude_failures,
    judge_all,
    judge_survivors,
    main,
    read_equivalents,
)
from tools.mutation import coverage
from tools.mutation.coverage import FileRecord
from tools.mutation.mutants import Mutant, mutants
from tools.mutation.trees import Point, Tree, copy_tree
from tools.mutation.verdicts import Verdict

SUMS = '''\
"""Sums."""


def total(values: list[int]) -> int:
    """Return the sum."""
    amount, place = 0, 0
    while place < len(values):
        amount += values[place]
        place += 1
    return amount


def larger(a: int, b: int) -> int:
    return a if a > b else b


def spoken() -> int:
    return 5


def unused() -> int:
    return 70
'''
TESTS = """\
import subprocess
import sys

import pytest

from pkg.sums import larger, total


@pytest.mark.parametrize("values", [[], [1, 2]])
def test_total(values):
    assert total(values) == sum(values)


def test_larger():
    assert larger(1, 2) == larger(2, 1)


def test_a_process():
    text = "import pkg.sums; print(pkg.sums.spoken())"
    assert subprocess.check_output([sys.executable, "-c", text]) == b"5\\n"
"""
FAILURE = "from pkg.sums import larger\ndef test_that_fails():\n    assert larger(1, 2) == 3\n"


JUDGED = {
    "amount -= values[place]", "return 6", "place += 0", "return a if a >= b else b", "return 71",
}  # fmt: skip


def changes(source: str) -> set[tuple[str, str]]:
    """Return the lines of a file that mutants change, with their replacements."""
    return {(mutant.before, mutant.after) for mutant in mutants("pkg/a.py", source)}


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = (a) is not (b)", {"x = (a) is (b)"}),
        ("x = a < b == c", {"x = a <= b == c", "x = a < b != c"}),
        ("x = a + b", {"x = a - b"}),
        ("x = 'a' + b", set[str]()),
        ("x = isinstance(a, int | str)", set[str]()),
        ("x = a and b or c", {"x = a or b or c", "x = a and b and c"}),
        ("x = not (a)", {"x = (a)"}),
        ("x = 1", {"x = 2", "x = 0"}),
        ("x = 0.5", {"x = 1.5", "x = (-0.5)"}),
        ("x = True", {"x = False"}),
        ("x = a if b else c", {"x = a if True else c", "x = a if False else c"}),
        ("x = a[b:c]", {"x = a[(b) + 1:c]", "x = a[b:(c) - 1]"}),
        ("x = a in ('r', 's')", {"x = a not in ('r', 's')", "x = a in ('s')", "x = a in ('r', )"}),
        ("x = {'r', 's'}", {"x = {'s'}", "x = {'r', }"}),
        ("x = {'r': a, 's': b}", {"x = {'s': b}", "x = {'r': a, }"}),
        ("x = 'r s'.split()", {"x = 's'.split()", "x = 'r '.split()"}),
        ("f(a)", {"pass"}),
        ("a.b = c", {"pass"}),
        ("a += b", {"pass", "a -= b"}),
        ("if a: b = c", {"if True: b = c", "if False: b = c"}),
        ("x = 'ü' if a else b", {"x = 'ü' if True else b", "x = 'ü' if False else b"}),
        ("def f(): return a", {"def f(): return None"}),
        ("def f(): return False", {"def f(): return True"}),
    ],
)  # fmt: skip
def test_a_line_has_these_mutants(line: str, after: set[str]) -> None:
    assert changes(line) == {(line, text) for text in after}


@pytest.mark.parametrize(
    "source",
    [
        "x: Literal[1, 2]", "x = Literal[1]", "def f(a: Literal[1]) -> Literal[2]: ...", "'''1 < 2'''",
        "if TYPE_CHECKING:\n    x = 1", "if __name__ == '__main__':\n    main()", "__all__ = ['a', 'b']",
        "@dataclass(frozen=True)\nclass A: ...", "x = f'{a + 1}'", "x = zip(a, b, strict=True)", "x = cast('int', 1)",
        "x = a.reshape(-1)",
        "def f() -> NoReturn:\n    '''1.'''\n    raise Error('1')", "def f(): return None",
        "@overload\ndef f(a: int = 1) -> int: ...",
        "class A:\n    @typing.overload\n    def f(self, a: int = 1) -> int: ...",
    ],
)  # fmt: skip
def test_what_no_run_shows_is_not_changed(source: str) -> None:
    assert changes(source) == set()


def test_mutants_compile() -> None:
    path = Path("tools/mutation/mutants.py")
    source = path.read_text("utf-8")
    candidates = list(mutants(path.as_posix(), source))
    assert len(candidates) > 100
    for mutant in candidates:
        compile(mutant.apply(source), mutant.path, "exec")


def test_a_seed_draws_lines_evenly() -> None:
    candidates = list(mutants("pkg/a.py", "x = [1, 2, 3, 4, 5, 6, 7, 8]\ny = True\n"))
    assert draw(candidates, 2, 5) == draw(candidates, 2, 5)
    assert {mutant.line for mutant in draw(candidates, 2, 5)} == {1, 2}
    lines = [draw(candidates, 1, seed)[0].line for seed in range(200)]
    assert 60 < lines.count(1) < 140


@pytest.fixture(scope="module")
def measurement(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Tree], coverage.Coverage]:
    root = tmp_path_factory.mktemp("project")
    write(root, SUMS, {"tests/test_sums.py": TESTS, "tests/test_failure.py": FAILURE})
    trees = [copy_tree(root, tmp_path_factory.mktemp("work") / str(job), "pkg") for job in range(2)]
    test_map = coverage.TestMap()
    coverage.measure(test_map, coverage.stale(test_map, root), trees, root / "map.pickle")
    stored_map = coverage.load(root / "map.pickle")
    assert coverage.stale(stored_map, root) == ["tests/test_failure.py"]
    test_coverage = coverage.Coverage(stored_map)
    exclude_failures(trees[0], test_coverage)
    return trees, test_coverage


@pytest.fixture(scope="module")
def verdicts(measurement: tuple[list[Tree], coverage.Coverage]) -> Iterator[dict[str, tuple[str, str]]]:
    trees, coverage_map = measurement
    sample = [mutant for mutant in mutants("pkg/sums.py", SUMS) if mutant.after in JUDGED]
    judgments = judge_all(sample, trees, coverage_map, Limits(patience=2))
    yield {verdict.mutant.after: (verdict.outcome, verdict.detail) for verdict in judgments}
    assert all((tree.root / "pkg/sums.py").read_text("utf-8") == SUMS for tree in trees)


def test_survivors_get_a_second_round(
    measurement: tuple[list[Tree], coverage.Coverage], monkeypatch: pytest.MonkeyPatch
) -> None:
    trees, coverage_map = measurement
    monkeypatch.setattr(mutate, "FIRST_SECONDS", 0.0)
    limits = Limits(budget=0, survivor_budget=100, patience=2)
    changes = ("amount -= values[place]", "return a if a >= b else b", "return 71")
    sample = [mutant for mutant in mutants("pkg/sums.py", SUMS) if mutant.after in changes]
    first = judge_all(sample, trees, coverage_map, limits)
    assert sorted(verdict.outcome for verdict in first) == ["never run", "survived", "survived"]
    final = judge_survivors(first, trees, coverage_map, limits)
    assert {verdict.mutant.after: verdict.outcome for verdict in final} == {
        "amount -= values[place]": "killed", "return a if a >= b else b": "survived", "return 71": "never run",
    }  # fmt: skip
    assert judge_survivors(first, trees, coverage_map, Limits(budget=0)) == first


def write(root: Path, source: str, files: dict[str, str]) -> None:
    """Write a project: a package of one module, and files of other names."""
    for name, text in {"pkg/__init__.py": "", "pkg/sums.py": source, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")


def test_a_change_that_a_test_notices_is_killed_by_it(verdicts: dict[str, tuple[str, str]]) -> None:
    assert verdicts["amount -= values[place]"] == ("killed", "tests/test_sums.py::test_total[values1]")


def test_a_change_that_only_a_process_shows_is_killed(verdicts: dict[str, tuple[str, str]]) -> None:
    assert verdicts["return 6"] == ("killed", "tests/test_sums.py::test_a_process")


def test_a_loop_without_end_hangs(verdicts: dict[str, tuple[str, str]]) -> None:
    assert verdicts["place += 0"][0] == "hung"


def test_a_change_that_no_test_notices_survives(verdicts: dict[str, tuple[str, str]]) -> None:
    assert verdicts["return a if a >= b else b"][0] == "survived"


def test_what_no_test_runs_is_told_apart(verdicts: dict[str, tuple[str, str]]) -> None:
    assert verdicts["return 71"] == ("never run", "")


@pytest.mark.parametrize(
    ("path", "function", "text", "tests"),
    [
        ("pkg/sums.py", "larger", "return a if a > b else b", ["test_larger"]),
        ("pkg/sums.py", "larger", "return b if a < b else a", ["test_larger"]),
        ("pkg/sums.py", "largest", "return a if a > b else b", ["test_larger", "test_a_process"]),
        ("pkg/moved.py", "larger", "return a if a > b else b", ["test_larger"]),
        ("pkg/new.py", "largest", "return a if a > b else b", ["test_larger", "test_a_process"]),
        ("pkg/sums.py", "unused", "return 70", []),
        ("other/sums.py", "larger", "return a if a > b else b", []),
    ],
    ids=[
        "a statement",
        "a new statement",
        "a new function",
        "a moved function",
        "a new module",
        "never run",
        "a folder",
    ],
)
def test_the_map_outlives_edits(
    measurement: tuple[list[Tree], coverage.Coverage], path: str, function: str, text: str, tests: list[str]
) -> None:
    names = [test.name for test in measurement[1].rank_tests(Point(path, function, text))]
    assert [name for name in tests if f"tests/test_sums.py::{name}" not in names] == []
    assert bool(names) == bool(tests)


def test_listed_equivalents_are_changes_of_this_tree() -> None:
    equivalents = read_equivalents(ROOT / "tools" / "mutation" / "equivalent.toml")
    assert equivalents
    paths = {item.path for item in equivalents}
    candidates = [m for path in paths for m in mutants(path, (ROOT / path).read_text("utf-8"))]
    lines = {(m.path, m.point.function, m.before, m.after) for m in candidates}
    assert [item for item in equivalents if (item.path, item.function, item.before, item.after) not in lines] == []


@pytest.mark.parametrize(
    ("test", "module", "expected"),
    [
        ("tests/isa/test_traits.py", "pyptx/isa/table/store.py", True),
        ("tests/isa/test_traits.py", "pyptx/isa/traits.py", True),
        ("tests/sim/hazards/test_sync.py", "pyptx/sim/launch/run.py", False),
        ("tests/test_layers.py", "pyptx/sim/launch/run.py", False),
    ],
)
def test_tests_of_a_package_come_before_others(test: str, module: str, expected: bool) -> None:
    assert coverage.is_of_package(test, module) == expected


@pytest.mark.parametrize(
    ("test", "module", "expected"),
    [
        ("tests/sim/semantics/test_mma.py", "pyptx/sim/semantics/mma.py", True),
        ("tests/sim/semantics/test_mma_sparse.py", "pyptx/sim/semantics/mma.py", True),
        ("tests/sim/semantics/test_mmas.py", "pyptx/sim/semantics/mma.py", False),
        ("tests/ptx/test_mma.py", "pyptx/sim/semantics/mma.py", False),
        ("tests/test_numbers.py", "pyptx/numbers.py", True),
    ],
)
def test_tests_named_after_a_module_come_before_others(test: str, module: str, expected: bool) -> None:
    assert coverage.is_named_after(test, module) == expected


def test_cases_of_a_test_take_turns_of_half_a_second_with_other_tests() -> None:
    point = Point("pkg/far/sums.py", "larger", "return a")
    bits = zlib.compress(bytes([128]))

    def record(**seconds: float) -> FileRecord:
        tests = {name: (time, bits, True) for name, time in seconds.items()}
        return FileRecord("", 0, zlib.compress(bytes(1)), tests, attempts=1)

    cases = {f"cases[{number}]": number / 10 for number in range(5)}
    files = {"tests/near/test_a.py": record(**cases), "tests/near/test_b.py": record(slow=9.0)}
    known = coverage.Coverage(coverage.TestMap([point], [bits], files))
    assert [test.name for test in known.rank_tests(point)] == [*list(cases)[:4], "slow", "cases[4]"]
    near = coverage.TestMap([point], [bits], {"tests/far/test_sums.py": record(**cases), **files})
    ranked = coverage.Coverage(near).rank_tests(point)
    assert [test.file for test in ranked[:10]] == [
        *["tests/far/test_sums.py"] * 5, *["tests/near/test_a.py"] * 4, "tests/near/test_b.py"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "expected"),
    [("", ["second", "first", "other"]), ("_Sum", ["second", "first", "other"]),
     ("_Sum.add", ["first", "second", "other"])],
)  # fmt: skip
def test_the_first_test_that_imports_a_module_stands_for_those_that_use_it(function: str, expected: list[str]) -> None:
    points = [Point("pkg/sums.py", function, "amount = 0"), Point("pkg/sums.py", "larger", "return a")]

    def pack(*hits: int) -> bytes:
        return zlib.compress(bytes([sum(128 >> hit for hit in hits)]))

    tests = {"other": (0.1, pack(), True), "second": (0.2, pack(1), True), "first": (0.3, pack(0, 1), True)}
    record = FileRecord("", 0, pack(), tests, attempts=1)
    known = coverage.Coverage(coverage.TestMap(points, [pack(0, 1)], {"tests/test_a.py": record}))
    assert [test.name for test in known.rank_tests(points[0])] == expected


def test_a_test_that_always_fails_kills_nothing(tmp_path: Path) -> None:
    """The test passed during the measurement; a file it depends on has changed since."""
    root = tmp_path / "project"
    check = (
        "import pathlib, pkg.sums\ndef test_it():\n    assert pkg.sums.spoken() and pathlib.Path('state').exists()\n"
    )
    write(root, SUMS, {"tests/test_sums.py": check, "state": ""})
    tree = copy_tree(root, tmp_path / "work", "pkg")
    test_map = coverage.TestMap()
    coverage.measure(test_map, coverage.stale(test_map, root), [tree], root / "map.pickle")
    (tree.root / "state").unlink()
    sample = [mutant for mutant in mutants("pkg/sums.py", SUMS) if mutant.after == "return 6"]
    measurement = coverage.Coverage(test_map)
    verdicts = judge_all(sample, [tree], measurement, Limits())
    assert [verdict.outcome for verdict in verdicts] == ["killed"]
    assert [verdict.outcome for verdict in confirm(verdicts, [tree], measurement, Limits())] == ["never run"]


@pytest.mark.parametrize(
    "source",
    ["def test_it():\n    assert pathlib.Path('state').exists()\n",
     "import pytest\ndef test_it():\n    pathlib.Path('state').exists() or pytest.skip()\n",
     "assert pathlib.Path('state').exists()\ndef test_it(): pass\n"],
    ids=["a failure", "a skip", "an import"],
)  # fmt: skip
def test_what_did_not_pass_is_measured_again(tmp_path: Path, capfd: pytest.CaptureFixture[str], source: str) -> None:
    root, store = tmp_path / "project", tmp_path / "map.pickle"
    files = {"tests/test_a.py": "import pathlib, pkg.sums\n" + source, "tests/test_b.py": "def test_it(): pass\n"}
    write(root, SUMS, files)
    tree = copy_tree(root, tmp_path / "work", "pkg")
    coverage.measure(coverage.TestMap(), list(files), [tree], store)
    assert coverage.stale(coverage.load(store), root) == ["tests/test_a.py"]
    assert ("did not pass: tests/test_a.py::test_it" in capfd.readouterr().err) == ("assert" not in source[:6])
    (tree.root / "state").touch()
    coverage.measure(coverage.load(store), ["tests/test_a.py"], [tree], store)
    assert coverage.stale(coverage.load(store), root) == []


def test_what_never_passes_is_measured_twice_until_its_file_changes(tmp_path: Path) -> None:
    root, store = tmp_path / "project", tmp_path / "map.pickle"
    write(root, SUMS, {"tests/test_a.py": "def test_it(): assert False\n"})
    tree = copy_tree(root, tmp_path / "work", "pkg")
    test_map = coverage.TestMap()
    coverage.measure(test_map, ["tests/test_a.py"], [tree], store)
    assert coverage.stale(test_map, root) == ["tests/test_a.py"]
    coverage.measure(test_map, ["tests/test_a.py"], [tree], store)
    assert coverage.stale(test_map, root) == []
    for folder in (root, tree.root):
        (folder / "tests/test_a.py").write_text("def test_that(): assert False\n")
    coverage.measure(test_map, coverage.stale(test_map, root), [tree], store)
    assert coverage.stale(test_map, root) == ["tests/test_a.py"]


COMPILED = """\
import torch
from pkg.sums import larger
def test_sizes():
    compiled = torch.compile(lambda x: x * larger(x.shape[0], 2), fullgraph=True, backend="eager")
    assert compiled(torch.ones(3)).tolist() == [3, 3, 3]
def test_that_nothing_records():
    assert type(larger.__globals__["__hit__"]).__name__ != "_Hits"
"""


def test_functions_that_pytorch_compiles_are_measured_in_the_second_attempt(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write(root, SUMS, {"tests/test_a.py": COMPILED})
    tree = copy_tree(root, tmp_path / "work", "pkg")
    test_map = coverage.TestMap()
    coverage.measure(test_map, ["tests/test_a.py"], [tree], root / "map.pickle")
    assert test_map.files["tests/test_a.py"].list_failures() == ["tests/test_a.py::test_sizes"]
    coverage.measure(test_map, ["tests/test_a.py"], [tree], root / "map.pickle")
    assert test_map.files["tests/test_a.py"].list_failures() == []
    tests = coverage.Coverage(test_map).rank_tests(Point("pkg/sums.py", "larger", "return a if a > b else b"))
    assert [test.name for test in tests] == [
        "tests/test_a.py::test_sizes",
        "tests/test_a.py::test_that_nothing_records",
    ]


def test_a_package_with_a_pytest_plugin_is_measured(tmp_path: Path) -> None:
    """pytest compiles such packages itself, to rewrite their assertions, and ignores the instrumented files."""
    root = tmp_path / "project"
    plugin = {
        "pkg/plugin.py": "",
        "pkg.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: pkg\nVersion: 1\n",
        "pkg.egg-info/SOURCES.txt": "pkg/__init__.py\npkg/plugin.py\npkg/sums.py\n",
        "pkg.egg-info/entry_points.txt": "[pytest11]\npkg = pkg.plugin\n",
    }
    write(root, SUMS, {"pkg/__init__.py": "", "tests/test_a.py": TESTS, **plugin})
    tree = copy_tree(root, tmp_path / "work", "pkg")
    test_map = coverage.TestMap()
    coverage.measure(test_map, ["tests/test_a.py"], [tree], root / "map.pickle")
    tests = coverage.Coverage(test_map).rank_tests(Point("pkg/sums.py", "larger", "return a if a > b else b"))
    assert "tests/test_a.py::test_larger" in [test.name for test in tests]


def listing(after: str) -> str:
    """Return a list of equivalent mutants with one entry."""
    return (
        f"[[equivalent]]\npath = 'pkg/sums.py'\nfunction = ''\nbefore = 'QUICK = True'\nafter = '{after}'\nreason = 'r'"
    )


@pytest.mark.parametrize(
    ("equivalents", "status", "message"),
    [
        ("", 1, "survived: pkg/sums.py:1 module, constant"),
        (listing("QUICK = False"), 0, "all"),
        (listing("QUICK = None"), 1, "no longer a mutant, remove it from the list: pkg/sums.py"),
    ],
)
def test_survivors_fail_unless_listed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], equivalents: str, status: int, message: str
) -> None:
    tests = "import pkg.sums\ndef test_it(): pass\n"
    files = {"tests/test_sums.py": tests, "tools/mutation/equivalent.toml": equivalents}
    write(tmp_path, "QUICK = True\n", files)
    assert main(["--root", str(tmp_path), "--package", "pkg", "--count", "5", "--jobs", "1", "--seed", "1"]) == status
    assert message in capfd.readouterr().out


def test_outcomes_are_kept_until_the_package_or_a_test_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    whole = mutate.judge

    def watch(tree: Tree, mutant: Mutant, test_coverage: coverage.Coverage, limits: Limits) -> Verdict:
        judged.append(mutant.after)
        return whole(tree, mutant, test_coverage, limits)

    monkeypatch.setattr(mutate, "judge", watch)
    words = ["--root", str(tmp_path), "--package", "pkg", "--count", "5", "--jobs", "1", "--budget"]
    test = "import pkg.sums\ndef test_it(): pass\n"
    write(tmp_path, "QUICK = True\n", {"tests/test_sums.py": test})
    assert main([*words, "50"]) == main([*words, "50"]) == 1
    assert judged == ["QUICK = False"]
    assert main([*words, "60"]) == 1
    assert judged == ["QUICK = False"] * 2, "it has not survived 60 seconds of tests yet"
    write(tmp_path, "QUICK = True\n", {"tools/mutation/equivalent.toml": listing("QUICK = False")})
    assert main([*words, "70"]) == 0
    write(tmp_path, "QUICK = True\n", {"tools/mutation/equivalent.toml": "", "tests/test_sums.py": test + "\n"})
    assert main([*words, "50"]) == 1
    assert judged == ["QUICK = False"] * 3
    write(tmp_path, "QUICK = True\n", {"tests/test_sums.py": test.replace("pass", "assert pkg.sums.QUICK")})
    assert main([*words, "50"]) == main([*words, "60"]) == 0
    assert judged == ["QUICK = False"] * 4


def test_a_test_that_fails_only_while_it_is_measured_detects_changes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    checks = "    assert pkg.sums.QUICK is True\n    assert 'MUTATION_RECORD' not in os.environ\n"
    write(tmp_path, "QUICK = True\n", {"tests/test_sums.py": f"import os, pkg.sums\ndef test_it():\n{checks}"})
    assert main(["--root", str(tmp_path), "--package", "pkg", "--count", "5", "--jobs", "1", "--seed", "1"]) == 0
    assert "killed: pkg/sums.py:1 module, constant (tests/test_sums.py::test_it)" in capfd.readouterr().err


def test_built_extensions_of_the_package_are_copied(tmp_path: Path) -> None:
    """Git ignores them; without them, tests would only run what is used in their place."""
    root = tmp_path / "project"
    write(root, SUMS, {".gitignore": "*.so\n", "pkg/fast.so": "", "other.so": ""})
    subprocess.run(["git", "init", "--quiet", root], check=True)
    tree = copy_tree(root, tmp_path / "work", "pkg")
    assert sorted(path.relative_to(tree.root).as_posix() for path in tree.root.rglob("*.so")) == ["pkg/fast.so"]
