"""Example and corpus kernels with a synchronizing statement removed or weakened: the change is reported, or known to be
needless.

A sample drawn with the run's seed; `python -m tools.sim_patterns --kernels` removes every statement.
"""

from __future__ import annotations

import random

import pytest

from tests.sim.patterns.kernels import CORPUS, RUNS, Finding, baseline, judge_version, ours, theirs
from tests.sim.patterns.needless import NEEDLESS
from tests.sim.patterns.removals import changes

LARGE = [name for name in RUNS if name.endswith(("gemm", "attention"))]
SMALL = [name for name in RUNS if name not in LARGE]


def test_statements_are_removed_where_they_stand() -> None:
    text = """.visible .entry k() {
    bar.sync 0; // bar.sync 1;
w:  mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra w;
    @%q mbarrier.arrive.release.cluster.shared::cluster.b64
        _, [%r];
    fence.mbarrier_init.release.cluster; wgmma.wait_group.sync.aligned 0; mbarrier_wait:
}"""
    changes_made = [
        (change.line, change.change, change.text.splitlines()[change.line - 1].strip()) for change in changes(text)
    ]
    assert changes_made == [
        (2, "remove", "// bar.sync 1;"),
        (3, "remove", "w:  setp.eq.u32 %p, 0, 0;"),
        (5, "remove", ""),
        (5, "@%q mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r];",
         "@%q mbarrier.arrive.relaxed.cluster.shared::cluster.b64"),
        (5, "@%q mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r];",
         "@%q mbarrier.arrive.release.cta.shared::cluster.b64"),
        (7, "remove", "wgmma.wait_group.sync.aligned 0; mbarrier_wait:"),
        (7, "remove", "fence.mbarrier_init.release.cluster;  mbarrier_wait:"),
        (7, "wgmma.wait_group.sync.aligned 1;",
         "fence.mbarrier_init.release.cluster; wgmma.wait_group.sync.aligned 1; mbarrier_wait:"),
    ]  # fmt: skip
    assert {change.text.count("\n") for change in changes(text)} == {text.count("\n")}


def test_needless_statements_belong_to_kernels_that_are_tried() -> None:
    names = {*RUNS} | {f"{p}/{file.removesuffix('.ptx')}" for p, files in CORPUS.items() for file in files}
    assert {name for name, _, _ in NEEDLESS} <= names
    assert len(names) >= 12 + 10


@pytest.mark.parametrize("kind", ["ours, small", "ours, large", "theirs"])
def test_a_statement_taken_out_is_reported(kind: str, seed: int) -> None:
    chance = random.Random(seed)
    large, producer = chance.choice(LARGE), chance.choice(sorted(CORPUS))
    subjects = (
        map(ours, SMALL) if kind == "ours, small" else [ours(large)] if kind == "ours, large" else theirs(producer)
    )
    candidates = [(s, c) for s in subjects for c in s.changes() if (s.name, c.statement, c.change) not in NEEDLESS]
    for subject, change in chance.sample(candidates, min(len(candidates), 2 if kind == "ours, large" else 6)):
        baseline_findings = frozenset[Finding]() if subject.ours else baseline(subject)[0]
        assert judge_version(subject, change.text, baseline_findings).is_reported, (
            subject.name,
            change.line,
            change.statement,
            change.change,
        )
