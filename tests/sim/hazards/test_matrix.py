"""The matrix: every synchronization pattern, every single removal, and the verdict of the memory model.

A correct version is clean under every schedule. A removal is reported under some schedule with the code below and
nothing of higher severity. Removals that are not listed leave a correct program, or one that no rule covers, and are
clean as well.
"""

from __future__ import annotations

import pytest

from pyptx.diagnostics import Severity
from pyptx.sim.rules import RULES
from tests.sim.hazards.patterns import PATTERNS
from tests.sim.hazards.trace import find_codes, list_labels

SEVERITY = {rule.code: rule.severity for rule in RULES}

# pattern: {code: labels whose removal it reports, separated by commas}
EXPECTED: dict[str, dict[str, str]] = {
    "bar": {"PTX0910": "write", "PTX0901": "full, empty, full again"},
    "bar, one warp": {"PTX0910": "write", "PTX0990": "full, empty, full of warp 2, empty of warp 3"},
    "lanes": {"PTX0910": "write", "PTX0902": "full, empty, full again, empty again, leader done"},
    "named barrier": {
        "PTX0910": "write",
        "PTX0901": "producer waits empty, producer waits empty again, consumer waits full, consumer waits full again, "
        "~two barriers",
        "PTX0990": "producer arrives full, producer arrives full again, consumer arrives empty, "
        "consumer arrives empty again",
        "PTX0970": "~same count",
    },
    "mbarrier ring": {
        "PTX0950": "init full 0, init full 1, init empty 0, init empty 1",
        "PTX0928": "barriers initialized",
        "PTX0910": "write 0, write 1",
        "PTX0901": "~release 0, ~release 1, ~release 2, ~release 3, ~acquire 0, ~acquire 1, ~acquire 2, ~acquire 3, "
        "wait full 0, wait full 1, wait full 2, wait full 3, wait empty 2, wait empty 3",
        "PTX0990": "arrive full 0, arrive full 1, arrive full 2, arrive full 3, arrive empty 0, arrive empty 1",
    },
    "TMA load": {
        "PTX0950": "init full 0, init full 1, init empty 0, init empty 1",
        "PTX0928": "barriers initialized",
        "PTX0930": "wait full 0, wait full 1, wait full 2, wait full 3",
        "PTX0923": "fence 0, fence 1",
        "PTX0901": "warp done 0, warp done 1, wait empty 2, wait empty 3",
        "PTX0990": "~bytes 0, ~bytes 1, ~bytes 2, ~bytes 3, expect 0, expect 1, expect 2, expect 3, load 0, load 1, "
        "load 2, load 3, arrive empty 0, arrive empty 1",
    },
    "TMA to wgmma": {
        "PTX0950": "init full 0, init full 1, init empty 0, init empty 1",
        "PTX0928": "barriers initialized",
        "PTX0930": "wait full 0, wait full 1, wait full 2, wait full 3",
        "PTX0934": "wgmma fence 0",
        "PTX0940": "commit 0, commit 1, wait group 0, wait group 1, wait empty 2, wait empty 3",
        "PTX0933": "commit 3, wait group 3",
        "PTX0990": "expect 0, expect 1, expect 2, expect 3, load 0, load 1, load 2, load 3, "
        "arrive empty 0, arrive empty 1",
    },
    "TMA store": {
        "PTX0910": "stage 0",
        "PTX0920": "fence 0, fence 1",
        "PTX0901": "staged 0, staged 1",
        "PTX0942": "commit 0, wait read 0, reusable 0",
        "PTX0983": "commit 1, wait read 1",
    },
    "TMA store, exit": {"PTX0910": "stage", "PTX0920": "fence", "PTX0901": "staged", "PTX0983": "commit, wait read"},
    "bulk store then read": {
        "PTX0910": "stage",
        "PTX0920": "fence",
        "PTX0932": "commit, ~full wait, wait, ~release, ~acquire, see",
        "PTX0924": "reader's fence",
        "PTX0950": "init",
        "PTX0990": "flag, expect, load",
    },
    "generic then bulk": {
        "PTX0920": "~global, fence",
        "PTX0901": "see",
        "PTX0903": "~gpu",
        "PTX0930": "wait full",
        "PTX0950": "init",
        "PTX0990": "flag, expect, load",
    },
    "cp.async ring": {
        "PTX0910": "copy 0, copy 1",
        "PTX0931": "commit 0, commit 1, commit 2, wait 0, wait 1, wait 2, full 0, full 1, full 2",
        "PTX0901": "empty 0",
    },
    "cp.async, own data": {"PTX0910": "copy", "PTX0931": "commit, wait"},
    "cp.async to wgmma": {
        "PTX0910": "copy",
        "PTX0931": "commit, wait, full",
        "PTX0922": "proxy fence",
        "PTX0934": "wgmma fence",
        "PTX0940": "wgmma commit, wgmma wait",
    },
    "cp.async, mbarrier": {
        "PTX0950": "init",
        "PTX0928": "initialized",
        "PTX0910": "copy",
        "PTX0931": "wait",
        "PTX0990": "arrive",
    },
    "wgmma": {
        "PTX0910": "write A, write B",
        "PTX0920": "proxy fence",
        "PTX0901": "written",
        "PTX0934": "fence, fence again",
        "PTX0933": "commit 1, wait, commit 2, wait again",
    },
    "wgmma, slot": {
        "PTX0910": "write",
        "PTX0920": "proxy fence",
        "PTX0901": "written",
        "PTX0934": "fence",
        "PTX0940": "commit, ~wait for all, wait",
    },
    "tcgen05": {
        "PTX0950": "init full, init empty, init done, init drained",
        "PTX0928": "set up",
        "PTX0945": "alloc",
        "PTX0912": "mma 0",
        "PTX0930": "wait full 0, wait full 1",
        "PTX0941": "wait empty 1",
        "PTX0935": "wait done 0, wait done 1",
        "PTX0938": "wait::ld 0, wait::ld 1, wait drained 1, before dealloc",
        "PTX0937": "after 0, after 1, before 0, issuer after 1",
        "PTX0947": "dealloc",
        "PTX0990": "expect 0, expect 1, load 0, load 1, commit empty 0, commit done 0, commit done 1, arrive drained 0",
    },
    "tcgen05, stored operand": {
        "PTX0945": "alloc, set up",
        "PTX0950": "init",
        "PTX0912": "tensor store",
        "PTX0939": "wait::st, stored",
        "PTX0937": "before, after, after mma",
        "PTX0943": "~own commit",
        "PTX0935": "wait",
        "PTX0938": "wait::ld, drained",
        "PTX0947": "dealloc",
        "PTX0990": "commit",
    },
    "tcgen05, relaxed": {
        "PTX0945": "alloc",
        "PTX0950": "init done, init drained",
        "PTX0928": "set up",
        "PTX0912": "mma 0",
        "PTX0935": "wait done, wait drained",
        "PTX0936": "issuer after, after, before",
        "PTX0938": "wait::ld",
        "PTX0990": "commit, arrive drained",
    },
    "tensor map": {
        "PTX0925": "replace, see, acquire of CTA 0, acquire of CTA 1",
        "PTX0926": "release, all used",
        "PTX0927": "wait for the copies",
        "PTX0990": "flag, used by CTA 0, used by CTA 1",
    },
    "tensor map of the host": {"PTX0925": "~sys, acquire"},
    "barrier memory": {
        "PTX0950": "init, init again",
        "PTX0952": "inval",
        "PTX0959": "~count",
        "PTX0954": "~range",
        "PTX0990": "arrive",
    },
    "cluster barrier": {
        "PTX0973": "wait 0 of CTA 0, wait 0 of CTA 1",
        "PTX0990": "arrive 0 of CTA 0, arrive 1 of CTA 0, arrive 0 of CTA 1, arrive 1 of CTA 1",
    },
    "DSMEM, cluster barrier": {
        "PTX0980": "peers exist",
        "PTX0910": "write remote",
        "PTX0901": "~release, ~acquire",
        "PTX0973": "wait",
        "PTX0990": "arrive",
        "PTX0981": "before exit",
    },
    "DSMEM, mbarrier": {
        "PTX0950": "init",
        "PTX0980": "initialized",
        "PTX0910": "write remote",
        "PTX0901": "~release, ~acquire, wait",
        "PTX0903": "~release.cluster",
        "PTX0990": "arrive remote",
    },
    "cluster, global data": {
        "PTX0950": "init",
        "PTX0928": "initialized",
        "PTX0903": "~release.cluster, ~acquire.cluster",
        "PTX0901": "wait",
        "PTX0990": "arrive remote",
    },
    "st.async": {
        "PTX0950": "init",
        "PTX0980": "initialized",
        "PTX0930": "wait",
        "PTX0920": "proxy fence",
        "PTX0983": "commit, wait read",
        "PTX0990": "expect, st.async",
    },
    "multicast": {
        "PTX0950": "init full, init empty",
        "PTX0981": "before exit",
        "PTX0928": "fence.mbarrier_init",
        "PTX0973": "cluster wait",
        "PTX0930": "wait full 0 of CTA 0, wait full 0 of CTA 1, wait full 1 of CTA 0, wait full 1 of CTA 1",
        "PTX0923": "fence 0",
        "PTX0901": "converge 0, wait empty 1",
        "PTX0953": "peer waits full 0",
        "PTX0990": "arrive.relaxed, expect 0 of CTA 0, expect 0 of CTA 1, expect 1 of CTA 0, expect 1 of CTA 1, "
        "load 0, load 1, arrive empty 0 of CTA 0, arrive empty 0 of CTA 1",
    },
    "PDL": {"PTX0906": "wait"},
    "PDL, early trigger": {"PTX0906": "~gpu, fence, launch_dependents, start"},
    "flag": {"PTX0901": "~release, ~acquire, see", "PTX0903": "~gpu, ~reader gpu", "PTX0990": "set"},
    "flag, fences": {
        "PTX0901": "written, release fence, ~strong, see, acquire fence, seen",
        "PTX0903": "~gpu",
        "PTX0905": "~coherent",
        "PTX0990": "count",
    },
    "counter": {"PTX0901": "~release 0, ~release 1, ~acquire, see", "PTX0990": "count 0, count 1"},
    "issuer's fence": {
        "PTX0910": "stage",
        "PTX0901": "staged",
        "PTX0920": "issuer's fence",
        "PTX0942": "commit, wait read, reusable",
    },
    "overwrite by load": {
        "PTX0950": "init",
        "PTX0910": "write",
        "PTX0902": "written",
        "PTX0921": "fence",
        "PTX0901": "free",
        "PTX0930": "wait",
        "PTX0990": "expect, load",
    },
}
PLANTED = {
    name: {label: code for code, labels in row.items() for label in labels.split(", ")}
    for name, row in EXPECTED.items()
}
CASES = [(name, label) for name, pattern in PATTERNS.items() for label in list_labels(pattern)]


def test_the_matrix_has_every_pattern_and_only_labels_that_exist() -> None:
    assert EXPECTED.keys() == PATTERNS.keys()
    for name, pattern in PATTERNS.items():
        assert set(PLANTED[name]) <= set(list_labels(pattern)), name
        assert len(PLANTED[name]) == sum(len(names.split(", ")) for names in EXPECTED[name].values()), name


def test_at_least_120_bugs_are_planted() -> None:
    assert sum(len(row) for row in PLANTED.values()) >= 120


@pytest.mark.parametrize("name", list(PATTERNS))
def test_the_right_version_is_clean_under_every_schedule(name: str) -> None:
    assert find_codes(PATTERNS[name], seeds=20) == {}


@pytest.mark.parametrize(("name", "label"), CASES, ids=[f"{name}: {label}" for name, label in CASES])
def test_a_removal_is_reported_at_its_severity(name: str, label: str) -> None:
    codes = find_codes(PATTERNS[name], label, seeds=2)
    rule_code = PLANTED[name].get(label)
    if rule_code is None:
        assert codes == {}
        return
    assert rule_code in codes
    if SEVERITY[rule_code] is Severity.WARNING:
        assert Severity.ERROR not in codes.values()
