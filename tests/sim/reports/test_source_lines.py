"""Source lines of a module with `.loc`: of each line, in findings and in errors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyptx.diagnostics import Diagnostic, PythonFrame, Severity, Span
from pyptx.ir import Function, Instruction, Module, visit
from pyptx.parser import parse
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.reports.findings import Finding
from pyptx.sim.reports.source_lines import find_module_text, read_source_lines

TEXT = """.version 8.0
.target sm_90
.address_size 64
.file 1 "/src/axpy.cu"
.file 2 "/include/math.h"
.entry first() {
ret;
.loc 1 12 3
ret;
.loc 2 40 1, function_name $info, inlined_at 1 12 3
ret;
.loc 2 50 1, function_name $info, inlined_at 2 40 1
ret;
.loc 3 7 1, function_name $info, inlined_at 2 50 1
ret;
.loc 3 8 1, function_name $info, inlined_at 3 8 1
ret;
.loc 1 0 0
ret;
}
.entry second() {
ret;
.loc 1 20 1
ret;
.loc 2 41 1, function_name $info, inlined_at 2 40 1
ret;
}
"""
LINES = {
    9: "/src/axpy.cu:12", 11: "/src/axpy.cu:12, by math.h:40", 13: "/src/axpy.cu:12, by math.h:40, math.h:50",
    15: "/src/axpy.cu:12, by math.h:40, math.h:50, file 3:7", 17: "file 3:8", 24: "/src/axpy.cu:20",
    26: "/include/math.h:40, by math.h:41",
}  # fmt: skip
INLINE_ASSEMBLY = """.version 8.0
.target sm_90
.address_size 64
.file 1 "kernels.py"
.visible .entry load(.param .u64 x)
{
    .reg .b32 %r<2>;
    .reg .b64 %x;
    .loc 1 4 0
    ld.param.u64 %x, [x];
    // begin inline asm
    .loc 1 5 9
    mov.u32 %r1, 0;
    .loc 1 6 9
    ld.global.u32 %r1, [%x];
    // end inline asm
    // begin inline asm
    .loc 1 7 9
    add.u32 %r1, %r1, 1;
    // end inline asm
NEXT:
    .loc 1 8 0
    .loc 1 8 1
    .loc 1 9 1
    st.global.u32 [%x], %r1;
    .loc 1 10 0
    ret;
}
"""


def test_each_line_has_the_source_line_of_the_last_loc_of_its_function() -> None:
    assert read_source_lines(parse(TEXT)).of_line == {(None, line): name for line, name in LINES.items()}


def test_a_chain_of_inlined_lines_ends_after_eight() -> None:
    chain = "".join(f".loc 1 {n} 1, function_name $info, inlined_at 1 {n - 1} 1\nret;\n" for n in range(2, 20))
    module = parse(f'.version 8.0\n.target sm_90\n.address_size 64\n.file 1 "a.cu"\n.entry k() {{\n{chain}}}\n')
    names = list(read_source_lines(module).of_line.values())
    assert names[5:8] == [
        "a.cu:1, by " + ", ".join(f"a.cu:{n}" for n in range(2, 8)),
        "a.cu:1, by " + ", ".join(f"a.cu:{n}" for n in range(2, 9)),
        "a.cu:2, by " + ", ".join(f"a.cu:{n}" for n in range(3, 10)),
    ]


def test_a_line_on_which_two_modules_differ_has_no_source_line() -> None:
    same = read_source_lines(parse(TEXT), parse(TEXT.replace(".loc 1 20 1", ".loc 1 21 1")))
    assert same.of_line == {(None, line): name for line, name in LINES.items()} | {(None, 24): ""}


def cite(origin: Span | PythonFrame | None, *notes: str, other: Span | None = None, details: tuple[str, ...] = ()
         ) -> Diagnostic:  # fmt: skip
    diagnostic = Diagnostic(Severity.ERROR, "PTX0901", origin, "data race", notes, None, other, details)
    return read_source_lines(parse(TEXT)).cite_diagnostic(diagnostic)


def test_an_error_says_where_it_comes_from_and_cites_the_places_in_its_notes() -> None:
    cited = cite(Span(9, 1), "`ret` at <ptx>:11:1 after <ptx>:7:1", "no place", details=("waits at <ptx>:24:1",))
    assert cited.notes == (
        "it comes from /src/axpy.cu:12", "`ret` at <ptx>:11:1 (/src/axpy.cu:12, by math.h:40) after <ptx>:7:1",
        "no place",
    )  # fmt: skip
    assert cited.details == ("waits at <ptx>:24:1 (/src/axpy.cu:20)",)


def test_the_note_of_the_other_place_stays_first() -> None:
    cited = cite(Span(9, 1), "the other place", "why", other=Span(24, 1))
    assert cited.notes == ("the other place", "it comes from /src/axpy.cu:12", "why")


@pytest.mark.parametrize("origin", [
    None, Span(7, 1), Span(9, 1, 1, "other.ptx"), PythonFrame.of_definition(read_source_lines.__code__),
], ids=["none", "before", "other file", "python"])  # fmt: skip
def test_a_place_without_a_source_line_gets_no_note(origin: Span | PythonFrame | None) -> None:
    assert cite(origin, "why", "in other.ptx:9:1").notes == ("why", "in other.ptx:9:1")


@pytest.mark.parametrize(("line", "other", "note"), [
    (9, 24, "it comes from /src/axpy.cu:12; the other place comes from /src/axpy.cu:20"),
    (9, 7, "it comes from /src/axpy.cu:12"),
    (7, 24, "the other place comes from /src/axpy.cu:20"),
    (7, 7, ""), (9, 0, "it comes from /src/axpy.cu:12"),
])  # fmt: skip
def test_a_finding_cites_both_places(line: int, other: int, note: str) -> None:
    other_place = Place(Span(other, 1), "st") if other else None
    finding = Finding(rules.RACE, Place(Span(line, 1), "ld"), None, "reads", other_place, notes=("a note",))
    read_source_lines(parse(TEXT)).cite_finding(finding)
    assert finding.notes == ((note, "a note") if note else ("a note",))


def test_the_text_of_the_only_module_shows_its_places() -> None:
    module = parse(TEXT)
    assert find_module_text([module], [None, Span(9, 1, 3), Span(26, 1, 3)]) == TEXT
    assert find_module_text([module, module], [Span(9, 1, 3)]) is None
    assert find_module_text([module], [None]) is None


def delete_statements(module: Module, function: int, *places: int) -> Module:
    """Return a module without some statements of a function: what follows is printed on earlier lines."""
    functions = [node for node in module.directives if isinstance(node, Function)]
    kept = [node for place, node in enumerate(functions[function].body) if place not in places]
    functions[function] = replace(functions[function], body=tuple(kept))
    return replace(module, directives=(*module.directives[: -len(functions)], *functions))


@pytest.mark.parametrize(("deleted", "lines", "is_shown"), [
    ((0, 1), [9], False), ((0, 1), [7], True), ((0, 1), [7, 9], False), ((1, 1), [7, 9, 19, 22], True),
    ((1, 1), [7, 9, 24], False), ((0, 1), [26], False), ((0, 1, 3), [26], False), ((0, 1, 3, 5), [26], False),
    ((0, 1, 2), [11], True),
])  # fmt: skip
def test_an_edited_module_shows_places_only_if_all_are_at_their_instructions(
    deleted: tuple[int, ...], lines: list[int], is_shown: bool
) -> None:
    module = delete_statements(parse(TEXT), *deleted)
    assert (find_module_text([module], [Span(line, 1, 3) for line in lines]) is not None) is is_shown


def test_a_predicate_is_not_part_of_the_place() -> None:
    text = TEXT.replace("first() {\nret;", "first() {\n@p ret;")
    assert find_module_text([parse(text)], [Span(7, 4, 3)]) == text


def test_all_of_an_inline_assembly_has_its_first_line() -> None:
    module = parse(INLINE_ASSEMBLY)
    lines = read_source_lines(module)
    instructions = [node for node in visit(module) if isinstance(node, Instruction) and isinstance(node.origin, Span)]
    found = [lines.find(node.origin).removeprefix("kernels.py:") for node in instructions]
    assert found == ["4", "5", "5", "7", "9", "10"]
