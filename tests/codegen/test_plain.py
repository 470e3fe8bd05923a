"""Plain transcripts of whole modules preserve every byte, node and statement; and edits of transcripts."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from pyptx.codegen import ir_to_python, ptx_to_python
from pyptx.codegen.plain import build_plain_plan
from pyptx.codegen.plan import Block, Define, Line, Plan, Step, find_broken_promise, flatten, list_emitted
from pyptx.codegen.styles import detect_style
from pyptx.diagnostics import PtxError
from pyptx.emitter import emit
from pyptx.ir import Label, Module, strip_layout, visit
from pyptx.parser import parse, tokenize
from tests.codegen.transcripts import kernel, module_of, problem
from tests.messages import assert_message, raises
from tools.audit_transpile import modules

_CORPUS = Path(__file__).parents[1] / "corpus"
_ALWAYS = (
    "triton/matmul_mx_e2m1.sm_120a.ptx", "cutlass/cutlass_gemm.sm_90a.hopper.ptx", "nvrtc/text.sm_80.debug.ptx",
    "nvcc/separate.sm_103f.library.ptx",
)  # fmt: skip
_SAMPLE = 20


def _text(name: str) -> str:
    return (_CORPUS / name).read_bytes().decode()


def test_a_sample_of_the_corpus_comes_back_byte_for_byte(seed: int) -> None:
    names = sorted(str(path.relative_to(_CORPUS)) for path in _CORPUS.glob("*/*.ptx"))
    sample = [*_ALWAYS, *random.Random(seed).sample(names, _SAMPLE)]
    assert {name: why for name in sample if (why := problem(_text(name)))} == {}


_SAMPLES = Path(__file__).parents[1] / "parser" / "samples"


@pytest.mark.parametrize("path", sorted(_SAMPLES.glob("*.ptx")), ids=lambda path: path.stem)
def test_every_construct_of_the_grammar_comes_back(path: Path) -> None:
    text = path.read_bytes().decode()
    if not parse(text, recover=True)[1]:
        assert problem(text) is None


def test_producers_that_are_regular_need_few_layouts() -> None:
    for producer in ("nvcc", "triton"):
        texts = [path.read_bytes().decode() for path in sorted((_CORPUS / producer).glob("*.ptx"))]
        layouts = sum(ptx_to_python(text).count(".layout(") for text in texts)
        assert layouts <= 0.05 * sum(len(list(visit(parse(text)))) for text in texts)


def test_nothing_is_parsed_or_pasted_at_run_time() -> None:
    python = ptx_to_python(_text(_ALWAYS[0]))
    assert "raw(" not in python
    assert "parse" not in python


@pytest.mark.parametrize("sugar", [False, True])
def test_a_debug_section_is_one_literal(sugar: bool) -> None:
    lines = "".join(f'L{i}: .b8 {i % 256}, -1 // """ \\ {i}\n.b32 L{i}+4\n' for i in range(200))
    source = kernel("ret;\n") + f"// first\n\t.section\t.debug_info {{\n{lines}\t}} // last\n.section .empty {{}}\n"
    python = ptx_to_python(source, sugar=sugar)
    assert len(python.splitlines()) < 160
    assert python.count("module.section_text(") == 2
    assert "module.layout(" not in python
    output = module_of(python).ptx()
    assert [t.text for t in tokenize(output)] == [t.text for t in tokenize(source)]
    if not sugar:
        assert problem(source, python=python) is None


def test_modules_without_layout_are_transcribed_from_their_text() -> None:
    module = strip_layout(parse(_text(_ALWAYS[3])))
    assert module_of(ir_to_python(module)).ptx() == emit(module)


def test_text_that_is_no_ptx_is_refused_with_all_its_errors() -> None:
    with raises(PtxError) as error:
        ptx_to_python(kernel("mov.u32 %r1 5;\n@ ret;\n"))
    assert len(error.value.diagnostics) == 2


_EDITED = kernel(".reg .b32 %r<4>;\nmov.u32 %r1, %tid.x;\nadd.s32 %r2, %r1, 4;\nst.global.u32 [%rd1], %r2;\nret;\n")


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("ptx.inst.add.s32(r[2], r[1], 4)", "ptx.inst.add.s32(r[2], r[1], 5)", "add.s32 %r2, %r1, 5;\n"),
        ("ptx.inst.add.s32(r[2], r[1], 4)", "x = r[1] + 4", "add.u32 %fresh_r0, %r1, 4;\n"),
        ("ptx.inst.add.s32(r[2], r[1], 4)", "ptx.label('here'); ptx.bra('here')", "here:\nbra here;\n"),
        ("ptx.inst.ret()", "ptx.bar.sync(0)\n    ptx.inst.ret()", "bar.sync 0;\nret;\n"),
    ],
)
def test_an_edited_file_still_traces(before: str, after: str, line: str) -> None:
    python = ptx_to_python(_EDITED)
    assert python.count(before) == 1
    edit = module_of(python.replace(before, after)).ptx()
    assert line in edit
    assert parse(edit)


def test_a_wrong_edit_is_reported_at_its_line() -> None:
    python = ptx_to_python(_EDITED).replace("ptx.inst.add.s32(", "ptx.inst.ad.s32(")
    with raises(PtxError) as error:
        module_of(python).ptx()
    origin = error.value.diagnostics[0].origin
    assert origin is not None
    assert python.split("\n")[origin.line - 1].strip().startswith("ptx.inst.ad.s32(")


def test_the_checks_find_wrong_operands_at_their_line() -> None:
    python = ptx_to_python(_EDITED).replace("ptx.inst.add.s32(r[2], r[1], 4)", 'ptx.inst.add.s32(r[2], "%p1", 4)')
    findings = module_of(python).check()
    lines = [python.split("\n")[d.line - 1] for d in findings if d.code == "PTX0401"]
    assert any("add.s32" in line for line in lines)


def _steps(plan: Plan) -> list[tuple[Step, ...]]:
    bodies = [plan.body]
    for body in bodies:
        bodies += [step.body for step in body if isinstance(step, Block | Define)]
    return bodies


def _with(plan: Plan, old: tuple[Step, ...], new: tuple[Step, ...]) -> Plan:
    def rebuild(body: tuple[Step, ...]) -> tuple[Step, ...]:
        if body is old:
            return new
        return tuple([s.replace(body=rebuild(s.body)) if isinstance(s, Block | Define) else s for s in body])

    return Plan(rebuild(plan.body))


def _plan(module: Module) -> Plan:
    return build_plain_plan(module, kernel_name="k", source=emit(module))


@pytest.mark.parametrize("change", ["drop", "repeat", "swap"])
def test_the_contract_notices_a_statement_that_is_lost_repeated_or_moved(change: str) -> None:
    module = parse(_text(_ALWAYS[1]))
    plan = _plan(module)
    assert find_broken_promise(plan, module) is None
    body = next(b for b in _steps(plan) if sum(isinstance(s, Line) and bool(s.emits) for s in b) > 5)
    positions = [i for i, s in enumerate(body) if isinstance(s, Line) and s.emits]
    first, two = body[positions[2]], body[positions[3]]
    if change == "drop":
        new = (*body[: positions[2]], *body[positions[2] + 1 :])
    elif change == "repeat":
        new = (*body[: positions[2]], first, *body[positions[2] :])
    else:
        new = tuple([two if s is first else first if s is two else s for s in body])
    assert find_broken_promise(_with(plan, body, new), module) is not None


def test_the_contract_names_the_first_difference() -> None:
    module = parse(_EDITED)
    plan = _plan(module)
    function = next(step for step in plan.body if isinstance(step, Define))
    differences = {
        "no end": find_broken_promise((function.replace(closes=()),), module),
        "no last statement": find_broken_promise((function.replace(body=function.body[:-1]),), module),
        "all": find_broken_promise(plan, ()),
    }
    for name, difference in differences.items():
        assert_message("promises", name, difference or "none")


def test_the_contract_cuts_statements_of_more_than_160_characters() -> None:
    texts = [(find_broken_promise((), [Label(n * "x")]) or "").split("has ")[1] for n in (146, 147)]
    assert texts == [repr(Label(146 * "x")), f"Label(name='{145 * 'x'}..."]
    assert {len(text) for text in texts} == {160}


def test_flatten_and_stream_agree_on_every_body() -> None:
    module = parse(_text(_ALWAYS[2]))
    assert len(list(flatten(_plan(module)))) == len(list(list_emitted(module)))


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [(r"ptx\.inst\.mov\.u32\(r\[1\]", "ptx.inst.mov.u32(r[2]"), (r"\n    ptx\.inst\.ret\(\)", ""),
     (r'"%tid\.x"', '"%tid.y"'), (r"ptx\.inst\.add\.s32", "ptx.inst.add.u32"), (r", 4\)", ", 8)"),
     (r'style=STYLE', 'style=ptx.Style(indent="  ")'), (r"r\[2\], r\[1\]", "r[1], r[2]")],
)  # fmt: skip
def test_a_broken_generator_would_be_noticed(pattern: str, wrong: str) -> None:
    source = _EDITED.replace("\n}", "\nadd.s32  %r3, %r1, 1;\nadd.s32  %r3, %r1, 1;\n}")
    python = ptx_to_python(source)
    assert problem(source, python=python) is None
    wrong_python = re.sub(pattern, wrong, python, count=1)
    assert wrong_python != python
    assert problem(source, python=wrong_python) is not None


def test_the_style_of_llvm_is_read_off_its_output() -> None:
    style = detect_style(parse(_text("triton/scatter_add.sm_80.ptx")))
    assert style.after_opcode == " \t"
    assert style.forms[".reg"] == {2: " \t"}
    assert style.asm is not None
    assert style.asm.around["[_"] == " "


def test_a_sample_of_all_legal_spellings_comes_back_checked(seed: int) -> None:
    for source, _ in modules(600, seed):
        assert problem(source) is None
        assert "unchecked" not in ptx_to_python(source)


def test_registers_of_outer_blocks_are_the_same_variables_inside() -> None:
    python = ptx_to_python(
        kernel(".reg .b32 %r<4>;\n{\n{\nmov.u32 %r1, %r3;\n}\n.reg .b32 %r<2>;\nmov.u32 %r1, 0;\n}\n")
    )
    assert "ptx.inst.mov.u32(r[1], r[3])" in python
    assert "ptx.inst.mov.u32(r_2[1], 0)" in python


_GAPS = (
    "",
    " ",
    "  ",
    "\t",
    "\n",
    "\n\n\t",
    " // x\n",
    "/* y */",
    " /*\n*/ ",
    "\t// begin inline asm\n",
    "\t// end inline asm\n",
)


def test_a_sample_of_the_corpus_comes_back_however_it_is_spaced(seed: int) -> None:
    draw = random.Random(seed)
    paths = [path for path in sorted(_CORPUS.glob("*/*.ptx")) if path.stat().st_size < 9_000]
    for path in draw.sample(paths, 12):
        tokens = [token.text for token in tokenize(path.read_bytes().decode())][:-1]
        strange = draw.choice((0.02, 0.3, 1.0))
        text = "".join([word + (draw.choice(_GAPS) if draw.random() < strange else " ") for word in tokens])
        if not parse(text, recover=True)[1]:
            assert problem(text) is None, path.name
