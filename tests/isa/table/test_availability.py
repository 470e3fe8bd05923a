"""Rows are available, and vectors as wide, exactly where ptxas has them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from pyptx.isa import directives, lookup, special, table
from pyptx.isa.targets import PTX_VERSIONS, Availability, Version, find_oldest
from tools.isa import audit_availability
from tools.isa.audit_mutants import our_verdicts
from tools.isa.ptxas import Case

VECTORS = 30
OLD = (
    "add.rn.f32 q_f32_0, q_f32_1, q_f32_2;",
    "add.rm.f32 q_f32_0, q_f32_1, q_f32_2;",
    "mad.f32 q_f32_0, q_f32_1, q_f32_2, q_f32_3;",
    "cvt.rn.ftz.f32.s32 q_f32_0, q_b32_1;",
    "cvt.ftz.f64.f32 q_f64_0, q_f32_1;",
    "sub.cc.u32 q_b32_0, q_b32_1, q_b32_2;",
    "ld.global.cg.u32 q_b32_0, [q_b64_1];",
    "st.global.wt.u32 [q_b64_0], q_b32_1;",
    "atom.global.add.u32 q_b32_0, [q_b64_1], q_b32_2;",
    "atom.global.add.u64 q_b64_0, [q_b64_1], q_b64_2;",
    "atom.shared.cas.b32 q_b32_0, [q_b64_1], q_b32_2, q_b32_3;",
    "atom.shared.exch.b64 q_b64_0, [q_b64_1], q_b64_2;",
    "red.global.add.u32 [q_b64_0], q_b32_1;",
    "red.shared.add.u64 [q_b64_0], q_b64_1;",
)
OLD_IMAGES = (
    "tex.2d.v4.f32.f32 {q_f32_0, q_f32_1, q_f32_2, q_f32_3}, [q_texref, {q_f32_4, q_f32_5}];",
    "tex.a1d.v4.f32.f32 {q_f32_0, q_f32_1, q_f32_2, q_f32_3}, [q_texref, {q_b32_4, q_f32_5}];",
    "tex.cube.v4.f32.f32 {q_f32_0, q_f32_1, q_f32_2, q_f32_3}, [q_texref, {q_f32_4, q_f32_5, q_f32_6, q_f32_7}];",
    "tld4.r.2d.v4.f32.f32 {q_f32_0, q_f32_1, q_f32_2, q_f32_3}, [q_texref, {q_f32_4, q_f32_5}];",
    "suld.b.1d.b32.trap q_b32_0, [q_surfref, q_b32_1];",
    "suld.b.1d.ca.b32.trap q_b32_0, [q_surfref, q_b32_1];",
    "sust.b.1d.b32.zero [q_surfref, q_b32_0], q_b32_1;",
    "sust.b.a1d.b32.trap [q_surfref, {q_b32_0, q_b32_1}], q_b32_2;",
    "sured.b.add.3d.u32.trap [q_surfref, {q_b32_0, q_b32_1, q_b32_2, q_b32_3}], q_b32_4;",
)


@pytest.mark.parametrize("part", [0, 1])
def test_every_row_is_available_where_ptxas_has_it(seed: int, part: int) -> None:
    targets = audit_availability.TARGETS[part::2]
    expected = audit_availability.expect_offers(table.list_all_rows(), random.Random(seed), targets)
    assert len(set(expected.values())) == 2
    assert audit_availability.disagreements(expected) == []


def test_vectors_have_the_widths_that_ptxas_takes(seed: int) -> None:
    draw = random.Random(seed)
    vectors = [row for row in table.list_all_rows() if audit_availability.has_vectors(row)]
    # Most are textures, which are alike.
    kinds = [[row for row in vectors if (row.opcode == "tex") == texture] for texture in (False, True)]
    expected = audit_availability.expect_acceptance([row for kind in kinds for row in draw.sample(kind, VECTORS)], draw)
    assert len(set(expected.values())) == 2
    assert audit_availability.disagreements(expected) == []


@pytest.mark.parametrize(
    ("target", "version", "texts"),
    [
        ("sm_11", (1, 1), OLD), ("sm_13", (1, 2), OLD), ("sm_13", (1, 3), OLD), ("sm_13", (1, 4), OLD),
        ("sm_13", (1, 5), OLD + OLD_IMAGES), ("sm_13", (2, 3), OLD + OLD_IMAGES),
        ("sm_20", (2, 0), OLD + OLD_IMAGES), ("sm_20", (2, 3), OLD + OLD_IMAGES),
    ],
)  # fmt: skip
def test_modules_before_ptx_3_have_what_ptxas_takes(target: str, version: Version, texts: tuple[str, ...]) -> None:
    reasons = our_verdicts([Case(text, target, version) for text in texts])
    expected = {case: why is None for case, why in reasons.items()}
    assert len(set(expected.values())) == 2
    assert audit_availability.disagreements(expected) == []


def list_availabilities() -> Iterator[tuple[str, Availability]]:
    """Yield what rows, their choices, special registers, directives and pragmas state, each with its name."""
    for row in table.list_all_rows():
        yield row.line, row.available
        for slot in (slot for sequence in lookup.list_sequences(row) for slot in sequence):
            yield from ((f"{row.line}: {choice.text}", choice.available) for choice in slot.choices if choice.available)
    for register in special.SPECIAL_REGISTERS:
        yield register.name, register.available
    for item in (*directives.DIRECTIVES, *directives.PRAGMAS):
        yield item.name, item.available


def test_no_version_is_older_than_all_targets_that_it_is_stated_for() -> None:
    too_old = {
        name
        for name, available in list_availabilities()
        if min(first for _, first in available.since)
        < min(find_oldest(feature.name) if feature else PTX_VERSIONS[0] for feature, _ in available.since)
    }
    assert too_old == set()


@pytest.mark.parametrize(
    ("name", "version"), [("sm_90a", (8, 0)), ("sm_100f", (8, 6)), ("sm_110", (8, 6)), ("sm_121a", (8, 8))]
)
def test_a_feature_is_as_old_as_the_oldest_target_that_provides_it(name: str, version: Version) -> None:
    assert find_oldest(name) == version
