"""The stub of `ptx.inst` and `ptx.pipe` allows exactly what the table allows, according to pyright."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyptx.isa import table
from pyptx.isa.lookup import spellings
from pyptx.ptx import chain
from tools import stubs

ROOT = Path(__file__).parent.parent.parent
HEAD = """# pyright: strict
from pyptx import kernel, ptx, reg
from pyptx.types import u32

@kernel
def body() -> None:
    x, y = reg.scalar(u32), reg.scalar(u32)
"""
GOOD = """
ptx.inst.add.s32(x, y, 1)
ptx.inst.add.s32(x, y, 1, pred=x == 1)
ptx.inst.add.s32(x, y, 1, unchecked=True)
ptx.inst.add[u32](x, y, 1)
ptx.inst.add["sat"][u32].more(x, y, 1)
ptx.inst["made.up.u32"](x, unchecked=True)
ptx.inst.bar.sync(0)
ptx.inst.ret()
ptx.inst.cp.async_.bulk.commit_group()
ptx.pipe(x).add.s32(y, 1).shl.b32(x, 2).mul.lo.u32(y, 3)
ptx.pipe(x).ld.global_.u32(y).reg.dtype
ptx.pipe(x)[u32].anything(y).add[u32](x, 1)
ptx.ld(u32, x).max(y).dtype
ptx.ld(u32, x, vec=2)[1].dtype
ptx.ld(u32, y, x).dtype
ptx.ld(u32, [x, y], x)[1].dtype
ptx.special.tid.x().dtype
ptx.special.laneid().dtype
""".strip().splitlines()
SPARSITIES = "sp::1:2 sp::1:4 sp::1:8 sp::1:16 sp::2:4 sp::2:8 sp::2:16 sp::4:8 sp::4:16"
MISTAKES = [
    ("ptx.inst.addd.s32(x, y, 1)", 'Cannot access attribute "addd" for class "Root"'),
    ("ptx.inst.add(x, y, 1)", 'Object of type "expects_bf16'),
    ("ptx.inst.add.b32(x, y, 1)", 'Cannot access attribute "b32" for class "expects_bf16'),
    ("ptx.inst.add.s32.sat(x, y, 1)", 'Cannot access attribute "sat" for class "complete[Any]"'),
    ("ptx.inst.add.sat(x, y, 1)", 'Object of type "expects_'),
    ("ptx.inst.mul.u32(x, y, 1)", 'Cannot access attribute "u32"'),
    ("ptx.inst.mad.low.s32(x, y, 1, 2)", 'Cannot access attribute "low"'),
    ("ptx.inst.cp.async_.bulk.tensor.d2(x)", 'Cannot access attribute "d2" for class "expects_1d_2d_3d_4d_5d'),
    ("ptx.inst.ld.shared.global_.u32(x, [y])", 'Cannot access attribute "global_"'),
    ("ptx.inst.brev.b16(x, y)", 'Cannot access attribute "b16" for class "expects_b32_b64'),
    ("ptx.inst.wgmma.fence.aligned()", 'Cannot access attribute "aligned" for class "expects_sync'),
    ("ptx.inst(x)", 'Object of type "Root" is not callable'),
    ("ptx.inst.add.s32(x, y, 1, predicate=x)", 'No parameter named "predicate"'),
    ("ptx.inst.add[1](x, y, 1)", 'Argument of type "Literal[1]"'),
    ("ptx.pipe(x)(y)", 'Object of type "Pipe" is not callable'),
    ("ptx.pipe(x).bra(y)", 'Cannot access attribute "bra" for class "Pipe"'),
    ("ptx.pipe(x).add.s32.sat(y, 1)", 'Cannot access attribute "sat" for class "complete[Pipe]"'),
    ("ptx.pipe(x).add.s32(y, 1).shl.s32(x, 2)", 'Cannot access attribute "s32" for class "expects_b16_b32_b64'),
    ("ptx.pipe(1).add.s32(y, 1)", 'Argument of type "Literal[1]"'),
    ("ptx.ld(u32, x).nothing", 'Cannot access attribute "nothing" for class "Reg"'),
    ("ptx.ld(u32, [x, y], x).dtype", 'Cannot access attribute "dtype" for class "list[Reg]"'),
    ("ptx.special.tid()", 'Object of type "_Vector" is not callable'),
    ("ptx.special.tidd.x()", '"tidd" is not a known attribute of module'),
]


def test_the_automaton_has_the_spellings_of_the_table_and_no_others() -> None:
    expected = {
        (row.opcode, *(word for _, choice in binding for word in choice.modifiers))
        for row in table.list_all_rows()
        for binding in spellings(row)
    }
    language = list(_language(stubs.automaton(), ()))
    assert len(language) == len(set(language))
    assert set(language) == expected


def test_states_with_the_same_future_are_one_class() -> None:
    start = {word: state for word, _, state in stubs.automaton().next}
    assert start["brev"] is start["clz"] is start["popc"]
    assert start["brev"] is not start["bfind"]


def test_a_pipe_offers_what_has_a_destination_and_a_source() -> None:
    start = {word for word, _, _ in stubs.select_piped(stubs.automaton()).next}
    assert start >= {"add", "cvt", "ld", "mov", "setp", "atom"}
    assert not start & {"bra", "ret", "trap", "fence"}


def test_an_opcode_more_renames_no_class() -> None:
    root = stubs.automaton()
    fewer = stubs.State(False, tuple(successor for successor in root.next if successor[0] not in ("bfe", "fma", "mad")))
    names = stubs.class_names(root)
    assert len(names) > len(stubs.class_names(fewer))
    assert all(names[state] == name for state, name in stubs.class_names(fewer).items())


def test_names_are_the_ones_that_the_chain_reads() -> None:
    words = {w for spelling in _language(stubs.automaton(), ()) for w in spelling}
    assert {w for w in words if chain.parse_word(stubs.python_name(w)) != w} == set()
    assert {w for w in words if not stubs.python_name(w).isidentifier()} == set(SPARSITIES.split())


def test_the_stub_is_small_and_declares_what_the_module_has() -> None:
    text = stubs.stub()
    assert len(text.encode()) <= 500_000
    declarations = {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    public_names = {name for name, value in vars(chain).items() if getattr(value, "__module__", "") == chain.__name__}
    assert {name for name in public_names if not name.startswith("_")} - {"inst"} <= declarations


def test_pyright_accepts_legal_chains_and_reports_each_mistake(tmp_path: Path) -> None:
    whole_table = [f"ptx.inst{_chain(row_spelling)}(x)" for row_spelling in _spell_each_row()]
    good, mistakes = [*GOOD, *whole_table], [line for line, _ in MISTAKES]
    for name, lines in (("good", good), ("mistakes", mistakes)):
        (tmp_path / f"{name}.py").write_text(HEAD + "".join(f"    _ = {line}\n" for line in lines))
    report = _pyright(tmp_path)
    errors = {name: _by_line(report, name) for name in ("good", "mistakes")}
    assert errors["good"] == {}
    first = HEAD.count("\n")
    unreported = [
        (line, errors["mistakes"].get(first + number))
        for number, (line, message) in enumerate(MISTAKES)
        if message not in errors["mistakes"].get(first + number, "")
    ]
    assert unreported == []
    assert len(errors["mistakes"]) == len(MISTAKES)


def _spell_each_row() -> Iterator[tuple[str, ...]]:
    for row in table.list_all_rows():
        yield (row.opcode, *(word for _, choice in next(spellings(row)) for word in choice.modifiers))


def _chain(spelling: tuple[str, ...]) -> str:
    names = [(word, stubs.python_name(word)) for word in spelling]
    return "".join(f".{name}" if name.isidentifier() else f'["{word}"]' for word, name in names)


def _language(state: stubs.State, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if state.complete:
        yield before
    for word, _, after in state.next:
        yield from _language(after, (*before, word))


def _pyright(folder: Path) -> dict[str, Any]:
    config = {"include": ["."], "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "-p", str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "No module named" not in process.stderr, "pyright belongs to the test extra"
    return json.loads(process.stdout[process.stdout.index("{") :])


def _by_line(report: dict[str, Any], name: str) -> dict[int, str]:
    """Return the messages about a file, by line from 0."""
    messages: dict[int, str] = {}
    for diagnostic in report["generalDiagnostics"]:
        if Path(diagnostic["file"]).stem == name:
            line = diagnostic["range"]["start"]["line"]
            messages[line] = messages.get(line, "") + diagnostic["message"] + "\n"
    return messages
