"""The judge of many instructions: each verdict equals that of ptxas on the instruction alone."""

from __future__ import annotations

import random
import re

import pytest

from pyptx.diagnostics import PtxError
from pyptx.toolchain import Verdict, judge, validate

REGISTERS = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>;"

GOOD = [
    "add.s32 %r1, %r2, %r3;",
    "ld.global.v2.u32 {%r1, %r2}, [%rd1+8];",
    "@%p1 fma.rn.f32 %f1, %f2, %f3, %f1;",
    "AGAIN: bra AGAIN;",
    ".reg .b32 %mine; mov.b32 %mine, %r1;\nadd.u32 %r1, %mine, 1;",
    "mov.u32 %r1, %tid.x; // a comment",
    "/* a comment */ mov.u32 %r1, %r2;",
    "",
]
BAD = [
    "add.s99 %r1, %r2, %r3;",
    "add.s32 %r1 %r2;",
    "add.s32 %r1, %r2, %r3",
    "nonsense;",
    "add.f32 %r1, %r2, missing;",
    "mov.b32 %mine, %r1;",
    "bra AGAIN;",
    "}",
    "{",
    "/* never closed",
    '.file 1 "never closed',
    "bar.sync 17;",
    "bar.sync %r1, 33;",
    "mov.u32 %r1, \u00e9;",
    "ld.global.u32 %r1, [%r1+;",
    "ret; } .visible .entry judged_0() {",
]


def _judge(instructions: list[str], target: str = "sm_90a", *, generate: bool = False) -> list[Verdict]:
    return judge(instructions, target=target, version=(8, 0), registers=REGISTERS, generate=generate)


@pytest.mark.parametrize("generate", [False, True])
def test_every_verdict_is_right(generate: bool) -> None:
    verdicts = _judge([*GOOD, *BAD, *GOOD], generate=generate)
    acceptance = [v.accepted for v in verdicts]
    assert acceptance == [True] * len(GOOD) + [False] * len(BAD) + [True] * len(GOOD)
    assert all(v.diagnostics for v in verdicts if not v.accepted)
    assert all(not v.diagnostics for v in verdicts if v.accepted)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_neighbors_do_not_change_a_verdict(share: float, seed: int) -> None:
    rng = random.Random(seed)
    sample = [rng.choice(BAD if rng.random() < share else GOOD) for _ in range(700)]
    verdicts = _judge(sample)
    wrong = {text for text, verdict in zip(sample, verdicts, strict=True) if verdict.accepted != (text in GOOD)}
    assert wrong == set()


@pytest.mark.parametrize("count", [1, 2, 9, 17, 40])
def test_what_follows_an_error_of_syntax_gets_its_own_verdict(count: int) -> None:
    """ptxas reads nothing after the first one in a file."""
    good, unknown, syntax = GOOD[0], "add.u32 %r1, %r2, missing;", "add.s32 %r1 %r2;"
    for texts in ([good, unknown, *[syntax] * count], [syntax, *[good] * count, unknown], [syntax, unknown] * count):
        assert [v.accepted for v in _judge(texts)] == [text == good for text in texts]


def _numberless(message: str) -> str:
    return re.sub(r"on line \d+", "on line N", message)


def test_a_message_is_the_one_that_the_instruction_gets_alone() -> None:
    frame = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{{\n{}\n{{\n{}\n}}\nret;\n}}\n"
    for text, verdict in zip(BAD, _judge(BAD), strict=True):
        alone = validate(frame.format(REGISTERS, text))
        assert [_numberless(d.message) for d in verdict.diagnostics] == [_numberless(d.message) for d in alone]


def test_neighbors_that_complete_each_other_are_still_wrong() -> None:
    """These braces and comments balance together, but each alone does not."""
    texts = ["{", GOOD[0], "}", "/*", GOOD[0], "*/"]
    assert [v.accepted for v in _judge(texts)] == [False, True, False, False, True, False]


def test_lines_count_from_the_instructions_own_first() -> None:
    (verdict,) = _judge(["add.u32 %r1, %r1, 1;\n\nadd.u33 %r1, %r1, 1;"])
    assert {d.line for d in verdict.diagnostics} == {3}


def test_target_and_version_decide() -> None:
    fence = ["wgmma.fence.sync.aligned;"]
    assert _judge(fence, "sm_90a") == [Verdict(True)]
    assert not _judge(fence, "sm_90")[0].accepted
    commit = ["cp.async.bulk.commit_group;"]
    for version, is_accepted in [((8, 0), True), ((7, 8), False)]:
        (verdict,) = judge(commit, target="sm_90", version=version, registers=REGISTERS)
        assert verdict.accepted == is_accepted


def test_only_code_generation_sees_too_much_shared_memory() -> None:
    big = ".shared .b8 big[300000]; mov.u32 %r1, big; st.shared.u32 [%r1], %r1;"
    assert [v.accepted for v in _judge([GOOD[0], big])] == [True, True]
    verdicts = _judge([GOOD[0], big, GOOD[1]], generate=True)
    assert [v.accepted for v in verdicts] == [True, False, True]
    assert "uses too much shared data" in verdicts[1].diagnostics[0].message


def test_what_is_too_much_together_is_not_held_against_each() -> None:
    half = ".shared .b8 half_{}[100000]; mov.u32 %r1, half_{}; st.shared.u32 [%r1], %r1;"
    assert all(v.accepted for v in _judge([half.format(n, n) for n in range(6)], generate=True))


def test_declarations_parameters_and_directives_surround_them() -> None:
    verdicts = judge(
        ["ld.param.u64 %rd1, [p];", "ld.shared.u32 %r1, [tile+4];", "setmaxnreg.inc.sync.aligned.u32 240;"],
        target="sm_90a",
        version=(8, 0),
        declarations=".shared .align 4 .b8 tile[64];\n.func helper() { ret; }",
        parameters="(.param .u64 p) .reqntid 128 .maxnreg 64",
        registers=REGISTERS,
    )
    assert [v.accepted for v in verdicts] == [True] * 3


@pytest.mark.parametrize(
    "surroundings",
    [("()", ".reg .b33 %r;", ""), ("()", "", "}"), ("(.param", "", ""), ("()", "ret; } /*", "")],
)
def test_surroundings_that_are_wrong_are_an_error(surroundings: tuple[str, str, str]) -> None:
    parameters, registers, declarations = surroundings
    with pytest.raises(PtxError):
        judge(
            ["ret;"],
            target="sm_90a",
            version=(8, 0),
            parameters=parameters,
            registers=registers,
            declarations=declarations,
        )


def test_nothing_to_judge_is_no_error() -> None:
    assert _judge([]) == []
