"""The grammar of statements, declarations, headers and directives, one function each. Reads tokens from a Cursor and
does not enter bodies: a statement that opens one is returned as an `Opening`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from pyptx.diagnostics import Origin
from pyptx.ir.directives import (
    AddressSize,
    AliasDirective,
    BranchTargets,
    CallPrototype,
    CallTargets,
    DwarfDirective,
    FileDirective,
    LabelRange,
    LocDirective,
    PragmaDirective,
    Section,
    SectionLabel,
    Target,
    Version,
)
from pyptx.ir.kinds import LinkingDirective, Number, StateSpace
from pyptx.ir.nodes import Block, Function, Instruction, Label, Predicate, Statement
from pyptx.ir.operands import Operand
from pyptx.isa.directives import Place
from pyptx.parser import rules
from pyptx.parser.cursor import Cursor, shorten, suggest_nearest
from pyptx.parser.declarations import (
    parse_attributes,
    parse_function_directives,
    parse_param_list,
    parse_register_declaration,
    parse_variable_declaration,
)
from pyptx.parser.errors import Failure
from pyptx.parser.operands import ALONE, parse_operand
from pyptx.parser.sections import parse_section_label, parse_section_value


@dataclass(slots=True)
class Opening:
    """A statement whose body starts: the node's class, its fields so far, and its description."""

    make: Callable[..., Statement]
    fields: dict[str, Any]
    kind: str


Parsed = Statement | Opening


def parse_body_statement(cursor: Cursor, place: Origin) -> Parsed:
    """Parse the function body statement at the cursor (a closing brace is not one)."""
    kind, token = cursor.kind, cursor.token
    if kind == "DOTTED":
        parse = _IN_BODY.get(token)
        return parse(cursor, place) if parse else fail_unknown_directive(cursor, _IN_BODY)
    if token == "{":
        cursor.take()
        return Opening(Block, {"layout": cursor.finish(), "origin": place}, "block")
    if token == "@":
        return _parse_guarded(cursor, place)
    if kind != "NAME":
        cursor.fail("a statement")
    name = cursor.take()
    if cursor.token == ":":
        cursor.take()
        return Label(name, cursor.finish(), place)
    return _parse_instruction(cursor, place, name, None)


def parse_module_statement(cursor: Cursor, place: Origin) -> Parsed:
    """Parse the module-level statement at the cursor."""
    if cursor.kind == "DOTTED":
        parse = _IN_MODULE.get(cursor.token)
        return parse(cursor, place) if parse else fail_unknown_directive(cursor, _IN_MODULE)
    if cursor.token == "@@DWARF":
        return _parse_dwarf(cursor, place)
    if cursor.kind in ("NAME", "PUNCTUATION") and (cursor.kind == "NAME" or cursor.token in "@{"):
        message = f"expected a directive, found `{shorten(cursor.token)}`"
        help = "statements must be between the braces of an `.entry` or `.func`"
        raise Failure(rules.PLACE, cursor.start, len(cursor.token), message, help)
    return cursor.fail("a directive")


def parse_version(cursor: Cursor, place: Origin) -> Version:
    """Parse `.version`, the first statement of every module."""
    _expect_header_word(cursor, ".version", "a module starts with `.version`, as in `.version 8.0`")
    match = re.fullmatch(r"(\d{1,9})\.(\d{1,9})", cursor.token)
    if not match:
        cursor.fail("a version such as 8.0")
    cursor.take()
    major, minor = ((int(t) if t == str(int(t)) else Number(int(t), t)) for t in match.groups())
    return Version(major, minor, layout=cursor.finish(), origin=place)


def parse_target(cursor: Cursor, place: Origin) -> Target:
    """Parse `.target`."""
    _expect_header_word(cursor, ".target", "`.target` must follow `.version`, as in `.target sm_90a`")
    return _parse_targets(cursor, place)


def parse_address_size(cursor: Cursor, place: Origin) -> AddressSize:
    """Parse `.address_size`."""
    cursor.take()
    size = cursor.take_number("32 or 64")
    return AddressSize(size, cursor.finish(), place)


def fail_unknown_directive(cursor: Cursor, table: dict[str, Any]) -> NoReturn:
    """Fail for a directive that is not allowed here, suggesting the most similar one that is."""
    place_name, other_table = (
        ("at module level", _IN_BODY) if table is _IN_MODULE else ("in a function body", _IN_MODULE)
    )
    message = f"`{shorten(cursor.token)}` is not allowed {place_name}"
    help = suggest_nearest(cursor.token, table)
    if cursor.token in other_table:
        help = "move it into a function body" if other_table is _IN_BODY else "move it outside the function"
    raise Failure(rules.DIRECTIVE, cursor.start, len(cursor.token), message, help)


def _expect_header_word(cursor: Cursor, word: str, help: str) -> None:
    if cursor.kind == "STRAY":
        cursor.fail(f"`{word}`")
    if cursor.token != word:
        token = f"`{shorten(cursor.token)}`" if cursor.token else "the end of the file"
        raise Failure(rules.HEADER, cursor.start, len(cursor.token) or 1, f"expected `{word}`, found {token}", help)
    cursor.take()


def _parse_target(cursor: Cursor, place: Origin) -> Target:
    cursor.take()
    return _parse_targets(cursor, place)


def _parse_targets(cursor: Cursor, place: Origin) -> Target:
    names = [cursor.take_name("a target such as sm_90a")]
    while cursor.accept(","):
        names.append(cursor.take_name("a target or an option of `.target`"))
    return Target(tuple(names), layout=cursor.finish(), origin=place)


def _parse_guarded(cursor: Cursor, place: Origin) -> Instruction:
    cursor.take()
    is_negated = cursor.accept("!")
    register = cursor.take_name("a predicate register")
    return _parse_instruction(
        cursor, place, cursor.take_name("an instruction after its guard"), Predicate(register, is_negated)
    )


def _parse_instruction(cursor: Cursor, place: Origin, opcode: str, predicate: Predicate | None) -> Instruction:
    if opcode[0] == "%":
        length = len(opcode)
        guard = cursor.kind == "NAME" and cursor.gap
        help = f"a guard starts with `@`: `@{opcode}`" if guard else _RESULT
        message = f"expected an instruction, found `{shorten(opcode)}`"
        raise Failure(rules.UNEXPECTED, cursor.taken_end - length, length, message, help)
    modifiers: list[str] = []
    while cursor.kind == "DOTTED" or (cursor.kind == "NUMBER" and cursor.token[0] == "." and not cursor.gap):
        modifiers.append(cursor.take())
    operands: list[Operand] = []
    if cursor.token != ";":
        if opcode in ALONE:
            cursor.fail_without_semicolon(f"after `{shorten(opcode)}`")
        lists = opcode == "call"
        operands.append(parse_operand(cursor, lists=lists))
        while cursor.accept(","):
            operands.append(parse_operand(cursor, lists=lists))
        if cursor.token != ";":
            cursor.fail_without_semicolon("after the operands", "`,` or ")
    cursor.take()
    return Instruction(opcode, tuple(modifiers), tuple(operands), predicate, cursor.finish(), place)


_RESULT = "the destination is the first operand: `mov.b32 %r1, %r2;`"


def _parse_linked(cursor: Cursor, place: Origin) -> Parsed:
    linking = LinkingDirective.from_ptx(cursor.take())
    parse = _AFTER_LINKING.get(cursor.token)
    if parse is None or (parse is _parse_function and linking is LinkingDirective.COMMON):
        cursor.fail("a function or a variable", suggest_nearest(cursor.token, _AFTER_LINKING))
    return parse(cursor, place, linking)


def _parse_function(cursor: Cursor, place: Origin, linking: LinkingDirective | None = None) -> Parsed:
    fields: dict[str, Any] = {"is_entry": cursor.take() == ".entry", "linking": linking, "origin": place}
    fields["attributes"] = parse_attributes(cursor)
    if cursor.token == "(" and not fields["is_entry"]:
        fields["return_params"] = parse_param_list(cursor)
    fields["name"] = cursor.take_name("the name of a function")
    fields["parens"] = cursor.token == "("
    if fields["parens"]:
        fields["params"] = parse_param_list(cursor)
    fields["directives"] = parse_function_directives(cursor, Place.KERNEL if fields["is_entry"] else Place.FUNCTION)
    if cursor.token == ";":
        cursor.take()
        return Function(**fields, definition=False, layout=cursor.finish())
    if cursor.token != "{":
        cursor.fail("`{` before the body, or `;`")
    cursor.take()
    return Opening(Function, {**fields, "layout": cursor.finish()}, "function")


def _parse_pragma(cursor: Cursor, place: Origin) -> PragmaDirective:
    cursor.take()
    texts = [cursor.take_string("a string")]
    while cursor.accept(","):
        texts.append(cursor.take_string("a string"))
    cursor.expect(";", "after `.pragma`")
    return PragmaDirective(texts[0], tuple(texts[1:]), cursor.finish(), place)


def _parse_file(cursor: Cursor, place: Origin) -> FileDirective:
    cursor.take()
    index, path = cursor.take_number("the index of the file"), cursor.take_string("the path of the file")
    if not cursor.accept(","):
        return FileDirective(index, path, layout=cursor.finish(), origin=place)
    timestamp = cursor.take_number("a timestamp")
    cursor.expect(",", "after the timestamp")
    size = cursor.take_number("the file size")
    return FileDirective(index, path, timestamp, size, cursor.finish(), place)


def _parse_loc(cursor: Cursor, place: Origin) -> LocDirective:
    intermediate = cursor.take() == ".loc_intermediate"
    file, line, column = (cursor.take_number(description) for description in ("a file index", "a line", "a column"))
    function_name: SectionLabel | None = None
    inlined_at: tuple[int, int, int] | None = None
    if not intermediate and cursor.accept(","):
        _expect_word(cursor, "function_name")
        function_name = parse_section_label(cursor)
        cursor.expect(",", "before `inlined_at`")
        _expect_word(cursor, "inlined_at")
        inlined_at = (cursor.take_number("a file index"), cursor.take_number("a line"), cursor.take_number("a column"))
    return LocDirective(file, line, column, function_name, inlined_at, intermediate, cursor.finish(), place)


def _expect_word(cursor: Cursor, word: str) -> None:
    if cursor.token != word:
        cursor.fail(f"`{word}`")
    cursor.take()


def _parse_section(cursor: Cursor, place: Origin) -> Opening:
    cursor.take()
    if cursor.kind != "DOTTED":
        cursor.fail("the name of a section, such as `.debug_info`")
    name = cursor.take()
    cursor.expect("{", "before the data of the section")
    return Opening(Section, {"name": name, "layout": cursor.finish(), "origin": place}, "section")


def _parse_dwarf(cursor: Cursor, place: Origin) -> DwarfDirective:
    cursor.take()
    if cursor.kind == "NAME":
        name = cursor.take()
        cursor.expect(":", "after the label")
        return DwarfDirective(":", (name,), cursor.finish(), place)
    if cursor.kind != "DOTTED":
        cursor.fail("a directive or a label")
    keyword = cursor.take()
    values = [_parse_dwarf_value(cursor)]
    while cursor.accept(","):
        values.append(_parse_dwarf_value(cursor))
    return DwarfDirective(keyword, tuple(values), cursor.finish(), place)


def _parse_dwarf_value(cursor: Cursor) -> int | str | SectionLabel:
    return f'"{cursor.take_string("a string")}"' if cursor.kind == "STRING" else parse_section_value(cursor)


def _parse_call_prototype(cursor: Cursor, place: Origin) -> CallPrototype:
    cursor.take()
    returns = parse_param_list(cursor) if cursor.token == "(" else None
    if not cursor.accept("_"):
        cursor.fail("`_`, which stands for the function name in a prototype")
    parens = cursor.token == "("
    params = parse_param_list(cursor) if parens else ()
    directives = parse_function_directives(cursor, Place.PROTOTYPE)
    cursor.expect(";", "after the prototype")
    return CallPrototype(params, returns, directives, parens, cursor.finish(), place)


def _parse_call_targets(cursor: Cursor, place: Origin) -> CallTargets:
    cursor.take()
    names = [cursor.take_name("the name of a function")]
    while cursor.accept(","):
        names.append(cursor.take_name("the name of a function"))
    cursor.expect(";", "after the call targets")
    return CallTargets(tuple(names), cursor.finish(), place)


def _parse_branch_targets(cursor: Cursor, place: Origin) -> BranchTargets:
    cursor.take()
    labels = [_parse_label_range(cursor)]
    while cursor.accept(","):
        labels.append(_parse_label_range(cursor))
    cursor.expect(";", "after the branch targets")
    return BranchTargets(tuple(labels), cursor.finish(), place)


def _parse_label_range(cursor: Cursor) -> LabelRange:
    name = cursor.take_name("a label")
    if not cursor.accept("<"):
        return LabelRange(name)
    count = cursor.take_number("the number of labels")
    cursor.expect(">", "after the number of labels")
    return LabelRange(name, count)


def _parse_alias(cursor: Cursor, place: Origin) -> AliasDirective:
    cursor.take()
    name = cursor.take_name("the name of a function")
    cursor.expect(",", "before the function it stands for")
    aliasee = cursor.take_name("the name of a function")
    cursor.expect(";", "after `.alias`")
    return AliasDirective(name, aliasee, cursor.finish(), place)


_VARIABLES = {
    space.ptx: parse_variable_declaration for space in StateSpace if space not in (StateSpace.REG, StateSpace.SREG)
}
_AFTER_LINKING: dict[str, Any] = {".entry": _parse_function, ".func": _parse_function, **_VARIABLES}
_IN_BODY: dict[str, Callable[[Cursor, Origin], Parsed]] = {
    ".reg": parse_register_declaration,
    **_VARIABLES,
    ".loc": _parse_loc,
    ".loc_intermediate": _parse_loc,
    ".pragma": _parse_pragma,
    ".callprototype": _parse_call_prototype,
    ".calltargets": _parse_call_targets,
    ".branchtargets": _parse_branch_targets,
    ".target": _parse_target,
    ".alias": _parse_alias,
}
_IN_MODULE: dict[str, Callable[[Cursor, Origin], Parsed]] = {
    ".reg": parse_register_declaration,
    **_VARIABLES,
    **{linking.ptx: _parse_linked for linking in LinkingDirective},
    ".entry": _parse_function,
    ".func": _parse_function,
    ".file": _parse_file,
    ".section": _parse_section,
    ".pragma": _parse_pragma,
    ".alias": _parse_alias,
}
