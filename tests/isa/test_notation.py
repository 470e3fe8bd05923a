"""The notation of the table's rows: the meaning of each sign in a syntax line, and the errors for wrong lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.isa import lookup, notation, table
from pyptx.isa.model import Form, Kind, Match, Operand
from pyptx.isa.notation import NotationError, form
from pyptx.isa.targets import find_target


def list_spellings(row: Form) -> list[str]:
    """Return everything that a row allows, as text."""
    return [".".join((row.opcode, *match.modifiers)) for match in matches(row)]


def matches(row: Form) -> list[Match]:
    return [lookup.match_of(row, binding) for binding in lookup.spellings(row)]


def first(row: Form) -> tuple[Operand, ...]:
    """Return the longest operand list of a row's first spelling."""
    return matches(row)[0].signatures[0]


def list_operands(row: Form) -> list[str]:
    """Return every operand list of a row's first spelling, as text."""
    return [", ".join(str(o) for o in signature) for signature in matches(row)[0].signatures]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (form("trap", see=""), ["trap"]),
        (form("neg.type d, a", type="s16 s32", see=""), ["neg.s16", "neg.s32"]),
        (form("add{.sat}.s32 d", sat="sat", see=""), ["add.sat.s32", "add.s32"]),
        (form("ld{.sem.scope}.u8 d", sem="relaxed", scope="cta gpu", see=""),
         ["ld.relaxed.cta.u8", "ld.relaxed.gpu.u8", "ld.u8"]),
        (form("a{.b{.c}}.d", see=""), ["a.b.c.d", "a.b.d", "a.d"]),
        (form("dp4a.types d", types="u32.s32 s32.u32", see=""), ["dp4a.u32.s32", "dp4a.s32.u32"]),
        (form("f.sync_restrict::shared::cta", see=""), ["f.sync_restrict::shared::cta"]),
    ],
)  # fmt: skip
def test_a_head_spells_its_choices_in_the_manuals_order(row: Form, expected: list[str]) -> None:
    assert list_spellings(row) == expected


@pytest.mark.parametrize(
    ("line", "choices", "expected"),
    [
        ("add.u32   d, a, b", {}, ["d:.u32, a:.u32, b:.u32"]),
        ("cvt.f32.u8 d:w.f32, a", {}, ["d:.f32, a:.u8"]),
        ("set.dt.st d:w.dt, a:.st", {"dt": "f32", "st": "f64"}, ["d:.f32, a:.f64"]),
        ("dp.types  d:w.types/1, a:.types/0", {"types": "u32.s32"}, ["d:.s32, a:.u32"]),
        ("bar.sync  a:.u32{, b:.u32}", {}, ["a:.u32, b:.u32", "a:.u32"]),
        ("ld.vec.u8 d:w.u8*vec", {"vec": "v4"}, ["{d x4}:.u8"]),
        ("ld{.vec}.u8 d:w.u8*vec", {"vec": ""}, ["d:.u8"]),
        ("mma.u8    d:.b32*4*2", {}, ["{d x8}:.b32"]),
        ("st.u8     [a:w], b", {}, ["[a:.u8], b:.u8"]),
        ("cp.dim.b64 [m, c:.s32*dim], [bar]", {"dim": "3d"}, ["[m:.b64, {c x3}:.s32], [bar:.b64]"]),
        ("setp.u32  p:w.pred{|q:w.pred}, a", {}, ["p:.pred|q:.pred, a:.u32"]),
        ("setp.op.u32 p:w.pred{?op, {!}c:.pred}", {"op": "and"}, ["p:.pred, c:.pred"]),
    ],
)
def test_operands_resolve_to_types_and_counts(line: str, choices: dict[str, str], expected: list[str]) -> None:
    assert list_operands(Form(line, choices, "", form(line, see="").available)) == expected


def test_a_conditional_operand_comes_with_its_modifier_alone() -> None:
    row = form("red{.hint}.u32 [a], b{?hint, policy:.b64}", hint="L2::cache_hint", see="")
    assert {match.modifiers: [len(s) for s in match.signatures] for match in matches(row)} == {
        ("L2::cache_hint", "u32"): [3],
        ("u32",): [2],
    }


@pytest.mark.parametrize(
    ("operand", "attributes"),
    [
        ("d", {"access": "w", "kind": Kind.VALUE}),
        ("a", {"access": "r", "kind": Kind.VALUE, "discardable": False}),
        ("a:rw", {"access": "rw"}),
        ("a:reg", {"access": "r", "kind": Kind.REGISTER}),
        ("d:r.u32", {"access": "r", "type": "u32"}),
        ("d:w_.u32", {"access": "w", "discardable": True}),
        ("n:imm[0..15]", {"kind": Kind.IMMEDIATE, "bounds": (0, 15, 1)}),
        ("n:imm[24..256/8]", {"bounds": (24, 256, 8)}),
        ("n:imm[-8..7]", {"bounds": (-8, 7, 1)}),
        ("b:val[0..15].u32", {"kind": Kind.VALUE, "bounds": (0, 15, 1), "type": "u32"}),
        ("a:.u8+", {"widenable": True, "type": "u8"}),
        ("{!}c:.pred", {"negatable": True, "type": "pred"}),
        ("{-}a:.s32", {"minus": True, "negatable": False}),
        ("a:.u32^part", {"selectable": ("b0", "h10")}),
        ("l:label", {"kind": Kind.LABEL, "type": None}),
        ("[a@shared:w]", {"kind": Kind.ADDRESS, "access": "w", "space": "shared"}),
    ],
)
def test_marks_of_an_operand(operand: str, attributes: dict[str, object]) -> None:
    parsed = first(form(f"x.s32 {operand}", part="b0 h10", see=""))[0]
    assert {name: getattr(parsed, name) for name in attributes} == attributes


def test_an_address_takes_its_space_from_the_modifiers() -> None:
    assert first(form("ld.ss.u8 d, [a]", ss="shared", see=""))[1].space == "shared"
    assert first(form("ld.global.u8 d, [a]", see=""))[1].space == "global"
    assert first(form("ld.global.u8 d, [a@generic]", see=""))[1].space is None


@pytest.mark.parametrize(
    ("word", "target", "version", "expected"),
    [
        ("x", "sm_20", (3, 0), True),
        ("x@8.6", "sm_20", (8, 5), False),
        ("x@8.6", "sm_20", (8, 6), True),
        ("x@sm_90", "sm_90", (7, 8), True),
        ("x@sm_90", "sm_89", (9, 5), False),
        ("x@8.6,sm_100a", "sm_100a", (8, 6), True),
        ("x@8.6,sm_100a", "sm_103a", (9, 5), False),
        ("x@8.6,sm_100a|sm_100f:8.8", "sm_103a", (8, 8), True),
        ("x@8.6,sm_100a|sm_100f:8.8", "sm_100f", (8, 7), False),
        ("x@8.6,sm_100a|sm_100f:8.8", "sm_103", (9, 5), False),
        ("x@8.6,sm_100a|sm_100f:8.8", "sm_120f", (9, 5), False),
    ],
)
def test_a_choice_says_since_when(word: str, target: str, version: tuple[int, int], expected: bool) -> None:
    for row in (form("op.m", m=word, see=""), form("op.x", since=word.partition("@")[2], see="")):
        needs = matches(row)[0].needs if word != "x" else ()
        assert all(need.on(find_target(target), version) for need in needs) is expected


def test_a_row_says_its_availability_one_way_or_the_other() -> None:
    alternative = form("op", ptx=(8, 6), sm="sm_100a sm_100f:8.8", see="")
    assert form("op", since="8.6,sm_100a|sm_100f:8.8", see="").available == alternative.available


@pytest.mark.parametrize(
    "line",
    [
        "op{.a",
        "op.a}",
        "op.a-b",
        "op (a)",
        "op a,",
        "op {a",
        "op [a",
        "op [a;b]",
        "op {?x, a",
        "op {?x a}",
        "op a:.u32+b",
        "op d|",
    ],
)
def test_a_wrong_line_is_refused(line: str) -> None:
    with pytest.raises(NotationError):
        matches(form(line, see=""))


def test_a_count_must_name_a_position() -> None:
    with pytest.raises(NotationError, match="names no position"):
        matches(form("op d:w.u32*vec", see=""))


def test_every_row_of_the_table_follows_the_notation() -> None:
    for row in table.list_all_rows():
        assert notation.parse_head(row) is not None
        assert lookup.match_of(row, next(lookup.spellings(row))).signatures, row


@given(st.data())
def test_every_spelling_of_every_row_is_found_again(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(table.list_all_rows()))
    binding = tuple((slot.name, data.draw(st.sampled_from(slot.choices))) for slot in data.draw(
        st.sampled_from(lookup.list_sequences(row))))  # fmt: skip
    expected = lookup.match_of(row, binding)
    matches = lookup.find_matches(row.opcode, expected.modifiers)
    assert any(match.form is row and match.modifiers == expected.modifiers and not match.canonical for match in matches)
