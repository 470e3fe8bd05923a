"""Builds declarations and directives of exact transcripts as nodes from Python values. Does not touch a trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from pyptx.dsl import rules
from pyptx.dsl.emit import describe
from pyptx.dsl.exact import check_symbol_name
from pyptx.dsl.ranges import RegArray
from pyptx.dsl.registers import Dtype, Reg, resolve_type
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
            return [self[index] for index in range(*idx.indices(self.size))]
        index = self._check_index(idx) % self.size
        item = self._kept[idx] = self._kept[index] = register(f"{self.base}{index}", self.dtype)
        return item

    def __getattr__(self, name: str) -> Any:
        if name == "__members__":
            registers: Any = tuple([self[index] for index in range(self.size)])
        elif name == "__node__":
            registers = VectorOperand(tuple([member.__node__ for member in self.__members__]))
        else:
            raise AttributeError(name)
        object.__setattr__(self, name, registers)
        return registers

    def __iter__(self) -> Any:
        return iter([self[index] for index in range(self.size)])

    def view(self, dtype: Dtype) -> DeclaredRange:
        """Return the same registers viewed as another type: `r.view(f32)[4:8]`. Emits nothing."""
        alias = DeclaredRange(self.base, self.size, resolve_type(dtype))
        alias.__trace__ = self.__trace__
        return alias


def register(name: str, dtype: PtxType) -> Reg:
    """Return a register declared under this name; the parser reads one without `%` as a symbol too."""
    reg = Reg(name, dtype)
    if name[0] != "%":
        reg.__node__ = LabelOperand(name)  # pyright: ignore[reportAttributeAccessIssue]
    return reg


def to_scalar_type(dtype: Any) -> ScalarType:
    """Return the type of a declaration."""
    return ScalarType.from_ptx(resolve_type(dtype).name)


def to_integer(value: Any) -> int:
    """Return an integer, keeping the spelling of `ptx.imm`; None stands for empty brackets."""
    if value is None:
        return UNSIZED
    if isinstance(value, ImmediateOperand):
        plain = value.value
        if isinstance(plain, int):
            return plain if value.text == str(plain) else Number(plain, value.text)
    if isinstance(value, bool) or not isinstance(value, int):
        fail(rules.ARGUMENT, f"expected an integer, found {describe(value)}")
    return value


def parse_version_part(text: str) -> int:
    """Return one half of a version, which is decimal even with leading zeros."""
    return int(text) if text == str(int(text)) else Number(int(text), text)


def to_optional_integer(value: Any) -> int | None:
    """Return an integer or None."""
    return None if value is None else to_integer(value)


def check_text(value: Any) -> str:
    """Return a string that PTX can quote."""
    if not isinstance(value, str) or '"' in value:
        fail(rules.ARGUMENT, f"expected text without quotation marks, found {describe(value)}")
    return value


def declare_registers(dtype: Dtype, specs: Sequence[Any], vector: int | None, align: Any) -> tuple[RegDecl, list[Any]]:
    """Return `.reg …;` and the register that each of its names stands for."""
    dtype = resolve_type(dtype)
    kind = to_scalar_type(dtype)
    names: list[tuple[str, int | None]] = []
    for spec in specs:
        match = _REGISTERS.fullmatch(spec) if isinstance(spec, str) else None
        if match is None:
            fail(rules.NAME, f"expected registers such as '%x' or '%r<24>', found {describe(spec)}")
        names.append((check_symbol_name(match[1]), None if match[2] is None else _parse_count(match[2])))
    if not names:
        fail(rules.ARGUMENT, "`ptx.decl.reg` needs a name: ptx.decl.reg(b32, '%r<24>')")
    first, *further = names
    node = RegDecl(
        kind,
        *first,
        to_optional_integer(vector),
        to_optional_integer(align),
        tuple([Declarator(*item) for item in further]),
    )
    registers = [register(name, dtype) if count is None else DeclaredRange(name, count, dtype) for name, count in names]
    return node, registers


def _parse_count(text: str) -> int:
    try:
        return to_integer(ImmediateOperand(text)) if isinstance(number_value(text), int) else _refuse_count(text)
    except ValueError:
        return _refuse_count(text)


def _refuse_count(text: str) -> int:
    return fail(rules.ARGUMENT, f"expected the number of registers, found {text!r}")


def build_declarator(
    name: str, shape: Any, init: Any, count: Any = None, braces: bool | None = None
) -> tuple[str, int | None, int | None, tuple[str | Operand, ...] | None, tuple[int, ...], bool | None]:
    """Return the fields of a declarator: name, count, first size, initializer, further sizes, braces."""
    sizes = cast("tuple[Any, ...]", shape) if isinstance(shape, tuple) else () if shape is None else (shape,)
    dims = tuple([to_integer(size) for size in sizes])
    values: tuple[str | Operand, ...] | None = None
    if init is not None:
        items = cast("Sequence[Any]", init) if isinstance(init, list | tuple) else (init,)
        values = tuple([_convert_value(item) for item in items])
    return check_symbol_name(name), to_optional_integer(count), dims[0] if dims else None, values, dims[1:], braces


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
        return check_symbol_name(value)
    return str(to_integer(value))


def _convert_element(value: Any) -> Operand:
    element = _convert_value(value)
    if isinstance(element, Operand):
        return element
    return LabelOperand(element) if isinstance(value, str) else ImmediateOperand(element)


def build_variable(
    space: str,
    dtype: Dtype,
    name: str,
    shape: Any = None,
    *further: Declarator,
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
    first = Declarator(*build_declarator(name, shape, init, count, braces))
    return VarDecl(
        _find_space(space), to_scalar_type(dtype), first.name, first.array_size, to_optional_integer(align),
        first.initializer,
        None if linking is None else _find_linking(linking), first.dims, to_optional_integer(vector), first.count,
        first.braces,
        parse_attributes(attributes), attributes_first, tuple(further), to_optional_integer(bank),
    )  # fmt: skip


def _find_space(name: Any) -> StateSpace:
    try:
        return StateSpace.from_ptx(name)
    except (ValueError, AttributeError):
        return fail(rules.ARGUMENT, f"expected a state space such as 'shared', found {describe(name)}")


def _find_linking(name: Any) -> LinkingDirective:
    try:
        return LinkingDirective.from_ptx(name)
    except (ValueError, AttributeError):
        return fail(rules.ARGUMENT, f"expected 'visible', 'extern', 'weak' or 'common', found {describe(name)}")


def parse_linking(name: str | None) -> LinkingDirective | None:
    """Return a linking directive by its name."""
    return None if name is None else _find_linking(name)


def parse_attributes(specs: Sequence[Any]) -> tuple[Attribute, ...]:
    """Return `.attribute(…)` from names or (name, value, …)."""
    attributes: list[Attribute] = []
    for item in specs:
        name, *values = (item,) if isinstance(item, str) else item
        word = check_dotted(f".{name}", "an attribute such as 'managed'")
        attributes.append(Attribute(word, tuple([to_integer(value) for value in values])))
    return tuple(attributes)


def build_parameter(dtype: Dtype, name: str, shape: Any, **fields: Any) -> Param:
    """Return a parameter of a function."""
    pointer = fields["ptr"]
    space = _find_space(pointer) if isinstance(pointer, str) else None
    return Param(
        _find_space(fields["space"]), to_scalar_type(dtype), check_symbol_name(name),
        None if shape is None else to_integer(None if shape == () else shape), to_optional_integer(fields["align"]),
        space,
        to_optional_integer(fields["ptr_align"]), pointer is True and fields["ptr_align"] is None,
        to_optional_integer(fields["vector"]),
        to_optional_integer(fields["trailing_align"]),
    )  # fmt: skip


def parse_directives(specs: Sequence[Any]) -> tuple[FunctionDirective, ...]:
    """Return the directives of a function from names or (name, value, …)."""
    nodes: list[FunctionDirective] = []
    for item in specs:
        name, *values = (item,) if isinstance(item, str) else item
        if not isinstance(name, str) or not re.fullmatch(r"[a-z]\w*", name, re.ASCII):
            fail(rules.ARGUMENT, f"expected the name of a directive such as 'maxntid', found {describe(name)}")
        words = [check_text(value) if isinstance(value, str) else to_integer(value) for value in values]
        nodes.append(FunctionDirective(name, tuple(words)))
    return tuple(nodes)


def parse_label_place(value: Any) -> SectionLabel:
    """Return a place in a section: a label, (label, offset), or (label, "-", label)."""
    if isinstance(value, str):
        return SectionLabel(_check_label(value))
    name, *parts = value
    if len(parts) == 2:
        return SectionLabel(_check_label(name), minus=_check_label(parts[1]))
    return SectionLabel(_check_label(name), to_integer(parts[0]))


def _check_label(name: Any) -> str:
    return check_dotted(name, "a label or a section") if str(name)[:1] == "." else check_symbol_name(name)


def check_dotted(name: Any, noun: str) -> str:
    """Return a word that starts with a dot, as sections, attributes and DWARF keywords do, or refuse it."""
    if not isinstance(name, str) or not _DOTTED.fullmatch(name):
        fail(rules.NAME, f"expected {noun}, found {describe(name)}")
    return name
