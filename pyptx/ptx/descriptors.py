"""Matrix descriptors in registers, for wgmma and tcgen05: an address, divided by 16, combined with constant bits.

`isa.descriptors` knows the bits, `wgmma_layout` the layout of a tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any, NoReturn

from pyptx.dsl import rules
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.registers import Reg, create_register, move
from pyptx.dsl.scopes import Named
from pyptx.dsl.shared import SharedAlloc, SharedSlice, SharedView, find_alignment, make_symbol_value
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import Register, is_integer
from pyptx.ir.operands import ImmediateOperand
from pyptx.isa.swizzle import find_swizzle
from pyptx.types import PtxType, b32, b64, u32, u64
from pyptx.wgmma_layout import GmmaLayout, Major, layout_for_a, layout_for_b

START = 0x3FFF0
"""Address bits that a descriptor holds: 14 bits, in units of 16 bytes. The other bits of a shared address select the
CTA of the cluster."""

Encode = Callable[[GmmaLayout], int]
"""The constant bits of a descriptor for this layout."""


BASE_OFFSET = "the 128-byte line in which the swizzle pattern starts; 0 if the tile is aligned to the pattern"
OFFSETS = "offsets are in bytes and multiples of 16, as in the manual's canonical layouts"


def encode_or_fail(name: str, encode: Callable[[], int], remedy: str = OFFSETS) -> int:
    """Return encoded bits, or report at the user's line why a value cannot be encoded."""
    try:
        return encode()
    except ValueError as wrong:
        fail(rules.ARGUMENT, f"{name}: {wrong}", help=remedy)


_LIMIT = 1 << 18


def check_bytes(**offsets: Any) -> None:
    """Refuse offsets in bytes that a descriptor cannot hold, naming the arguments."""
    for name, value in offsets.items():
        if not is_integer(value, 0) or value % 16 or value >= _LIMIT:
            fail(
                rules.ARGUMENT,
                f"`{name}` must be a multiple of 16 bytes below {_LIMIT:,}, found {describe(value)}",
                help="pass bytes: the descriptor divides them by 16; add registers to the address",
            )


def check_field(name: str, value: Any, largest: int, meaning: str) -> None:
    """Refuse a number that does not fit its descriptor field."""
    if not is_integer(value, 0) or value > largest:
        fail(
            rules.ARGUMENT,
            f"`{name}` must be a number from 0 to {largest if largest < 16 else hex(largest)}, found {describe(value)}",
            help=meaning,
        )


def emit_descriptor(base: Any, offset: int, bits: int, mask: int = START) -> Reg:
    """Return a register with `((base + offset) & mask) >> 4 | bits`; `offset` is in bytes."""
    if not is_integer(offset):
        fail(
            rules.ARGUMENT,
            f"a byte offset must be an integer, found {describe(offset)}",
            help="add registers to the base",
        )
    if not is_integer(mask):
        fail(
            rules.ARGUMENT, f"`mask` must be an integer, found {describe(mask)}", help="it selects bits of the address"
        )
    check_field("const_bits", bits, (1 << 64) - 1, "the bits of a descriptor above its start address")
    address = _compute_address(base, offset)
    start_bits, start, wide, result = (
        create_register(b32),
        create_register(u32),
        create_register(u64),
        create_register(b64),
    )
    emit(spell("and", "b32"), (start_bits, address, ImmediateOperand(f"{mask & 0xFFFFFFFF:#x}")))
    emit(spell("shr", "u32"), (start, start_bits, 4))
    emit(spell("cvt", "u64", "u32"), (wide, start))
    emit(spell("or", "b64"), (result, wide, ImmediateOperand(f"{bits:#x}")))
    return result


def _compute_address(base: Any, offset: int) -> Any:
    """Return a 32-bit register with an address in shared memory plus a byte offset."""
    if isinstance(base, str) or (isinstance(base, SharedView) and base.register is None):
        name, start = (base, 0) if isinstance(base, str) else (base.name, base.byte_offset)
        result = create_register(u32)
        move(result, make_symbol_value(name, start + offset))
        return result
    register = base.register if isinstance(base, SharedView) else base
    if isinstance(register, int) and is_integer(register, 0):
        result = create_register(u32)
        move(result, register + offset)
        return result
    if not isinstance(register, Register) or register.dtype.bits not in (32, 64) or register.dtype.kind not in "bus":
        fail(
            rules.ARGUMENT,
            f"a descriptor needs an address in shared memory, found {describe(base)}",
            help="pass an allocation, a slice of one, or a register with an address: tile.address()",
        )
    if register.dtype.bits == 64:
        narrow = create_register(u32)
        emit(spell("cvt", "u32", "u64"), (narrow, register))
        register = narrow
    if not offset:
        return register
    result = create_register(u32)
    emit(spell("add", "s32"), (result, register, offset))
    return result


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix operand in an allocation: its layout, its extents, and whether K is contiguous."""

    view: SharedView
    layout: GmmaLayout
    major: Major
    rows: int
    """Extent along M or N."""
    depth: int
    """Extent along K."""

    def check_start(self, name: str, offset: int, rows: int, depth: int) -> None:
        """Refuse a byte offset into the tile from which `rows` along M or N and `depth` along K elements are not stored
        as the descriptor describes."""
        _check_unit(name, offset)
        layout, bits = self.layout, self.view.dtype.bits
        width = layout.layout_type.row_bytes
        stripe, remainder = divmod(offset, layout.stripe_bytes)
        row, byte = divmod(remainder, width)
        across = (stripe * width + byte) * 8 // bits
        first_row, first_k, contiguous = (row, across, depth) if self.major is Major.K else (across, row, rows)
        if self.rows - first_row < rows:
            self._refuse_extent(name, "M or N", self.rows, first_row, rows)
        if self.depth - first_k < depth:
            self._refuse_extent(name, "K", self.depth, first_k, depth)
        origin = find_swizzle(layout.smem_swizzle).origin_alignment
        if row * width % origin or (byte and byte * 8 + contiguous * bits > width * 8):
            fail(
                rules.ARGUMENT,
                f"`{name}_k_offset`: byte {offset} of `{self.view.name}` is byte {byte} of row {row}; from there "
                f"{depth} elements along K are not in the {layout.smem_swizzle or 'unswizzled'} layout",
                help=f"pass the byte offset of an element along K: {name}_k_offset=tile.k_offset(16)",
            )

    def _refuse_extent(self, name: str, dimension: str, extent: int, first: int, count: int) -> NoReturn:
        start = f" from element {first}" if first else ""
        fail(
            rules.ARGUMENT,
            f"operand `{name}`: `{self.view.name}` has {extent} elements along {dimension}, "
            f"but {count} are read{start}",
            help="allocate a larger tile, or use a smaller shape or offset (`_k_offset` counts bytes)",
        )


def build_matrix(view: SharedView, dtype: PtxType, is_transposed: bool, name: str) -> Matrix:
    """Return an allocation or slice as a matrix operand. Its layout is known if `wgmma_tile` created it; otherwise its
    recorded swizzle must match the one for its shape, and `transposed` says which dimension is K."""
    owner = view.alloc if isinstance(view, SharedSlice) else view
    if not isinstance(owner, SharedAlloc):
        _refuse(name, f"`{view.name}` with a byte offset has no layout", "pass the allocation itself, or a descriptor")
    if owner.dtype.bits != dtype.bits:
        _refuse(
            name, f"`{owner.name}` holds .{owner.dtype}, but the instruction needs .{dtype}", f"allocate it as {dtype}"
        )
    layout = owner.gmma_layout
    major = Major.of(owner.gmma_major) if owner.gmma_major is not None else Major(is_transposed)
    if is_transposed and major is Major.K:
        _refuse(name, f"`{owner.name}` is K-major, so it cannot be transposed", f"omit trans_{name}")
    if not isinstance(layout, GmmaLayout):
        layout = _infer_layout(owner, major, name)
    _check_place(view, owner, layout, name)
    first, second = owner.shape[-2:]
    if isinstance(view, SharedSlice) and isinstance(view.stage, int) and len(view.shape) < 2:
        first -= view.stage % first
    rows, depth = (first, second) if major is Major.K else (second, first)
    return Matrix(view, layout, major, rows, depth)


def _infer_layout(owner: SharedAlloc, major: Major, name: str) -> GmmaLayout:
    if len(owner.shape) < 2:
        _refuse(name, f"`{owner.name}` has one dimension", "allocate it with smem.wgmma_tile(dtype, (rows, columns))")
    layout = choose_tile_layout(owner.dtype, owner.shape, major)
    if find_swizzle(owner.swizzle) is not find_swizzle(layout.smem_swizzle):
        _refuse(
            name,
            (
                f"`{owner.name}` was allocated with swizzle {owner.swizzle}, but rows of this width need "
                f"{layout.smem_swizzle}"
            ),
            "allocate it with smem.wgmma_tile, or build the descriptor for your own layout",
        )
    return layout


def choose_tile_layout(dtype: PtxType | str, shape: tuple[int, ...], major: Major) -> GmmaLayout:
    """Return the layout of a tile whose last two dimensions are (M or N, K), or (K, M or N) when MN-major."""
    first, second = shape[-2:]
    try:
        if major is Major.K:
            return layout_for_a(dtype=dtype, m=first, k=second)
        return layout_for_b(dtype=dtype, k=first, n=second)
    except ValueError as wrong:
        fail(rules.ARGUMENT, str(wrong), help="choose another tile width, or swap the dimensions and the major")


def _check_place(view: SharedView, owner: SharedAlloc, layout: GmmaLayout, name: str) -> None:
    """Refuse a view that starts inside a swizzle pattern, and rows of a tile stored in several stripes."""
    origin = find_swizzle(layout.smem_swizzle).origin_alignment
    if len(view.shape) < 2 and layout.stripes > 1:
        _refuse(
            name,
            f"`{owner.name}` is stored in {layout.stripes} stripes, so a row is not contiguous",
            f"allocate several tiles, with shape (tiles, rows, columns), and pass {owner.name}[tile]",
        )
    alignment = find_alignment(owner)
    if view.register is None:
        alignment = gcd(alignment, view.byte_offset)
    elif isinstance(view, SharedSlice):
        size = owner.dtype.bits
        for dim in owner.shape[len(owner.shape) - len(view.shape) :]:
            size *= dim
        alignment = gcd(alignment, owner.byte_offset, size // 8)
    if alignment % origin:
        _refuse(
            name,
            (
                f"the {layout.smem_swizzle or 'unswizzled'} layout must start on {origin} bytes, but `{view.name}` "
                f"starts on {alignment}"
            ),
            f"allocate it with align={origin}, and make each tile a multiple of 8 rows",
        )


def _refuse(name: str, message: str, remedy: str) -> NoReturn:
    fail(rules.ARGUMENT, f"operand `{name}`: {message}", help=remedy)


def check_offset(name: str, offset: Any) -> int:
    """Return a `k_offset` argument, a number of bytes."""
    if type(offset) is not int or offset < 0:
        fail(rules.ARGUMENT, f"`{name}_k_offset` must be a number of bytes, found {describe(offset)}",
             help="index the allocation with the register instead: tile[stage]")  # fmt: skip
    return offset


def _check_unit(name: str, offset: int) -> None:
    """Refuse an offset at which no descriptor can start."""
    if offset % 16:
        fail(rules.ARGUMENT, f"`{name}_k_offset` must be a multiple of 16 bytes, found {offset}",
             help="advance by the bytes of the shape's K: 32 for m64nNk16 of bf16")  # fmt: skip


def advance_descriptor(name: str, value: Any, offset: int) -> Reg:
    """Return a descriptor in a register, advanced by `offset` bytes: one `add.s64`."""
    if not isinstance(value, Register):
        fail(rules.ARGUMENT, f"`{name}_k_offset` needs an allocation, found {describe(value)}",
             help="pass smem.wgmma_tile(…), or a descriptor that starts at the offset")  # fmt: skip
    _check_unit(name, offset)
    with Named("descriptor_step", f"{value.name}, {offset}"):
        result = create_register(b64)
        emit(spell("add", "s64"), (result, value, offset >> 4))
    return result


def get_descriptor(matrix: Matrix, offset: int, encode: Encode, scope_name: str) -> Reg:
    """Return the descriptor of a matrix advanced by `offset` bytes: built once in the prologue for a constant address,
    otherwise here."""
    trace, view = get_trace(), matrix.view
    bits = encode(matrix.layout)
    if view.register is not None:
        with Named(scope_name, f"{view.name}[{view.register.name}]" + (f"+{offset}" if offset else "")):
            return emit_descriptor(view, offset, bits)
    start = view.byte_offset + offset
    key = scope_name, view.name, start, bits
    descriptor: Reg | None = trace.once.get(key)
    if descriptor is None:
        with trace.in_prologue(), Named(scope_name, f"{view.name}+{start}" if start else view.name):
            descriptor = trace.once[key] = emit_descriptor(view, offset, bits)
        descriptor.__held__ = f"the cached descriptor of `{view.name}`"
    return descriptor
