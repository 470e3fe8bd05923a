"""Presentation of findings: both places with their source lines, one finding per cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pyptx import TensorSpec, Tile, kernel, ptx, sim, smem
from pyptx.diagnostics import PtxError, Span
from pyptx.ir import Function, Instruction
from pyptx.parser import parse
from pyptx.sim import rules
from pyptx.sim.hazards import Agent, Finding, Place
from pyptx.sim.reports.findings import group_by_cause
from pyptx.types import u32
from tests.messages import raises
from tests.sim.kernels import kernel as kernel_text

UNORDERED = parse(
    kernel_text(
        ".shared .align 16 .b8 tile[512];\n"
        "nanosleep.u32 1;\nshl.b32 %r1, %t, 2;\nmov.u32 %r2, tile;\nadd.u32 %r1, %r1, %r2;\n"
        "st.shared.u32 [%r1], 1;\nst.shared.u32 [%r1+256], 2;\nxor.b32 %r1, %r1, 128;\n"
        "ld.shared.u32 %r3, [%r1];\nld.shared.u32 %r4, [%r1+256];"
    )
)


def pair(later: int, earlier: int | None, code: str = "RACE", grid: str = "") -> Finding:
    def place(line: int) -> Place:
        return Place(Span(line, 1), "st")

    earlier_place = None if earlier is None else place(earlier)
    return Finding(getattr(rules, code), place(later), Agent(0, 0, 0, grid=grid), "writes", earlier_place)


def lines(findings: Sequence[Finding]) -> list[tuple[str, int, int]]:
    return [(finding.rule.code, finding.place.origin.line if finding.place.origin else 0, finding.count)
            for finding in findings]  # fmt: skip


def test_pairs_with_one_point_between_their_places_have_one_cause() -> None:
    findings = group_by_cause([pair(9, 3), pair(10, 4), pair(8, 4), pair(20, 12)])
    assert lines(findings) == [("PTX0901", 9, 3), ("PTX0901", 20, 1)]
    assert findings[0].notes == ("also at 2 more pairs of places: line 10 after line 4, line 8 after line 4",)


def test_pairs_around_a_loop_have_another_cause_than_pairs_in_it() -> None:
    assert lines(group_by_cause([pair(9, 3), pair(3, 9), pair(4, 9)])) == [("PTX0901", 9, 1), ("PTX0901", 3, 2)]


def test_many_pairs_are_counted_and_eight_are_named() -> None:
    (finding,) = group_by_cause([pair(100 + index, index) for index in range(1, 12)])
    assert finding.notes[0].endswith("line 109 after line 9 and 2 more")


def test_other_rules_grids_and_places_without_a_partner_stay_apart() -> None:
    findings = [pair(9, 3), pair(9, 3, "LANE_RACE"), pair(9, 3, grid="next"), pair(9, None), pair(9, None)]
    assert group_by_cause(findings) == findings


def test_a_missing_barrier_between_several_stores_and_loads_is_one_error() -> None:
    with raises(PtxError) as error:
        sim.run(UNORDERED, block=64, args=[np.zeros(64, np.uint32)])
    (finding,) = error.value.diagnostics
    assert "(128 times)" in finding.message
    assert "also at 1 more pair of places" in " ".join(finding.notes)
    result = sim.run(UNORDERED, block=64, args=[np.zeros(64, np.uint32)], on_hazard="report")
    assert len(result.hazards) == 2
    assert "1 hazard (PTX0901)" in repr(result)


def test_a_finding_shows_the_source_lines_of_both_places() -> None:
    finding = sim.run(UNORDERED, block=64, args=[np.zeros(64, np.uint32)], on_hazard="report").hazards[0]
    text_lines = str(finding).splitlines()
    assert text_lines[1].endswith("| ld.shared.u32 %r3, [%r1];")
    assert text_lines[2].endswith("| ^^^^^^^^^^^^^")
    assert text_lines[3].startswith("  note: first by CTA 0 warp ")
    assert text_lines[4].endswith("| st.shared.u32 [%r1], 1;")
    assert text_lines[5].endswith("| ^^^^^^^^^^^^^")
    assert repr(finding).startswith("<error PTX0901 (data race) at `ld.shared.u32` at <ptx>:")
    assert "\n" not in repr(finding)


def test_a_finding_of_an_edited_module_shows_no_line_of_another_instruction() -> None:
    entry = UNORDERED.directives[-1]
    assert isinstance(entry, Function)
    body = [s for s in entry.body if not (isinstance(s, Instruction) and s.opcode == "nanosleep")]
    module = replace(UNORDERED, directives=(*UNORDERED.directives[:-1], replace(entry, body=tuple(body))))
    with raises(PtxError) as error:
        sim.run(module, block=64, args=[np.zeros(64, np.uint32)])
    assert [finding.code for finding in error.value.diagnostics] == ["PTX0901"]
    assert " | " not in str(error.value)


@kernel(in_specs=(Tile(64, u32),), out_specs=(Tile(64, u32),), grid=(1,), block=(64, 1, 1))
def reverse_words(x: TensorSpec, y: TensorSpec) -> None:
    px, py = ptx.global_ptrs(x, y)
    words = smem.alloc(u32, 64, name="words")
    thread = ptx.special.tid.x()
    words[thread] = ptx.ld(u32, ptx.addr(px, thread * 4))
    ptx.st(u32, ptx.addr(py, thread * 4), smem.load(u32, words[thread ^ 63]))


def test_a_finding_of_a_kernel_in_python_shows_the_lines_of_python() -> None:
    (finding,) = reverse_words.simulate(np.arange(64, dtype=np.uint32), on_hazard="report").hazards
    text_lines = str(finding).splitlines()
    assert "smem.load(u32, words[thread ^ 63])" in text_lines[1]
    assert "words[thread] = ptx.ld(u32, ptx.addr(px, thread * 4))" in text_lines[4]
    assert set(text_lines[5].rpartition("|")[2].strip()) == {"^"}
