"""Which statements two listings do not share, and what each change follows."""

from __future__ import annotations

import itertools

import pytest

from pyptx.cli.diff import Change, Row, find_differences, list_rows, match_registers
from pyptx.parser import parse


def apply(old: list[Row], changes: list[Change]) -> list[str]:
    """Return the texts after replacing, in order, the old statements of each change by the new ones."""
    texts, at = list[str](), 0
    for change in changes:
        while change.old and old[at] is not change.old[0]:
            texts.append(old[at].text)
            at += 1
        while not change.old and texts[-1:] != ([] if change.after is None else [change.after.text]):
            texts.append(old[at].text)
            at += 1
        assert texts[-1:] == ([] if change.after is None else [change.after.text])
        texts += [row.text for row in change.new]
        at += len(change.old)
    return texts + [row.text for row in old[at:]]


def test_the_changes_turn_one_listing_into_the_other() -> None:
    """All listings of up to four different statements."""
    words = [text for size in range(5) for text in itertools.permutations("abcd", size)]
    for before, after in itertools.product(words, repeat=2):
        old, new = [Row(text, None) for text in before], [Row(text, None) for text in after]
        changes = list(find_differences(old, new))
        assert apply(old, changes) == list(after)
        assert bool(changes) == (before != after)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("abcd", "axcd", [("b", "x", "a")]),
        ("abcd", "xbcd", [("a", "x", None)]),
        ("abcd", "abcdx", [("", "x", "d")]),
        ("abcd", "bcd", [("a", "", None)]),
        ("abcd", "xbcy", [("a", "x", None), ("d", "y", "c")]),
        ("abcd", "abyd", [("c", "y", "b")]),
    ],
)
def test_a_change_names_the_statement_before_it(
    before: str, after: str, expected: list[tuple[str, str, str | None]]
) -> None:
    rows = [Row(text, None) for text in before], [Row(text, None) for text in after]
    changes = [
        ("".join(row.text for row in change.old), "".join(row.text for row in change.new),
         None if change.after is None else change.after.text)
        for change in find_differences(*rows)
    ]  # fmt: skip
    assert changes == expected


OLD = ["mov.u32 %r1, %tid.x", "ld.u32 %r2, [%rd1]", "add.u32 %r3, %r1, %r2", "st.u32 [%rd1], %r3"]


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        (["mov.u32 %r2, %tid.x", "ld.u32 %r3, [%rd1]", "add.u32 %r4, %r2, %r3", "st.u32 [%rd1], %r4"], ""),
        (["mov.u32 %r2, %tid.x", "ld.u32 %r3, [%rd1]", "add.u32 %r4, %r2, %r2", "st.u32 [%rd1], %r4"], "add"),
        (["mov.u32 %r1, %tid.x", "ld.u32 %r2, [%rd1]", "add.u32 %r3, %r2, %r1", "st.u32 [%rd1], %r3"], "add"),
        (["mov.u32 %r1, %ctaid.x", "ld.u32 %r2, [%rd1]", "add.u32 %r3, %r1, %r2", "st.u32 [%rd1], %r3"], "mov"),
        (["mov.u32 %f1, %tid.x", "ld.u32 %r2, [%rd1]", "add.u32 %r3, %f1, %r2", "st.u32 [%rd1], %r3"], "mov add"),
        (["mov.u32 %r1, %tid.x", "ld.u32 %r2, [%rd1]", "add.u32 %r2, %r1, %r2", "st.u32 [%rd1], %r2"], "add st"),
    ],
)
def test_registers_that_are_only_numbered_anew_are_no_changes(new: list[str], changed: str) -> None:
    rows = [Row(text, None) for text in OLD], [Row(text, None) for text in new]
    changes = find_differences(*rows, match_registers(*rows))
    assert [row.text.split(".")[0] for change in changes for row in change.old] == changed.split()


def test_every_block_has_a_row_that_closes_it_and_the_module_none() -> None:
    module = parse(".version 8.0\n.target sm_80\n.visible .entry k()\n{\n.loc 1 2 3\n{\nret;\n}\n}\n.global .u32 x;\n")
    texts = [row.text for row in list_rows(module)]
    assert texts[-5:-1] == ["{", "ret;", "}", "}"]
    assert texts[-1].startswith(".global")
