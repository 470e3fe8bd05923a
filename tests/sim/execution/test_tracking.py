"""Poison: registers that are read before they are written are reported at the read, and correct reads are not."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest

from examples.parts.example import load_examples
from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.execution.tracking import POISON, Tracker
from pyptx.sim.program.blocks import prepare
from tests.messages import raises
from tests.sim.kernels import kernel
from tests.sim.test_corpus import CASES
from tools import sim_corpus

STORE = "st.global.u32 [%o], %r0;"


def run_with_poison(body: str, module: str = "", **options: Any) -> list[int]:
    out = np.zeros(64, np.uint32)
    options = {"poison": True, "check": "none", **options}
    sim.run(parse(kernel(body, module=module)), block=64, args=(out,), **options)
    return out.tolist()


WRONG = [
    (f"add.u32 %r0, %r1, 1;\n{STORE}", "%r1", 64),
    (f"setp.lt.u32 %p0, %t, 5;\n@%p0 mov.u32 %r0, 1;\n{STORE}", "%r0", 59),
    (f"setp.lt.u32 %p0, %t, 5;\n@%p0 bra x;\nmov.u32 %r0, 1;\nx: {STORE}", "%r0", 5),
    (f"mov.u32 %r2, %r1;\nmov.u32 %r0, %r2;\n{STORE}", "%r0", 64),
    ("@%p3 bra x;\nst.global.u32 [%o], %t;\nx:", "%p3", 64),
    ("@%p3 st.global.u32 [%o], %t;", "%p3", 64),
    (f"setp.ge.u32 %p0, %t, 60;\nmov.u32 %r0, 3;\n@%p0 add.u32 %r0, %r0, %r7;\n{STORE}", "%r7", 4),
    (f"mov.u32 %r2, 0;\nl: add.u32 %r0, %r2, 1;\nsetp.gt.u32 %p0, %r2, 2;\n@%p0 add.u32 %r0, %r0, %r5;\n"
     f"add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 5;\n@%p1 bra l;\n{STORE}", "%r5", 64),
    ("bar.sync %r4;", "%r4", 64),
    (f"{{ .reg .b32 %v<2>; mov.b64 {{%v0, _}}, %o; add.u32 %r0, %v0, %v1; }}\n{STORE}", "%v1", 64),
    (f"setp.lt.u32 %p0, %t, 5;\nselp.u32 %r0, %r1, 3, %p0;\n{STORE}", "%r0", 5),
    (f"setp.lt.u32 %p0, %t, 5;\nselp.u32 %r0, 3, %r1, %p0;\n{STORE}", "%r0", 59),
    (f"selp.u32 %r0, 3, 4, %p1;\n{STORE}", "%p1", 64),
    (f"sub.u32 %r1, %t, 5;\nslct.u32.s32 %r0, %r2, 3, %r1;\n{STORE}", "%r0", 59),
    (f"sub.u32 %r1, %t, 5;\nslct.u32.s32 %r0, 3, %r2, %r1;\n{STORE}", "%r0", 5),
    (f"slct.u32.f32 %r0, 3, 4, %f1;\n{STORE}", "%f1", 64),
    (f"prmt.b32 %r0, %t, %r1, 0x3214;\n{STORE}", "%r0", 64),
    (f"prmt.b32 %r0, %t, %r1, %t;\n{STORE}", "%r0", 32),
    (f"prmt.b32 %r0, %t, %t, %r1;\n{STORE}", "%r1", 64),
    (f"cvt.u16.u32 %h1, %t;\nmov.b32 %r0, {{%h1, %h2}};\n{STORE}", "%r0", 64),
    (f"mov.b32 {{%h1, %h2}}, %r1;\ncvt.u32.u16 %r0, %h2;\n{STORE}", "%h2", 64),
    (f"cvt.u16.u32 %h1, %t;\nmov.b32 %r1, {{%h1, %h2}};\nmov.b32 {{%h3, %h4}}, %r1;\n"
     f"cvt.u32.u16 %r0, %h4;\n{STORE}", "%h4", 64),
    (f"prmt.b32 %r2, %t, %r1, 0x3341;\nprmt.b32 %r0, %r2, %t, 0x4441;\n{STORE}", "%r0", 64),
    ("mov.b64 %rd1, {%r1, %t};\nshr.u64 %rd1, %rd1, 32;\nst.global.u64 [%o], %rd1;", "%rd1", 64),
    (f"and.b32 %r0, %r1, 0;\n{STORE}", "%r1", 64),
]  # fmt: skip
RIGHT = [
    f"setp.lt.u32 %p0, %t, 5;\nmov.u32 %r0, 2;\n@%p0 mov.u32 %r1, 1;\n@%p0 mov.u32 %r0, %r1;\n{STORE}",
    f"setp.lt.u32 %p0, %t, 5;\n@%p0 mov.u32 %r1, 1;\n@!%p0 mov.u32 %r1, 2;\nadd.u32 %r0, %r1, 1;\n{STORE}",
    f"setp.lt.u32 %p0, %t, 5;\n@%p0 bra x;\nmov.u32 %r1, 1;\nadd.u32 %r0, %r1, 1;\n{STORE}\nx:",
    f"mov.u32 %r2, %r1;\nmov.u32 %r0, %t;\n{STORE}",
    f"setp.lt.u32 %p0, %t, 5;\n@%p0 mov.u32 %r1, 1;\nselp.u32 %r0, %r1, 3, %p0;\n{STORE}",
    f"setp.lt.u32 %p0, %t, 5;\n@!%p0 mov.u32 %r1, 1;\nselp.u32 %r0, 3, %r1, %p0;\n{STORE}",
    f"setp.lt.u32 %p0, %t, 5;\nselp.u32 %r2, %r1, 3, %p0;\nselp.u32 %r0, 7, %r2, %p0;\n{STORE}",
    f"sub.u32 %r1, %t, 5;\nsetp.ge.u32 %p0, %t, 5;\n@%p0 mov.u32 %r2, 4;\nslct.u32.s32 %r0, %r2, 3, %r1;\n{STORE}",
    f"mov.f32 %f1, 0f7FC00000;\nslct.u32.f32 %r0, %r1, 4, %f1;\n{STORE}",
    f"prmt.b32 %r0, %t, %r1, 0x3210;\n{STORE}",
    f"cvt.u16.u32 %h1, %t;\nmov.b32 %r1, {{%h1, %h2}};\nmov.b32 {{%h3, %h4}}, %r1;\ncvt.u32.u16 %r0, %h3;\n{STORE}",
    f"prmt.b32 %r2, %t, %r1, 0x3341;\nprmt.b32 %r0, %r2, %t, 0x4440;\n{STORE}",
    f"mov.b64 %rd1, {{%r1, %t}};\nmov.b64 {{_, %r0}}, %rd1;\n{STORE}",
    f"mov.b64 %rd1, {{%r1, %t}};\nmov.b64 {{%r3, %r4}}, %rd1;\nprmt.b32 %r0, %r3, %r4, 0x7654;\n{STORE}",
    f"prmt.b32 %r0, %r1, %t, 0x7654;\n{STORE}",
    f"mov.u32 %r2, 0x4444;\nprmt.b32 %r0, %r1, %t, %r2;\n{STORE}",
    f"cvt.u16.u32 %h1, %t;\nmov.b32 %r1, {{%h1, %h2}};\nmov.u32 %r0, %t;\n{STORE}",
    f"@%p0 mov.u32 %r0, 4;\nmov.u32 %r0, %t;\n{STORE}".replace("@%p0", "setp.lt.u32 %p0, %t, 5;\n@%p0"),
    f"mov.u32 %r2, 0;\nl: setp.eq.u32 %p0, %r2, 0;\n@%p0 mov.u32 %r1, 5;\nadd.u32 %r0, %r1, %r2;\n"
    f"add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 4;\n@%p1 bra l;\n{STORE}",
]


@pytest.mark.parametrize("schedule", ["eager", "random"])
@pytest.mark.parametrize(("body", "register", "lanes"), WRONG)
def test_a_register_read_before_it_was_written(body: str, register: str, lanes: int, schedule: str) -> None:
    with raises(PtxError) as excinfo:
        run_with_poison(body, schedule=schedule)
    (finding,) = excinfo.value.diagnostics
    assert finding.code == "PTX0911"
    assert f"reads {register}, which it has not written, as" in finding.message
    if schedule == "eager":
        assert f"as {lanes} threads do" in finding.message


@pytest.mark.parametrize(("body", "register"), [(body, register) for body, register, _ in WRONG[:4]])
def test_checked_runs_report_it_too(body: str, register: str) -> None:
    with raises(PtxError) as excinfo:
        run_with_poison(body, check="all", poison=False)
    assert {d.code for d in excinfo.value.diagnostics} == {"PTX0911"}
    assert register in str(excinfo.value)


@pytest.mark.parametrize("body", RIGHT)
def test_registers_that_every_reader_has_written(body: str) -> None:
    run_with_poison(body)
    run_with_poison(body, schedule="random")


def test_only_what_is_not_proven_is_tracked() -> None:
    for body, register, _ in WRONG[:3]:
        tracker = Tracker.from_program(prepare(parse(kernel(body)), "k"))
        assert {name for name, _ in tracker.rows} == {register}
    assert not Tracker.from_program(prepare(parse(kernel(f"mov.u32 %r0, 1;\n{STORE}")), "k")).rows


def test_results_of_calls_and_parameters_are_written() -> None:
    module = ".func (.reg .u32 r) twice(.reg .u32 x) { add.u32 r, x, x; ret; }"
    assert run_with_poison(f"call (%r0), twice, (%t);\n{STORE}", module)[:3] == [0, 2, 4]
    loop = f"mov.u32 %r1, 0;\nl: call (%r0), twice, (%t);\nadd.u32 %r1, %r1, %r0;\nsetp.lt.u32 %p0, %r1, 9;\n{STORE}"
    assert run_with_poison(loop, module)[:3] == [0, 2, 4]


_TWICE = ".func (.reg .u32 r) twice(.reg .u32 x) { add.u32 r, x, x; ret; }"
_PASSED = """.func (.reg .u32 r) passed(.reg .u32 x)
{ .reg .u32 %u; .reg .pred %q; setp.lt.u32 %q, x, 7; @%q mov.u32 x, %u; add.u32 r, x, 1; ret; }"""


@pytest.mark.parametrize(
    ("body", "module", "register", "lanes"),
    [
        (f"setp.lt.u32 %p0, %t, 5;\n@%p0 call (%r0), twice, (%t);\n{STORE}", _TWICE, "%r0", 59),
        (f"setp.lt.u32 %p0, %t, 5;\n@!%p0 call (%r0), twice, (%t);\n{STORE}", _TWICE, "%r0", 5),
        (f"call (%r0), passed, (%t);\n{STORE}", _PASSED, "x", 7),
        (
            f".reg .u32 x; add.u32 %r1, %t, 9; call (%r1), passed, (%r1); add.u32 %r0, x, %r1;\n{STORE}",
            _PASSED,
            "x",
            64,
        ),
    ],
)
def test_lanes_that_made_no_call_have_no_result(body: str, module: str, register: str, lanes: int) -> None:
    with raises(PtxError) as caught:
        run_with_poison(body, module)
    [found] = caught.value.diagnostics
    assert found.code == "PTX0911"
    assert f"reads {register}, which it has not written, as {lanes} threads do" in found.message


def test_results_of_some_lanes_and_registers_passed_on_are_written() -> None:
    body = f"setp.lt.u32 %p0, %t, 5;\n@%p0 call (%r0), twice, (%t);\n@!%p0 mov.u32 %r0, 1;\n{STORE}"
    assert run_with_poison(body, _TWICE) == [0, 2, 4, 6, 8, *[1] * 59]
    body = f"add.u32 %r1, %t, 7; call (%r0), passed, (%r1);\n{STORE}"
    assert run_with_poison(body, _PASSED) == list(range(8, 72))


@pytest.mark.parametrize(
    ("body", "module"),
    [
        (f"ld.shared.u32 %r0, [cells];\n{STORE}", ".shared .u32 cells[4];"),
        (f".local .u32 own[2];\nld.local.u32 %r0, [own+4];\n{STORE}", ""),
    ],
)
def test_memory_starts_as_poison(body: str, module: str) -> None:
    assert set(run_with_poison(body, module)) == {POISON}
    assert set(run_with_poison(body, module, poison=False)) == {0}


def test_the_pattern_is_a_nan_in_every_width() -> None:
    words = np.array([POISON, POISON], np.uint32)
    assert np.isnan(words.view(np.float32)).all()
    assert np.isnan(words.view(np.float64)).all()
    assert np.isnan((words >> 16).astype(np.uint16).view(np.float16)).all()


def test_batches_do_not_inherit_what_others_have_written() -> None:
    body = f"mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 mov.u32 %r0, 1;\n{STORE}"
    with raises(PtxError, match="CTA 1 warp 0 lane 0 reads %r0"):
        run_with_poison(body, grid=2, batch_lanes=64)


def test_the_examples_read_nothing_uninitialized(seed: int) -> None:
    """Some of the examples; `make audit` runs them all."""
    for example in random.Random(seed).sample(load_examples(), 5):
        example.simulate(example.runs[0], poison=True, check="none").verify()


@pytest.mark.parametrize("case", CASES[5::30], ids=lambda case: f"{case[0]}-{case[2].path}-{case[3].name[:40]}")
def test_kernels_of_the_corpus_read_nothing_uninitialized(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim, "run", partial(sim.run, poison=True, check="none"))
    result = sim_corpus.outcome(*case)
    assert result.verdict in ("pass", "unsupported"), result.why
