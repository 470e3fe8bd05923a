"""No recursion on the input, and time linear in its length."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from pyptx.emitter import emit
from pyptx.ir import Instruction, diff_modules, evaluate, module_tokens, normalize_module, parts_of, strip_layout, visit
from pyptx.ir.operands import text_of
from pyptx.parser import PtxSyntaxError, parse
from pyptx.parser.fast import get_tables
from tests.messages import assert_listed

HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"


def kernel(body: str) -> str:
    return f"{HEAD}.entry k()\n{{\n{body}\n    ret;\n}}\n"


DEEP = {
    "parentheses": "mov.b32 %r1, " + "(" * 5000 + "1" + ")" * 5000 + ";",
    "signs": "mov.b32 %r1, " + "-" * 5000 + "1;",
    "vectors": "mov.b32 %r1, " + "{" * 5000 + "1" + "}" * 5000 + ";",
    "conditionals": "mov.b32 %r1, " + "1?2:" * 5000 + "3;",
    "conditionals inside": "mov.b32 %r1, " + "1?" * 5000 + "1" + ":2" * 5000 + ";",
    "sums": "mov.b32 %r1, " + "1+" * 5000 + "1;",
    "casts": "mov.b32 %r1, " + "(.s64)" * 5000 + "1;",
    "blocks": "{" * 1000 + "ret;" + "}" * 1000,
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_deep_nesting(body: str) -> None:
    text = kernel(body)
    module = parse(text)
    assert emit(module) == text
    copy = parse(text)
    assert module == copy
    assert hash(module) == hash(copy)
    assert repr(module) == repr(copy)
    bare = strip_layout(module)
    assert parse(emit(bare)) == bare == normalize_module(module)
    assert module_tokens(bare) == module_tokens(module)
    assert diff_modules(module, bare) == []
    for statement in visit(module):
        if isinstance(statement, Instruction):
            for operand in statement.operands:
                evaluate(operand)
                assert list(parts_of(operand))


@pytest.mark.parametrize("text", [kernel("{" * 20_001), kernel("mov.b32 %r1, " + "(" * 20_001)])
def test_past_the_limit_there_is_a_diagnostic(text: str) -> None:
    with pytest.raises(PtxSyntaxError) as excinfo:
        parse(text)
    assert excinfo.value.diagnostics[0].code == "PTX0011"
    assert_listed(excinfo.value.diagnostics[:1], text)


def test_more_operands_than_a_table_holds_are_read() -> None:
    """The tables of the fast path are replaced in the middle of the text."""
    count = (1 << 15) + 100
    text = kernel("\n".join(f"    mov.b32 %r{number}, %r{number + 1};" for number in range(count)))
    module = parse(text)
    assert emit(module) == text
    moves = [statement for statement in visit(module) if isinstance(statement, Instruction) and statement.operands]
    assert [text_of(move.operands[0]) for move in moves] == [f"%r{number}" for number in range(count)]
    assert parse(kernel("    mov.b32 %r1, 2;")) == parse(kernel("mov.b32 %r1,2;"))


def test_texts_share_tables_until_they_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyptx.parser.fast._LARGEST", 100)
    tables = get_tables(fresh=True)
    parse(kernel("    mov.b32 %r1, 2;"))
    assert get_tables() is tables
    parse(kernel("\n".join(f"    mov.b32 %r{number}, 1;" for number in range(200))))
    assert get_tables() is not tables


LONG: dict[str, Callable[[int], str]] = {
    "one line": lambda n: kernel("add.s32 %r1, %r2, %r3;" * (n // 22)),
    "one name": lambda n: kernel("mov.b32 %" + "a" * n + ", 1;"),
    "a vector": lambda n: kernel("mov.b32 {" + "%r1, " * (n // 5) + "%r1}, 1;"),
    "an initializer": lambda n: HEAD + ".global .b8 x[] = {" + "1, " * (n // 3) + "1};\n",
    "labels": lambda n: kernel("a:" * (n // 2)),
    "blank lines": lambda n: kernel("\n" * n),
    "comments": lambda n: kernel("/**/" * (n // 4)),
    "an open comment": lambda n: kernel("/*" + "*" * n),
    "open parentheses": lambda n: kernel("mov.b32 %r1, " + "(" * n),
    "closing braces": lambda n: kernel("}" * n),
    "names": lambda n: kernel("foo\n" * (n // 4)),
    "braces": lambda n: kernel("ret {{{{" * (n // 8)),
    "NULs": lambda n: kernel("\0" * n),
    "quotes": lambda n: kernel('"' * n),
    "an unknown directive": lambda n: kernel("." + "a" * n),
    "digits": lambda n: kernel("mov.b32 %r1, " + "1" * n + "x;"),
    "an open section": lambda n: HEAD + ".section .debug_x { " + ".b8 1 " * (n // 6),
}  # fmt: skip


@pytest.mark.parametrize("make", LONG.values(), ids=LONG)
def test_time_is_linear(make: Callable[[int], str]) -> None:
    seconds = [least_time(make(size)) for size in (20_000, 160_000)]
    assert seconds[1] < 8 * 3 * max(seconds[0], 0.002)


def least_time(text: str) -> float:
    """Return the minimum process time of three rounds of parsing with recovery and printing."""
    times: list[float] = []
    for _ in range(3):
        start = time.process_time()
        module, _ = parse(text, recover=True)
        assert emit(module) == text
        times.append(time.process_time() - start)
    return min(times)
