"""Matrix products of a warpgroup: every combination of types, dense and sparse, A in shared memory and in registers.

All of shared memory holds random elements, so any layout of the operands shows in the result.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import numpy as np

from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.sim.state.warpgroups import compute_addresses
from pyptx.tensormap import Swizzle
from tools.conformance.engines.bits import KINDS, Array, draw_words
from tools.conformance.engines.cases import Case, Entry, Inputs
from tools.conformance.engines.text import load_box, make_entry

SHARED = 49152
_THREADS = 128
_WORDS = 5
"""Words of a thread for each step: four of A, one of metadata."""
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
_SWIZZLES = (Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128)
_CODES = {8: (4, 8, 12, 9, 13, 14), 16: (4, 8, 12, 9, 13, 14), 32: (4, 14)}
"""Legal metadata of a chunk, by the bits of an element."""
_BYTE_PAIRS = tuple((a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2"))
_INTEGER_PAIRS = tuple((a, b) for a in ("s8", "u8") for b in ("s8", "u8"))
_FORMS = (
    ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"),
    *((d, a, b) for d in ("f32", "f16") for a, b in _BYTE_PAIRS), *(("s32", a, b) for a, b in _INTEGER_PAIRS),
    ("s32", "b1", "b1"),
)  # fmt: skip
_INTEGER_COLUMNS = (8, 16, 24, *range(32, 257, 16))


@dataclass(frozen=True)
class Product:
    """One spelling of the instruction."""

    d: str
    a: str
    b: str
    n: int
    sparse: bool = False
    in_registers: bool = False
    saturates: bool = False
    scales: tuple[int, int] = (1, 1)
    transposes: tuple[int, int] = (0, 0)
    selector: int = 0

    @property
    def k(self) -> int:
        """The depth."""
        return 256 // _BITS[self.a] * (2 if self.sparse else 1)

    @property
    def registers(self) -> int:
        """The registers of a thread's accumulators."""
        return self.n // 4 if self.d == "f16" else self.n // 2

    @property
    def name(self) -> str:
        """A name for the entry."""
        words = [self.d, self.a, self.b, f"n{self.n}", "sparse" * self.sparse, "rs" if self.in_registers else "ss",
                 "sat" * self.saturates, "".join("pm"[s < 0] for s in self.scales),
                 "".join("kt"[t] for t in self.transposes), f"s{self.selector}"]  # fmt: skip
        return "wgmma_" + "_".join(word for word in words if word)


def list_cases() -> Iterator[Case]:
    """Yield cases of every combination of types."""
    for d, a, b in _FORMS:
        for sparse in (False, True) if a != "b1" else (False,):
            for in_registers in (False, True):
                for saturates in (False, True) if d == "s32" and a != "b1" else (False,):
                    yield from _list_form(Product(d, a, b, 8, sparse, in_registers, saturates))
    for name in ("bf16", "tf32"):
        form = Product("f32", name, name, 24)
        for steps in (0, 1, 2):
            draw = partial(_draw_onto_zeros, form, steps)
            yield Case(f"zeros/{name}/{steps}", _make_entry(form), draw)
            other = replace(form, in_registers=True)
            yield Case(f"zeros/{name}/void{steps}", _make_entry(other), partial(_draw_void, other, steps))


def _list_form(form: Product) -> Iterator[Case]:
    """Yield cases of a combination: many small ones, some of other widths, signs and layouts, a wide one."""
    random = Random(form.name)
    columns = _INTEGER_COLUMNS if form.d == "s32" else tuple(range(8, 257, 8))
    family = f"wgmma/{form.name.removeprefix('wgmma_')}"
    kinds = ("bits", "ties") if form.d == "s32" else KINDS
    entry = _make_entry(form)
    for kind in kinds:
        for steps in (0, 1, 4):
            yield Case(f"{family}/{kind}/{steps or 'zero'}", entry, partial(_draw, form, kind, steps, False))
    other = replace(form, n=random.choice([n for n in columns if 16 <= n <= 48]), **_draw_immediates(random, form))
    entry = _make_entry(other)
    for kind in random.sample(kinds, 2):
        for odd in (False, True):
            name = f"{'odd' if odd else 'wgmma'}/{other.name.removeprefix('wgmma_')}/{kind}/layout"
            yield Case(name, entry, partial(_draw, other, kind, 2, odd))
    wide = replace(form, n=random.choice([n for n in columns if n >= 64]))
    name = f"wgmma/{wide.name.removeprefix('wgmma_')}/wide"
    yield Case(name, _make_entry(wide), partial(_draw, wide, random.choice(kinds), 1, False))


def _draw_immediates(random: Random, form: Product) -> dict[str, object]:
    values: dict[str, object] = {}
    if form.d != "s32":
        values["scales"] = (random.choice((1, -1)), random.choice((1, -1)))
    if _BITS[form.a] == 16:
        values["transposes"] = (0 if form.in_registers else random.randrange(2), random.randrange(2))
    if form.sparse and _BITS[form.a] > 8:
        values["selector"] = random.randrange(2)
    return values


def _make_entry(product: Product) -> Entry:
    registers = product.registers
    kind = "f32" if product.d == "f32" else "b32"
    form = "wgmma.mma_async.sp.sync.aligned" if product.sparse else "wgmma.mma_async.sync.aligned"
    types = f"{product.d}.{product.a}.{product.b}" + ".and.popc" * (product.a == "b1")
    a_operand = "{%a0, %a1, %a2, %a3}" if product.in_registers else "%da"
    tail = ["%p"]
    if product.d != "s32":
        tail += map(str, product.scales)
    if _BITS[product.a] == 16:
        tail += map(str, product.transposes[int(product.in_registers) :])
    if product.saturates:
        types = "satfinite." + types
    opcode = f"{form}.m64n{product.n}k{product.k}.{types}"
    meta = f"%meta, {product.selector}, " if product.sparse else ""
    names = ", ".join(f"%d{n}" for n in range(registers))
    loads = "\n".join(f"ld.global.{kind} %d{n}, [%far+{4 * n}];" for n in range(registers))
    stores = "\n".join(f"st.global.{kind} [%far+{4 * n}], %d{n};" for n in range(registers))
    body = f""".reg .b32 %a<4>, %meta; .reg .{kind} %d<{registers}>; .reg .b64 %da, %db, %base;
{load_box("fill", SHARED)}
mad.wide.u32 %far, %t, {4 * registers}, %out;
{loads}
fence.proxy.async;
bar.sync 0;
cvt.u64.u32 %base, %box; shr.u64 %base, %base, 4;
ld.global.u32 %m, [%table];
mad.wide.u32 %x, %t, {4 * _WORDS}, %data;
step: ld.global.u64 %da, [%table+8]; ld.global.u64 %db, [%table+16]; ld.global.u32 %n, [%table+24];
add.u64 %da, %da, %base; add.u64 %db, %db, %base; setp.ne.u32 %p, %n, 0;
ld.global.u32 %a0, [%x+{SHARED}]; ld.global.u32 %a1, [%x+{SHARED + 4}]; ld.global.u32 %a2, [%x+{SHARED + 8}];
ld.global.u32 %a3, [%x+{SHARED + 12}]; ld.global.u32 %meta, [%x+{SHARED + 16}];
wgmma.fence.sync.aligned;
{opcode} {{{names}}}, {a_operand}, %db, {meta}{", ".join(tail)};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.u64 %table, %table, 24; add.u64 %x, %x, {4 * _WORDS * _THREADS};
sub.u32 %m, %m, 1; setp.ne.u32 %q, %m, 0;
@%q bra step;
{stores}"""
    return make_entry(product.name, body, size=SHARED)


def _draw(product: Product, kind: str, steps: int, odd: bool, random: Random) -> Inputs:
    """Return descriptors, memory and registers. Without steps there is one, and the accumulators do not count."""
    count = max(steps, 1)
    table = struct.pack("<2I", count, 0)
    data = [_draw_elements(random, product, kind, SHARED).tobytes()]
    for number in range(count):
        a, b = (_draw_descriptor(random, product, which, odd) for which in "ab")
        counts = steps > 0 and not (number == 1 and random.random() < 0.1)
        table += struct.pack("<2Q2I", a, b, counts, 0)
        words = np.zeros((_THREADS, _WORDS), "u4")
        words[:, :4] = _draw_elements(random, product, kind, 16 * _THREADS).view("u4").reshape(_THREADS, 4)
        words[:, 4] = _draw_metadata(random, _BITS[product.a])
        data.append(words.tobytes())
    accumulators = draw_words(random, product.d, kind, 64 * product.n)
    return Inputs(table.ljust(128, b"\0"), b"".join(data), np.ascontiguousarray(accumulators).tobytes())


def _draw_onto_zeros(product: Product, steps: int, random: Random) -> Inputs:
    """Return products below the smallest normal number, and accumulators that are zero."""
    inputs = _draw(product, "low", steps, False, random)
    return replace(inputs, out=bytes(len(inputs.out)))


def _draw_void(product: Product, steps: int, random: Random) -> Inputs:
    """Return a B of large numbers, and in registers an A of zeros and few small numbers."""
    inputs = _draw(product, "up", steps, False, random)
    data = np.frombuffer(inputs.data, "u4").copy()
    words = data[SHARED // 4 :].reshape(-1, _WORDS)
    words[:, :4] = _draw_elements(random, product, "void", 16 * len(words)).view("u4").reshape(-1, 4)
    return replace(inputs, data=data.tobytes(), out=bytes(len(inputs.out)))


def _draw_elements(random: Random, product: Product, kind: str, size: int) -> Array:
    """Return bytes of elements, A's and B's types by turns of 1024 bytes."""
    parts: list[bytes] = []
    for start in range(0, size, 1024):
        name = (product.a, product.b)[start // 1024 % 2]
        count = 1024 * 8 // max(_BITS[name], 8)
        parts.append(np.ascontiguousarray(draw_words(random, name, kind, count)).tobytes())
    return np.frombuffer(b"".join(parts), "u1")


def _draw_metadata(random: Random, bits: int) -> Array:
    """Return a word of legal chunks for each thread."""
    codes = np.array(_CODES[bits if bits > 1 else 8], "u4")
    nibbles = codes[np.frombuffer(random.randbytes(_THREADS * 8), "u1") % len(codes)].reshape(_THREADS, 8)
    return np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype="u4"), axis=1).astype("u4")


def _draw_descriptor(random: Random, product: Product, which: str, odd: bool) -> int:
    """Return a descriptor relative to the box that stays inside it; an odd one is not aligned to its pattern."""
    bits = _BITS[product.a if which == "a" else product.b]
    rows = 64 if which == "a" else product.n
    columns = product.k // 2 if product.sparse and which == "a" else product.k
    across = bool(product.transposes["ab".index(which)])
    size, columns = (1, columns // 8) if bits == 1 else (bits // 8, columns)
    while True:
        swizzle = random.choice(_SWIZZLES)
        unit = 16 if odd or swizzle is Swizzle.NONE else 8 * swizzle.span
        start = unit * random.randint(0, 8192 // unit)
        start += 0 if across or not swizzle.span else 32 * random.randrange(swizzle.span // 32)
        lead, stride = (unit * random.randint(0, 6144 // unit) for _ in "ls")
        base = random.choice((0, random.randrange(8))) if odd and swizzle.span else 0
        inside = WgmmaDescriptor(start, lead, stride, swizzle, base)
        addresses = compute_addresses(inside, rows, columns, size, across)
        if addresses.min() >= 0 and addresses.max() + size <= SHARED:
            return inside.encode()
