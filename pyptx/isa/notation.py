"""Reads a row of the table: the manual's syntax line, with its choice sets, into modifier positions and operands.

    form("ld{.sem.scope}{.ss}{.hint}{.vec}.type  d:w.type+*vec, [a]{?hint, policy:reg.b64}",
         sem="relaxed acquire", scope=SCOPE, ss=LD_SPACE, hint="L2::cache_hint@7.4,sm_80", vec=VEC, type=MEM, see="…")

Head: `.name` is a position if a choice set of that name is given, else a literal; `{...}` may be absent as a whole.
Choice set: words; `word@8.6`, `word@sm_90`, `word@8.6,sm_100a|sm_110f:9.0` say since when; `a.b` spells two modifiers.

Operands (see `docs/isa-notation.md`):
    d  a  b        a value; the name `d` is written, every other is read; type: position `type`, else the last type
    d:w.f32        access r, w or rw; the type, a literal or a position (`.dtype`, `.types/1` = second of `f16.f32`)
    a:reg  n:imm   only a register / only an immediate; `imm[0..15]`, `imm[0..256/8]` bounds it (last is the step)
    x:mov var label func list sreg sink   the other kinds of model.Kind
    a:.b32*4       a vector of 4; `*vec*2` multiplies the number in a position's spelling (absent position: a scalar);
                   `*dim-2` is two fewer, `*shape.n/2` half the columns of a matrix shape (`m64n256k16`),
                   at least one
    d:.type+       a register wider than the type is allowed          d:w_   `_` may discard the result
    d:.type~       may stand in braces, `{d}`
    a:.type^sel    parts of the register may be named, by the words of choice set `sel` (`a.b0`, `a.h10`)
    {!}c  {-}a     may be negated                                    d|p  d{|p}   two destinations
    [a] [m, c:.s32*dim] [a@shared] [d:w]   an address, its parts, its state space (`@generic`: none, whatever space
                   the modifiers name), and whether memory is written
    {, c}  {?hint, c}   may be absent / present exactly when the position or literal `hint` is
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from pyptx.isa.model import Choice, Form, Group, Kind, OperandGroup, OperandPattern, Slot
from pyptx.isa.targets import Availability, Version, parse_availability, parse_version


def form(
    line: str,
    *,
    see: str,
    ptx: Version | None = None,
    sm: str = "",
    since: str = "",
    removed: tuple[Version, str] | None = None,
    quirk: str | None = None,
    **choices: str,
) -> Form:
    """Return the row of this syntax line. Nothing is parsed until the row's opcode is first looked up.

    `since` combines `ptx` and `sm` in one string, as a choice does: `"8.6,sm_100a|sm_110f:9.0"`.
    """
    removal = parse_availability(*removed) if removed else None
    return Form(line, choices, see, _parse_since(since) if since else parse_availability(ptx, sm), removal, quirk)


class NotationError(ValueError):
    """A row that violates the notation; only editors of the table see it."""


@cache
def parse_head(row: Form) -> Group:
    """Return the modifier positions of a row, in the manual's order."""
    text = row.line.split(None, 1)[0][len(row.opcode) :]
    group, remainder = _parse_modifiers(text, row, is_nested=False)
    if remainder:
        raise NotationError(f"unbalanced braces in the head of {row!r}")
    return group


@cache
def parse_operands(row: Form) -> OperandGroup:
    """Return the operand list of a row."""
    tail = row.line.split(None, 1)[1:]
    return _Operands(tail[0] if tail else "", row).read()


_PIECE = re.compile(r"\.([A-Za-z0-9_:]+)|([{}])")


def _parse_modifiers(text: str, row: Form, *, is_nested: bool) -> tuple[Group, str]:
    items: list[Slot | Group] = []
    while text:
        piece = _PIECE.match(text)
        if piece is None:
            raise NotationError(f"expected .modifier or braces at {text!r} in {row!r}")
        text = text[piece.end() :]
        if piece[1]:
            items.append(_parse_slot(piece[1], row))
        elif piece[2] == "{":
            inner, text = _parse_modifiers(text, row, is_nested=True)
            items.append(inner)
        elif is_nested:
            return Group(tuple(items), optional=True), text
        else:
            return Group(tuple(items), optional=False), "}" + text
    if is_nested:
        raise NotationError(f"unclosed brace in the head of {row!r}")
    return Group(tuple(items), optional=False), ""


def _parse_slot(name: str, row: Form) -> Slot:
    if name in row.choices:
        return Slot(name, parse_choices(row.choices[name]))
    return Slot("", (Choice((name,)),))


@cache
def parse_choices(words: str) -> tuple[Choice, ...]:
    """Return the choices that a set's words spell."""
    return tuple(_parse_choice(word) for word in words.split())


def _parse_choice(word: str) -> Choice:
    spelling, _, since = word.partition("@")
    return Choice(tuple(spelling.split(".")), _parse_since(since) if since else None)


def _parse_since(text: str) -> Availability:
    """Parse `8.6`, `sm_90`, `8.6,sm_100a|sm_110f:9.0`."""
    first, _, targets = text.partition(",")
    if first.startswith("sm_"):
        return parse_availability(None, text)
    return parse_availability(parse_version(first), targets)


_SPEC = re.compile(
    r"(?P<access>rw|w|r(?!eg))?(?P<discard>_)?"
    r"(?P<kind>val|reg|imm|mov|var|label|func|list|sreg|sink)?"
    r"(?:\[(?P<low>-?\d+)\.\.(?P<high>-?\d+)(?:/(?P<step>\d+))?\])?"
    r"(?:\.(?P<type>[A-Za-z0-9_]+(?:/\d)?))?(?P<wide>\+)?(?P<brace>~)?(?:\^(?P<select>[A-Za-z0-9_]+))?(?P<count>(?:\*[A-Za-z0-9_]+(?:\.[mnk])?(?:[-/]\d+)?)*)"
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class _Operands:
    """A reader over the operand text of one row."""

    def __init__(self, text: str, row: Form) -> None:
        self.text = "".join(text.split())
        self.position = 0
        self.row = row

    def read(self) -> OperandGroup:
        group = self._parse_list(closing="")
        if self.position != len(self.text):
            raise self._make_error("end of the line")
        return OperandGroup(group, optional=False)

    def _make_error(self, expectation: str) -> NotationError:
        return NotationError(f"expected {expectation} at {self.text[self.position :]!r} in {self.row!r}")

    def _take(self, token: str) -> bool:
        if self.text.startswith(token, self.position):
            self.position += len(token)
            return True
        return False

    def _take_name(self) -> str:
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise self._make_error("a name")
        self.position = match.end()
        return match[0]

    def _parse_list(self, closing: str) -> tuple[OperandPattern | OperandGroup, ...]:
        items: list[OperandPattern | OperandGroup] = []
        while self.position < len(self.text) and not (closing and self.text.startswith(closing, self.position)):
            if self.text.startswith("{", self.position) and not self.text.startswith(("{!}", "{-}"), self.position):
                items.append(self._parse_group())
                continue
            if items and not self._take(","):
                raise self._make_error("a comma")
            items.append(self._parse_operand())
        return tuple(items)

    def _parse_group(self) -> OperandGroup:
        self.position += 1
        condition = None
        if self._take("?"):
            condition = self._parse_condition()
        self._take(",")
        items = self._parse_list(closing="}")
        if not self._take("}"):
            raise self._make_error("}")
        return OperandGroup(items, optional=True, condition=condition)

    def _parse_condition(self) -> str:
        name, comma, _ = self.text[self.position :].partition(",")
        if not comma:
            raise self._make_error("a condition and a comma")
        self.position += len(name)
        return name

    def _parse_operand(self) -> OperandPattern:
        if self._take("{!}"):
            return replace(self._parse_operand(), negatable=True)
        if self._take("{-}"):
            return replace(self._parse_operand(), minus=True)
        if self._take("["):
            return self._parse_address()
        first = self._parse_value()
        if self._take("|"):
            return self._parse_pipe(first, optional=False)
        if self._take("{|"):
            pipe = self._parse_pipe(first, optional=True)
            if not self._take("}"):
                raise self._make_error("}")
            return pipe
        return first

    def _parse_pipe(self, first: OperandPattern, *, optional: bool) -> OperandPattern:
        second = self._parse_value(access="w")
        return OperandPattern(first.name, Kind.PIPE, "w", parts=(first, second), optional_parts=int(optional))

    def _parse_address(self) -> OperandPattern:
        base = self._parse_value(access="r", address=True)
        parts: list[OperandPattern] = [base]
        while not self._take("]"):
            if self._take("{?"):
                parts += self._parse_conditional_parts()
            elif self._take(","):
                parts.append(self._parse_value())
            else:
                raise self._make_error("]")
        return replace(base, kind=Kind.ADDRESS, parts=tuple(parts))

    def _parse_conditional_parts(self) -> list[OperandPattern]:
        condition = self._parse_condition()
        parts: list[OperandPattern] = []
        while self._take(","):
            parts.append(replace(self._parse_value(), condition=condition))
        if not self._take("}"):
            raise self._make_error("}")
        return parts

    def _parse_value(self, access: str = "", *, address: bool = False) -> OperandPattern:
        name = self._take_name()
        space = None
        if address and self._take("@"):
            space = self._parse_space()
        match = _SPEC.match(self.text, self.position + 1) if self.text.startswith(":", self.position) else None
        if match is None:
            return OperandPattern(name, Kind.VALUE, access or ("w" if name == "d" else "r"), space=space)
        self.position = match.end()
        kind = Kind(match["kind"]) if match["kind"] else Kind.VALUE
        low, high = match["low"], match["high"]
        return OperandPattern(
            name,
            kind,
            match["access"] or access or ("w" if name == "d" else "r"),
            match["type"],
            tuple(match["count"].split("*")[1:]),
            (int(low), int(high), int(match["step"] or 1)) if low is not None else None,
            space,
            discardable=bool(match["discard"]),
            widenable=bool(match["wide"]),
            selectable=match["select"],
            braceable=bool(match["brace"]),
        )

    def _parse_space(self) -> str:
        match = re.compile(r"[A-Za-z0-9_]+(::[A-Za-z0-9_]+)?").match(self.text, self.position)
        if match is None:
            raise self._make_error("a state space")
        self.position = match.end()
        return match[0]
