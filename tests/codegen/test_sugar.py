"""Sugared files emit the tokens of their source, are safe for any source, and are readable."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks import shapes
from pyptx.codegen import apply_sugar, ptx_to_python
from pyptx.codegen.printer import WIDTH, print_plan
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.codegen.hostile import texts
from tests.codegen.sugared import REGISTERS, find_difference, find_module_difference
from tests.codegen.transcripts import kernel, module_of
from tools.audit_sugar import compare_machine_code, difference

_ROOT = Path(__file__).parents[2]
_CORPUS = sorted(path for path in (_ROOT / "tests/corpus").glob("*/*.ptx"))
_ALWAYS = (
    "cutlass_gemm.sm_90a.hopper.ptx",
    "cute_hopper.sm_90a.ptx",
    "matmul_persistent.sm_90a.ptx",
    "globals.sm_110a.ptx",
)
_SAMPLE = 12
_TEXTS = dict(texts())
_CALLED = {"ptx", "reg", "module", "sys", "main", "range", "enumerate", "abs"}


def _choose_files(seed: int, count: int) -> list[Path]:
    return [*(p for p in _CORPUS if p.name in _ALWAYS), *random.Random(seed).sample(_CORPUS, count)]


def test_a_sample_of_the_corpus_keeps_every_token(seed: int) -> None:
    assert {
        path.name: why
        for path in _choose_files(seed, _SAMPLE)
        if (why := find_module_difference(path.read_bytes().decode()))
    } == {}


def test_a_sample_of_the_corpus_keeps_its_machine_code(seed: int) -> None:
    for path in random.Random(seed).sample([p for p in _CORPUS if p.stat().st_size < 60_000], 3):
        source = path.read_bytes().decode()
        if "Z14outer_function" not in source:
            assert compare_machine_code(source, module_of(ptx_to_python(source, sugar=True)).ptx()) is None, path.name


@pytest.mark.parametrize("name", random.Random(7).sample(sorted(_TEXTS), 60))
def test_hostile_text_keeps_every_token_and_is_only_data(name: str) -> None:
    python = ptx_to_python(_TEXTS[name], sugar=True)
    assert _foreign(python) is None
    assert difference(_TEXTS[name].replace("\r\n", "\n"), module_of(python).ptx().replace("\r\n", "\n")) is None


def _foreign(python: str) -> str | None:
    """Return a call in a generated file that is neither from the vocabulary nor a method of a register."""
    tree = ast.parse(python)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            return node.attr
        if isinstance(node, ast.Call):
            root = node.func
            while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
                root = root.func if isinstance(root, ast.Call) else root.value
            method = isinstance(node.func, ast.Attribute) and node.func.attr in ("view", "max", "min")
            if not method and not (isinstance(root, ast.Name) and root.id in _CALLED):
                return ast.unparse(node.func)
    return None


def test_the_guard_of_hostile_text_sees_foreign_calls() -> None:
    assert _foreign("open('x')") == "open"
    assert _foreign("r.view(b32)[0]") is None
    assert _foreign("x.__class__") == "__class__"


def test_generated_files_pass_ruff(tmp_path: Path, seed: int) -> None:
    for path in _choose_files(seed, 4):
        (tmp_path / f"k_{path.stem.replace('.', '_')}.py").write_text(
            ptx_to_python(path.read_bytes().decode(), sugar=True)
        )
    command = [sys.executable, "-m", "ruff", "check", "--config", str(_ROOT / "pyproject.toml"), str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout[:2000]


def test_generated_files_pass_pyright(tmp_path: Path) -> None:
    for name in ("examples/hopper_gemm.ptx", "tests/corpus/triton/matmul_f16.sm_90a.ptx"):
        path = _ROOT / name
        (tmp_path / f"k_{path.stem.replace('.', '_')}.py").write_text(ptx_to_python(path.read_text(), sugar=True))
    settings = f'{{"typeCheckingMode": "basic", "extraPaths": ["{_ROOT}"], "pythonVersion": "3.11"}}'
    (tmp_path / "pyrightconfig.json").write_text(settings)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout[:2000]


def test_lines_are_no_longer_than_the_style_allows() -> None:
    for path in _CORPUS[::40]:
        python = ptx_to_python(path.read_bytes().decode(), sugar=True)
        assert [line for line in python.split("\n") if len(line) > WIDTH and '"' not in line] == []


def test_a_hopper_gemm_fits_on_a_few_pages() -> None:
    for path in (_ROOT / "examples/hopper_gemm.ptx", _ROOT / "tests/examples/goldens/hopper/05_cluster_gemm.ptx"):
        assert ptx_to_python(path.read_text(), sugar=True).count("\n") <= 350


def test_two_runs_write_the_same_file() -> None:
    source = (_ROOT / "examples/hopper_gemm.ptx").read_text()
    assert ptx_to_python(source, sugar=True) == ptx_to_python(source, sugar=True)


def test_apply_sugar_takes_a_module() -> None:
    source = (_ROOT / "examples/hopper_gemm.ptx").read_text()
    python = print_plan(apply_sugar(parse(source), kernel_name="gemm"))
    assert "def gemm() -> None:" in python
    assert difference(source, module_of(python).ptx()) is None


def test_modules_for_a_debugger_keep_their_lines() -> None:
    source = (_ROOT / "tests/corpus/nvrtc/text.sm_80.debug.ptx").read_bytes().decode()
    python = ptx_to_python(source, sugar=True)
    assert source.count("\t.loc") == python.count('ptx.directive("loc"')
    assert ".cu:" not in python
    assert ".cu:" in ptx_to_python(source.replace(", debug", ""), sugar=True)


def test_registers_of_the_module_and_of_parameters_stay_names() -> None:
    outer = ".reg .b32 %shared_register;\n"
    assert find_difference("add.s32 %shared_register, %shared_register, 1;\nret;\n", outer) is None
    source = kernel(
        REGISTERS + "ret;\n", ".func (.reg .b32 out) half(.reg .b32 given)\n{\nshr.u32 out, given, 1;\nret;\n}\n"
    )
    assert find_module_difference(source) is None


def test_a_predicate_may_be_declared_right_before_its_loop() -> None:
    assert (
        find_module_difference(
            kernel(".reg .b32 %r<9>;\n.reg .pred %q;\n$L: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %q, %r1, 9;\n@%q bra $L;\n")
        )
        is None
    )


def test_registers_may_be_declared_late() -> None:
    late = "mov.u32 %r1, 1;\n.reg .b32 %x, %y<4>;\nmov.u32 %x, %r1;\nL:\nadd.s32 %y1, %x, 2;\nadd.s32 %y2, %y2, %y1;\n"
    assert find_difference(late + "{\n.reg .b32 %x;\nmov.u32 %x, %y2;\nadd.u32 %x, %x, 1;\n}\nbra L;\n") is None


def test_time_is_linear_in_the_number_of_instructions() -> None:
    def measure_seconds(count: int) -> float:
        ring = "".join(f"add.s32 %r{i % 90 + 1}, %r{i % 89 + 2}, {i};\nxor.b32 %r{i % 90 + 2}, %r3, %r{i % 90 + 1};\n"
                       for i in range(count))  # fmt: skip
        source = kernel(REGISTERS + ring + "ret;\n")
        start = time.process_time()
        ptx_to_python(source, sugar=True)
        return time.process_time() - start

    measure_seconds(200)
    assert measure_seconds(6000) < 12 * max(measure_seconds(1000), 0.05)


@pytest.mark.parametrize(
    ("shape", "stage", "large"),
    [("redeclared", "plain", 3000), ("labels", "sugar", 3000), ("specials in depth", "check", 12_000)],
)
def test_no_shape_of_a_file_costs_more_than_its_size(shape: str, stage: str, large: int) -> None:
    def cost(size: int) -> float:
        text = shapes.make_text(shape, size)
        start = time.process_time()
        shapes.STAGES[stage](text)
        return (time.process_time() - start) / size

    cost(100)
    assert cost(large) < 5 * cost(500)


def test_blocks_that_declare_but_never_use_a_register_cost_no_more_than_blocks_that_do() -> None:
    def cost(shape: str, size: int) -> float:
        text = shapes.make_text(shape, size)
        start = time.process_time()
        ptx_to_python(text, sugar=True)
        return time.process_time() - start

    cost("redeclared", 100)
    assert cost("declarations in depth", 900) < 5 * cost("redeclared", 900)


def test_what_sugar_is_for() -> None:
    python = ptx_to_python((_ROOT / "examples/hopper_gemm.ptx").read_text(), sugar=True)
    assert len(re.findall(r"ptx\.inst\b", python)) <= 6
    assert python.count("ptx.mbarrier.wait(") == 2
    assert python.count("with ptx.loop(") == 2
    assert re.search(r"for .* in ", python)
    assert "acc = f[0:64]" in python


_REGISTERS = st.from_regex(r"(?a:[A-Za-z_][\w$]{0,9}|[$%][\w$]{1,9})", fullmatch=True)
_SYMBOLS = st.from_regex(r"(?a:[A-Za-z_][\w$]{0,9})", fullmatch=True)


@given(_REGISTERS, _SYMBOLS)
def test_any_name_of_a_register_or_symbol_keeps_every_token(register: str, symbol: str) -> None:
    assume(register != symbol and "WARP_SZ" not in (register, symbol))
    assume(symbol != "_")  # no name, because it discards a result
    statements = (
        f".reg .b32 {register};\nmov.u32 {register}, {symbol};\n{symbol}_label:\nadd.u32 {register}, {register}, 1;\n"
        f"setp.lt.u32 %p1, {register}, 9;\n@%p1 bra {symbol}_label;\nst.shared.b32 [{symbol}], {register};\n"
    )
    try:
        parse(kernel(REGISTERS + statements))
    except PtxError:
        return
    assert find_difference(statements, f".shared .b32 {symbol};\n") is None
