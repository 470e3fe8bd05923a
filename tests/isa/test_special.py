"""Special registers: shapes, widths and availability; the full audit against ptxas is fast enough to run here."""

from __future__ import annotations

import pytest

from pyptx.isa.special import SPECIAL_REGISTERS, find_constant, find_special_register
from pyptx.isa.targets import find_target
from tools.isa.audit_special import disagreements


def test_ptxas_reads_each_register_where_its_row_says_and_not_below() -> None:
    answers = list(disagreements())
    assert len(answers) > len(SPECIAL_REGISTERS)
    assert [answer for answer in answers if answer] == []


@pytest.mark.parametrize(
    ("name", "type_name", "vector"),
    [
        ("%tid", "u32", True),
        ("%tid.x", "u32", False),
        ("%cluster_ctaid.w", "u32", False),
        ("%gridid", "u64", False),
        ("%clock64", "u64", False),
        ("%is_explicit_cluster", "pred", False),
        ("%envreg31", "b32", False),
        ("%pm7_64", "u64", False),
    ],
)
def test_type_and_shape(name: str, type_name: str, vector: bool) -> None:
    register = find_special_register(name)
    assert register is not None
    assert (register.name, register.type.name, register.vector) == (name, type_name, vector)


@pytest.mark.parametrize("name", ["%tid.q", "%laneid.x", "%envreg32", "%pm8", "%tid.x.y", "tid", "%nosuch", ""])
def test_no_such_register(name: str) -> None:
    assert find_special_register(name) is None


def test_clusters_need_hopper() -> None:
    register = find_special_register("%cluster_ctarank")
    assert register is not None
    assert register.available.on(find_target("sm_90"), (7, 8))
    assert not register.available.on(find_target("sm_89"), (9, 0))


def test_names_are_distinct() -> None:
    assert len({register.name for register in SPECIAL_REGISTERS}) == len(SPECIAL_REGISTERS)


def test_warp_size() -> None:
    warp_size = find_constant("WARP_SZ")
    assert warp_size is not None
    assert warp_size.value == 32
    assert find_constant("WARP_SIZE") is None
