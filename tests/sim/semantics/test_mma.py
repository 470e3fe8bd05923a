"""mma of every shape and type against NumPy, with fragments in the manual's layouts."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim import tensor as t

Array = t.Array
BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "e4m3": 8, "e5m2": 8,
    "e2m1": 8, "e2m3": 8, "e3m2": 8, "f32": 32, "s32": 32,
}  # fmt: skip
FORMS = [
    *((f"m16n8k{k}", d, "f16", "f16", "") for k in (8, 16) for d in ("f16", "f32")),
    *((f"m16n8k{k}", "f32", "bf16", "bf16", "") for k in (8, 16)),
    *((f"m16n8k{k}", "f32", "tf32", "tf32", "") for k in (4, 8)),
    *((shape, "f64", "f64", "f64", "") for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *((shape, "s32", a, b, flag) for shape in ("m8n8k16", "m16n8k16", "m16n8k32")
      for a, b, flag in (("s8", "u8", ""), ("u8", "s8", ".satfinite"))),
    *((shape, "s32", "s4", "u4", "") for shape in ("m8n8k32", "m16n8k32", "m16n8k64")),
    *((shape, "s32", "b1", "b1", op) for shape in ("m8n8k128", "m16n8k128", "m16n8k256") for op in ("xor", "and")),
    *((f"m16n8k{k}", d, "e4m3", "e5m2", "") for k in (16, 32) for d in ("f16", "f32")),
    ("m16n8k32", "f32", "e2m1", "e3m2", "kind"), ("m16n8k32", "f32", "e2m3", "e2m1", "kind"),
]  # fmt: skip


def draw(random: np.random.Generator, name: str, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return elements as the bits of their positions in a register, and their numbers."""
    if name == "f64":
        numbers = random.integers(-9, 9, shape).astype("f8")
        return numbers.view("u8"), numbers
    if name in ("s4", "u4", "b1"):
        codes = random.integers(0, 1 << BITS[name], shape)
        return codes, np.where((codes > 7) & (name == "s4"), codes - 16, codes).astype("f8")
    codes = t.draw_codes(random, name, shape)
    return (codes << 2 if name == "e2m1" else codes), t.values(codes, name)


def pack_elements(place: dict[tuple[int, int, int], int], registers: int, bits: int) -> Array:
    """Return `[lane, register]` from elements by lane, register and number in it."""
    words = np.zeros((32, registers), "u8" if bits == 64 else "u4")
    for (lane, register, number), code in place.items():
        words[lane, register] |= words.dtype.type(code << number * bits if bits < 64 else code)
    return words


def left(codes: Array, bits: int) -> Array:
    """Rows map to groups of four lanes, then to rows eight below; columns to the lanes of a group, then to
    registers."""
    per, rows = max(1, 32 // bits), codes.shape[0] // 8
    return pack_elements({
        (row % 8 * 4 + k // per % 4, k // (4 * per) * rows + row // 8, k % per): int(codes[row, k])
        for row, k in np.ndindex(*codes.shape)
    }, codes.size * bits // 32 // max(32, bits) if bits < 64 else codes.size // 32, bits)  # fmt: skip


def right(codes: Array, bits: int) -> Array:
    """`codes` has a row for every column of B."""
    per = max(1, 32 // bits)
    return pack_elements({
        (col * 4 + k // per % 4, k // (4 * per), k % per): int(codes[col, k]) for col, k in np.ndindex(*codes.shape)
    }, codes.size * bits // 32 // max(32, bits) if bits < 64 else codes.size // 32, bits)  # fmt: skip


def total(words: Array, m: int, kind: str) -> Array:
    """Return D: two adjacent elements of a row in each lane, then the row eight below."""
    units = np.ascontiguousarray(words).view({"f16": "f2", "f32": "f4", "f64": "f8", "s32": "i4"}[kind])
    output = np.empty((m, 8))
    for row, col in np.ndindex(m, 8):
        output[row, col] = units[row % 8 * 4 + col // 2, row // 8 * 2 + col % 2]
    return output


def get_size(shape: str) -> tuple[int, int]:
    """Return M and K."""
    return int(shape[1 : shape.index("n")]), int(shape[shape.index("k") + 1 :])


def multiply(shape: str, d: str, a: str, b: str, flag: str, x: Array, y: Array, start: int = 0) -> Array:
    """Return the registers of D of a product of codes; every register of C holds `start`."""
    m, k = get_size(shape)
    wide = 64 if d == "f64" else 32
    parts = [left(x, BITS[a]), right(y, BITS[b])]
    count = m // 8 * (1 if d == "f16" else 2)
    sizes = [part.shape[1] for part in parts] + [count]
    words = np.concatenate([*parts, np.full((32, count), start, parts[0].dtype)], axis=1)
    out = np.zeros((32, count), words.dtype)
    kind, result = ("f64", "f64") if wide == 64 else ("b32", "f32" if d == "f32" else "b32")
    lists = [[f"%{letter}{n}" for n in range(size)] for letter, size in zip("abc", sizes, strict=True)]
    results = [f"%d{n}" for n in range(count)]
    registers = [*lists[0], *lists[1], *lists[2]]
    modifiers = {"xor": ".xor.popc", "and": ".and.popc"}.get(flag, "")
    extra = ".kind::f8f6f4" if flag == "kind" else ""
    sat = flag if flag == ".satfinite" else ""
    types = f"{d}.{a}.{b}.{d}"
    target, version = ("sm_120a", "8.7") if extra or (a == "e4m3" and (k == 16 or d == "f16")) else ("sm_90", "8.4")
    lists_in_braces = [("{" + ", ".join(names) + "}") for names in (results, *lists)]
    step = wide // 8
    loads = [
        f"ld.global.{result if name[1] == 'c' else kind} {name}, [%x+{step * index}];"
        for index, name in enumerate(registers)
    ]
    text = f""".version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 words, .param .u64 out)
{{
.reg .b32 %t; .reg .b64 %x, %y;
.reg .{kind} {", ".join([*lists[0], *lists[1]])}; .reg .{result} {", ".join([*lists[2], *results])};
ld.param.u64 %x, [words]; ld.param.u64 %y, [out]; mov.u32 %t, %tid.x;
mad.wide.u32 %x, %t, {step * len(registers)}, %x; mad.wide.u32 %y, %t, {step * count}, %y;
{" ".join(loads)}
mma.sync.aligned.{shape}.row.col{extra}{sat}.{types}{modifiers} {", ".join(lists_in_braces)};
{" ".join(f"st.global.{result} [%y+{step * n}], {name};" for n, name in enumerate(results))}
ret;
}}
"""
    sim.run(parse(text), block=32, args=[words, out])
    return out


@pytest.mark.parametrize(("shape", "d", "a", "b", "flag"), FORMS)
def test_products(shape: str, d: str, a: str, b: str, flag: str) -> None:
    m, k = get_size(shape)
    random = np.random.default_rng(k)
    (x, p), (y, q) = draw(random, a, (m, k)), draw(random, b, (8, k))
    out = multiply(shape, d, a, b, flag, x, y)
    if flag == "xor":
        expected = (p[:, None, :] != q[None]).sum(2).astype("f8")
    else:
        expected = p @ q.T
    np.testing.assert_array_equal(total(out, m, d), expected.astype("f2") if d == "f16" else expected)


NAN = {"f16": 0xFE01, "bf16": 0xFFC1, "tf32": 0xFFC12000, "e4m3": 0xFF}


@pytest.mark.parametrize(("shape", "d", "a", "b", "flag"), [form for form in FORMS if form[2] in NAN])
def test_every_nan_in_d_is_the_canonical_one(shape: str, d: str, a: str, b: str, flag: str) -> None:
    m, k = get_size(shape)
    random = np.random.default_rng(k)
    (x, _), (y, _) = draw(random, a, (m, k)), draw(random, b, (8, k))
    x[3, 1] = NAN[a]
    bits, canonical = {"f16": ("u2", 0x7FFF), "f32": ("u4", 0x7FFFFFFF)}[d]
    out = multiply(shape, d, a, b, flag, x, y)
    assert np.isnan(total(out, m, d)).nonzero()[0].tolist() == [3] * 8
    assert np.count_nonzero(out.view(bits) == canonical) == 8
    start = {"f16": 0x7E01FE55, "f32": 0x7FC12345}[d]
    out = multiply(shape, d, a, b, flag, x, y, start)
    assert (out.view(bits) == canonical).all()
