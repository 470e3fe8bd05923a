"""Facts of the mbarrier rows that are easy to get wrong."""

from __future__ import annotations

import pytest

from pyptx.isa.model import Kind
from tests.isa.spelling import legal, matches, operands


@pytest.mark.parametrize(
    ("spelling", "target", "ptx", "expected"),
    [
        ("mbarrier.init.b64", "sm_80", "7.0", True),
        ("mbarrier.init.shared::cta.b64", "sm_80", "7.7", False),
        ("mbarrier.init.layout::v1.b64", "sm_90", "9.3", True),
        ("mbarrier.init.shared::cluster.b64", "sm_90", None, False),
        ("mbarrier.arrive.release.cluster.b64", "sm_80", None, False),
        ("mbarrier.arrive.relaxed.cta.b64", "sm_90", "8.5", False),
        ("mbarrier.arrive.release.b64", "sm_90", None, False),
        ("mbarrier.arrive.noComplete.relaxed.cta.b64", "sm_90", None, False),
        ("mbarrier.try_wait.parity.b64", "sm_80", None, False),
        ("mbarrier.test_wait.phase_type::conditional.b64", "sm_90", None, False),
        ("mbarrier.test_wait.parity.phase_type::conditional.b64", "sm_90", None, True),
        ("cp.async.mbarrier.arrive.noinc.shared.b64", "sm_80", "7.0", True),
    ],
)
def test_where_a_spelling_is_legal(spelling: str, target: str, ptx: str | None, expected: bool) -> None:
    assert legal(spelling, target, ptx) is expected


def test_a_remote_arrival_returns_nothing() -> None:
    (match,) = matches("mbarrier.arrive.shared::cluster.b64")
    assert {signature[0].kind for signature in match.signatures} == {Kind.SINK}
    assert all(not m.signatures[0][0].discardable for m in matches("mbarrier.try_wait.b64"))


def test_only_try_wait_takes_a_time_limit() -> None:
    assert [len(s) for m in matches("mbarrier.try_wait.parity.b64") for s in m.signatures] == [4, 3]
    assert [len(s) for m in matches("mbarrier.test_wait.parity.b64") for s in m.signatures] == [3]


def test_reports_stand_beside_the_result_and_are_a_byte() -> None:
    text = operands("mbarrier.test_wait.phase_type::primary.b64")
    assert "d:.pred|report:.pred, value:.b8, [a:.b64], state:.u64" in text
