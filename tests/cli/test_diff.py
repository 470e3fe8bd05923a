"""Which statements two listings do not share, and what each change follows."""

from __future__ import annotations

import itertools

import pytest

from pyptx.cli.diff import Change, Row, find_differences


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
