"""The grammar of declarations: registers, variables and their initializers, parameters, function directives."""

from __future__ import annotations

import re
from typing import NamedTuple

from pyptx.diagnostics import Origin
from pyptx.ir.kinds import UNSIZED, LinkingDirective, ScalarType, StateSpace
from pyptx.ir.nodes import Attribute, Declarator, FunctionDirective, Param, RegDecl, VarDecl, suggests_braces
from pyptx.ir.operands import ImmediateOperand, LabelOperand, Operand
from pyptx.isa.directives import Directive, Place, list_header_directives
from pyptx.parser import rules
from pyptx.parser.cursor import Cursor, shorten, suggest_nearest
from pyptx.parser.errors import Failure
from pyptx.parser.operands import parse_operand

_PLAIN = r"(?:0[xX][\da-fA-F]++|0[fF][\da-fA-F]{8}|0[dD][\da-fA-F]{16}|0|[1-9]\d{0,99}+)"
_plain_values = re.compile(rf"(?:[ \t\r\n]*+-?{_PLAIN},)++").match
_plain_value = re.compile(r"([ \t\r\n]*)(-?)(\w+),").findall
_TYPES = {member.ptx: member for member in ScalarType}
_PARAMETER_SPACES = {space.ptx: space for space in (StateSpace.PARAM, StateSpace.REG)}
_VECTORS = {".v2": 2, ".v4": 4}
_OF_BODIES = frozenset((".reg", ".shared", ".local", ".loc", ".branchtargets"))
_HEADERS = {Place.KERNEL: "an entry", Place.FUNCTION: "a device function", Place.PROTOTYPE: "a prototype"}


class _Qualifiers(NamedTuple):
    alignment: int | None
    attributes: tuple[Attribute, ...]
    attributes_first: bool


def parse_register_declaration(cursor: Cursor, place: Origin | None) -> RegDecl:
    """Parse `.reg …;`."""
    cursor.take()
    alignment, vector = _parse_alignment(cursor), _parse_vector(cursor)
    kind = parse_scalar_type(cursor)
    names = [_parse_register_name(cursor)]
    while cursor.accept(","):
        names.append(_parse_register_name(cursor))
    if cursor.token != ";":
        cursor.fail_without_semicolon("after the declaration", "`,` or ")
    cursor.take()
    first, further = names[0], tuple(names[1:])
    return RegDecl(kind, first.name, first.count, vector, alignment, further, cursor.finish(), place)


def parse_variable_declaration(
    cursor: Cursor, place: Origin | None, linking: LinkingDirective | None = None
) -> VarDecl:
    """Parse a variable of any state space but `.reg`."""
    space = StateSpace.from_ptx(cursor.take())
    bank = _parse_bank(cursor)
    qualifiers = _parse_qualifiers(cursor)
    vector = _parse_vector(cursor)
    kind = parse_scalar_type(cursor)
    items = [_parse_declarator(cursor)]
    while cursor.accept(","):
        items.append(_parse_declarator(cursor))
    if cursor.token != ";":
        cursor.fail_without_semicolon("after the declaration", "`,` or ")
    cursor.take()
    first = items[0]
    return VarDecl(
        space, kind, first.name, first.array_size, qualifiers.alignment, first.initializer, linking, first.dims, vector,
        first.count, first.braces, qualifiers.attributes, qualifiers.attributes_first, tuple(items[1:]), bank,
        cursor.finish(), place,
    )  # fmt: skip


def parse_scalar_type(cursor: Cursor) -> ScalarType:
    """Take a type, or fail with the most similar one."""
    scalar = _TYPES.get(cursor.token)
    if scalar is None or cursor.kind != "DOTTED":
        if cursor.kind in ("END", "STRAY"):
            cursor.fail("a type")
        message = f"expected a type such as `.b32`, found `{shorten(cursor.token)}`"
        raise Failure(rules.TYPE, cursor.start, len(cursor.token), message, suggest_nearest(cursor.token, _TYPES))
    cursor.take()
    return scalar


def parse_attributes(cursor: Cursor) -> tuple[Attribute, ...]:
    """Take `.attribute(…)`, if present."""
    if not cursor.accept(".attribute"):
        return ()
    cursor.expect("(", "after `.attribute`")
    entries = [_parse_attribute(cursor)]
    while cursor.accept(","):
        entries.append(_parse_attribute(cursor))
    cursor.expect(")", "after the attributes")
    return tuple(entries)


def parse_param_list(cursor: Cursor) -> tuple[Param, ...]:
    """Take the parameter list of a function, with its parentheses."""
    cursor.expect("(", "before the parameters")
    if cursor.accept(")"):
        return ()
    params = [_parse_param(cursor)]
    while cursor.accept(","):
        params.append(_parse_param(cursor))
    if cursor.token != ")":
        cursor.fail("`,` or `)`")
    cursor.take()
    return tuple(params)


def parse_function_directives(cursor: Cursor, place: Place) -> tuple[FunctionDirective, ...]:
    """Take the directives between a header and its body."""
    directives: list[FunctionDirective] = []
    limits = list_header_directives(place)
    while cursor.kind == "DOTTED":
        if cursor.token == ".pragma" and ".pragma" in limits:
            cursor.take()
            texts = [cursor.take_string("a string")]
            while cursor.accept(","):
                texts.append(cursor.take_string("a string"))
            cursor.expect(";", "after `.pragma`")
            directives.append(FunctionDirective("pragma", tuple(texts)))
            continue
        row = limits.get(cursor.token)
        if row is None:
            if cursor.token in _OF_BODIES:
                cursor.fail("`{` before the body")
            message = f"`{shorten(cursor.token)}` is not a directive of {_HEADERS[place]}"
            raise Failure(
                rules.DIRECTIVE, cursor.start, len(cursor.token), message, suggest_nearest(cursor.token, limits)
            )
        name = cursor.take()[1:]
        directives.append(FunctionDirective(name, _parse_operands(cursor, row)))
    return tuple(directives)


def _parse_operands(cursor: Cursor, directive: Directive) -> tuple[int | str, ...]:
    """Take the integers of a directive, or its integers and strings."""
    if directive.names:
        names = [_parse_integer_or_string(cursor)]
        while cursor.accept(","):
            names.append(_parse_integer_or_string(cursor))
        return tuple(names)
    integers = [cursor.take_number("an integer")] if directive.operands else []
    while len(integers) < directive.operands and cursor.accept(","):
        integers.append(cursor.take_number("an integer"))
    return tuple(integers)


def _parse_integer_or_string(cursor: Cursor) -> int | str:
    return cursor.take_string("a string") if cursor.kind == "STRING" else cursor.take_number("an integer or a string")


def _parse_alignment(cursor: Cursor) -> int | None:
    return cursor.take_number("an alignment in bytes") if cursor.accept(".align") else None


def _parse_vector(cursor: Cursor) -> int | None:
    width = _VECTORS.get(cursor.token)
    if width:
        cursor.take()
    return width


def _parse_bank(cursor: Cursor) -> int | None:
    if not cursor.accept("["):
        return None
    bank = cursor.take_number("a constant bank")
    cursor.expect("]", "after the constant bank")
    return bank


def _parse_qualifiers(cursor: Cursor) -> _Qualifiers:
    before = parse_attributes(cursor)
    alignment = _parse_alignment(cursor)
    after = () if before else parse_attributes(cursor)
    return _Qualifiers(alignment, before or after, not after)


def _parse_attribute(cursor: Cursor) -> Attribute:
    if cursor.kind != "DOTTED":
        cursor.fail("an attribute such as `.managed`")
    name = cursor.take()
    if not cursor.accept("("):
        return Attribute(name)
    values = [cursor.take_number("an integer")]
    while cursor.accept(","):
        values.append(cursor.take_number("an integer"))
    cursor.expect(")", "after the values of the attribute")
    return Attribute(name, tuple(values))


def _parse_count(cursor: Cursor) -> int | None:
    if not cursor.accept("<"):
        return None
    count = cursor.take_number("the number of names")
    cursor.expect(">", "after the number of names")
    return count


def _parse_register_name(cursor: Cursor) -> Declarator:
    name = cursor.take_name("the name of a register")
    return Declarator(name, _parse_count(cursor))


def _parse_declarator(cursor: Cursor) -> Declarator:
    name = cursor.take_name("the name of a variable")
    count = _parse_count(cursor)
    sizes: list[int] = []
    while cursor.accept("["):
        sizes.append(UNSIZED if cursor.token == "]" else cursor.take_number("the number of elements or `]`"))
        cursor.expect("]", "after the number of elements")
    size, dims = (sizes[0], tuple(sizes[1:])) if sizes else (None, ())
    if not cursor.accept("="):
        return Declarator(name, count, size, None, dims)
    has_braces = cursor.token == "{"
    values = _parse_values(cursor) if has_braces else (_simplify(parse_operand(cursor, initializer=True)),)
    braces = None if has_braces == suggests_braces(size, values) else has_braces
    return Declarator(name, count, size, values, dims, braces)


def _parse_values(cursor: Cursor) -> tuple[str | Operand, ...]:
    """Take the values of an initializer with their braces; long runs of plain numbers in one step."""
    cursor.take()
    values: list[str | Operand] = []
    if cursor.accept("}"):
        return ()
    while True:
        run = _plain_values(cursor.text, cursor.taken_end)
        if run:
            for gap, sign, digits in _plain_value(run[0]):
                values.append(sign + digits)
                cursor.gaps += (gap, "", "") if sign else (gap, "")
            cursor.skip_to(run.end())
        values.append(_simplify(parse_operand(cursor, initializer=True)))
        if not cursor.accept(","):
            break
    if cursor.token != "}":
        cursor.fail("`,` or `}`")
    cursor.take()
    return tuple(values)


def _simplify(value: Operand) -> str | Operand:
    """Return a plain number or symbol as its text."""
    if isinstance(value, ImmediateOperand):
        return value.text
    return value.name if isinstance(value, LabelOperand) else value


def _parse_param(cursor: Cursor) -> Param:
    space = _PARAMETER_SPACES.get(cursor.token) or cursor.fail("`.param` or `.reg`")
    cursor.take()
    alignment, vector = _parse_alignment(cursor), _parse_vector(cursor)
    kind = parse_scalar_type(cursor)
    trailing = _parse_alignment(cursor)
    pointer, pointer_space, pointer_alignment = cursor.accept(".ptr"), None, None
    if pointer:
        if cursor.token in (".const", ".global", ".local", ".shared"):
            pointer_space = StateSpace.from_ptx(cursor.take())
        pointer_alignment = _parse_alignment(cursor)
    name = cursor.take() if cursor.token == "_" else cursor.take_name("the name of a parameter")
    size: int | None = None
    if cursor.accept("["):
        size = UNSIZED if cursor.token == "]" else cursor.take_number("the number of elements or `]`")
        cursor.expect("]", "after the number of elements")
    bare = pointer and pointer_space is None and pointer_alignment is None
    return Param(space, kind, name, size, alignment, pointer_space, pointer_alignment, bare, vector, trailing)
