"""The frame of a function in a thread's local memory: results and parameters first, as a caller lays them out without
knowing the callee, then `.local` and `.param` variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from pyptx.check.symbols import Symbol
from pyptx.ir import Declarator, Function, Param, VarDecl, VectorOperand
from pyptx.ir.operands import Operand


def aligned(offset: int, alignment: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-offset // alignment) * alignment


def size_and_alignment(item: Param | VarDecl, declarator: Declarator | None = None) -> tuple[int, int]:
    """Return the bytes that a parameter or a declared name takes, and its alignment; size 0 for `[]` without values."""
    element = max(8, item.type.bits) // 8 * max(1, item.vector or 1)
    named = item if declarator is None else declarator
    count = 1
    if named.array_size is not None:
        count = int(named.array_size)
        if isinstance(named, VarDecl | Declarator):
            inner = prod(int(size) for size in named.dims)
            count = (count or _rows(named.initializer or (), inner)) * inner
    trailing = item.trailing_alignment if isinstance(item, Param) else None
    return element * count, item.alignment or trailing or element


def _rows(values: Sequence[str | Operand], inner: int) -> int:
    """Return how many elements, of `inner` values each, an initializer fills."""
    nested = sum(isinstance(value, VectorOperand) for value in values)
    return nested - (nested - len(values)) // inner


def laid_out(params: Iterable[Param]) -> tuple[list[tuple[Param, int, int]], int]:
    """Return each parameter with its offset and size, and the end of the last one."""
    placed: list[tuple[Param, int, int]] = []
    offset = 0
    for param in params:
        size, alignment = size_and_alignment(param)
        offset = aligned(offset, alignment)
        placed.append((param, offset, size))
        offset += size
    return placed, offset


@dataclass(slots=True)
class Frame:
    """Where the names of one function lie, from the frame's start."""

    params: list[tuple[Param, int, int]]
    results: list[tuple[Param, int, int]]
    size: int
    offsets: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    formal: dict[str, int] = field(default_factory=dict[str, int])
    sizes: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, function: Function) -> Frame:
        """Return the frame of a function with its results and parameters; an entry's parameters lie apart."""
        if function.is_entry:
            params, _ = laid_out(function.params)
            return cls(params, [], 0)
        placed, end = laid_out((*(function.return_params or ()), *(p for p in function.params if p.name != "...")))
        results = len(function.return_params or ())
        # A frame is never empty, as with a return address: recursion without end meets the limit of local memory.
        frame = cls(placed[results:], placed[:results], max(16, aligned(end, 16)))
        for param, offset, _ in placed:
            frame.formal[param.name] = offset
        return frame

    def has(self, name: str, symbol: Symbol) -> bool:
        """Say whether a name is placed: a local, a formal parameter, or an entry's parameter."""
        return (name, id(symbol)) in self.offsets or isinstance(symbol.declaration, Param)

    def add(self, name: str, symbol: Symbol) -> None:
        """Place a `.local` or `.param` variable."""
        declared = symbol.declaration
        assert isinstance(declared, VarDecl)
        size, alignment = size_and_alignment(declared, declarator_of(name, declared))
        offset = aligned(self.size, max(alignment, 4))
        self.offsets[name, id(symbol)] = offset
        self.size = aligned(offset + size, 16)

    def offset(self, name: str, symbol: Symbol) -> int:
        """Return where a name lies in the frame."""
        found = self.offsets.get((name, id(symbol)))
        return self.formal[name] if found is None else found


def declarator_of(name: str, declared: VarDecl) -> Declarator:
    """Return the declarator of a name, of a range `a<4>` too."""
    for item in declared.declarators:
        if item.name == name or (item.count is not None and name.startswith(item.name)):
            return item
    raise KeyError(name)
