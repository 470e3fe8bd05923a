"""Tensors as a kernel's body sees them: name, type, shape, and the register with the address of their tensor map."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, overload

from pyptx.dsl import rules
from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Reg, create_register
from pyptx.dsl.trace import CURRENT, Trace, fail
from pyptx.dsl.values import Value
from pyptx.ir.operands import AddressOperand, LabelOperand, Operand
from pyptx.specs import Layout, Tile
from pyptx.types import PtxType, b64

DESCRIPTOR_BYTES = 128


class Shape(Sequence[int]):
    """A tensor's dimensions as Python integers. Reading one makes it part of the specialization."""

    def __init__(self, dims: Sequence[int | str], read: Callable[[str], int]) -> None:
        self._dims, self._read = tuple(dims), read

    def __len__(self) -> int:
        return len(self._dims)

    def _resolve(self, dim: int | str) -> int:
        return self._read(dim) if isinstance(dim, str) else dim

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        if isinstance(index, slice):
            return tuple(self._resolve(dim) for dim in self._dims[index])
        return self._resolve(self._dims[index])

    def __iter__(self) -> Iterator[int]:
        return (self._resolve(dim) for dim in self._dims)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(self._dims).replace("'", "")


class TensorSpec(Value):
    """One tensor parameter of the kernel. As an operand it is the parameter's symbol."""

    def __init__(self, name: str, tile: Tile, read: Callable[[str], int], trace: Trace | None = None) -> None:
        self.name, self.tile = name, tile
        self.dtype: PtxType = tile.dtype
        self.layout: Layout = tile.layout
        self.shape = Shape(tile.shape, read)
        self._trace = trace

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __operand__(self) -> Operand:
        self._refuse_foreign()
        return LabelOperand(self.name)

    def __address__(self) -> Operand:
        self._refuse_foreign()
        return AddressOperand(self.name)

    def _refuse_foreign(self) -> None:
        if self._trace is not CURRENT.get():
            fail(
                rules.FOREIGN,
                f"the tensor `{self.name}` belongs to another kernel",
                help="use the parameters of this kernel",
            )

    def __describe__(self) -> str:
        return f"the tensor `{self.name}` is in global memory"

    def __remedy__(self) -> str | None:
        return (
            f"the parameter `{self.name}` holds the tensor's address: read it with (p,) = "
            f"ptx.global_ptrs({self.name}) and use p; tensor copies take {self.name}.tma_desc()"
        )

    def __getitem__(self, index: object) -> NoReturn:
        name = self.name
        fail(
            rules.TYPES,
            f"the tensor `{name}` is in global memory and cannot be indexed",
            help=f"(p,) = ptx.global_ptrs({name}), then ptx.ld({self.dtype}, value, ptx.addr(p, offset)) "
            "or ptx.st(…); the offset is in bytes",
        )

    def __setitem__(self, index: object, value: object) -> None:
        self[index]

    def tma_desc(self) -> Any:
        """Return a register with the address of the tensor's 128-byte map, a by-value parameter `<name>_tma_desc`.

        It is created once, in the prologue, wherever this is first called. Outside a trace, returns a
        `TmaDescriptorHandle`.
        """
        trace = CURRENT.get()
        if trace is None:
            return TmaDescriptorHandle(self)
        self._refuse_foreign()
        return get_map_address(trace, self.name)

    def __repr__(self) -> str:
        return f"TensorSpec({self.name!r}, {self.dtype}, {self.shape!r})"


class TmaDescriptorHandle:
    """A tensor map by name only: the result of `tma_desc()` outside a kernel."""

    def __init__(self, tensor: TensorSpec) -> None:
        self.tensor = tensor

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return f"{self.tensor.name}_tma_desc"

    def __repr__(self) -> str:
        return f"TmaDescriptorHandle({self.tensor!r})"


def get_map_address(trace: Trace, tensor: str) -> Reg:
    """Return the generic address of a tensor map: `mov`, then `cvta.param`; without the latter ptxas produces a wrong
    address."""
    key = ("tensor map", tensor)
    address: Reg | None = trace.once.get(key)
    if address is not None:
        return address
    name = trace.claim(f"{tensor}_tma_desc", "tensor map")
    trace.maps.append(name)
    trace.declare_parameter(name, "b8")
    with trace.in_prologue():
        plain, generic = create_register(b64), create_register(b64)
        emit(spell("mov", "b64"), (plain, LabelOperand(name)))
        emit(spell("cvta", "param", "u64"), (generic, plain))
    generic.__held__ = f"the cached address of the tensor map of `{tensor}`"
    trace.once[key] = generic
    return generic
