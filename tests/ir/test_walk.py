"""Visiting, replacing and comparing modules."""

from __future__ import annotations

from pyptx.emitter import emit
from pyptx.ir import (
    Instruction,
    IntrinsicScope,
    Label,
    Module,
    Statement,
    body_of,
    diff_modules,
    normalize_module,
    parts_of,
    replace_statements,
    strip_layout,
    tokens,
    visit,
)
from pyptx.parser import parse

TEXT = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n  { L: ret; }\n  exit; // last\n}\n"


def opcodes(module: Module) -> list[str]:
    return [s.opcode for s in visit(module) if isinstance(s, Instruction)]


def test_visit_goes_in_the_order_of_the_text() -> None:
    assert [type(s).__name__ for s in visit(parse(TEXT))] == [
        *("Version", "Target", "AddressSize", "Function", "Block", "Label", "Instruction", "Instruction")
    ]


def test_replacing_nothing_returns_the_same_module() -> None:
    module = parse(TEXT)
    assert replace_statements(module, lambda statement: statement) is module


def test_statements_are_replaced_added_and_removed() -> None:
    def change(statement: Statement) -> Statement | list[Statement] | None:
        if isinstance(statement, Label):
            return None
        if isinstance(statement, Instruction) and statement.opcode == "exit":
            return [Instruction("trap"), statement]
        return statement

    result = replace_statements(parse(TEXT), change)
    assert opcodes(result) == ["ret", "trap", "exit"]
    assert emit(result) == TEXT.replace(" L:", "").replace("  exit", "\ttrap;\n  exit")


def test_a_module_has_statements_and_no_tokens_of_its_own() -> None:
    module = parse(TEXT)
    header = (module.version, module.target, module.address_size)
    assert body_of(module) == module.statements == (*header, *module.directives)
    assert (tokens(module), list(parts_of(module))) == ((), [module])
    assert body_of(module.version) is None


def test_the_header_can_be_replaced() -> None:
    module = parse(TEXT)
    result = replace_statements(module, lambda s: s.replace(major=9) if s is module.version else s)
    assert emit(result) == TEXT.replace("8.0", "9.0")


def test_differences_are_lines() -> None:
    module = parse(TEXT)
    edit = parse(TEXT.replace("exit", "trap"))
    assert diff_modules(module, strip_layout(module)) == []
    assert diff_modules(module, edit) == ["-  exit;", "+  trap;"]
    assert diff_modules(module, edit, entry_only=True) == ["-  exit;", "+  trap;"]
    assert diff_modules(module, parse(TEXT + ".global .u32 x;"), entry_only=True) == []


def test_normal_form_has_no_scopes() -> None:
    module = parse(TEXT)
    with_scopes = replace_statements(
        module, lambda s: IntrinsicScope("f", "", (s,)) if isinstance(s, Instruction) else s
    )
    assert with_scopes != module
    assert normalize_module(with_scopes) == normalize_module(module)
    assert "// BEGIN f()" in emit(with_scopes)
    assert normalize_module(parse(emit(with_scopes))) == normalize_module(module)
    assert diff_modules(with_scopes, module) == []
    assert diff_modules(with_scopes, parse(TEXT.replace("exit", "trap"))) == ["-  exit;", "+  trap;"]
