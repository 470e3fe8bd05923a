"""Warpgroups with the same events share a record; events of only one of them leave the others' unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Bytes, Group, Hazards, Place, Space, store
from pyptx.sim.hazards.rows import Rows

WARPGROUPS = 3
SUMS = frozenset({1, 2})


class Cta:
    """Warpgroups of one CTA that multiply an existing tile."""

    def __init__(self) -> None:
        self.engine = Hazards()
        self.grid = self.engine.launch(_place(1), WARPGROUPS * 128, shared_bytes=1024)
        self.engine.start(self.grid, [0], [0])
        threads = self.grid.list_threads(0)
        self.everyone = Group(threads)
        self.groups = [Group(threads[128 * n : 128 * n + 128]) for n in range(WARPGROUPS)]
        self.engine.access(store(_place(2), Space.SHARED, 16), Group(threads[:64]), np.arange(64) * 16)
        self.engine.sync.proxy_fence(self.everyone, [Space.SHARED])
        self.engine.barriers.bar(self.everyone, _place(3), 0, None, "sync")

    def multiply(self, indices: list[int], shape: str = "m64n8k16") -> None:
        groups = [self.groups[n] for n in indices]
        rows = Rows(np.zeros((len(indices), 1), np.int64) + np.arange(8), 1)
        self.engine.wgmma.issue_all(groups, _place(10), [rows], SUMS, shape=shape)

    def list_findings(self) -> list[Any]:
        return sorted(str(finding.as_json()) for finding in self.engine.findings)

    def codes(self) -> list[str]:
        return [finding.rule.code for finding in self.engine.findings]


def _place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


def test_warps_that_commit_one_after_the_other_end_one_group() -> None:
    cta = Cta()
    wgmma = cta.engine.wgmma
    wgmma.fence(cta.everyone)
    cta.multiply([0])
    for warp in range(4):
        wgmma.commit(Group(cta.groups[0].threads[32 * warp : 32 * warp + 32]))
    wgmma.wait(cta.groups[0], 1)
    wgmma.record_access(cta.groups[0], _place(11), frozenset({1}))
    assert cta.codes() == ["PTX0933"]


def test_only_those_that_multiplied_are_busy() -> None:
    cta = Cta()
    wgmma = cta.engine.wgmma
    wgmma.fence(cta.everyone)
    cta.multiply([0, 2])
    wgmma.record_access(cta.groups[1], _place(11), frozenset({1}))
    assert cta.codes() == []
    wgmma.commit(cta.everyone)
    wgmma.wait_all([cta.groups[0]], 0)
    wgmma.record_access(cta.groups[0], _place(11), frozenset({1}))
    assert cta.codes() == []
    wgmma.record_access(cta.everyone, _place(12), frozenset({1}))
    assert cta.codes() == ["PTX0933"]
    (finding,) = cta.engine.findings
    assert finding.agent is not None
    assert (finding.agent.warp, finding.count) == (8, 4)


def test_who_touched_its_sums_needs_a_fence_and_nobody_else() -> None:
    cta = Cta()
    wgmma = cta.engine.wgmma
    wgmma.fence(cta.everyone)
    wgmma.record_access(cta.groups[1], _place(11), frozenset({2}))
    cta.multiply([0, 1, 2])
    assert cta.codes() == ["PTX0934"]
    (finding,) = cta.engine.findings
    assert finding.agent is not None
    assert (finding.agent.warp, finding.count) == (4, 4)


def test_the_fence_of_one_is_no_fence_of_the_others() -> None:
    cta = Cta()
    cta.engine.wgmma.fence(cta.everyone)
    cta.multiply([0, 1, 2])
    cta.engine.wgmma.fence(cta.groups[0])
    cta.multiply([0, 1], "m64n16k16")
    assert cta.codes() == ["PTX0934"]
    (finding,) = cta.engine.findings
    assert finding.agent is not None
    assert (finding.agent.warp, finding.count) == (4, 1)


EVENTS = st.tuples(
    st.sampled_from(["fence", "multiply", "other shape", "commit", "wait", "wait for all but one", "touch"]),
    st.sets(st.integers(0, WARPGROUPS - 1), min_size=1),
)


@given(st.lists(EVENTS, max_size=12))
@settings(max_examples=150)
def test_warpgroups_told_of_at_once_are_judged_like_each_alone(events: list[tuple[str, set[int]]]) -> None:
    """One engine receives the events of all warpgroups at once, the other one after the other."""
    joint, separate = Cta(), Cta()
    for event, indices in events:
        _report(joint, event, sorted(indices))
        for index in sorted(indices):
            _report(separate, event, [index])
    assert joint.list_findings() == separate.list_findings()


def _report(cta: Cta, event: str, indices: list[int]) -> None:
    wgmma, groups = cta.engine.wgmma, [cta.groups[n] for n in indices]
    joint = Group(np.concatenate([group.threads for group in groups]))
    match event:
        case "fence":
            wgmma.fence(joint)
        case "multiply" | "other shape":
            cta.multiply(indices, "m64n8k16" if event == "multiply" else "m64n16k16")
        case "commit":
            wgmma.commit(joint)
        case "touch":
            wgmma.record_access(joint, _place(12), frozenset({1}))
        case _:
            wgmma.wait_all(groups, 0 if event == "wait" else 1)


def test_a_product_of_three_warps_is_reported() -> None:
    cta = Cta()
    group = Group(cta.groups[0].threads[:96])
    cta.engine.wgmma.fence(group)
    cta.engine.wgmma.issue(group, _place(10), [Bytes.run(Space.SHARED, 0, 128)], SUMS)
    found = [(finding.rule.code, finding.what) for finding in cta.engine.findings]
    assert ("PTX0964", "3 warps") in found
