"""Builds declarations and directives of exact transcripts as nodes from Python values. Does not touch a trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from pyptx.dsl import rules
from pyptx.dsl.emit import shown
from pyptx.dsl.exact import checked_name
from pyptx.dsl.ranges import RegArray
from pyptx.dsl.registers import Dtype, Reg, type_of
from pyptx.dsl.trace import CURRENT, fail
from pyptx.ir.directives import SectionLabel
from pyptx.ir.kinds import UNSIZED, LinkingDirective, Number, ScalarType, StateSpace
from pyptx.ir.nodes import Attribute, Declarator, FunctionDirective, Param, RegDecl, VarDecl
from pyptx.ir.operands import ImmediateOperand, LabelOperand, Operand, ParenthesizedOperand, VectorOperand, number_value
from pyptx.types import PtxType

_DOTTED = re.compile(r"\.[\w$]+(?:::[\w$]+)*", re.ASCII)
_REGISTERS = re.compile(r"([^<>]+)(?:<([0-9A-Za-z]+)>)?")


class DeclaredRange(RegArray):
    """Registers declared as `%r<n>`; each is created on first use."""

    __slots__ = ("_kept", "size")

    def __init__(self, base: str, count: int, dtype: PtxType) -> None:
        self.base, self.dtype, self.__trace__, self.size = base, dtype, CURRENT.get(), count
        self.count = count
        self._kept: dict[int, Reg] = {}

    def __getitem__(self, idx: Any) -> Any:
        item = self._kept.get(idx) if type(idx) is int else None
        if item is not None:
            return item
        if isinstance(idx, slice):
            return [self[at] for at in range(*idx.indices(self.size))]
        at = self._check_index(idx) % self.size
        item = self._kept[idx] = self._kept[at] = register(f"{self.base}{at}", self.dtype)
        return item

    def __getattr__(self, name: str) -> Any:
        if name == "__members__":
            registers: Any = tuple([self[at] for at in range(self.size)])
        elif name == "__node__":
            registers = VectorOperand(tuple([member.__node__ for member in self.__members__]))
        else:
            raise AttributeError(name)
        object.__setattr__(self, name, registers)
        return registers

    def __iter__(self) -> Any:
        return iter([self[at] for at in range(self.size)])

    def view(self, dtype: Dtype) -> DeclaredRange:
        """Return the same registers viewed as another type: `r.view(f32)[4:8]`. Emits nothing."""
        viewed = DeclaredRange(self.base, self.size, type_of(dtype))
        viewed.__trace__ = self.__trace__
        return viewed


def register(name: str, dtype: PtxType) -> Reg:
    """Return a register declared under this name; the parser reads one without `%` as a symbol too."""
    reg = Reg(name, dtype)
    if name[0] != "%":
        reg.__node__ = LabelOperand(name)  # pyright: ignore[reportAttributeAccessIssue]
    return reg


def scalar(dtype: Any) -> ScalarType:
    """Return the type of a declaration."""
    return ScalarType.from_ptx(type_of(dtype).name)


def number(value: Any) -> int:
    """Return an integer, keeping the spelling of `ptx.imm`; None stands for empty brackets."""
    if value is None:
        return UNSIZED
    if isinstance(value, ImmediateOperand):
        plain = value.value
        if isinstance(plain, int):
            return plain if value.text == str(plain) else Number(plain, value.text)
    if isinstance(value, bool) or not isinstance(value, int):
        fail(rules.ARGUMENT, f"expected an integer, found {shown(value)}")
    return value


def version_part(spelled: str) -> int:
    """Return one half of a version, which is decimal even with leading zeros."""
    return int(spelled) if spelled == str(int(spelled)) else Number(int(spelled), spelled)


def maybe(value: Any) -> int | None:
    """Return an integer or None."""
    return None if value is None else number(value)


def text(value: Any) -> str:
    """Return a string that PTX can quote."""
    if not isinstance(value, str) or '"' in value:
        fail(rules.ARGUMENT, f"expected text without quotation marks, found {shown(value)}")
    return value


def registers(dtype: Dtype, specs: Sequence[Any], vector: int | None, align: Any) -> tuple[RegDecl, list[Any]]:
    """Return `.reg …;` and the register that each of its names stands for."""
    dtype = type_of(dtype)
    kind = scalar(dtype)
    names: list[tuple[str, int | None]] = []
    for spec in specs:
        match = _REGISTERS.fullmatch(spec) if isinstance(spec, str) else None
        if match is None:
            fail(rules.NAME, f"expected registers such as '%x' or '%r<24>', found {shown(spec)}")
        names.append((checked_name(match[1]), None if match[2] is None else _parse_count(match[2])))
    if not names:
        fail(rules.ARGUMENT, "`ptx.decl.reg` needs a name: ptx.decl.reg(b32, '%r<24>')")
    first, *more = names
    node = RegDecl(kind, *first, maybe(vector), maybe(align), tuple([Declarator(*item) for item in more]))
    declared = [register(name, dtype) if count is None else DeclaredRange(name, count, dtype) for name, count in names]
    return node, declared


def _parse_count(spelled: str) -> int:
    try:
        return number(ImmediateOperand(spelled)) if isinstance(number_value(spelled), int) else _refuse_count(spelled)
    except ValueError:
        return _refuse_count(spelled)


def _refuse_count(spelled: str) -> int:
    return fail(rules.ARGUMENT, f"expected the number of registers, found {spelled!r}")


def declarator(
    name: str, shape: Any, init: Any, count: Any = None, braces: bool | None = None
) -> tuple[str, int | None, int | None, tuple[str | Operand, ...] | None, tuple[int, ...], bool | None]:
    """Return the fields of a declarator: name, count, first size, initializer, further sizes, braces."""
    sizes = cast("tuple[Any, ...]", shape) if isinstance(shape, tuple) else () if shape is None else (shape,)
    dims = tuple([number(size) for size in sizes])
    values: tuple[str | Operand, ...] | None = None
    if init is not None:
        items = cast("Sequence[Any]", init) if isinstance(init, list | tuple) else (init,)
        values = tuple([_convert_value(item) for item in items])
    return checked_name(name), maybe(count), dims[0] if dims else None, values, dims[1:], braces


def _convert_value(value: Any) -> str | Operand:
    """Return a value of an initializer: text for numbers and symbols, operands for the rest."""
    if isinstance(value, ImmediateOperand):
        return value.text
    if isinstance(value, Operand):
        return value
    if isinstance(value, list | tuple):
        parts = tuple([_convert_element(item) for item in cast("Sequence[Any]", value)])
        return VectorOperand(parts) if isinstance(value, list) else ParenthesizedOperand(parts)
    if isinstance(value, str):
        return checked_name(value)
    return str(number(value))


def _convert_element(value: Any) -> Operand:
    element = _convert_value(value)
    if isinstance(element, Operand):
        return element
    return LabelOperand(element) if isinstance(value, str) else ImmediateOperand(element)


def variable(
    space: str,
    dtype: Dtype,
    name: str,
    shape: Any = None,
    *more: Declarator,
    init: Any = None,
    count: Any = None,
    braces: bool | None = None,
    align: Any = None,
    linking: str | None = None,
    vector: int | None = None,
    attributes: Any = (),
    attributes_first: bool = True,
    bank: Any = None,
) -> VarDecl:
    """Return the node of `ptx.decl.var`; `shape` and `count` count elements, `align` is in bytes."""
    first = Declarator(*declarator(name, shape, init, count, braces))
    return VarDecl(
        _find_space(space), scalar(dtype), first.name, first.array_size, maybe(align), first.initializer,
        None if linking is None else _find_linking(linking), first.dims, maybe(vector), first.count, first.braces,
        attribute_list(attributes), attributes_first, tuple(more), maybe(bank),
    )  # fmt: skip


def _find_space(name: Any) -> StateSpace:
    try:
        return StateSpace.from_ptx(name)
    except (ValueError, AttributeError):
        return fail(rules.ARGUMENT, f"expected a state space such as 'shared', found {shown(name)}")


def _find_linking(name: Any) -> LinkingDirective:
    try:
        return LinkingDirective.from_ptx(name)
    except (ValueError, AttributeError):
        return fail(rules.ARGUMENT, f"expected 'visible', 'extern', 'weak' or 'common', found {shown(name)}")


def linking(name: str | None) -> LinkingDirective | None:
    """Return a linking directive by its name."""
    return None if name is None else _find_linking(name)


def attribute_list(given: Sequence[Any]) -> tuple[Attribute, ...]:
    """Return `.attribute(…)` from names or (name, value, …)."""
    attributes: list[Attribute] = []
    for item in given:
        name, *values = (item,) if isinstance(item, str) else item
        word = dotted(f".{name}", "an attribute such as 'managed'")
        attributes.append(Attribute(word, tuple([number(value) for value in values])))
    return tuple(attributes)


def parameter(dtype: Dtype, name: str, shape: Any, **given: Any) -> Param:
    """Return a parameter of a function."""
    pointer = given["ptr"]
    space = _find_space(pointer) if isinstance(pointer, str) else None
    return Param(
        _find_space(given["space"]), scalar(dtype), checked_name(name),
        None if shape is None else number(None if shape == () else shape), maybe(given["align"]), space,
        maybe(given["ptr_align"]), pointer is True and given["ptr_align"] is None, maybe(given["vector"]),
        maybe(given["trailing_align"]),
    )  # fmt: skip


def function_directives(given: Sequence[Any]) -> tuple[FunctionDirective, ...]:
    """Return the directives of a function from names or (name, value, …)."""
    nodes: list[FunctionDirective] = []
    for item in given:
        name, *values = (item,) if isinstance(item, str) else item
        if not isinstance(name, str) or not re.fullmatch(r"[a-z]\w*", name, re.ASCII):
            fail(rules.ARGUMENT, f"expected the name of a directive such as 'maxntid', found {shown(name)}")
        words = [text(value) if isinstance(value, str) else number(value) for value in values]
        nodes.append(FunctionDirective(name, tuple(words)))
    return tuple(nodes)


def label_place(value: Any) -> SectionLabel:
    """Return a place in a section: a label, (label, offset), or (label, "-", label)."""
    if isinstance(value, str):
        return SectionLabel(_check_label(value))
    name, *rest = value
    if len(rest) == 2:
        return SectionLabel(_check_label(name), minus=_check_label(rest[1]))
    return SectionLabel(_check_label(name), number(rest[0]))


def _check_label(name: Any) -> str:
    return dotted(name, "a label or a section") if str(name)[:1] == "." else checked_name(name)


def dotted(name: Any, expected: str) -> str:
    """Return a word that starts with a dot, as sections, attributes and DWARF keywords do, or refuse it."""
    if not isinstance(name, str) or not _DOTTED.fullmatch(name):
        fail(rules.NAME, f"expected {expected}, found {shown(name)}")
    return name
