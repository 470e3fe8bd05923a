"""Shared memory: allocations, their elements and addresses, barriers, and how everything moves to one dynamic symbol
beyond 48 KiB.

Statements refer to an allocation by its own symbol. When everything moves, `relocated` rewrites those names at the end
of the trace, in every operand alike, so no access can be missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gcd, prod
from typing import Any, NoReturn, cast

from pyptx.check.symbols import Kind, Symbol
from pyptx.diagnostics import PythonFrame, format_count
from pyptx.dsl import rules
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.operators import widen
from pyptx.dsl.registers import Dtype, Reg, create_register, move, move_type, resolve_type
from pyptx.dsl.scopes import Named
from pyptx.dsl.trace import CURRENT, Trace, fail, get_trace
from pyptx.dsl.values import Register, Value, is_integer
from pyptx.ir.kinds import UNSIZED, LinkingDirective, ScalarType, StateSpace
from pyptx.ir.nodes import SUBSCRIPTS, VarDecl
from pyptx.ir.operands import AddressOperand, BinaryOperand, ImmediateOperand, LabelOperand, Operand
from pyptx.isa.limits import KIB, sm_limits
from pyptx.types import PtxType, u32
from pyptx.wgmma_layout import GmmaLayout, Major

ELEMENT, BARRIER = SUBSCRIPTS
STATIC_LIMIT = 48 * KIB
DEFAULT_ALIGN = 128
SWIZZLES = {"32B": 0x80, "64B": 0x180, "128B": 0x380}
ALIGNED: dict[str | None, int] = {"32B": 256, "64B": 512, "128B": 1024}
"""Alignment of swizzled tiles: the swizzle pattern depends on the address and repeats after this many bytes."""


class Allocation:
    """One piece of shared memory: its declaration, and its offset if everything is dynamic."""

    def __init__(self, declaration: VarDecl, size: int, align: int, offset: int) -> None:
        self.declaration, self.size, self.align, self.offset = declaration, size, align, offset


class SharedMemory:
    """The allocations of one kernel. `managed` means that the user named the dynamic symbol and its size."""

    def __init__(self, kernel_bytes: int, symbol: str | None) -> None:
        self.kernel_bytes, self.managed = kernel_bytes, symbol is not None
        self.symbol = symbol or "smem"
        self.is_declared = self.has_base = False
        self.end = kernel_bytes if self.managed else 0
        self.static = 0
        self.align = DEFAULT_ALIGN
        self.allocations: list[Allocation] = []
        self.linear: dict[SharedAlloc, PythonFrame | None] = {}
        """Swizzled allocations whose elements are accessed at linear addresses, with the first such place."""

    @property
    def dynamic(self) -> bool:
        """Whether the allocations are behind the dynamic symbol."""
        return self.managed or self.static > STATIC_LIMIT

    @property
    def shift(self) -> int:
        """Offset of the allocations behind what the user declared and addresses through `smem.base()`."""
        return -(-self.kernel_bytes // self.align) * self.align if self.has_base and not self.managed else 0

    def add(self, trace: Trace, dtype: PtxType, count: int, size: int, align: int, name: str | None, kind: str) -> str:
        """Add an allocation and return its symbol."""
        full = trace.choose_name(name, kind)
        self.end = -(-self.end // align) * align
        declaration = VarDecl(
            StateSpace.SHARED, ScalarType.from_ptx(dtype.name), full, count, align, origin=trace.locate()
        )
        self.allocations.append(Allocation(declaration, size, align, self.end))
        self.end += size
        self.static = -(-self.static // align) * align + size
        self.align = max(self.align, align)
        limit = sm_limits(trace.target.name).shared_per_cta
        if self.end > limit or self.static > limit:
            fail(
                rules.SHARED_SIZE,
                f"{max(self.end, self.static):,} bytes of shared memory with `{full}`, but {trace.target} has "
                f"{limit:,} per CTA",
                help="use fewer stages or smaller tiles",
            )
        trace.declare_variable(declaration)
        return full


def get_memory(trace: Trace) -> SharedMemory:
    """Return the shared memory of a trace."""
    return trace.facts["shared"]


_INDICES = "give an element one index per dimension; `+` moves an address by a number of bytes"


class SharedView(Value):
    """A part of an allocation: its contents, and where it starts: a byte offset, or an address in a register."""

    name: str
    dtype: PtxType
    shape: tuple[int, ...]
    byte_offset: int = 0
    """Offset from its symbol; 0 if `register` holds the address."""
    register: Reg | None = None
    __trace__: Trace | None = None

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return -(-prod(self.shape) * self.dtype.bits // 8)

    def __operand__(self) -> Operand:
        check_owner(self.__trace__, self.name)
        if self.register is not None:
            return self.register.__node__
        return make_symbol_value(self.name, self.byte_offset)

    def __address__(self) -> Operand:
        check_owner(self.__trace__, self.name)
        if self.register is not None:
            return self.register.__address__()
        return make_address(self.name, self.byte_offset)

    def address(self) -> Reg:
        """Return a register with the address: emits a `mov`, or nothing if a register already holds it."""
        if self.register is not None:
            return self.register
        result = create_register(u32)
        move(result, self.__operand__())
        return result

    def __ring_base__(self) -> tuple[str | Register, int]:
        check_owner(self.__trace__, self.name)
        return (self.name, self.byte_offset) if self.register is None else (self.register, 0)

    def __remedy__(self) -> str | None:
        dtype = getattr(self, "dtype", "dtype")
        return f"smem.load({dtype}, {self!r}) reads it into a register; `+` moves the address by a number of bytes"

    def k_offset(self, k: int) -> int:
        """Return the byte offset at which element `k` along K starts in this tile: the value for `a_k_offset` and
        `b_k_offset`. For a tile of `smem.wgmma_tile`."""
        owner = self.__owner__()
        layout, major = owner.gmma_layout, owner.gmma_major
        if not isinstance(layout, GmmaLayout) or major is None:
            fail(rules.ARGUMENT, f"`{self.name}` has no layout along K", help="allocate it with smem.wgmma_tile")
        if not is_integer(k, 0):
            fail(
                rules.ARGUMENT,
                f"`k` must be a number of elements along K, found {describe(k)}",
                help="use a number, not a register",
            )
        return layout.k_offset(k, owner.dtype.bits, Major.of(major))

    def swizzled(self, *indices: Any) -> SharedElement:
        """Return the element at these indices (one per dimension) at its swizzled address, where TMA and the tensor
        cores place it. Access it with `load()` and `store(value)`, or use it as an address."""
        if len(indices) != len(self.shape) or not indices:
            _refuse_count(self, indices)
        return _make_swizzled_element(self, indices)

    def __add__(self, other: Any) -> SharedAddress:
        return shift_address(self, other)

    __radd__ = __add__

    def max(self, other: Any) -> NoReturn:
        """Refuse to compare addresses."""
        fail(rules.TYPES, f"{self.__describe__()} and does not support `max`", help=self.__alternative__())

    def min(self, other: Any) -> NoReturn:
        """Refuse to compare addresses."""
        fail(rules.TYPES, f"{self.__describe__()} and does not support `min`", help=self.__alternative__())

    def __describe__(self) -> str:
        return f"`{self!r}` is an address in shared memory"

    def __len__(self) -> int:
        if not self.shape:
            fail(rules.TRUTH, f"{self.__describe__()} and does not support `len()`", help=self.__alternative__())
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[index] for index in range(len(self))])

    def __getitem__(self, idx: Any) -> Any:
        indices = _normalize_indices(idx)
        if len(indices) == len(self.shape) and len(indices) > 1:
            self._note_linear_access()
            return load(self.dtype, self.__locate__(indices))
        return self._make_slice(indices)

    def __setitem__(self, idx: Any, value: Any) -> None:
        indices = _normalize_indices(idx)
        if len(indices) != len(self.shape):
            _refuse_count(self, indices)
        self._note_linear_access()
        store(self.dtype, self.__locate__(indices), value)

    def _note_linear_access(self) -> None:
        """Record an access to swizzled memory at a linear address."""
        if self.__owner__().swizzle is not None:
            get_memory(get_trace()).linear.setdefault(self.__owner__(), get_trace().locate())

    def _make_slice(self, indices: tuple[Any, ...]) -> SharedSlice:
        location = self.__locate__(indices)
        view = SharedSlice(self.__owner__(), indices[0])
        view.shape = self.shape[len(indices) :]
        view.byte_offset, view.register = location.byte_offset, location.register
        return view

    def __owner__(self) -> SharedAlloc:
        """Return the whole allocation."""
        raise NotImplementedError

    def __locate__(self, indices: tuple[Any, ...]) -> SharedAddress:
        """Return the address of an element or slice; register indices emit address arithmetic."""
        if len(indices) > len(self.shape):
            _refuse_count(self, indices)
        constant, terms = 0, list[tuple[Reg, int]]()
        strides = compute_strides(self.shape, self.dtype.bits)
        for position, index in enumerate(indices):
            stride = strides[position]
            if isinstance(index, Reg):
                terms.append((index, stride))
                continue
            constant += self.__check_index__(index, position) * stride
        check_owner(self.__trace__, self.name)
        if not terms:
            if self.register is None:
                return SharedAddress(self.name, self.byte_offset + constant)
            if not constant:
                return SharedAddress(self.name, 0, self.register)
            with Named(ELEMENT, self.name):
                return shift_address(self, constant)
        with Named(ELEMENT, self.name):
            base = self.register
            if base is None:
                base = create_register(u32)
                move(base, shift_address(self, constant).__operand__())
            elif constant:
                base = base + constant
            for index, stride in terms:
                narrow, address = to_index32(index), create_register(u32)
                emit(spell("mad", "lo", "u32"), (address, narrow, stride, base))
                base = address
        return SharedAddress(self.name, 0, base)

    def __check_index__(self, index: Any, position: int) -> int:
        """Return a constant index, counted from the start; refuse one out of range."""
        size = self.shape[position]
        if isinstance(index, bool) or not isinstance(index, int) or not -size <= index < size:
            fail(
                rules.INDEX,
                f"dimension {position} of `{self.name}` has the indices 0 to {size - 1}, found {describe(index)}",
                help="use a number in this range or a register; fewer indices than dimensions select a slice",
            )
        return index % size


class SharedAddress(SharedView):
    """An address inside an allocation, without a shape."""

    def __init__(self, name: str, start: int, register: Reg | None = None) -> None:
        self.name, self.byte_offset, self.register = name, start, register
        self.shape = ()
        self.__trace__ = CURRENT.get()

    def __owner__(self) -> SharedAlloc:
        fail(
            rules.ARGUMENT, f"`{self!r}` is an address, not an allocation or a slice of one",
            help=f"call it on `{self.name}` itself, or on {self.name}[…]",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"{self.name} + {self.byte_offset}" if self.register is None else f"{self.name} at {self.register.name}"


class SharedElement(SharedAddress):
    """The address of one element, and its type."""

    def __init__(self, name: str, dtype: PtxType, start: int, register: Reg | None = None) -> None:
        super().__init__(name, start, register)
        self.dtype = dtype

    def load(self) -> Reg:
        """Read the element: `ld.shared.T` into a new register."""
        return load(self.dtype, self)

    def store(self, value: Any) -> None:
        """Write the element: `st.shared.T`."""
        store(self.dtype, self, value)


class SharedAlloc(SharedView):
    """An allocation of shared memory."""

    def __init__(
        self,
        name: str,
        dtype: PtxType,
        shape: tuple[int, ...],
        swizzle: str | None,
        gmma_layout: object | None = None,
        gmma_major: str | None = None,
        byte_offset: int = 0,
    ) -> None:
        self.name, self.dtype, self.shape, self.swizzle = name, dtype, shape, swizzle
        self.gmma_layout, self.gmma_major = gmma_layout, gmma_major
        self.byte_offset = byte_offset
        self.__trace__ = CURRENT.get()

    def __remedy__(self) -> str:
        element = f"{self.name}[{', '.join('0' for _ in self.shape)}]"
        reads = element if len(self.shape) > 1 else f"smem.load({self.dtype}, {element})"
        return f"{reads} reads an element; `+` moves the address by a number of bytes"

    def __describe__(self) -> str:
        return f"`{self.name}` is shared memory"

    def __owner__(self) -> SharedAlloc:
        return self

    def __repr__(self) -> str:
        return f"SharedAlloc({self.name!r}, {self.dtype}, {self.shape})"


class SharedSlice(SharedView):
    """One slice of an allocation, `alloc[stage]`; the stage is a number or a register."""

    def __init__(self, alloc: SharedAlloc, stage: int | Reg) -> None:
        self.alloc, self.stage = alloc, stage
        self.name, self.dtype, self.__trace__ = alloc.name, alloc.dtype, alloc.__trace__
        self.shape = alloc.shape[1:]
        self.byte_offset = alloc.byte_offset
        if isinstance(stage, int):
            self.byte_offset += stage * compute_strides(alloc.shape, self.dtype.bits)[0]

    def __owner__(self) -> SharedAlloc:
        return self.alloc

    def __repr__(self) -> str:
        stage = self.stage.name if isinstance(self.stage, Reg) else self.stage
        return f"{self.name}[{stage}{', …' if len(self.shape) + 1 < len(self.alloc.shape) else ''}]"


def _normalize_indices(idx: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", idx) if isinstance(idx, tuple) else (idx,)


def _refuse_count(view: SharedView, indices: tuple[Any, ...]) -> NoReturn:
    rank, count = format_count("dimension", len(view.shape)), format_count("index", len(indices), plural="indices")
    fail(rules.INDEX, f"`{view.name}` has {rank}, found {count}", help=_INDICES)


def check_owner(owner: Trace | None, name: str) -> None:
    """Refuse shared memory of another kernel; addresses built by the user belong to none."""
    if owner is not None and owner is not CURRENT.get():
        fail(
            rules.FOREIGN, f"`{name}` is shared memory of the kernel `{owner.name}`", help="allocate it in this kernel"
        )


@lru_cache(maxsize=1024)
def compute_strides(shape: tuple[int, ...], bits: int) -> tuple[int, ...]:
    """Return the byte stride of each dimension."""
    return tuple([prod(shape[position + 1 :]) * bits // 8 for position in range(len(shape))])


def make_address(name: str, offset: int) -> AddressOperand:
    """Return `[name]` or `[name+offset]`."""
    return get_trace().intern_address(name, offset or None)


def make_symbol_value(name: str, offset: int) -> Operand:
    """Return `name` or `name+offset` as a value."""
    if not offset:
        return LabelOperand(name)
    return BinaryOperand("+" if offset > 0 else "-", LabelOperand(name), ImmediateOperand(str(abs(offset))))


def shift_address(view: SharedView, offset: Any) -> SharedAddress:
    """Return the address moved by this many bytes."""
    check_owner(view.__trace__, view.name)
    if isinstance(offset, Reg):
        return SharedAddress(view.name, 0, view.address() + to_index32(offset))
    if isinstance(offset, bool) or not isinstance(offset, int):
        fail(rules.TYPES, f"`+` on an address in shared memory takes a number of bytes, found {describe(offset)}",
             help=view.__remedy__())  # fmt: skip
    if view.register is not None:
        return SharedAddress(view.name, 0, view.register + offset if offset else view.register)
    return SharedAddress(view.name, view.byte_offset + offset)


def to_index32(index: Reg) -> Reg:
    """Return an index as a 32-bit register, which is enough for shared memory."""
    if index.dtype.kind not in ("b", "u", "s"):
        fail(rules.TYPES, f"an index must be an integer register, found {describe(index)}")
    if index.dtype.bits < 32:
        return widen(index, u32)
    if index.dtype.bits == 32:
        return index
    result = create_register(u32)
    emit(spell("cvt", "u32", "u64"), (result, index))
    return result


def allocate(
    dtype: Dtype, shape: tuple[int, ...] | int, swizzle: str | None, align: int | None, name: str | None
) -> SharedAlloc:
    """Return a new allocation."""
    trace, memory = get_trace(), get_memory(get_trace())
    dtype = resolve_type(dtype)
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    if not dims or not all(is_integer(d, 1) for d in dims):
        fail(rules.ARGUMENT, f"a shape must be positive integers, found {shape!r}")
    if swizzle is not None and swizzle not in SWIZZLES:
        fail(rules.ARGUMENT, f"a swizzle must be {', '.join(SWIZZLES)} or None, found {swizzle!r}")
    if align is not None and (not is_integer(align, 1) or align & align - 1):
        fail(
            rules.ARGUMENT,
            f"an alignment must be a power of two, found {align!r}",
            help="the alignment is in bytes: align=128",
        )
    size = -(-prod(dims) * dtype.bits // 8)
    full = memory.add(trace, _BYTES, size, size, align or ALIGNED.get(swizzle, DEFAULT_ALIGN), name, "smem")
    symbol, offset = find_last_symbol(memory, full)
    return SharedAlloc(symbol, dtype, dims, swizzle, byte_offset=offset)


_BYTES = PtxType("b8", 8)


def find_last_symbol(memory: SharedMemory, name: str) -> tuple[str, int]:
    """Return the symbol of the last allocation: the user's own dynamic symbol plus an offset if there is one, else its
    own symbol."""
    if not memory.managed:
        return name, 0
    declare_dynamic(get_trace(), memory)
    return memory.symbol, memory.allocations[-1].offset


def load(dtype: Dtype, address: Any) -> Reg:
    """Emit `ld.shared.T` into a new register."""
    result = create_register(dtype)
    emit(spell("ld", "shared", choose_memory_type(dtype)), (result, address))
    return result


def store(dtype: Dtype, address: Any, value: Any) -> None:
    """Emit `st.shared.T`."""
    emit(spell("st", "shared", choose_memory_type(dtype)), (address, value))


def choose_memory_type(dtype: Dtype) -> str:
    """Return the type that loads and stores use for values of this type."""
    dtype = resolve_type(dtype)
    if dtype.kind in ("b", "u", "s") and dtype.bits in (8, 16, 32, 64) and "x" not in dtype.name:
        return dtype.name
    return f"b{dtype.bits}" if dtype.bits == 8 else move_type(dtype)


def get_dynamic_base(name: str | None) -> Reg:
    """Return a register with the address of the dynamic symbol."""
    trace, memory = get_trace(), get_memory(get_trace())
    if name is not None and name != memory.symbol:
        if memory.is_declared:
            fail(
                rules.NAME,
                f"the dynamic shared memory of this kernel is named `{memory.symbol}`, found {name!r}",
                help="a kernel has one such symbol: use its name, or omit the name",
            )
        memory.symbol = name
    memory.has_base = True
    declare_dynamic(trace, memory)
    result = create_register(u32)
    move(result, LabelOperand(memory.symbol))
    return result


def declare_dynamic(trace: Trace, memory: SharedMemory) -> None:
    """Declare the dynamic symbol for the checks; its declaration is written at the end. A default name gives way to one
    that the kernel already uses."""
    if memory.is_declared:
        return
    memory.is_declared = True
    memory.symbol = trace.claim(memory.symbol, "symbol") if memory.managed else trace.choose_name(memory.symbol, "smem")
    symbol = Symbol(Kind.VARIABLE, "b8", "shared", declaration=make_dynamic_declaration(memory.symbol, memory.align))
    trace.scope.put(memory.symbol, symbol)


def make_dynamic_declaration(symbol: str, align: int) -> VarDecl:
    """Return `.extern .shared .align n .b8 name[]`."""
    return VarDecl(StateSpace.SHARED, ScalarType.B8, symbol, UNSIZED, align, linking=LinkingDirective.EXTERN)


def list_dynamic_offsets(memory: SharedMemory) -> dict[str, int]:
    """Return the offset of each allocation behind the dynamic symbol; empty while everything is static."""
    return {a.declaration.name: memory.shift + a.offset for a in memory.allocations} if memory.dynamic else {}


def compute_dynamic_bytes(memory: SharedMemory) -> int:
    """Return the number of dynamic bytes that a launch must request."""
    return max(memory.kernel_bytes, memory.shift + memory.end) if memory.dynamic else memory.kernel_bytes


def apply_swizzle(offset: Reg, swizzle: str | None) -> Reg:
    """Emit the XOR of a byte offset that TMA and wgmma apply in this swizzle mode: and, shr, xor."""
    if swizzle is None:
        return offset
    if swizzle not in SWIZZLES:
        fail(rules.ARGUMENT, f"a swizzle must be {', '.join(SWIZZLES)} or None, found {swizzle!r}")
    with Named("apply_swizzle", swizzle):
        return offset ^ ((offset & SWIZZLES[swizzle]) >> 3)


def _make_swizzled_element(view: SharedView, indices: tuple[Any, ...]) -> SharedElement:
    """Return an element of a view at its swizzled address. The pattern depends on address bits, so the offset is a
    number if the allocation is aligned to the pattern and the indices are numbers; otherwise it is computed."""
    dtype = view.dtype
    if dtype.bits % 8:
        fail(
            rules.TYPES,
            f"elements of .{dtype} are not individually addressable",
            help="allocate bytes: smem.alloc(b8, …)",
        )
    if not any(isinstance(index, Reg) for index in indices) and view.register is None:
        return _compute_swizzled_element(view, indices)
    with Named(ELEMENT, view.name):
        return _compute_swizzled_element(view, indices)


def _compute_swizzled_element(view: SharedView, indices: tuple[Any, ...]) -> SharedElement:
    owner, dtype = view.__owner__(), view.dtype
    address = _locate_in_stripes(view, indices) if _count_stripes(owner) > 1 else view.__locate__(indices)
    if owner.swizzle is None:
        return SharedElement(view.name, dtype, address.byte_offset, address.register)
    mask = SWIZZLES[owner.swizzle]
    if address.register is None and find_alignment(owner) % ALIGNED[owner.swizzle] == 0:
        offset = address.byte_offset - owner.byte_offset
        return SharedElement(view.name, dtype, owner.byte_offset + (offset ^ (offset & mask) >> 3))
    linear = address.address()
    return SharedElement(view.name, dtype, 0, linear ^ ((linear & mask) >> 3))


def _count_stripes(owner: SharedAlloc) -> int:
    return owner.gmma_layout.stripes if isinstance(owner.gmma_layout, GmmaLayout) else 1


def _locate_in_stripes(view: SharedView, indices: tuple[Any, ...]) -> SharedAddress:
    """Return the linear address of an element in a tile whose rows are split into stripes."""
    owner, layout = view.__owner__(), cast("GmmaLayout", view.__owner__().gmma_layout)
    if len(view.shape) < 2:
        fail(
            rules.INDEX, f"`{owner.name}` is stored in {layout.stripes} stripes, so a row is not contiguous",
            help=f"pass all indices at once: {owner.name}.swizzled(row, column)",
        )  # fmt: skip
    width, size = layout.layout_type.row_bytes, view.dtype.bits // 8
    row, column = indices[-2:]
    tile: SharedView = view.__locate__(indices[:-2]) if len(indices) > 2 else view
    for position, index in ((len(indices) - 2, row), (len(indices) - 1, column)):
        if not isinstance(index, Reg):
            view.__check_index__(index, position)
    if not isinstance(column, Reg):
        stripe, byte = divmod(column % view.shape[-1] * size, width)
        tile = shift_address(tile, stripe * layout.stripe_bytes + byte)
    else:
        bytes_ = to_index32(column) * size
        stripe = bytes_ >> width.bit_length() - 1
        tile = shift_address(tile, stripe * layout.stripe_bytes + (bytes_ & width - 1))
    if not isinstance(row, Reg):
        return shift_address(tile, row % view.shape[-2] * width)
    return shift_address(tile, to_index32(row) * width)


def find_alignment(owner: SharedAlloc) -> int:
    """Return the alignment in bytes that the start of an allocation is known to have."""
    memory = get_memory(get_trace())
    if memory.managed and owner.name == memory.symbol:
        return gcd(memory.align, owner.byte_offset)
    return next((a.align for a in memory.allocations if a.declaration.name == owner.name), 16)
