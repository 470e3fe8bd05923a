"""Halves of a warp that arrive at a barrier one after the other, by branches or by guards."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import kernel

ODD = "and.b32 %r1, %t, 1; setp.ne.u32 %p1, %r1, 0;\n"
BRANCH = ODD + "@%p1 bra odd; {};\nbra done; odd:\n{};\ndone:"
GUARD = ODD + "@!%p1 {};\n@%p1 {};"
FIRST, INSTRUCTION, COUNT = "have a false guard", "execute another barrier instruction", "have another count"
JOINS = [
    (BRANCH, "barrier.sync 1", "barrier.sync 1", ()),
    (BRANCH, "barrier.sync 1, 64", "barrier.sync 1, 64", ()),
    (BRANCH, "barrier.arrive 1, 64", "barrier.sync 1, 64", ()),
    (BRANCH, "barrier.sync 1, 64", "barrier.sync 1, 32", (COUNT,)),
    (BRANCH, "barrier.sync 1", "barrier.sync 1, 64", (COUNT,)),
    # Branches that diverge before an aligned barrier are reported instead.
    (BRANCH, "barrier.sync 1", "bar.sync 1", ("do not execute this instruction",)),
    (GUARD, "barrier.sync 1", "barrier.sync 1", ()),
    (GUARD, "barrier.sync 1", "bar.sync 1", (INSTRUCTION,)),
    (GUARD, "bar.sync 1", "barrier.sync 1", (FIRST, INSTRUCTION)),
    (GUARD, "bar.sync 1", "bar.sync 1", (FIRST, INSTRUCTION)),
    (GUARD, "barrier.sync 1, 64", "bar.sync 1, 32", (INSTRUCTION, COUNT)),
]
RULES = {COUNT: "PTX0970"}


@pytest.mark.parametrize("schedule", ["eager", "lazy", "adversarial"])
@pytest.mark.parametrize(("text", "first", "second", "expected"), JOINS)
def test_halves_of_a_warp_join_by_one_instruction_and_count(
    text: str, first: str, second: str, expected: tuple[str, ...], schedule: str
) -> None:
    lines = kernel(text.format("first", "second")).splitlines()
    marks = [next(number for number, line in enumerate(lines, 1) if f"{word};" in line) for word in ("first", "second")]
    module = parse(kernel(text.format(first, second)))
    args = [np.zeros(64, np.uint32)]
    hazards = sim.run(module, block=64, args=args, on_hazard="report", schedule=schedule).hazards
    found = [
        (finding.rule.code, finding.place.origin and finding.place.origin.line, finding.count) for finding in hazards
    ]
    assert found == [(RULES.get(words, "PTX0960"), marks[words != FIRST], 2) for words in expected]
    assert all(words in finding.what for finding, words in zip(hazards, expected, strict=True))
    for finding in hazards[expected[:1] == (FIRST,) :]:
        assert finding.agent is not None
        assert (finding.agent.warp, finding.agent.lane) == (0, 1)
        assert finding.other is not None
        assert finding.other.origin is not None
        assert finding.other.origin.line == marks[0]


@pytest.mark.parametrize(("barrier", "counts"), [("barrier.sync", []), ("bar.sync", [2])])
def test_halves_that_run_one_instruction_in_turn_join(barrier: str, counts: list[int]) -> None:
    """In a loop: only the guards of an aligned barrier are reported, once per warp."""
    body = (
        ODD
        + f"""selp.u32 %r2, 0, 1, %p1; mov.u32 %r3, 0;
again: setp.eq.u32 %p2, %r3, %r2;
@%p2 {barrier} 1;
add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 2; @%p3 bra again;"""
    )
    hazards = sim.run(parse(kernel(body)), block=64, args=[np.zeros(64, np.uint32)], on_hazard="report").hazards
    assert [finding.count for finding in hazards] == counts
    assert all(FIRST in finding.what for finding in hazards)


def test_a_warp_that_diverged_hides_no_join_of_another() -> None:
    body = (
        ODD
        + """setp.lt.and.u32 %p2, %t, 32, %p1;
@!%p2 bra rest; bar.sync 1; bra done;
rest: @!%p1 barrier.sync 1;
@%p1 bar.sync 1;
done:"""
    )
    hazards = sim.run(parse(kernel(body)), block=64, args=[np.zeros(64, np.uint32)], on_hazard="report").hazards
    joins = [finding for finding in hazards if INSTRUCTION in finding.what]
    assert [(finding.agent and finding.agent.warp, finding.count) for finding in joins] == [(1, 1)]


def _find_codes(body: str) -> list[tuple[str, int]]:
    """Return the codes and CTAs of the findings of two CTAs that run one after the other."""
    result = sim.run(
        parse(kernel(f"mov.u32 %r2, %ctaid.x; setp.eq.u32 %p2, %r2, 0;\n{body}")), grid=2, block=64,
        args=[np.zeros(64, np.int32)], on_hazard="report", batch_lanes=64,
    )  # fmt: skip
    return [(finding.rule.code, finding.agent.cta) for finding in result.hazards if finding.agent is not None]


def test_arrivals_of_an_earlier_cta_are_forgotten() -> None:
    """Lanes of CTA 0 arrive and exit before the rest of their warp; those of CTA 1 arrive with another count."""
    arrive = "setp.lt.u32 %p0, %t, 10;\n@!%p0 bra rest;\nbarrier.cta.arrive 1, %r3;\nexit;\nrest:"
    assert _find_codes(f"selp.u32 %r3, 64, 96, %p2;\n{arrive}") == []
    assert _find_codes(f"mov.u32 %r3, 64;\n{arrive}") == []


def test_divergence_of_an_earlier_cta_is_forgotten() -> None:
    """The halves of CTA 0 diverge by branches; those of CTA 1 join at other instructions by guards."""
    diverges = ODD + "@%p1 bra odd; barrier.sync 1;\nbra done;\nodd: bar.sync 1;\nbra done;"
    joins = f"joins: {ODD}@!%p1 barrier.sync 1;\n@%p1 bar.sync 1;\ndone:"
    assert _find_codes(f"@!%p2 bra joins;\n{diverges}\n{joins}") == [("PTX0960", 0), ("PTX0960", 1)]
