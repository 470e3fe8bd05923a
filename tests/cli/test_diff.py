"""Which statements two listings do not share, and what each change follows."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pyptx import ptx, reg
from pyptx.cli import main
from pyptx.cli.diff import Change, Row, find_differences, list_rows, match_registers
from pyptx.parser import parse
from pyptx.types import u32
from tests.dsl.tracing import make_kernel


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


HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def kernel(body: str) -> str:
    """Return a module whose kernel's body starts on line 7."""
    return f"{HEAD}.entry k()\n{{\n.reg .b32 %r<9>;\n{body}}}\n"


def test_statements_are_spaced_alike() -> None:
    body = """.reg .pred %p; .reg .b64 %rd<2>;
        L :
        @ ! %p  bra.uni L;
        @%p st.global.v2.u32 [ %rd1 + 4 ] ,{%r1,%r2};
        mad.lo.s32 %r1,%r2 , %r3,-1;
        trap ;
        bar.sync 0;
    """
    assert [row.text for row in list_rows(parse(kernel(body)))] == [
        ".version 8.0", ".target sm_90", ".address_size 64", ".entry k ( ) {", ".reg .b32 %r < 9 > ;",
        ".reg .pred %p ;", ".reg .b64 %rd < 2 > ;", "L:", "@!%p bra.uni L;",
        "@%p st.global.v2.u32 [%rd1+4], {%r1, %r2};", "mad.lo.s32 %r1, %r2, %r3, -1;", "trap;", "bar.sync 0;", "}",
    ]  # fmt: skip


def test_a_traced_kernel_has_the_rows_of_its_text() -> None:
    def body() -> None:
        with ptx.scope():
            with ptx.expr():
                x = reg.scalar(u32, 1) + 2
            with ptx.if_(x == 3), ptx.scope():
                ptx.inst.bar.sync(1)
        ptx.inst.bar.sync(2)

    traced = make_kernel(body)
    assert "BEGIN expr" in traced.ptx()
    rows = list_rows(traced.module())
    assert [row.text for row in rows] == [row.text for row in list_rows(parse(traced.ptx()))]
    assert [row.origin is None for row in rows if row.text in ("{", "}", "bar.sync 1;")] == [
        False, False, False, True, True, True,
    ]  # fmt: skip


PRINTED = {
    "a register has another number": (
        "mov.u32 %r1, 1;\n", "mov.u32 %r2, 1;\n", "b.ptx emits the same statements as a.ptx, with 1 register renamed\n",
    ),
    "another number and another statement": (
        "mov.u32 %r1, 1;\nmov.u32 %r3, %r1;\nbar.sync 0;\n", "mov.u32 %r2, 1;\nmov.u32 %r4, %r2;\nbar.sync 1;\n",
        "2 registers renamed; the other changes are:\n- bar.sync 0;    [a.ptx line 9]\n+ bar.sync 1;    [line 9]\n",
    ),
    "a block is removed": (
        "{\nbar.sync 0;\n}\n", "bar.sync 0;\n",
        "- {    [a.ptx line 7]\n  (after line 6: .reg .b32 %r < 9 > ;)\n- }\n  (after line 7: bar.sync 0;)\n",
    ),
    "a block is added": ("bar.sync 0;\n", "{\nbar.sync 0;\n}\n", "+ {    [line 7]\n+ }\n"),
    "a statement after a block is removed": (
        "{\nbar.sync 0;\n}\nbar.sync 1;\n", "{\nbar.sync 0;\n}\n", "- bar.sync 1;    [a.ptx line 10]\n  (after })\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_of_changes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after, expected = PRINTED[name]
    monkeypatch.chdir(tmp_path)
    Path("a.ptx").write_text(kernel(before))
    Path("b.ptx").write_text(kernel(after))
    status = main(["diff", "a.ptx", "b.ptx"])
    assert (status, *capsys.readouterr()) == (int("emits the same" not in expected), expected, "")


KERNELS = f"""
from pyptx.parser import parse
class Text:
    def __init__(self, number):
        self.number = number
    def ptx(self):
        return {HEAD!r} + f".entry k() {{{{ bar.sync {{self.number}}; }}}}"
    def module(self):
        return parse(self.ptx())
"""


@pytest.mark.parametrize(
    ("lines", "words", "status", "problem"),
    [
        ("a = Text(0)", "", 0, ""), ("b = Text(1)", "", 1, ""), ("a, b = Text(0), Text(1)", "--name a", 0, ""),
        ("a, b = Text(0), Text(1)", "--name b", 1, ""), ("a, b, module = Text(1), Text(1), Text(0)", "", 0, ""),
        ("a, b = Text(0), Text(1)", "", 2, "no module or kernel found"), ("", "", 2, "no module or kernel found"),
        ("a = Text(0)", "--name c", 2, "no module or kernel c found"),
        ("a = Text(0)", "--name Text", 2, "no module or kernel Text found"),
        ("module = None\na = Text(0)", "", 0, ""),
    ],
)  # fmt: skip
def test_which_kernel_of_a_file_is_compared(
    lines: str, words: str, status: int, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("a.ptx").write_text(HEAD + ".entry k() { bar.sync 0; }")
    Path("b.py").write_text(KERNELS + lines)
    assert main(["diff", "a.ptx", "b.py", *words.split()]) == status
    out, err = capsys.readouterr()
    assert err == (f"pyptx: b.py: {problem}; name the variable with --name\n" if problem else "")
    assert out.startswith(("b.py emits the same", "- bar.sync 0;", "")[status])


def test_of_two_files_that_are_wrong_the_worse_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.ptx").write_text(HEAD + ".entry k() { bar.sync 0 }")
    Path("empty.py").write_text("")
    assert main(["diff", "wrong.ptx", "empty.py"]) == 2
