"""Facts of the rows of asynchronous copies, tensor copies and tensor maps that are easy to get wrong."""

from __future__ import annotations

import pytest

from tests.isa.spelling import legal, matches, operands

_BYTES = "mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(
    ("spelling", "target", "ptx", "expected"),
    [
        ("cp.async.ca.shared.global", "sm_80", "7.0", True),
        ("cp.async.cg.shared.global.L2::128B", "sm_80", "7.3", False),
        (f"cp.async.bulk.shared::cta.global.{_BYTES}", "sm_90", "8.5", False),
        (f"cp.async.bulk.shared::cluster.global.{_BYTES}", "sm_90", "8.0", True),
        (f"cp.async.bulk.shared::cta.global.{_BYTES}.multicast::cluster", "sm_90", None, False),
        (f"cp.async.bulk.relaxed.gpu.shared::cluster.global.{_BYTES}.b128", "sm_100", None, False),
        (f"cp.async.bulk.relaxed.gpu.shared::cluster.global.{_BYTES}.b128", "sm_100f", None, True),
        ("cp.async.bulk.global.shared::cta.bulk_group.cp_mask", "sm_90", None, False),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16", "sm_90", None, False),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16", "sm_90", "8.0", True),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f16", "sm_90", "8.0", True),
        (f"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.{_BYTES}", "sm_100", "8.6", True),
        (f"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.{_BYTES}", "sm_100", None, False),
        (f"cp.async.bulk.tensor.2d.shared::cluster.global.im2col.{_BYTES}", "sm_90", None, False),
        (f"cp.async.bulk.tensor.1d.shared::cta.global.{_BYTES}.cta_group::2", "sm_120a", None, False),
        ("tensormap.replace.tile.rank.global.b1024.b32", "sm_90", None, False),
        ("tensormap.replace.tile.rank.global.b1024.b32", "sm_90a", "8.3", True),
    ],
)
def test_where_a_spelling_is_legal(spelling: str, target: str, ptx: str | None, expected: bool) -> None:
    assert legal(spelling, target, ptx) is expected


def test_coordinates_and_offsets_follow_the_dimension() -> None:
    assert operands(f"cp.async.bulk.tensor.5d.shared::cta.global.im2col.{_BYTES}") == [
        "[d], [map, {at x5}:.s32], [mbar], {offsets x3}:.u16"
    ]


def test_a_hint_brings_a_policy_and_a_multicast_its_mask() -> None:
    spelling = f"cp.async.bulk.tensor.1d.shared::cluster.global.{_BYTES}.multicast::cluster.L2::cache_hint"
    assert operands(spelling) == ["[d], [map, {at x1}:.s32], [mbar], ctas:.u16, policy:.u64"]


def test_overridden_attributes_stand_inside_the_address() -> None:
    head = "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.override::global_address"
    assert operands(head) == ["[map, address:.u64, {at x3}:.s32], [a]"]
    assert operands(f"{head}.override::global_dim_stride") == [
        "[map, address:.u64, {size x3}:.u16, {low x2}:.u32, high:.u16, {at x3}:.s32], [a]"
    ]


def test_a_tensor_map_has_no_state_space() -> None:
    ((to, tensor, barrier),) = matches(f"cp.async.bulk.tensor.1d.shared::cta.global.{_BYTES}")[0].signatures
    assert (to.space, tensor.space, barrier.space) == ("shared::cta", None, "shared::cta")
    assert (to.access, tensor.access, barrier.access) == ("w", "r", "rw")
