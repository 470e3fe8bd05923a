"""The options `check` and `on_hazard`, the text of a finding, and checked kernels of the DSL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import Tile, kernel, ptx, reg, smem
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim import run
from pyptx.sim.observers.checks.choice import CLASSES
from pyptx.sim.rules import RULES
from pyptx.types import u32
from tests.messages import raises
from tests.sim.kernels import kernel as text_of

SHARED = ".shared .align 16 .b8 box[512];"
RACE = """mov.u32 %r3, box; shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %r3; xor.b32 %r2, %r1, 128;
st.shared.u32 [%r1], %t;
ld.shared.u32 %r4, [%r2];
st.global.u32 [%o], %r4;"""
SAME = "shr.u32 %r1, %t, 5; shl.b32 %r1, %r1, 2; mov.u32 %r3, box; add.u32 %r1, %r1, %r3;\nst.shared.u32 [%r1], {};"


def run_checked(body: str, threads: int = 64, **options: Any) -> Any:
    output = np.full(threads, 77, np.uint32)
    try:
        return run(parse(text_of(body, module=SHARED)), block=threads, args=(output,), **options), output
    except PtxError as error:
        return error, output


def test_an_error_is_raised_and_arrays_stay_as_they_were() -> None:
    error, output = run_checked(RACE)
    assert [d.code for d in error.diagnostics] == ["PTX0901"]
    assert (output == 77).all()
    assert "st.shared.u32" in error.diagnostics[0].notes[0]


def test_reported_findings_are_the_results() -> None:
    result, output = run_checked(RACE, on_hazard="report")
    (finding,) = result.hazards
    assert str(finding).startswith("<ptx>:")
    assert "data race" in str(finding)
    assert json.loads(json.dumps(finding.as_json()))["other"]["line"] == finding.other.origin.line
    assert finding.diagnostic().code == finding.rule.code == "PTX0901"
    assert not (output == 77).any()


def test_nothing_is_looked_for_without_checks() -> None:
    result, _ = run_checked(RACE, check="none")
    assert result.hazards == []


def test_classes_of_hazards() -> None:
    assert run_checked(RACE, check="proxies,mbarriers")[0].hazards == []
    assert run_checked(RACE, check={"races"})[0].diagnostics[0].code == "PTX0901"
    error, _ = run_checked(RACE, check="race")
    assert "check 'race': expected one of all, " in str(error)
    error, _ = run_checked(RACE, on_hazard="ignore")
    assert "`raise` or `report`" in str(error)


def test_warnings_are_raised_by_strict_only() -> None:
    result, _ = run_checked(SAME.format("%t"))
    assert [finding.rule.code for finding in result.hazards] == ["PTX0907"]
    error, _ = run_checked(SAME.format("%t"), check="strict")
    assert [d.code for d in error.diagnostics] == ["PTX0907"]


def test_lanes_may_store_the_same_value_to_one_place() -> None:
    assert run_checked(SAME.format("5"))[0].hazards == []


def test_an_error_of_the_machine_stands_behind_what_may_have_caused_it() -> None:
    error, _ = run_checked(f"{RACE}\nld.global.u32 %r5, [%o+4096];")
    assert [d.code for d in error.diagnostics] == ["PTX0901", "PTX1110"]


def test_findings_are_kept_from_batch_to_batch() -> None:
    output = np.zeros(64, np.uint32)
    module = parse(text_of(RACE, module=SHARED))
    result = run(module, grid=5, block=64, args=(output,), batch_lanes=64, on_hazard="report")
    counts = {finding.rule.code: finding.count for finding in result.hazards if finding.place.text == "ld.shared.u32"}
    assert result.stats.batches == 5
    assert counts == {"PTX0901": 5 * 64}


def test_ctas_of_one_grid_race() -> None:
    output = np.zeros(64, np.uint32)
    module = parse(text_of("mov.u32 %r1, %ctaid.x; st.global.u32 [%o], %r1;"))
    for lanes in (64, 8192):
        result = run(module, grid=3, block=64, args=(output,), batch_lanes=lanes, on_hazard="report")
        assert [finding.rule.code for finding in result.hazards] == ["PTX0901"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("elect.sync %r1|%p1, 0xffff;", "PTX0966"),
        ("setp.lt.u32 %p1, %t, 16; @%p1 vote.sync.any.pred %p2, %p1, 0xfff0;", "PTX0961"),
        ("setp.lt.u32 %p1, %t, 16; @%p1 shfl.sync.idx.b32 %r1, %t, 20, 31, 0xffff;", "PTX0962"),
        ("setp.lt.u32 %p1, %t, 32; @!%p1 bra past; setmaxnreg.dec.sync.aligned.u32 24; past:", "PTX0964"),
        ("setp.lt.u32 %p1, %t, 16; @%p1 bar.warp.sync 0xffff0000;", "PTX0961"),
    ],
)
def test_warp_wide_instructions(line: str, code: str) -> None:
    result, _ = run_checked(line, 128, on_hazard="report")
    assert code in {finding.rule.code for finding in result.hazards}


@kernel(out_specs=[Tile(64, u32)], grid=(1,), block=(64, 1, 1))
def exchange_pairs(out: Any, *, ordered: bool) -> None:
    """out = the thread numbers, with each pair of warps exchanged"""
    (target,) = ptx.global_ptrs(out)
    box = smem.alloc(u32, (64,))
    thread = ptx.special.tid.x()
    value = reg.scalar(u32)
    ptx.st(u32, box + thread * 4, thread, space="shared")
    if ordered:
        ptx.bar.sync(0)
    ptx.ld(u32, value, box + (thread ^ 32) * 4, space="shared")
    ptx.st(u32, ptx.addr(target, thread * 4), value, space="global")
    ptx.ret()


def test_kernels_are_checked_when_they_are_called_and_python_lines_are_named() -> None:
    assert exchange_pairs(ordered=True).tolist() == [n ^ 32 for n in range(64)]
    with raises(PtxError) as excinfo:
        exchange_pairs(ordered=False)
    (finding,) = excinfo.value.diagnostics
    lines = Path(__file__).read_text("utf-8").splitlines()
    assert finding.code == "PTX0901"
    assert finding.origin is not None
    assert "ptx.ld(u32, value" in lines[finding.origin.line - 1]
    assert f"test_choice.py:{1 + next(n for n, x in enumerate(lines) if 'ptx.st(u32, box' in x)}" in finding.notes[0]


def test_simulate_takes_what_to_look_for() -> None:
    assert exchange_pairs.simulate(ordered=False, check="none").hazards == []
    (finding,) = exchange_pairs.simulate(ordered=False, on_hazard="report").hazards
    assert finding.rule.code == "PTX0901"
    assert str(finding.other).startswith("`st.shared.u32`")


def test_every_hazard_is_of_one_class() -> None:
    codes = [code for class_codes in CLASSES.values() for code in class_codes]
    assert len(codes) == len(set(codes))
    assert {int(rule.code.removeprefix("PTX")) for rule in RULES} == set(codes)
