"""The frame of a function in a thread's local memory: results and parameters, then `.local` and `.param` variables. A
caller can lay out results and parameters without knowing the callee."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from pyptx.check.symbols import Symbol
from pyptx.ir import Declarator, Function, Param, VarDecl, VectorOperand
from pyptx.ir.operands import Operand


def align_up(offset: int, alignment: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-offset // alignment) * alignment


def measure_declaration(item: Param | VarDecl, declarator: Declarator | None = None) -> tuple[int, int]:
    """Return the size in bytes and the alignment of a parameter or variable; size 0 for `[]` without an initializer."""
    element = max(8, item.type.bits) // 8 * max(1, item.vector or 1)
    array = item if declarator is None else declarator
    count = 1
    if array.array_size is not None:
        count = int(array.array_size)
        if isinstance(array, VarDecl | Declarator):
            inner = prod(int(size) for size in array.dims)
            count = (count or _count_rows(array.initializer or (), inner)) * inner
    trailing = item.trailing_alignment if isinstance(item, Param) else None
    return element * count, item.alignment or trailing or element


def _count_rows(values: Sequence[str | Operand], inner: int) -> int:
    """Return how many rows, of `inner` values each, an initializer has."""
    vector_count = sum(isinstance(value, VectorOperand) for value in values)
    return vector_count - (vector_count - len(values)) // inner


def lay_out(params: Iterable[Param]) -> tuple[list[tuple[Param, int, int]], int]:
    """Return each parameter with its offset and size, and where the last one ends."""
    layout: list[tuple[Param, int, int]] = []
    offset = 0
    for param in params:
        size, alignment = measure_declaration(param)
        offset = align_up(offset, alignment)
        layout.append((param, offset, size))
        offset += size
    return layout, offset


@dataclass(slots=True)
class Frame:
    """The offsets of a function's names in its frame."""

    params: list[tuple[Param, int, int]]
    results: list[tuple[Param, int, int]]
    size: int
    offsets: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    formal: dict[str, int] = field(default_factory=dict[str, int])
    sizes: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def from_function(cls, function: Function) -> Frame:
        """Return a frame with a function's results and parameters; those of an entry lie in parameter memory."""
        if function.is_entry:
            params, _ = lay_out(function.params)
            return cls(params, [], 0)
        layout, end = lay_out((*(function.return_params or ()), *(p for p in function.params if p.name != "...")))
        results = len(function.return_params or ())
        # A frame is never empty, as if it held a return address: infinite recursion exceeds local memory.
        frame = cls(layout[results:], layout[:results], max(16, align_up(end, 16)))
        for param, offset, _ in layout:
            frame.formal[param.name] = offset
        return frame

    def has(self, name: str, symbol: Symbol) -> bool:
        """Return whether a name has an offset: a local variable, or a parameter."""
        return (name, id(symbol)) in self.offsets or isinstance(symbol.declaration, Param)

    def add(self, name: str, symbol: Symbol) -> None:
        """Place a `.local` or `.param` variable."""
        declaration = symbol.declaration
        assert isinstance(declaration, VarDecl)
        size, alignment = measure_declaration(declaration, find_declarator(name, declaration))
        offset = align_up(self.size, max(alignment, 4))
        self.offsets[name, id(symbol)] = offset
        self.size = align_up(offset + size, 16)

    def find_offset(self, name: str, symbol: Symbol) -> int:
        """Return the offset of a name in the frame."""
        offset = self.offsets.get((name, id(symbol)))
        return self.formal[name] if offset is None else offset


def find_declarator(name: str, declaration: VarDecl) -> Declarator:
    """Return the declarator of a name, which may be part of a range such as `a<4>`."""
    for item in declaration.declarators:
        if item.name == name or (item.count is not None and name.startswith(item.name)):
            return item
    raise KeyError(name)
