"""What the audit of measures counts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import audit_measures as measures

SOURCES = {
    "sim/__init__.py": "",
    "sim/a.py": "from pyptx.sim import b\nif TYPE_CHECKING:\n    from pyptx.sim.c import C\n",
    "sim/b.py": "from pyptx.sim.a import f\n",
    "sim/c.py": "import pyptx.sim.b\nimport json\n",
    "sim/d.py": "from pyptx.sim.a import f\nfrom pyptx.check import check\n",
    "check/e.py": "x.opcode == 'ld'\nopcode in ('ld', 'st')\nmatch x.opcode:\n    case 'ld': pass\n    case _: pass\n",
    "check/f.py": "a.opcode == b.opcode\nopcode.startswith('ld')\nname == 'ld'\nx.opcode in MEMORY\n",
    "isa/g.py": "opcode == 'ld'\n",
    "check/h.py": "ORDERS[x.opcode]\nORDERS.get(opcode)\ntext.startswith('tcgen05.cp')\n'test_wait' in place.text\n",
    "check/i.py": "match words[0]:\n    case '.wait_group': pass\n    case '.x4': pass\n'.commit_group' in modifiers\n",
    "check/j.py": "'.x4' in modifiers\nplace.text.startswith('line')\nname == 'test_wait'\ntable[x.opcode]\n",
}
PARSED = {path: ast.parse(text) for path, text in SOURCES.items()}


def test_opcodes_compared_with_constants_count_outside_of_the_table() -> None:
    assert (
        list(measures.list_comparisons(PARSED))
        == ["check/e.py"] * 4 + ["check/f.py"] * 2 + ["check/h.py"] * 4 + ["check/i.py"] * 2
    )


def test_circles_include_imports_for_types() -> None:
    imports = measures.find_imports(PARSED)
    assert imports["pyptx.sim.a"] == {"pyptx.sim.b", "pyptx.sim.c"}
    assert imports["pyptx.sim.d"] == {"pyptx.sim.a"}
    assert measures.count_in_circles(imports) == 3


@pytest.mark.parametrize(
    ("name", "expected"), [("found_rows", True), ("_sorted", True), ("find_rows", False), ("feed", False), ("x", False)]
)
def test_names_that_begin_with_a_participle(name: str, expected: bool) -> None:
    assert measures.has_participle(name) == expected


def test_locals_are_those_of_the_function_itself() -> None:
    text = (
        "def f(a, *b, c=0, **d):\n    for e, (g, h) in a: i: int = 0\n    def j(k): l = 0\n    return [m for m in n]\n"
    )
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert measures.list_locals(function) == set("abcdeghim")


def test_ratios_of_both_baselines_are_averaged_by_benchmark() -> None:
    then, now = {"sim: a": 2.0, "sim: b": 8.0, "parse: c": 3.0}, {"sim: a": 1.0, "sim: b": 9.0, "driver: d": 5.0}
    assert measures.average_ratios(then, now) == {"sim": (2, pytest.approx(4), pytest.approx(3))}


def test_both_baselines_can_be_read() -> None:
    commit, ratios = measures.read_baseline((measures.ROOT / measures.BASELINE).read_text("utf-8"))
    assert commit
    assert min(ratios.values()) > 0


def test_the_time_of_the_last_test_run_is_that_of_its_record(tmp_path: Path) -> None:
    record = tmp_path / "tests.xml"
    assert measures.describe_test_run(record) == "not recorded: run `make test`"
    record.write_text(
        '<testsuites><testsuite tests="12345" failures="1" errors="2" time="1234.5" timestamp="2026-11-28T09:00:00"/>'
        "</testsuites>"
    )
    assert measures.describe_test_run(record) == "12,345 tests in 1,234 s, 3 failed (2026-11-28)"


def test_make_test_writes_the_record() -> None:
    makefile = (measures.ROOT / "Makefile").read_text("utf-8")
    assert f"--junit-xml {measures.TEST_RECORD.relative_to(measures.ROOT)}" in makefile
