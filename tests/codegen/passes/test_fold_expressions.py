"""Replacing variables by their values."""

from __future__ import annotations

from pyptx.codegen.passes.fold_expressions import replace_name
from pyptx.codegen.plan import Attribute, Binary, Call, Item, List, Literal, Name, Tuple, Unary

PARTS = (
    List((Name("a"), Literal(1))), Tuple((Literal(2), Name("b"))), Unary("-", Name("c")), Attribute(Name("d"), "s32"),
    Item(Name("e"), Literal(3)), Binary("+", Name("g"), Literal(4)), Call(Name("h"), (), (("k", Name("i")),)),
)  # fmt: skip


def test_only_parts_with_the_variable_are_made_anew() -> None:
    whole = Call(Name("f"), PARTS, ())
    assert replace_name(whole, "x", Literal(0)) is whole
    for place, name in enumerate("abcdegi"):
        call = replace_name(whole, name, Literal(0))
        assert isinstance(call, Call)
        assert [mine is theirs for mine, theirs in zip(call.arguments, PARTS, strict=True)] == [
            position != place for position in range(len(PARTS))
        ]
        assert str(call.arguments[place]) == str(PARTS[place]).replace(f"Name(id='{name}')", "Literal(value=0)")
