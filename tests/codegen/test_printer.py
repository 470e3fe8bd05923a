"""The printer turns any plan into valid Python with short lines and the same meaning, whatever its strings."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.codegen.names import Names, make_identifier
from pyptx.codegen.plan import (
    Attribute,
    Binary,
    Blank,
    Block,
    Comprehension,
    Define,
    Dict,
    Doc,
    Expr,
    Import,
    Item,
    Lambda,
    Line,
    List,
    Literal,
    Name,
    Note,
    Plan,
    Repeat,
    Slice,
    Step,
    Tuple,
    Unary,
    build_literal,
    build_path,
    call,
)
from pyptx.codegen.printer import WIDTH, format_expression, print_plan
from tests.digests import assert_digest

_TEXTS = st.text(st.characters(exclude_categories=()), max_size=200)
_LEAVES = st.one_of(
    _TEXTS.map(Literal), st.integers().map(Literal), st.floats(allow_nan=False, allow_infinity=False).map(Literal),
    st.sampled_from([True, False, None]).map(Literal), st.sampled_from("abcd").map(Name),
)  # fmt: skip


def _larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    several = st.lists(inner, max_size=6).map(tuple)
    return st.one_of(
        several.map(List), several.map(Tuple), st.tuples(inner, inner).map(lambda pair: Dict((pair,))),
        st.tuples(st.sampled_from(["+", "-", "*", "&", "|", "<<", "//"]), inner, inner).map(lambda p: Binary(*p)),
        st.tuples(st.sampled_from(["-", "~"]), inner).map(lambda p: Unary(*p)),
        st.tuples(inner, inner).map(lambda p: Item(*p)), inner.map(lambda e: Attribute(e, "name")),
        several.map(lambda parts: call(Name("f"), *parts, pred=Name("p"))),
    )  # fmt: skip


_EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(_LEAVES, _larger, max_leaves=30)


def _value(expr: Expr) -> ast.expr:
    """Return what an expression should parse to."""
    return ast.parse(format_expression(expr), mode="eval").body


@given(_EXPRESSIONS)
def test_broken_lines_mean_what_the_flat_ones_mean(expr: Expr) -> None:
    flat = ast.dump(_value(expr))
    steps = (Define("f", (Line(expr, target=Name("x")),)),)
    tree = ast.parse(print_plan(Plan(steps))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    assignment = tree.body[0]
    assert isinstance(assignment, ast.Assign)
    assert ast.dump(assignment.value) == flat


_LONG = [Name(letter * 50) for letter in "abcd"]
_SUM = Binary("+", _LONG[0], _LONG[1])


@pytest.mark.parametrize(
    "expr",
    [
        Binary("*", _SUM, _LONG[2]),
        Binary("-", _LONG[2], _SUM),
        Binary("<<", _SUM, Binary("+", _LONG[2], _LONG[3])),
        Binary("**", Unary("-", _LONG[0]), Item(_LONG[1], _LONG[2])),
        Binary("&", Binary("==", _LONG[0], _LONG[1]), _LONG[2]),
        call(_LONG[0], Binary("*", _SUM, _LONG[2])),
        List((Binary("*", _SUM, _LONG[2]),)),
    ],
)
def test_operands_keep_their_parentheses_on_lines_of_their_own(expr: Expr) -> None:
    python = print_plan(Plan((Line(expr, target=Name("x")),)))
    assert python.count("\n") > 1
    (assignment,) = ast.parse(python).body
    assert isinstance(assignment, ast.Assign)
    assert ast.dump(assignment.value) == ast.dump(_value(expr))


@given(_TEXTS)
def test_strings_come_back_and_nothing_else_does(text: str) -> None:
    assert ast.literal_eval(format_expression(Literal(text))) == text
    python = print_plan(
        Plan((Doc(text), Note(text), Line(Literal(text), comment=text), Block(Name("a"), (), comment=text)))
    )
    assert [type(node).__name__ for node in ast.parse(python).body] == ["Expr", "Expr", "With"]
    assert python.isascii()


@given(st.lists(_TEXTS, min_size=1, max_size=40))
def test_lines_of_strings_and_names_are_short(texts: list[str]) -> None:
    parts = [Literal(text) for text in texts]
    steps: tuple[Step, ...] = (Line(call(build_path("ptx.inst.add"), *parts, List(tuple(parts))), comment=texts[0]),)
    for _ in range(6):
        steps = (Repeat(Name("i"), List(tuple(parts)), (*steps, Blank())),)
    assert max(map(len, print_plan(Plan(steps)).split("\n"))) <= WIDTH


@pytest.mark.parametrize("name", ["", "a b", "1a", "a.b", "é", "a\n", "a-b"])
def test_what_is_no_identifier_is_refused(name: str) -> None:
    for step in (Line(Name(name)), Define(name, ()), Import("a", (name,)), Line(Attribute(Name("a"), name))):
        with pytest.raises(ValueError, match="identifier"):
            print_plan(Plan((step,)))


def test_operators_and_literals_are_a_closed_set() -> None:
    with pytest.raises(ValueError, match="operator"):
        format_expression(Binary("; import os;", Name("a"), Name("b")))
    with pytest.raises((TypeError, KeyError)):
        format_expression(Literal(object()))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        print_plan(Plan((Line(Name("a"), target=call(Name("f"))),)))


def test_precedence_and_small_forms() -> None:
    a, b = Name("a"), Name("b")
    assert format_expression(Unary("~", Binary("|", a, b))) == "~(a | b)"
    assert format_expression(Attribute(Literal(1), "real")) == "(1).real"
    assert format_expression(Item(a, Slice(Literal(1), b))) == "a[1:b]"
    assert format_expression(Tuple((a,))) == "(a,)"
    assert format_expression(Literal(255, hex=True)) == "0xff"
    assert format_expression(build_literal({"a": (1, None)})) == '{"a": (1, None)}'


def test_a_long_call_breaks_before_its_attribute() -> None:
    value = Attribute(call(Name("f"), Name("a" * 60), Binary("+", Name("b" * 40), Literal("c"))), "s32")
    text = print_plan(Plan((Line(value, target=Name("d" * 20)),)))
    assert text == f'{"d" * 20} = f(\n    {"a" * 60}, {"b" * 40} + "c",\n).s32\n'


@pytest.mark.parametrize(("dense", "sizes"), [(False, [80, 80]), (True, [60, 100])])
def test_a_long_text_becomes_adjacent_literals_without_an_empty_one(dense: bool, sizes: list[int]) -> None:
    text = "".join("0123456789"[i % 10] for i in range(160))
    lines = print_plan(Plan((Line(Literal(text, dense=dense)),))).splitlines()
    literals = [ast.literal_eval(line) for line in lines[1:-1]]
    assert [lines[0], lines[-1], "".join(literals)] == ["(", ")", text]
    assert [len(literal) for literal in literals] == sizes


def _nest(step: Step, levels: int) -> Step:
    for _ in range(levels):
        step = Repeat(Name("i"), Name("n"), (step,))
    return step


def _list_steps(name: Name, text: str) -> dict[str, Step]:
    """Return a step of each kind that is as long as a name or a text."""
    pair = Tuple((name, Name("b")))
    line = Line(call(Name("f"), name), target=Name("x"))
    inner = Block(call(Name("h"), Name("c")), (line,), target=Name("y"))
    return {
        "a call": line, "a call of a long name": Line(call(name, Name("b"), pred=Name("p")), target=Name("x")),
        "nested calls": Line(call(Name("f"), call(name, name), List((name, Literal(1))))),
        "a chain": Line(Attribute(call(Attribute(Name("f"), "g"), name), "s32"), target=Name("x")),
        "a sum": Line(Binary("+", name, Binary("*", Name("b"), Literal(4))), target=Name("x"), operator="+"),
        "targets": Line(call(Name("f")), target=pair), "many targets": Line(Name("f"), target=Tuple((name,) * 3)),
        "a list": Line(List((name, pair, Literal(text)))), "an item": Line(Item(name, Slice(Literal(0), Name("b")))),
        "an item of a call": Line(Item(call(Name("f"), name), Literal(text))), "a dict": Line(Dict(((name, pair),))),
        "a text": Line(Literal(text)), "lines": Line(Literal(text.replace("e", "\n"))),
        "a dense text": Line(Literal(text, dense=True)), "a text as argument": Line(call(Name("f"), Literal(text))),
        "a remark": Line(Name("f"), comment=text), "a remark of a block": Block(name, (line,), comment=text),
        "a loop": Repeat(Name("i"), call(Name("range"), name), (line,)), "a loop of two": Repeat(pair, pair, (line,)),
        "a block": Block(call(Name("g"), name), (line,), target=Name("x")), "two blocks": Block(name, (inner,)),
        "a note": Note(text), "a docstring": Doc(text), "a decorator": Define("f", (line,), (call(Name("g"), name),)),
        "an import": Import("a", tuple(f"{name.id}{letter}" for letter in "abc")),
        "a comprehension": Line(Comprehension(call(Name("f"), Name("i")), Name("i"), List((name, name)))),
        "a comprehension of long calls": Line(Comprehension(call(Name("f"), name), name, name)),
        "an item of a long index": Line(call(Item(Name("f"), call(Name("g"), name)), Name("b"))),
        "a product of sums": Line(Binary("*", Binary("+", name, name), call(Name("f"), name)), target=Name("x")),
        "escapes": Line(Literal(text.replace("e", "\0"))),
        "dense escapes": Line(Literal(text.replace("e", "\0"), dense=True)),
        "a deep text": _nest(Line(call(Name("f"), Literal(text[:8].replace("e", "\0")), Literal(text[:1]))), 26),
        "a condition": Block(call(Name("g"), pred=Lambda(Binary("<", name, Literal(9)))), (line,)),
    }  # fmt: skip


@pytest.mark.parametrize("kind", sorted(_list_steps(Name("a"), "a")))
def test_where_lines_of_every_length_break(kind: str) -> None:
    steps = [
        _list_steps(Name("n" * size), ("some text, \t" * 20)[:size])[kind] for size in (*range(1, 8), *range(30, 130))
    ]
    python = print_plan(Plan((*steps, Define("inside", tuple(steps[::3])))))
    assert ast.parse(python)
    assert_digest("lines", kind, python)


def test_blocks_that_fill_each_other_are_one_with() -> None:
    inner = Block(call(Name("b")), (Line(call(Name("c"))),), target=Name("x"))
    assert print_plan(Plan((Block(call(Name("a")), (inner,)),))) == "with a(), b() as x:\n    c()\n"


def test_blocks_that_fill_each_other_and_not_one_line_are_one_with_in_parentheses() -> None:
    inner = Block(call(Name("b" * 60)), (Line(call(Name("c"))),), target=Name("x"))
    python = print_plan(Plan((Block(call(Name("a" * 60)), (inner,), comment="why"),)))
    assert python == f"# why\nwith (\n    {'a' * 60}(),\n    {'b' * 60}() as x,\n):\n    c()\n"
    assert ast.parse(python)


def test_a_block_gives_its_identifiers_back() -> None:
    scope = Names()
    for _ in range(2):
        block = scope.open_block()
        assert [block.make_name("x") for _ in range(3)] == ["x", "x_2", "x_3"]
        assert scope.has("x_2")
        block.leave()
        assert not scope.has("x_2")


@given(st.lists(st.text(max_size=60), max_size=30))
def test_identifiers_are_unique_and_no_words_of_python(names: list[str]) -> None:
    scope = Names()
    inner = scope.open_function()
    identifiers = [scope.make_name(name) for name in names] + [inner.make_name(name) for name in names]
    identifiers += [block.make_name(name) for block in (inner.open_block(),) for name in names]
    assert len(set(identifiers)) == len(identifiers)
    for word in identifiers:
        assert ast.parse(word, mode="eval").body.__class__ is ast.Name
        assert make_identifier(word)


@pytest.mark.parametrize("size", [WIDTH - 3, WIDTH - 2, WIDTH - 1, 3 * WIDTH])
@pytest.mark.parametrize("head", ["", "short "])
def test_a_note_without_spaces_is_broken_at_the_width(head: str, size: int) -> None:
    lines = print_plan(Plan((Note(head + "x" * size),))).splitlines()
    notes = [line for line in lines if line.startswith("# ")]
    assert max(map(len, notes)) <= WIDTH
    assert "".join(line[2:] for line in notes).replace(" ", "") == head.strip() + "x" * size
