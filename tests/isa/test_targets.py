"""Which targets have the features of others."""

from __future__ import annotations

import pytest

from pyptx.isa.limits import find_shared_start
from pyptx.isa.targets import FAMILIES, FIRST_PTX, RENAMED, find_target


def test_every_family_specific_target_has_a_family() -> None:
    archs = {find_target(name).arch for name in FIRST_PTX if name.endswith("f")}
    assert {RENAMED.get(arch, arch) for arch in archs} == {arch for family in FAMILIES for arch in family}


@pytest.mark.parametrize(
    ("target", "feature", "expected"),
    [
        ("sm_103f", "sm_100f", True),
        ("sm_103a", "sm_100f", True),
        ("sm_100f", "sm_103f", False),
        ("sm_110f", "sm_100f", False),
        ("sm_103", "sm_100f", False),
        ("sm_103a", "sm_100a", False),
        ("sm_101a", "sm_110f", True),
    ],
)
def test_features_of_a_family_are_those_of_its_older_members(target: str, feature: str, expected: bool) -> None:
    assert find_target(target).provides(find_target(feature)) is expected


@pytest.mark.parametrize(("target", "start"), [("sm_89", 0), ("sm_90", 1024), ("sm_121a", 1024)])
def test_shared_memory_of_a_cta_starts_behind_the_reserved_part_since_sm_90(target: str, start: int) -> None:
    assert find_shared_start(find_target(target).arch) == start
