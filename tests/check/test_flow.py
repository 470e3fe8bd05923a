"""Control and data flow: registers read before they are written, unreachable code, code that part of a warp may
skip."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.parser import parse
from tests.check.report import BODY_LINE, HEADER, report


def flow_report(body: str) -> list[str]:
    """Return `CODE line` of the data-flow findings, lines counted from the body's first as 1."""
    text = HEADER.format(target="sm_90a", version="8.6") + body + "\n    ret;\n}\n"
    return [f"{d.code} {d.line - BODY_LINE + 1}" for d in check(parse(text), unused=True) if d.code < "PTX0504"]


@pytest.mark.parametrize(
    ("body", "findings"),
    [
        ("add.s32 %r0, %r1, 1;", ["PTX0501 1"]),
        ("mov.b32 %r1, 1;\nadd.s32 %r0, %r1, 1;", []),
        ("@%p0 mov.b32 %r1, 1;", ["PTX0501 1"]),
        ("setp.eq.b32 %p0, 1, 2;\n@%p0 bra L;\nmov.b32 %r1, 1;\nL:\nadd.s32 %r0, %r1, 1;", ["PTX0502 5"]),
        (
            "setp.eq.b32 %p0, 1, 2;\n@%p0 bra L;\nmov.b32 %r1, 1;\nbra J;\nL: mov.b32 %r1, 2;\nJ: add.s32 %r0, %r1, 1;",
            [],
        ),
        ("L:\nmov.b32 %r1, 1;\nsetp.eq.b32 %p0, %r1, 2;\n@%p0 bra L;\nadd.s32 %r0, %r1, 1;", []),
        ("bra L;\nmov.b32 %r1, 1;\nL:", ["PTX0503 2"]),
        ("{ .reg .b32 %r0; mov.b32 %r0, 1; }\nadd.s32 %r1, %r0, 1;", ["PTX0501 2"]),
        ("ret;\nret;", []),
        ("mov.b64 {%r0, %r1}, 5;\nadd.s32 %r2, %r0, %r1;", []),
        ("mov.b32 %r0, 0;\nld.global.b32 %r1, [%rd3];", ["PTX0501 2"]),
    ],
)
def test_definite_assignment_and_reachability(body: str, findings: list[str]) -> None:
    assert flow_report(body) == findings


_TEST = "setp.eq.b32 %p0, %r9, 2;\nsetp.eq.b32 %p1, %r8, 3;\n"
_WRITE = "@%p0 bra A;\nmov.b32 %r1, 1;\nA:\n"


@pytest.mark.parametrize(
    ("body", "findings"),
    [
        (f"{_TEST}{_WRITE}@%p0 bra B;\nadd.s32 %r0, %r1, 1;\nB:", []),
        (f"{_TEST}{_WRITE}@!%p0 bra B;\nadd.s32 %r0, %r1, 1;\nB:", ["PTX0502 7"]),
        (f"{_TEST}{_WRITE}@%p1 bra B;\nadd.s32 %r0, %r1, 1;\nB:", ["PTX0502 7"]),
        (f"{_TEST}{_WRITE}setp.eq.b32 %p0, %r8, 2;\n@%p0 bra B;\nadd.s32 %r0, %r1, 1;\nB:", ["PTX0502 8"]),
        (f"{_TEST}{_WRITE}@%p1 setp.eq.b32 %p0, %r8, 2;\n@%p0 bra B;\nadd.s32 %r0, %r1, 1;\nB:", ["PTX0502 8"]),
        (f"{_TEST}{_WRITE}@%p0 bra B;\nB:\nadd.s32 %r0, %r1, 1;", ["PTX0502 8"]),
        (f"{_TEST}{_WRITE}@%p0 exit;\nadd.s32 %r0, %r1, 1;", []),
        (f"{_TEST}{_WRITE}@!%p0 add.s32 %r0, %r1, 1;", []),
        (f"{_TEST}{_WRITE}@%p0 add.s32 %r0, %r1, 1;", ["PTX0502 6"]),
        (f"{_TEST}{_WRITE}@!%p0 add.s32 %r0, %r1, 1;\nadd.s32 %r0, %r1, 1;", ["PTX0502 7"]),
        (f"{_TEST}{_WRITE}add.s32 %r0, %r1, 1;\nadd.s32 %r0, %r1, 1;", ["PTX0502 6"]),
        (f"{_TEST}{_WRITE}@!%p0 add.s32 %r0, %r1, 1;\nmov.b32 %r1, 2;\nadd.s32 %r0, %r1, 1;", []),
        (f"{_TEST}{_WRITE}setp.eq.b32 %p0, %r8, 2;\n@!%p0 add.s32 %r0, %r1, 1;", ["PTX0502 7"]),
        (f"{_TEST}L:\n{_WRITE}@%p0 bra B;\nadd.s32 %r0, %r1, 1;\nB:\n@%p1 bra L;", []),
        (f"{_TEST}L:\n{_WRITE}setp.eq.b32 %p0, %r8, 4;\n@%p1 bra L;\n@%p0 bra B;\nadd.s32 %r0, %r1, 1;\nB:",
         ["PTX0502 10"]),
    ],
)  # fmt: skip
def test_two_tests_of_an_unchanged_predicate_agree(body: str, findings: list[str]) -> None:
    assert flow_report(f"mov.b32 %r9, 1; mov.b32 %r8, 1; {body}") == findings


@pytest.mark.parametrize(
    ("skips", "writes", "findings"),
    [
        ("mov.pred %p2, -1;", "mov.pred %p2, 0;", []),
        ("mov.pred %p2, 1;", "mov.pred %p2, 0;", []),
        ("mov.pred %p2, 0;", "mov.pred %p2, 0;", ["PTX0502 10"]),
        ("mov.pred %p2, 0;", "mov.pred %p2, 1;", ["PTX0502 10"]),
        ("mov.pred %p2, %p1;", "mov.pred %p2, 0;", ["PTX0502 10"]),
        ("@%p1 mov.pred %p2, 1;", "mov.pred %p2, 0;", ["PTX0502 10"]),
        ("mov.pred %p2, 1;", "@%p1 mov.pred %p2, 0;", []),
    ],
)
def test_a_predicate_says_which_path_made_it(skips: str, writes: str, findings: list[str]) -> None:
    body = (
        f"mov.pred %p2, 0;\n{skips}\n@%p0 bra A;\n{writes}\nmov.b32 %r1, 1;\nA:\n@%p2 bra B;\nadd.s32 %r0, %r1, 1;\nB:"
    )
    assert flow_report(f"mov.b32 %r9, 1; mov.b32 %r8, 1; {_TEST}{body}") == findings


def test_a_predicate_counts_in_the_scope_that_declares_it() -> None:
    inner = "{ .reg .pred %p0; setp.eq.b32 %p0, %r8, 1;\n@%p0 bra B;\nadd.s32 %r0, %r1, 1;\nB: }"
    assert flow_report(f"mov.b32 %r9, 1; mov.b32 %r8, 1; {_TEST}{_WRITE}{inner}") == ["PTX0502 8"]


def test_a_branch_on_an_undeclared_predicate_says_nothing_of_paths() -> None:
    body = "mov.b32 %r9, 1; mov.b32 %r8, 1; setp.eq.b32 %p0, %r9, 2;\n@%q bra A;\nmov.b32 %r1, 1;\nA:\n@%q bra B;"
    assert flow_report(f"{body}\nadd.s32 %r0, %r1, 1;\nB:") == ["PTX0401 2", "PTX0401 5", "PTX0502 6"]


def test_a_mov_without_operands_does_not_keep_the_rest_from_being_checked() -> None:
    body = "mov.b32 %r9, 1; mov.b32 %r8, 1; mov.pred;\nsetp.eq.b32 %p0, %r9, 2;\n"
    assert flow_report(f"{body}{_WRITE}add.s32 %r0, %r1, 1;") == ["PTX0201 1", "PTX0502 6"]


CONDITIONS = [
    ("setp.eq.s32 %p0, %r0, 0;", True),
    ("setp.lt.s32 %p0, %r0, 64;", False),
    ("setp.lt.s32 %p0, %r0, 65;", True),
    ("setp.gt.s32 %p0, %r0, 63;", False),
    ("setp.lt.s32 %p0, %r0, 96;", False),
    ("add.s32 %r0, %r0, 32;\nsetp.lt.s32 %p0, %r0, 96;", False),
    ("add.s32 %r0, %r0, 1;\nsetp.lt.s32 %p0, %r0, 96;", True),
    ("div.u32 %r1, %r0, 64;\nsetp.eq.s32 %p0, %r1, 0;", False),
    ("div.u32 %r1, %r0, 48;\nsetp.eq.s32 %p0, %r1, 0;", True),
    ("mov.u32 %r1, %laneid;\nshfl.sync.idx.b32 %r2, %r0, %r1, 31, -1;\nsetp.eq.s32 %p0, %r2, 0;", True),
    ("mov.u32 %r1, %ctaid.x;\nshfl.sync.idx.b32 %r2, %r0, %r1, 31, -1;\nsetp.eq.s32 %p0, %r2, 0;", False),
    ("shfl.sync.down.b32 %r2, %r0, 1, 31, -1;\nsetp.eq.s32 %p0, %r2, 0;", True),
    ("setp.eq.s32 %p1, %r0, 3;\nmov.b32 %r1, 0;\n@%p1 mov.b32 %r1, 1;\nsetp.eq.s32 %p0, %r1, 0;", True),
    ("setp.eq.s32 %p1, %r0, 3;\n@%p1 mov.b32 %r1, 1;\nmov.b32 %r1, 0;\nsetp.eq.s32 %p0, %r1, 0;", False),
    ("shr.u32 %r1, %r0, 5;\nsetp.eq.s32 %p0, %r1, 0;", False),
    ("shr.u32 %r1, %r0, 4;\nsetp.eq.s32 %p0, %r1, 0;", True),
    ("and.b32 %r1, %r0, 31;\nsetp.eq.s32 %p0, %r1, 0;", True),
    ("and.b32 %r1, %r0, 96;\nsetp.eq.s32 %p0, %r1, 0;", False),
    ("shr.u32 %r1, %r0, 4;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nsetp.eq.s32 %p0, %r2, 0;", False),
    ("and.b32 %r1, %r0, 127;\nsetp.lt.u32 %p0, %r1, 32;", False),
    ("and.b32 %r1, %r0, 15;\nsetp.lt.u32 %p0, %r1, 8;", True),
    ("mov.u32 %r1, %ctaid.x;\nor.b32 %r1, %r0, %r1;\nand.b32 %r1, %r1, -32;\nsetp.eq.s32 %p0, %r1, 0;", False),
    ("mov.u32 %r1, %ctaid.x;\nor.b32 %r1, %r0, %r1;\nsetp.eq.s32 %p0, %r1, 0;", True),
    ("elect.sync %r1|%p0, -1;", True),
    ("mov.u32 %r1, %laneid;\nsetp.eq.s32 %p0, %r1, 0;", True),
    ("mov.u32 %r1, %ctaid.x;\nsetp.eq.s32 %p0, %r1, 0;", False),
    ("ld.global.b32 %r1, [%rd0];\nsetp.eq.s32 %p0, %r1, 0;", False),
    (
        "cvt.u64.u32 %rd1, %r0;\nadd.s64 %rd2, %rd0, %rd1;\nld.global.b32 %r1, [%rd2];\nsetp.eq.s32 %p0, %r1, 0;",
        True,
    ),
]
"""Conditions on %p0, and whether it differs between the lanes of a warp."""
WARP = "mov.u32 %r0, %tid.x;\n{}\n@%p0 bra SKIP;\nbarrier.sync.aligned 1;\nSKIP:\nst.global.b32 [%rd7], %r0;"


@pytest.mark.parametrize(("condition", "warns"), CONDITIONS)
def test_an_aligned_instruction_behind_a_branch_that_divides_a_warp(condition: str, warns: bool) -> None:
    findings = [f for f in report(WARP.format(condition)) if f.startswith("PTX0601")]
    assert bool(findings) is warns


@pytest.mark.parametrize(("condition", "warns"), CONDITIONS)
def test_a_guard_of_an_aligned_instruction(condition: str, warns: bool) -> None:
    body = f"mov.u32 %r0, %tid.x;\n{condition}\n@%p0 barrier.sync.aligned 1;\nst.global.b32 [%rd7], %r0;"
    findings = [f for f in report(body) if f.startswith("PTX0601")]
    assert findings == [f"PTX0601 {3 + condition.count(chr(10))}"] * warns


_ONE_THREAD = "mov.u32 %r0, %tid.x;\nsetp.eq.s32 %p0, %r0, 128;\n"
_ELECTED = (
    "mov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nsetp.eq.s32 %p2, %r2, 4;\n"
    "elect.sync %r3|%p3, -1;\nand.pred %p0, %p2, %p3;\n"
)


@pytest.mark.parametrize("divider", [_ONE_THREAD, _ELECTED, _ELECTED.replace("%r2, %r1", "%r2|%q3, %r1")])
@pytest.mark.parametrize(
    ("remainder", "warns"),
    [
        ("setp.gt.s32 %p1, %r0, 127;", False),
        ("setp.gt.s32 %p1, %r0, 159;", True),
        ("setp.gt.s32 %p1, %r0, 128;", True),
        ("@%q5 setp.gt.s32 %p1, %r0, 127;", True),
        ("setp.lt.u32 %p1, %r0, 160;", False),
        ("setp.lt.u32 %p1, %r0, 159;", True),
        ("add.s32 %r4, %r0, -160;\nsetp.gt.u32 %p1, %r4, 1023;", False),
        ("add.s32 %r4, %r0, -160;\nsetp.gt.s32 %p1, %r4, 1023;", True),
        ("shr.u32 %r4, %r0, 7;\nsetp.ne.s32 %p1, %r4, 0;", False),
        ("shr.u32 %r4, %r0, 5;\nsetp.eq.s32 %p1, %r4, 4;", False),
        ("shr.u32 %r4, %r0, 5;\nsetp.eq.s32 %p1, %r4, 3;", True),
        ("shr.u32 %r4, %r0, 5;\nsetp.eq.s32 %q4, %r4, 4;\nmov.u32 %r5, %ctaid.x;\nsetp.eq.s32 %q5, %r5, 0;\n"
         "or.pred %p1, %q4, %q5;", False),
        ("shr.u32 %r4, %r0, 5;\nsetp.eq.s32 %q4, %r4, 4;\nmov.u32 %r5, %ctaid.x;\nsetp.eq.s32 %q5, %r5, 0;\n"
         "and.pred %p1, %q4, %q5;", True),
    ],
)  # fmt: skip
def test_a_branch_divides_the_warps_that_it_splits_and_no_others(divider: str, remainder: str, warns: bool) -> None:
    body = (
        f".reg .pred %q<6>;\n{divider}@%p0 bra ONE;\n{remainder}\n@%p1 bra OUT;\nbar.sync 1, 128;\nbra OUT;\n"
        "ONE: mov.b32 %r9, 1;\nOUT:"
    )
    findings = [f for f in report(f"{body} st.global.b32 [%rd7], %r0;") if f.startswith("PTX0601")]
    assert bool(findings) is warns


@pytest.mark.parametrize(("last", "warns"), [(990, True), (991, False), (1022, True)])
def test_a_branch_divides_the_last_warp_of_the_largest_block(last: int, warns: bool) -> None:
    divider = _ONE_THREAD.replace("128", "1023")
    remainder = f"setp.gt.s32 %p1, %r0, {last};"
    test_a_branch_divides_the_warps_that_it_splits_and_no_others(divider, remainder, warns)


def _write_numbers(count: int) -> str:
    """Write that many numbers other than 0 into one register."""
    return "".join(f"mov.u32 %r10, {number};" for number in range(1, count + 1))


_CONSTANTS = "mov.u32 %r10, 0;\nmov.u32 %r11, 31;\n"
_REST = (
    "shfl.sync.idx.b32 %r2|%q0, %r1, %r10, %r11, -1;\nsetp.eq.s32 %p2, %r2, %r12;\nelect.sync %r10|%p3, -1;\n"
    "and.pred %p0, %p2, %p3;\n@%p0 bra ONE;\nsetp.gt.s32 %p1, %r0, 127;\n@%p1 bra OUT;\nbar.sync 1, 128;\n"
    "bra OUT;\nONE: mov.b32 %r11, %r10;\nOUT: st.global.b32 [%rd7], %r11;"
)


@pytest.mark.parametrize(
    ("constants", "warns"),
    [
        (_CONSTANTS, False),
        (_CONSTANTS + "bra J;\nJ:\n", False),
        ("mov.u32 %r10, 7;\n" + _CONSTANTS + "bra J;\nJ:\n", False),
        (_CONSTANTS + "@%q1 mov.u32 %r10, 0;\n", False),
        (_CONSTANTS + "@%q1 bra J;\nmov.u32 %r10, 0;\nJ:\n", False),
        ("mov.b32 %r11, 31;\n@%q1 bra K;\nmov.s32 %r10, 0;\nbra J;\nK: mov.b32 %r10, 0;\nJ:\n", False),
        (_CONSTANTS + "@%q1 bra J;\n@%q1 mov.u32 %r10, 0;\nJ:\n", False),
        (_CONSTANTS + "mov.u32 %r10, 7;\nbra J;\nJ: mov.u32 %r10, 0;\n", False),
        (_CONSTANTS + "mov.u32 %r10, 1;\n", True),
        (_CONSTANTS + "mov.u32 %r11, 15;\n", True),
        (_CONSTANTS + "@%q1 mov.u32 %r10, 1;\n", True),
        (_CONSTANTS + "@%q1 bra J;\nmov.u32 %r10, 1;\nJ:\n", True),
        (_CONSTANTS + "@%q1 bra J;\n@%q1 mov.u32 %r10, 1;\nJ:\n", True),
        (_CONSTANTS + "@%q1 bra J;\nmov.u32 %r11, 15;\nJ:\n", True),
        (_CONSTANTS + "add.u32 %r10, %r0, 0;\n", True),
        (_CONSTANTS + "@%q1 bra J;\nadd.u32 %r10, %r0, 0;\nJ:\n", True),
        (_CONSTANTS + "add.u32 %r10, %r0, 0;\nbra J;\nJ:\n", True),
        ("mov.u32 %r11, 31;\n@%q1 bra J;\nmov.u32 %r10, 0;\nJ:\n", True),
        ("mov.u32 %r11, 31;\n@%q1 mov.u32 %r10, 0;\n", True),
        ("mov.u32 %r11, 31;\n@%q1 mov.u32 %r10, 0;\nbra J;\nJ:\n", True),
        (_write_numbers(15) + _CONSTANTS + "bra J;\nJ:\n", False),
        (_write_numbers(16) + _CONSTANTS + "bra J;\nJ:\n", True),
        (_CONSTANTS + "bra J;\nB: mov.u32 %r10, 1;\nJ:\n@%q1 bra B;\n", True),
    ],
)  # fmt: skip
def test_a_register_that_holds_a_constant_on_every_path_is_that_constant(constants: str, warns: bool) -> None:
    start = ".reg .pred %q<2>;\nmov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nmov.u32 %r12, 4;\n"
    findings = [f for f in report(start + constants + _REST) if f.startswith("PTX0601")]
    assert bool(findings) is warns


def test_a_shfl_of_an_undeclared_register_does_not_keep_the_rest_from_being_checked() -> None:
    body = "mov.u32 %r1, %tid.x;\nshfl.sync.bfly.b32 %none, %r1, 1, 31, -1;\nld.shared.b32 %r2, [%r1];\n"
    body += "setp.eq.b32 %p0, %r2, 0;\n@%p0 bra L;\nbar.sync 0;\nL: bar.sync 1;"
    assert report(body) == ["PTX0401 2", "PTX0601 6"]


def test_a_guard_that_is_not_declared_does_not_keep_the_rest_from_being_checked() -> None:
    body = f"{_ONE_THREAD}@%p0 bra A;\n@%undeclared bra B;\nbar.sync 0;\nB: mov.b32 %r1, 1;\nA:\n"
    assert report(f"{body}st.global.b32 [%rd7], %r0;") == ["PTX0401 4", "PTX0601 5"]


@pytest.mark.parametrize("value", ["activemask.b32 %r8;", "call (%r8), none;", "call (%r8), f, (%r0);"])
def test_a_value_that_no_operand_gives_says_nothing_of_warps(value: str) -> None:
    body = f"{value}\nsetp.eq.b32 %p1, %r8, 1;\n{_ONE_THREAD}@%p0 bra A;\n@%p1 bra A;\nbar.sync 0;\nA:\n"
    assert report(f"{body}st.global.b32 [%rd7], %r0;") == ["PTX0601 7"]


def test_a_branch_divides_none_but_the_warps_that_get_to_it() -> None:
    body = (
        "mov.u32 %r0, %tid.x;\nsetp.ge.u32 %p0, %r0, 32;\n@%p0 bra REST;\nelect.sync %r3|%p3, -1;\n@%p3 bra ONE;\n"
        "bra OUT;\nREST: mov.u32 %r5, %ctaid.x;\nONE:\nmov.b32 %r9, 1;\n@!%p0 bra OUT;\nbar.sync 1, 96;\nOUT:"
    )
    assert report(f"{body} st.global.b32 [%rd7], %r9;") == []


def test_a_predicate_that_is_written_twice_says_nothing_of_warps() -> None:
    body = (
        f"{_ONE_THREAD}@%p0 bra ONE;\nsetp.gt.s32 %p1, %r0, 127;\nmov.u32 %r5, %ctaid.x;\n"
        "setp.gt.s32 %p1, %r5, 0;\n@%p1 bra OUT;\nbar.sync 1, 128;\nbra OUT;\nONE: mov.b32 %r9, 1;\nOUT:"
    )
    assert [f for f in report(f"{body} st.global.b32 [%rd7], %r0;") if f.startswith("PTX0601")]


_LOOP = "LOOP:\nbar.sync 1;\nbra LOOP;"
_SKIP = "mov.u32 %r0, %tid.x;\nsetp.eq.s32 %p0, %r0, 7;\n@%p0 bra {};\n"


@pytest.mark.parametrize(
    ("body", "warns"),
    [
        (f"{_SKIP.format('A')}mov.b32 %r1, 1;\nA:\nbar.sync 0;\n{_LOOP}", False),
        (f"{_SKIP.format('A')}bar.sync 0;\nA:\n{_LOOP}", True),
        (f"{_SKIP.format('A')}bar.sync 0;\nmov.b32 %r1, 1;\nst.global.b32 [%rd7], %r1;\nret;\nA:\nbra A;", False),
        (f"{_SKIP.format('LOOP')}ret;\n{_LOOP}", False),
    ],
)
def test_a_loop_without_an_exit_divides_nothing_behind_it(body: str, warns: bool) -> None:
    assert bool([f for f in report(body) if f.startswith("PTX0601")]) is warns


def test_lanes_that_leave_do_not_divide_those_that_stay() -> None:
    assert report("mov.u32 %r0, %tid.x;\nsetp.eq.s32 %p0, %r0, 7;\n@%p0 bra OUT;\nbar.sync 0;\nOUT:") == []


def test_a_failed_assertion_in_a_branch_does_not_keep_the_warp_divided() -> None:
    branch = (
        "setp.eq.u32 %p0, %r0, 0;\nsetp.eq.u32 %p1, %r1, 0;\n@!%p0 bra J;\n@%p1 bra T;\nbra J;\nT: {}\nJ: bar.sync 0;"
    )
    start = "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n"
    assert report(start + branch.format("trap;\nexit;")) == []
    assert report(start + branch.format("exit;")) == ["PTX0601 9"]


def test_a_loop_whose_count_differs_by_lane_divides_its_body() -> None:
    loop = "L:\nbar.sync 0;\nsub.s32 %r0, %r0, 1;\nsetp.gt.s32 %p0, %r0, 0;\n@%p0 bra L;"
    body = f"mov.u32 %r0, %laneid;\n{loop}\nmov.b32 %r9, 1;"
    assert report(body) == ["PTX0601 3"]


DIVIDE = "mov.u32 %r0, %tid.x;\nsetp.eq.s32 %p0, %r0, 7;\n@%p0 bra A;\n"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("mov.b32 %r1, 1;\nA:\nbar.sync 0;\nmov.b32 %r1, 1;", []),
        ("bar.sync 0;\nA:\nbar.sync 1;\nmov.b32 %r1, 1;", [4]),
        ("bra B;\nA:\nbar.sync 0;\nB:\nbar.sync 1;\nmov.b32 %r1, 1;", [6]),
        ("@%p1 bra B;\nbar.sync 0;\nB:\nbar.sync 1;\nA:\nbar.sync 2;\nmov.b32 %r1, 1;", [5, 7]),
        (
            "mov.b32 %r1, 1;\nA:\nsetp.eq.s32 %p1, %r1, 1;\n@%p1 bra C;\nbar.sync 0;\nC: mov.b32 %r3, 1;",
            [8],
        ),
    ],
)
def test_a_warp_is_whole_again_where_its_branches_join(body: str, lines: list[int]) -> None:
    assert [f for f in report(DIVIDE + body) if f.startswith("PTX0601")] == [f"PTX0601 {line}" for line in lines]


@pytest.mark.parametrize(("scale_d", "findings"), [("0", []), ("1", ["PTX0502 1"]), ("%p0", [])])
def test_an_accumulator_is_read_where_it_is_certainly_scaled_by_one(scale_d: str, findings: list[str]) -> None:
    wgmma = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, 1, 2, {scale_d}, 1, 1, 0, 0;"
    body = wgmma if scale_d != "%p0" else f"setp.eq.b32 %p0, 1, 2; {wgmma}"
    assert flow_report(body) == findings
