"""Statements, declarations, functions and modules. `parts` computes a node's own tokens from its fields, without
bodies.

`layout` holds the n+1 gaps around a node's n tokens, `closing` the two around the closing brace of its body; comparison
ignores both, as it does `origin`. `directives.py` has the directives without code.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.diagnostics import Origin
from pyptx.ir.base import Node
from pyptx.ir.kinds import UNSIZED, LinkingDirective, Number, ScalarType, StateSpace, spell_number
from pyptx.ir.layout import Layout
from pyptx.ir.operands import Operand, number_parts, separate


class Statement(Node):
    """The base of everything allowed in a body or at module level."""

    __slots__ = ()


class Predicate(Node):
    """The guard `@%p` or `@!%p` of an instruction."""

    register: str
    negated: bool = False

    def parts(self) -> Sequence[str | Node]:
        return ("@", "!", self.register) if self.negated else ("@", self.register)


class Instruction(Statement):
    """One instruction: opcode, modifiers with their dots, operands, guard."""

    opcode: str
    modifiers: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    predicate: Predicate | None = None
    layout: Layout | None = None
    origin: Origin | None = None

    @property
    def full_opcode(self) -> str:
        """Opcode and modifiers as in PTX: `add.rn.f32`."""
        return self.opcode + "".join(self.modifiers)

    def parts(self) -> Sequence[str | Node]:
        guard = () if self.predicate is None else (self.predicate,)
        return (*guard, self.opcode, *self.modifiers, *separate(self.operands), ";")


class Label(Statement):
    """`name:`."""

    name: str
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return (self.name, ":")


class Declarator(Node):
    """Another name of a declaration: `%r<10>`, `a[2][3] = {…}`. Fields as in `RegDecl` and `VarDecl`."""

    name: str
    count: int | None = None
    array_size: int | None = None
    initializer: tuple[str | Operand, ...] | None = None
    dims: tuple[int, ...] = ()
    braces: bool | None = None

    def parts(self) -> Sequence[str | Node]:
        return list_declarator_parts(self)


class Attribute(Node):
    """One entry of `.attribute(…)`: `.managed`, `.unified(1, 2)`."""

    name: str
    values: tuple[int, ...] = ()

    def parts(self) -> Sequence[str | Node]:
        if not self.values:
            return (self.name,)
        return (self.name, "(", *separate([spell_number(v) for v in self.values]), ")")


class RegDecl(Statement):
    """`.reg .b32 %r<10>, %x;`: the first name is `name` (a range if `count` is set), the others are in `more`."""

    type: ScalarType
    name: str
    count: int | None = None
    vector: int | None = None
    alignment: int | None = None
    more: tuple[Declarator, ...] = ()
    layout: Layout | None = None
    origin: Origin | None = None

    @property
    def declarators(self) -> tuple[Declarator, ...]:
        """Every declared name."""
        return (Declarator(self.name, self.count), *self.more)

    def parts(self) -> Sequence[str | Node]:
        head = (".reg", *align_parts(self.alignment), *list_vector_parts(self.vector), self.type.ptx)
        return (*head, *separate(self.declarators), ";")


class VarDecl(Statement):
    """A variable in any space but `.reg`: `.global .align 8 .u32 a[2][3] = {{1, 2}, {3}}, b;`

    `array_size` is the first dimension (`UNSIZED` for `[]`), `dims` the others. Initializers are values without their
    outer braces: plain numbers and symbols as text, the rest as operands; `braces` says whether braces are written, if
    this differs from what the size and number of values suggest. `attributes_first` and `space_bank` only affect
    spelling.
    """

    state_space: StateSpace
    type: ScalarType
    name: str
    array_size: int | None = None
    alignment: int | None = None
    initializer: tuple[str | Operand, ...] | None = None
    linking: LinkingDirective | None = None
    dims: tuple[int, ...] = ()
    vector: int | None = None
    count: int | None = None
    braces: bool | None = None
    attributes: tuple[Attribute, ...] = ()
    attributes_first: bool = True
    more: tuple[Declarator, ...] = ()
    bank: int | None = None
    layout: Layout | None = None
    origin: Origin | None = None

    @property
    def declarators(self) -> tuple[Declarator, ...]:
        """Every declared variable."""
        first = Declarator(self.name, self.count, self.array_size, self.initializer, self.dims, self.braces)
        return (first, *self.more)

    def parts(self) -> Sequence[str | Node]:
        linking = () if self.linking is None else (self.linking.ptx,)
        bank = () if self.bank is None else ("[", spell_number(self.bank), "]")
        attributes = list_attribute_parts(self.attributes)
        if self.attributes_first:
            middle = (*attributes, *align_parts(self.alignment))
        else:
            middle = (*align_parts(self.alignment), *attributes)
        head = (*linking, self.state_space.ptx, *bank, *middle, *list_vector_parts(self.vector), self.type.ptx)
        return (*head, *separate(self.declarators), ";")


class Param(Node):
    """A parameter of a function: `.param .u64 .ptr .global .align 16 a`, `.param .align 8 .b8 b[16]`, `.reg .u32 c`.

    `pointer` distinguishes `.ptr` without a space from no `.ptr`; `trailing_alignment` follows the type, as in `.b8
    .align 4 a[4]`.
    """

    state_space: StateSpace
    type: ScalarType
    name: str
    array_size: int | None = None
    alignment: int | None = None
    ptr_state_space: StateSpace | None = None
    ptr_alignment: int | None = None
    pointer: bool = False
    vector: int | None = None
    trailing_alignment: int | None = None

    def parts(self) -> Sequence[str | Node]:
        pointer: tuple[str, ...] = ()
        if self.pointer or self.ptr_state_space is not None or self.ptr_alignment is not None:
            space = () if self.ptr_state_space is None else (self.ptr_state_space.ptx,)
            pointer = (".ptr", *space, *align_parts(self.ptr_alignment))
        size = () if self.array_size is None else list_dimension_parts(self.array_size)
        head = (self.state_space.ptx, *align_parts(self.alignment), *list_vector_parts(self.vector), self.type.ptx)
        return (*head, *align_parts(self.trailing_alignment), *pointer, self.name, *size)


class FunctionDirective(Node):
    """A directive between a function's parameters and its body: `.maxntid 128, 1, 1`, `.pragma "nounroll";`.

    `name` has no dot; strings among the values have no quotes.
    """

    name: str
    values: tuple[int | str, ...] = ()

    def parts(self) -> Sequence[str | Node]:
        words = [f'"{v}"' if isinstance(v, str) else spell_number(v) for v in self.values]
        return (f".{self.name}", *separate(words), *((";",) if self.name == "pragma" else ()))


class Block(Statement):
    """`{ … }`."""

    body: tuple[Statement, ...]
    layout: Layout | None = None
    closing: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return ("{",)


class IntrinsicScope(Statement):
    """Statements emitted by one helper, between the comments `// BEGIN name(args)` and `// END name`."""

    name: str
    args_repr: str
    body: tuple[Statement, ...]
    layout: Layout | None = None
    closing: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return ()


SUBSCRIPTS = ("shared_address", "barrier_address")
"""Scopes that compute the address of an element from an index in a register: the symbol comes first, and the last
instruction writes the address."""


class Function(Statement):
    """An entry or a device function. `definition` is False for a prototype, which ends in `;` and has no body; `parens`
    is False if an empty parameter list is omitted (`.entry k {`)."""

    is_entry: bool
    name: str
    params: tuple[Param, ...] = ()
    return_params: tuple[Param, ...] | None = None
    body: tuple[Statement, ...] = ()
    linking: LinkingDirective | None = None
    directives: tuple[FunctionDirective, ...] = ()
    definition: bool = True
    parens: bool = True
    attributes: tuple[Attribute, ...] = ()
    layout: Layout | None = None
    closing: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        linking = () if self.linking is None else (self.linking.ptx,)
        returns = () if self.return_params is None else ("(", *separate(self.return_params), ")")
        params = ("(", *separate(self.params), ")") if self.params or self.parens else ()
        kind = ".entry" if self.is_entry else ".func"
        head = (*linking, kind, *list_attribute_parts(self.attributes), *returns, self.name, *params)
        return (*head, *self.directives, "{" if self.definition else ";")


def align_parts(alignment: int | None) -> tuple[str, ...]:
    """Return the tokens of `.align n`."""
    return () if alignment is None else (".align", spell_number(alignment))


def list_vector_parts(vector: int | None) -> tuple[str, ...]:
    """Return the token of `.v2`, `.v4`, `.v8`."""
    return () if vector is None else (f".v{vector}",)


def list_dimension_parts(size: int) -> tuple[str, ...]:
    """Return the tokens of `[size]`, or of `[]`."""
    return (
        ("[", "]")
        if size is UNSIZED or (isinstance(size, Number) and not size.text)
        else ("[", spell_number(size), "]")
    )


def list_attribute_parts(attributes: tuple[Attribute, ...]) -> tuple[str | Node, ...]:
    """Return the tokens of `.attribute(…)`."""
    return (".attribute", "(", *separate(attributes), ")") if attributes else ()


def list_declarator_parts(item: Declarator) -> Sequence[str | Node]:
    """Return the tokens of a name with its range, dimensions and initializer."""
    out: list[str | Node] = [item.name]
    if item.count is not None:
        out += ["<", spell_number(item.count), ">"]
    for size in () if item.array_size is None else (item.array_size, *item.dims):
        out += list_dimension_parts(size)
    if item.initializer is not None:
        values = list_initializer_parts(item.initializer)
        out += ["=", "{", *values, "}"] if has_braces(item) else ["=", *values]
    return out


def list_initializer_parts(values: tuple[str | Operand, ...]) -> list[str | Node]:
    """Return the tokens of an initializer's values."""
    out: list[str | Node] = []
    for value in values:
        if out:
            out.append(",")
        if isinstance(value, str):
            out += number_parts(value)
        else:
            out.append(value)
    return out


def has_braces(item: Declarator) -> bool:
    """Tell whether the initializer is written in braces."""
    return item.braces if item.braces is not None else suggests_braces(item.array_size, item.initializer or ())


def suggests_braces(array_size: int | None, values: tuple[str | Operand, ...]) -> bool:
    """Tell whether an initializer with these values has braces by default."""
    return array_size is not None or len(values) != 1
