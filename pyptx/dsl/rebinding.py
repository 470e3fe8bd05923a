"""Finds names that the body of a GPU loop binds to other registers: `s = s + x`. Python runs the body once, so the next
iteration reads the old register again, and the update is lost.

Compares the variables of the user's frames at the start and the end of a loop.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any, NamedTuple, cast

from pyptx.diagnostics import Diagnostic, PythonFrame
from pyptx.dsl import rules
from pyptx.dsl.origin import is_ours
from pyptx.dsl.trace import Trace
from pyptx.dsl.values import Negation, Register
from pyptx.ir.nodes import Block, Instruction, IntrinsicScope, Statement
from pyptx.ir.operands import AddressOperand, Operand, text_of
from pyptx.isa import lookup

Path = tuple[object, ...]
"""A variable's name, followed by indices and field names."""

_NAMES = re.compile(r"[%$\w]+")
_DEEPEST = 3
_LONGEST = 4096
"""Maximum number of elements of one container to compare."""


Held = Register | int | float


class Bindings(NamedTuple):
    """The variables of one frame: registers, and numbers that may become registers."""

    frame: FrameType
    values: dict[Path, Held]


def list_bindings(trace: Trace) -> list[Bindings]:
    """Return the registers that the user's variables hold, from the innermost frame to the kernel function's."""
    frames: list[Bindings] = []
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code is not trace.root:
        if not is_ours(frame.f_code):
            frames.append(Bindings(frame, dict(_list_values((), frame.f_locals, 0))))
        frame = frame.f_back
    return frames


def find_lost_updates(
    trace: Trace, before: Sequence[Bindings], body: Sequence[Statement], loop: PythonFrame | None
) -> Iterator[Diagnostic]:
    """Yield a warning for each name that holds another register at the end, if the body reads the first one and never
    writes it."""
    after = {id(frame): values for frame, values in list_bindings(trace)}
    effects: _Effects | None = None
    for frame, variables in before:
        now = after.get(id(frame), {})
        for path, old in variables.items():
            new = now.get(path)
            if not isinstance(new, Register) or (isinstance(old, Register) and new.name == old.name):
                continue
            effects = effects or _Effects(body)
            writer = effects.writes.get(new.name)
            place = writer.origin if writer and isinstance(writer.origin, PythonFrame) else loop
            if not isinstance(old, Register):
                if new.name in effects.writes and trace.from_numbers.get(new.name) == old:
                    yield _make_number_warning(path, old, new, place)
            elif old.name in effects.reads and old.name not in effects.writes and not _is_kept(variables, now, old):
                in_place = _find_in_place_operator(trace.operators.get(new.name), writer, old)
                yield _make_warning(path, old, in_place, place)


def _is_kept(variables: Mapping[Path, Held], now: Mapping[Path, Held], old: Register) -> bool:
    """Tell whether another variable holds the old register, so that the body may have read it through that name."""
    pairs = ((before, now.get(path)) for path, before in variables.items() if len(path) == 1)
    return any(
        isinstance(before, Register) and isinstance(after, Register) and before.name == after.name == old.name
        for before, after in pairs
    )


_COMMUTATIVE = frozenset("+*&|^")


def _find_in_place_operator(symbol: str | None, writer: Instruction | None, old: Register) -> str:
    """Return the in-place operator that is equivalent to the operation that wrote another register, or empty."""
    sources = [text_of(operand) for operand in writer.operands[1:]] if symbol and writer else []
    return f"{symbol}=" if old.name in (sources if symbol in _COMMUTATIVE else sources[:1]) else ""


def _make_warning(path: Path, old: Register, in_place: str, place: PythonFrame | None) -> Diagnostic:
    name = _spell(path)
    move = f"ptx.mov({old.__type_name__}, {name}, …)"
    return rules.LOST_UPDATE.report(
        place,
        (
            f"`{name}` is another register at the end of the loop body: the next iteration reads the old one, "
            f"`{old.name}`, again"
        ),
        help=f"update the register in place: {f'`{name} {in_place} …`, or {move}' if in_place else move}",
    )


def _make_number_warning(path: Path, old: float, new: Register, place: PythonFrame | None) -> Diagnostic:
    name = _spell(path)
    return rules.LOST_UPDATE.report(
        place,
        f"`{name}` is Python's {old!r} before the loop, and every iteration on the GPU starts with that value",
        help=f"make it a register before the loop: {name} = reg.scalar({new.__type_name__}, {old!r})",
    )


def _spell(path: Path) -> str:
    parts = (f".{part}" if isinstance(part, _Field) else f"[{part!r}]" for part in path[1:])
    return "".join([str(path[0]), *parts])


class _Field(str):
    """The name of an attribute in a path."""

    __slots__ = ()


def _list_values(path: Path, variables: Mapping[Any, Any], depth: int) -> Iterator[tuple[Path, Held]]:
    for key, value in _take_first(variables.items()):
        yield from _list_members((*path, key), value, depth)


def _list_members(path: Path, value: object, depth: int) -> Iterator[tuple[Path, Held]]:
    if isinstance(value, Register | float) or type(value) is int:
        yield path, value
    elif isinstance(value, Negation):
        yield path, value.reg
    elif depth >= _DEEPEST:
        return
    elif isinstance(value, list | tuple):
        for index, item in enumerate(_take_first(cast("Sequence[object]", value))):
            yield from _list_members((*path, index), item, depth + 1)
    elif isinstance(value, dict):
        yield from _list_values(path, cast("dict[object, object]", value), depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        members = {_Field(field.name): getattr(value, field.name, None) for field in fields(value)}
        yield from _list_values(path, members, depth + 1)


def _take_first(items: Iterable[Any]) -> list[Any]:
    """Return the first elements, as a list so that the container may change."""
    return [item for item, _ in zip(items, range(_LONGEST), strict=False)]


class _Effects:
    """The names that statements read, and those that they write with the first instruction that wrote each; an operand
    that is read and written counts as written."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self.reads: set[str] = set()
        self.writes: dict[str, Instruction] = {}
        self._add(statements)

    def _add(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Block | IntrinsicScope):
                self._add(statement.body)
            elif isinstance(statement, Instruction):
                self._add_instruction(statement)

    def _add_instruction(self, node: Instruction) -> None:
        if node.predicate is not None:
            self.reads.add(node.predicate.register)
        matches = lookup.find_matches(node.opcode, tuple(modifier[1:] for modifier in node.modifiers))
        signatures = [signature for match in matches for signature in match.signatures]
        signature = next((candidate for candidate in signatures if len(candidate) == len(node.operands)), None)
        for index, operand in enumerate(node.operands):
            access = "r" if signature is None else signature[index].access
            names = _list_names(operand)
            if access == "r" or isinstance(operand, AddressOperand):
                self.reads.update(names)
                continue
            for name in names:
                self.writes.setdefault(name, node)


def _list_names(operand: Operand) -> list[str]:
    return _NAMES.findall(text_of(operand))
