"""Results of `lookup`: matches in any order, expectations where nothing matches, and the variety of rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.isa import table
from pyptx.isa.lookup import find_matches, lookup
from pyptx.isa.model import Match, Mismatch


def find_match(spelling: str) -> Match | Mismatch:
    opcode, *modifiers = spelling.split(".")
    return lookup(opcode, tuple(modifiers))


@pytest.mark.parametrize("spelling", ["trap", "add.s32", "add.sat.s32", "setp.ltu.and.ftz.f32", "fence.proxy.async"])
def test_canonical_spellings_match_as_they_are(spelling: str) -> None:
    match = find_match(spelling)
    assert isinstance(match, Match)
    assert match.canonical is None
    assert ".".join((match.form.opcode, *match.modifiers)) == spelling


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("add.s32.sat", "sat.s32"),
        ("add.f32.ftz.rn", "rn.ftz.f32"),
        ("min.NaN.ftz.f32", "ftz.NaN.f32"),
        ("add.sat.sat.s32", "sat.s32"),
        ("atom.add.global.u32", "global.add.u32"),
        ("atom.global.v2.f32.add", "global.add.v2.f32"),
        ("fma.rn.relu.ftz.f16", "rn.ftz.relu.f16"),
        ("barrier.cluster.arrive.aligned.relaxed", "cluster.arrive.relaxed.aligned"),
    ],
)
def test_other_orders_are_legal_but_not_canonical(spelling: str, canonical: str) -> None:
    match = find_match(spelling)
    assert isinstance(match, Match)
    assert ".".join(match.canonical or ()) == canonical


@pytest.mark.parametrize(
    "spelling",
    [
        "set.lo.s32.f32",
        "set.eq.b32.f32",
        "cp.async.bulk.bulk_group.shared::cta.global",
        "mma.sync.aligned.m8n8k16.col.row.s32.s8.s8.s32",
        "mul.s32.hi",
        "shf.wrap.l.b32",
        "add.ftz.ftz.f32",
        "add.s32.s32",
        "add.f16.sat.f32",
    ],
)
def test_order_and_number_that_tell_things_apart_are_kept(spelling: str) -> None:
    assert isinstance(find_match(spelling), Mismatch)


def test_types_are_never_swapped() -> None:
    match = find_match("set.f32.eq.u32")
    assert isinstance(match, Match)
    assert (match.chosen["dtype"], match.chosen["stype"]) == ("f32", "u32")


@pytest.mark.parametrize(
    ("spelling", "index", "among"),
    [
        ("add", 0, {"u32", "sat", "rn", "cc"}),
        ("add.q32", 0, {"u32", "f32"}),
        ("mul.wide.u64", 1, {"u16", "s16", "u32", "s32"}),
        ("mul.hi", 1, {"u16", "s64"}),
        ("fma.f32", 0, {"rn", "rz", "rm", "rp"}),
        ("setp.lt.and", 2, {"u32", "f32", "ftz"}),
        ("bar.warp", 1, {"sync"}),
        ("atom.global.add.u16", 2, {"u32", "f32", "noftz"}),
        ("popc.b32.b32", 1, {""}),
    ],
)
def test_a_mismatch_says_where_and_what_was_expected(spelling: str, index: int, among: set[str]) -> None:
    result = find_match(spelling)
    assert isinstance(result, Mismatch)
    assert result.known
    assert result.position == index
    assert among <= set(result.expected), result.expected


def test_an_unknown_opcode_is_known_to_be_unknown() -> None:
    assert find_match("frobnicate.u32") == Mismatch("frobnicate", ("u32",), 0, (), known=False)


def test_rows_that_share_a_spelling_all_answer() -> None:
    assert sorted(len(s) for m in find_matches("min", ("f32",)) for s in m.signatures) == [3, 4]
    assert sorted(len(s) for m in find_matches("vadd", ("u32", "u32", "u32")) for s in m.signatures) == [3, 4]


def test_compound_choices_are_matched_whole() -> None:
    match = find_match("fence.proxy.async.shared::cta")
    assert isinstance(match, Match)
    assert match.chosen == {"kind": "async.shared::cta"}
    assert match.modifiers == ("proxy", "async", "shared::cta")


def test_needs_join_the_row_and_its_choices() -> None:
    match = find_match("atom.relaxed.cluster.global.add.f64")
    assert isinstance(match, Match)
    assert len(match.needs) == 4


_WORDS = sorted(
    {word for row in table.list_all_rows() for words in row.choices.values() for word in words.split()} | {"x"}
)
_MODIFIERS = st.lists(st.sampled_from([word.partition("@")[0] for word in _WORDS if "." not in word]), max_size=6)


@given(opcode=st.sampled_from(sorted(table.list_opcodes())), modifiers=_MODIFIERS)
def test_lookup_is_total_and_consistent(opcode: str, modifiers: list[str]) -> None:
    result = lookup(opcode, tuple(modifiers))
    if isinstance(result, Mismatch):
        assert 0 <= result.position <= len(modifiers)
        assert result.expected
    else:
        assert set(result.modifiers) == set(modifiers)
        repetition = lookup(opcode, result.modifiers)
        assert isinstance(repetition, Match)
        assert repetition.canonical is None


def test_every_instruction_has_its_meaning() -> None:
    opcodes = {name.split(".")[0] for name in table.meanings()}
    assert [opcode for opcode in table.list_opcodes() if opcode not in opcodes] == []
