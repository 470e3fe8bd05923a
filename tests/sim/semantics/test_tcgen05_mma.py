"""tcgen05.mma against NumPy: kinds, layouts, A in tensor memory, pairs of CTAs, sparse, block-scaled, `.ws`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import PtxError
from pyptx.isa.descriptors import InstructionDescriptor, ZeroColumnMask
from pyptx.sim.semantics import tcgen05_mma
from pyptx.tensormap import Swizzle
from pyptx.types import from_name
from tests.messages import raises
from tests.sim import tensor as t

Array = t.Array
K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
BITS = {"e2m1": 4, "e2m3": 6, "e3m2": 6}
A_AT, SPACE = 65536, 131072
COLUMN, LEFT, META, SCALES = 32, 320, 400, 420
"""Columns of tensor memory where D, A, the metadata and the scale factors start."""


def encode_for_shared(codes: Array, kind: str, name: str) -> Array:
    """Return rows of codes in their representation in shared memory."""
    if kind in ("mxf4", "mxf4nvf4"):
        return t.pairs(codes)
    return t.pack_in_chunks(codes, BITS[name]) if name in BITS else codes


def encode_for_tensor(codes: Array, kind: str, name: str) -> Array:
    """Return rows of codes in their representation in tensor memory."""
    if kind in ("mxf4", "mxf4nvf4"):
        return t.in_words(t.pairs(codes))
    return t.in_words(codes << 2 if name == "e2m1" else codes)


def result(words: Array, kind: str) -> Array:
    if kind == "f16":
        return words.astype("u2").view("f2").astype("f8")
    return words.view({"f32": "f4", "s32": "i4"}[kind]).astype("f8")


def descriptor(kind: str, m: int, n: int, names: tuple[str, str], d: str, **options: Any) -> int:
    return InstructionDescriptor(kind, m, n, from_name(names[0]), from_name(names[1]), from_name(d), **options).encode()


def instruction(
    form: str, bits: int, a: str, b: int, *, tail: str = "", use: str = "%never", meta: str = "", count: int = 1
) -> str:
    """Return PTX that issues a product into COLUMN, first without D, then the remaining times with it."""
    starts = {"%r3": COLUMN, "%r5": LEFT, "%r6": META, "%r7": SCALES, "%r0": SCALES + 16}
    lines = [f"mov.u32 %r4, {bits};", *(f"add.u32 {name}, %base, {offset};" for name, offset in starts.items())]
    for p in (use, *["%yes"] * (count - 1)):
        lines.append(f"{form} [%r3], {a}, {b}, {meta}%r4, {p}{tail};")
    return "\n".join(lines)


DENSE = [
    ("f16", "f16", "bf16", "f32", 128, 64, Swizzle.B128), ("f16", "f16", "f16", "f16", 64, 24, Swizzle.NONE),
    ("tf32", "tf32", "tf32", "f32", 128, 40, Swizzle.B32), ("f8f6f4", "e4m3", "e5m2", "f32", 64, 32, Swizzle.B64),
    ("f8f6f4", "e2m1", "e3m2", "f16", 128, 32, Swizzle.B128), ("f8f6f4", "e2m3", "e2m1", "f32", 128, 16, Swizzle.NONE),
    ("i8", "s8", "u8", "s32", 128, 48, Swizzle.B32), ("f16", "bf16", "bf16", "f32", 64, 256, Swizzle.B32),
]  # fmt: skip


@pytest.mark.parametrize("source", ["shared", "tensor"])
@pytest.mark.parametrize(("kind", "a", "b", "d", "m", "n", "mode"), DENSE)
def test_dense(kind: str, a: str, b: str, d: str, m: int, n: int, mode: Swizzle, source: str) -> None:
    if kind == "f16" and {a, b} == {"f16", "bf16"}:
        a = b
    random = np.random.default_rng(3)
    x, y = t.draw_codes(random, a, (m, K[kind])), t.draw_codes(random, b, (n, K[kind]))
    shared, tensor = np.zeros((1, SPACE), "u1"), random.integers(0, 1 << 32, (1, 128, 512)).astype("u4")
    second = t.place(shared[0], 0, encode_for_shared(y, kind, b), mode)
    placement = t.layout("F" if m == 64 else "D", n)
    if source == "shared":
        first = str(t.place(shared[0], A_AT, encode_for_shared(x, kind, a), mode))
    else:
        first = "[%r5]"
        for row, words in enumerate(encode_for_tensor(x, kind, a)):
            tensor[0, placement(row, 0)[1], LEFT : LEFT + len(words)] = words
    bits = descriptor(kind, m, n, (a, b), d)
    output = t.run(instruction(f"tcgen05.mma.cta_group::1.kind::{kind}", bits, first, second, count=2), shared, tensor)
    product = t.values(x, a) @ t.values(y, b).T
    actual = result(t.gather_result(output, placement, m, n, COLUMN), d)
    np.testing.assert_array_equal(actual, np.float16(2 * product) if d == "f16" else 2 * product)
    left = output[0].copy()
    for row in range(m):
        left[placement(row, 0)[1], COLUMN : COLUMN + n] = tensor[0, placement(row, 0)[1], COLUMN : COLUMN + n]
    np.testing.assert_array_equal(left, tensor[0])


@pytest.mark.parametrize(
    ("kind", "name", "mode"),
    [("f16", "f16", Swizzle.B64), ("f8f6f4", "e5m2", Swizzle.B32), ("i8", "s8", Swizzle.B128),
     ("tf32", "tf32", Swizzle.B128_ATOM_32B), ("f16", "bf16", Swizzle.NONE)],
)  # fmt: skip
def test_transposed(kind: str, name: str, mode: Swizzle) -> None:
    random, m, n = np.random.default_rng(4), 128, 64
    x, y = t.draw_codes(random, name, (m, K[kind])), t.draw_codes(random, name, (n, K[kind]))
    shared = np.zeros((1, SPACE), "u1")
    first, second = t.place(shared[0], A_AT, x, mode, across=True), t.place(shared[0], 0, y, mode, across=True)
    d = "s32" if kind == "i8" else "f32"
    bits = descriptor(kind, m, n, (name, name), d, transpose_a=True, transpose_b=True)
    text = instruction(f"tcgen05.mma.cta_group::1.kind::{kind}", bits, str(first), second)
    output = t.run(text, shared, np.zeros((1, 128, 512), "u4"))
    actual = result(t.gather_result(output, t.layout("D", n), m, n, COLUMN), d)
    np.testing.assert_array_equal(actual, t.values(x, name) @ t.values(y, name).T)


def test_negated_scaled_and_masked() -> None:
    random, m, n = np.random.default_rng(5), 128, 32
    x, y = t.draw_codes(random, "f16", (m, 16)), t.draw_codes(random, "f16", (n, 16))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    old = random.integers(-8, 8, (m, n)).astype("f4")
    tensor[0, :, COLUMN : COLUMN + n] = old.view("u4")
    first, second = t.place(shared[0], A_AT, x, Swizzle.B32), t.place(shared[0], 0, y, Swizzle.B32)
    bits = descriptor("f16", m, n, ("f16", "f16"), "f32", negate_a=True)
    text = instruction(
        "tcgen05.mma.cta_group::1.kind::f16", bits, str(first), second, use="{1, 0x80000000, 0, 6}, %yes", tail=", 3"
    )
    output = t.run(text, shared, tensor)
    actual = result(output[0, :, COLUMN : COLUMN + n], "f32")
    expected = -t.values(x, "f16") @ t.values(y, "f16").T + old / 8
    unmasked = [0, 63, 97, 98]
    expected[unmasked] = old[unmasked]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("check", ["all", "numerics"])
def test_integers_saturate(check: str) -> None:
    shared, tensor = np.full((1, SPACE), 127, "u1"), np.zeros((1, 128, 512), "u4")
    tensor[0, :, COLUMN : COLUMN + 16] = 0x7FFFFFF0
    results: list[int] = []
    for saturate in (False, True):
        bits = descriptor("i8", 128, 16, ("u8", "u8"), "s32", saturate=saturate)
        first = t.place(shared[0], 0, np.full((128, 32), 200, "u1"), Swizzle.NONE)
        text = instruction("tcgen05.mma.cta_group::1.kind::i8", bits, str(first), first, use="%yes")
        results.append(int(t.run(text, shared, tensor, check=check)[0, 5, COLUMN + 3]))
    assert results == [(0x7FFFFFF0 + 32 * 200 * 200) & 0xFFFFFFFF, 0x7FFFFFFF]


def test_rows_of_a_shift_down_in_every_quarter() -> None:
    random, m, n = np.random.default_rng(6), 128, 16
    x, y = t.draw_codes(random, "f16", (m, 16)), t.draw_codes(random, "f16", (n, 16))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    tensor[0, :, LEFT : LEFT + 8] = t.in_words(x)
    second = t.place(shared[0], 0, y, Swizzle.NONE)
    bits = descriptor("f16", m, n, ("f16", "f16"), "f32")
    output = t.run(instruction("tcgen05.mma.cta_group::1.kind::f16.ashift", bits, "[%r5]", second), shared, tensor)
    rows = [row if row % 32 == 31 else row + 1 for row in range(m)]
    actual = result(output[0, :, COLUMN : COLUMN + n], "f32")
    np.testing.assert_array_equal(actual, t.values(x[rows], "f16") @ t.values(y, "f16").T)


@pytest.mark.parametrize("source", ["shared", "tensor"])
@pytest.mark.parametrize(("kind", "name", "m", "n"), [("f16", "f16", 256, 64), ("f8f6f4", "e2m1", 128, 32)])
def test_pairs_of_ctas(kind: str, name: str, m: int, n: int, source: str) -> None:
    random = np.random.default_rng(7)
    x, y = t.draw_codes(random, name, (m, K[kind])), t.draw_codes(random, name, (n, K[kind]))
    shared, tensor = np.zeros((2, SPACE), "u1"), np.zeros((2, 128, 512), "u4")
    placement = t.layout("A" if m == 256 else "B", n)
    first = second = 0
    for cta in range(2):
        rows, columns = x[cta * m // 2 : (cta + 1) * m // 2], y[cta * n // 2 : (cta + 1) * n // 2]
        first = t.place(shared[cta], A_AT, encode_for_shared(rows, kind, name), Swizzle.B128)
        second = t.place(shared[cta], 0, encode_for_shared(columns, kind, name), Swizzle.B64)
        words = encode_for_tensor(rows, kind, name)
        for copy in range(128 // len(words)):
            tensor[cta, copy * len(words) : (copy + 1) * len(words), LEFT : LEFT + words.shape[1]] = words
    bits = descriptor(kind, m, n, (name, name), "f32")
    mask = "{0, 2, 0, 0, 0, 0, 4, 0}"
    a = str(first) if source == "shared" else "[%r5]"
    text = instruction(f"tcgen05.mma.cta_group::2.kind::{kind}", bits, a, second, use=f"{mask}, %never")
    output = t.run(text, shared, tensor)
    expected = t.values(x, name) @ t.values(y, name).T
    for row, col in np.ndindex(m, n):
        if placement(row, col)[:2] in ((0, 33), (1, 66)):
            expected[row, col] = 0
    np.testing.assert_array_equal(result(t.gather_result(output, placement, m, n, COLUMN), "f32"), expected)


@pytest.mark.parametrize("check", ["none", "all"])
@pytest.mark.parametrize(
    ("pair", "kind", "name", "across"), [(1, "f16", "f16", True), (2, "f8f6f4", "e4m3", False), (2, "i8", "s8", False)]
)
def test_many_ctas_issue_alike(
    pair: int, kind: str, name: str, across: bool, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unchecked, these are one batched product; checked, one after the other."""
    if check == "none":
        monkeypatch.delattr(tcgen05_mma, "_multiply")
    random, m, n, clusters = np.random.default_rng(15), 128 * pair, 64, 3
    shared, tensor = np.zeros((clusters * pair, SPACE), "u1"), np.zeros((clusters * pair, 128, 512), "u4")
    old = random.integers(-8, 8, (clusters * pair, 128, n)).astype("i4" if kind == "i8" else "f4")
    tensor[:, :, COLUMN : COLUMN + n] = old.view("u4")
    expected = old.astype("f8").reshape(clusters, m, n)
    first = second = 0
    for cluster in range(clusters):
        x, y = t.draw_codes(random, name, (m, K[kind])), t.draw_codes(random, name, (n, K[kind]))
        for rank in range(pair):
            image = shared[cluster * pair + rank]
            first = t.place(image, A_AT, x[rank * 128 : rank * 128 + 128], Swizzle.B64, across=across)
            second = t.place(image, 0, y[rank * n // pair : (rank + 1) * n // pair], Swizzle.B32)
        expected[cluster] += t.values(x, name) @ t.values(y, name).T * (-1 if kind == "f16" else 1)
    negation = {"negate_b": True} if kind == "f16" else {}
    d = "s32" if kind == "i8" else "f32"
    bits = descriptor(kind, m, n, (name, name), d, transpose_a=across, **negation)
    text = instruction(f"tcgen05.mma.cta_group::{pair}.kind::{kind}", bits, str(first), second, use="%yes")
    output = t.run(text, shared, tensor, clusters=clusters, check=check)
    actual = result(np.ascontiguousarray(output[:, :, COLUMN : COLUMN + n]), d).reshape(clusters, m, n)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("chosen", [[0, 1], [0, 2], [1, 2, 3]])
def test_some_ctas_of_many_issue_and_the_others_keep_their_sums(
    chosen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tcgen05_mma, "_multiply")
    random, m, n, ctas = np.random.default_rng(18), 128, 32, 4
    shared, tensor = np.zeros((ctas, SPACE), "u1"), np.zeros((ctas, 128, 512), "u4")
    x, y = t.draw_codes(random, "f16", (ctas, m, 16)), t.draw_codes(random, "f16", (n, 16))
    old = random.integers(-8, 8, (ctas, m, n)).astype("f4")
    tensor[:, :, COLUMN : COLUMN + n] = old.view("u4")
    first = second = 0
    for cta in range(ctas):
        first, second = t.place(shared[cta], A_AT, x[cta], Swizzle.B32), t.place(shared[cta], 0, y, Swizzle.B32)
    bits, members = descriptor("f16", m, n, ("f16", "f16"), "f32"), sum(1 << cta for cta in chosen)
    text = f"mov.u32 %r1, %ctaid.x; shr.u32 %r1, {members}, %r1; and.b32 %r1, %r1, 1; setp.eq.u32 %q, %r1, 1;\n"
    text += instruction("@%q tcgen05.mma.cta_group::1.kind::f16", bits, str(first), second, use="%yes")
    output = t.run(text, shared, tensor, clusters=ctas, check="none")
    expected = old.astype("f8")
    expected[chosen] += (t.values(x, "f16") @ t.values(y, "f16").T)[chosen]
    np.testing.assert_array_equal(result(np.ascontiguousarray(output[:, :, COLUMN : COLUMN + n]), "f32"), expected)


@pytest.mark.parametrize(
    ("kind", "name", "d", "m"),
    [("f8f6f4", "e2m1", "f32", 128), ("f16", "f16", "f16", 128), ("f16", "bf16", "f32", 64)],
)
def test_products_that_cannot_be_one_batch_are_computed_in_every_cta(kind: str, name: str, d: str, m: int) -> None:
    random, n, ctas = np.random.default_rng(19), 32, 3
    shared, tensor = np.zeros((ctas, SPACE), "u1"), np.zeros((ctas, 128, 512), "u4")
    x, y = t.draw_codes(random, name, (ctas, m, K[kind])), t.draw_codes(random, name, (n, K[kind]))
    first = second = 0
    for cta in range(ctas):
        first = t.place(shared[cta], A_AT, encode_for_shared(x[cta], kind, name), Swizzle.B32)
        second = t.place(shared[cta], 0, encode_for_shared(y, kind, name), Swizzle.B32)
    bits, placement = descriptor(kind, m, n, (name, name), d), t.layout("F" if m == 64 else "D", n)
    text = instruction(f"tcgen05.mma.cta_group::1.kind::{kind}", bits, str(first), second)
    output = t.run(text, shared, tensor, clusters=ctas, check="none")
    for cta in range(ctas):
        actual = result(t.gather_result(output[cta : cta + 1], placement, m, n, COLUMN), d)
        np.testing.assert_array_equal(actual, t.values(x[cta], name) @ t.values(y, name).T)


@pytest.mark.parametrize("ctas", [1, 3])
@pytest.mark.parametrize("kind", ["f16", "tf32", "f8f6f4"])
def test_every_nan_in_d_is_the_canonical_one(kind: str, ctas: int) -> None:
    """Of an operand, of the old D, and of infinities; one CTA's product, and a batch."""
    random, m, n = np.random.default_rng(17), 128, 32
    name = "e5m2" if kind == "f8f6f4" else kind
    infinity, nan = {"f16": (0x7C00, 0xFE01), "tf32": (0x7F800000, 0xFFC12000), "f8f6f4": (0x7C, 0xFF)}[kind]
    sign = {"f16": 0x8000, "tf32": 0x80000000, "f8f6f4": 0x80}[kind]
    x, y = t.draw_codes(random, name, (m, K[kind])), t.draw_codes(random, name, (n, K[kind]))
    y[:, :2] = y[0, 0] | 1 << 4
    x[3, 1], x[70, :2] = nan, (infinity, infinity | sign)
    shared, tensor = np.zeros((ctas, SPACE), "u1"), np.zeros((ctas, 128, 512), "u4")
    tensor[:, 90, COLUMN + 7], tensor[:, 90, COLUMN + 9] = 0x7FC12345, 0xFFC00001
    first = second = 0
    for image in shared:
        first, second = t.place(image, A_AT, x, Swizzle.B32), t.place(image, 0, y, Swizzle.B32)
    bits = descriptor(kind, m, n, (name, name), "f32")
    text = instruction(f"tcgen05.mma.cta_group::1.kind::{kind}", bits, str(first), second, use="%yes")
    output = t.run(text, shared, tensor, clusters=ctas)[:, :, COLUMN : COLUMN + n]
    expected = np.zeros((ctas, m, n), bool)
    expected[:, [3, 70]] = expected[:, 90, [7, 9]] = True
    np.testing.assert_array_equal(output == 0x7FFFFFFF, expected)
    assert not np.isnan(output[~expected].view("f4")).any()


@pytest.mark.parametrize("source", ["shared", "tensor"])
def test_many_ctas_issue_alike_what_is_no_batch(source: str) -> None:
    """Rows that stay unchanged, and A from tensor memory."""
    random, m, n, ctas = np.random.default_rng(16), 128, 32, 3
    shared, tensor = np.zeros((ctas, SPACE), "u1"), np.zeros((ctas, 128, 512), "u4")
    x, y = t.draw_codes(random, "f16", (ctas, m, 16)), t.draw_codes(random, "f16", (n, 16))
    first = second = 0
    for cta in range(ctas):
        first, second = t.place(shared[cta], A_AT, x[cta], Swizzle.B32), t.place(shared[cta], 0, y, Swizzle.B32)
        words = encode_for_tensor(x[cta], "f16", "f16")
        tensor[cta, :, LEFT : LEFT + words.shape[1]] = words
    bits = descriptor("f16", m, n, ("f16", "f16"), "f32")
    use = "{3, 3, 3, 3}, %never" if source == "shared" else "%never"
    a = str(first) if source == "shared" else "[%r5]"
    output = t.run(
        instruction("tcgen05.mma.cta_group::1.kind::f16", bits, a, second, use=use), shared, tensor, clusters=ctas
    )
    expected = t.values(x, "f16") @ t.values(y, "f16").T
    if source == "shared":
        expected[:, [0, 1, 32, 33, 64, 65, 96, 97]] = 0
    np.testing.assert_array_equal(result(np.ascontiguousarray(output[:, :, COLUMN : COLUMN + n]), "f32"), expected)


@pytest.mark.parametrize("source", ["shared", "tensor"])
@pytest.mark.parametrize(("m", "name"), [(128, "D"), (64, "E"), (32, "G")])
def test_weight_stationary(m: int, name: str, source: str) -> None:
    random, n = np.random.default_rng(8), 64
    x, y = t.draw_codes(random, "bf16", (m, 16)), t.draw_codes(random, "bf16", (n + 2, 16))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    first = str(t.place(shared[0], A_AT, x, Swizzle.B32))
    second = t.place(shared[0], 0, y, Swizzle.B32)
    for copy in range(128 // m):
        tensor[0, copy * m : copy * m + m, LEFT : LEFT + 8] = t.in_words(x)
    mask = ZeroColumnMask(skip=3, use=4, starts=(0, 1, 2, 1), firsts=(1, 1, 0, 0), shift=2)
    bits = descriptor("f16", m, n, ("bf16", "bf16"), "f32", max_shift=8)
    text = instruction(
        "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill", bits, first if source == "shared" else "[%r5]",
        second, tail=f", {mask.encode()}",
    )  # fmt: skip
    output = t.run(text, shared, tensor)
    expected = t.values(x, "bf16") @ t.values(y[2:], "bf16").T
    for column in range(n):
        part, position = divmod(column, n * m // 128)
        # Runs of used (4) and zeroed (3) columns from the manual's fourth example, cut at the start by the counts.
        run_length = 4 if mask.firsts[part] == 0 else 0
        if (mask.starts[part] + position - run_length) % 7 < 3:
            expected[:, column] = 0
    actual = result(t.gather_result(output, t.layout(name, n), m, n, COLUMN), "f32")
    np.testing.assert_array_equal(actual, expected)


def sparse_rows(random: np.random.Generator, kind: str, name: str, m: int) -> tuple[Array, Array, Array]:
    """Return stored codes, metadata of four bits for each chunk, and the dense numbers."""
    depth = 2 * K[kind]
    codes = t.draw_codes(random, name, (m, depth // 2))
    size = {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}.get(kind, 4)
    dense, numbers = np.zeros((m, depth)), t.values(codes, name)
    choices = (0b0100, 0b1110) if size == 2 else (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110, 0b0110)
    meta = random.choice(choices, (m, depth // size))
    for row, chunk in np.ndindex(*meta.shape):
        low, high = int(meta[row, chunk]) & 3, int(meta[row, chunk]) >> 2
        positions: list[int] = {2: [low // 2], 4: [low, high], 8: [2 * low, 2 * low + 1, 2 * high, 2 * high + 1]}[size]
        for i, column in enumerate(positions):
            dense[row, chunk * size + column] = numbers[row, chunk * len(positions) + i]
    return codes, meta, dense


def store_metadata(tensor: Array, meta: Array, kind: str, lanes: list[int], selector: int) -> None:
    """Store metadata as in the manual's figures 262 to 267, for rows in these lanes."""
    for row, chunk in np.ndindex(*meta.shape):
        lane, bits = lanes[int(row)], int(meta[row, chunk])
        if kind in ("f16", "tf32"):
            index = lane // 16 * 16 + lane % 8 + (8 if chunk >= 4 else 0)
            tensor[index, META + selector] |= np.uint32(bits << (chunk % 4 * 4 + (16 if lane % 16 >= 8 else 0)))
        else:
            tensor[lane, META + chunk // 8] |= np.uint32(bits << chunk % 8 * 4)


SPARSE = [
    ("f16", "bf16", 128, 1, "D"), ("tf32", "tf32", 128, 0, "D"), ("i8", "s8", 128, 0, "D"),
    ("f8f6f4", "e2m3", 64, 0, "F"), ("f16", "f16", 64, 0, "F"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "m", "selector", "form"), SPARSE)
@pytest.mark.parametrize("source", ["shared", "tensor"])
def test_sparse(kind: str, name: str, m: int, selector: int, form: str, source: str) -> None:
    random, n = np.random.default_rng(9), 32
    codes, meta, dense = sparse_rows(random, kind, name, m)
    y = t.draw_codes(random, name, (n, 2 * K[kind]))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    place = t.layout(form, n)
    lanes = [place(row, 0)[1] for row in range(m)]
    store_metadata(tensor[0], meta, kind, lanes, selector)
    words = encode_for_tensor(codes, kind, name)
    tensor[0, lanes, LEFT : LEFT + words.shape[1]] = words
    first = (
        str(t.place(shared[0], A_AT, encode_for_shared(codes, kind, name), Swizzle.B64))
        if source == "shared"
        else "[%r5]"
    )
    second = t.place(shared[0], 0, encode_for_shared(y, kind, name), Swizzle.B128)
    d = "s32" if kind == "i8" else "f32"
    bits = descriptor(kind, m, n, (name, name), d, sparse=True, sparsity_selector=selector)
    text = instruction(f"tcgen05.mma.sp.cta_group::1.kind::{kind}", bits, first, second, meta="[%r6], ")
    output = t.run(text, shared, tensor)
    actual = result(t.gather_result(output, place, m, n, COLUMN), d)
    np.testing.assert_array_equal(actual, dense @ t.values(y, name).T)


def test_sparse_pair_uses_half_of_the_lanes() -> None:
    random, m, n = np.random.default_rng(10), 128, 32
    codes, meta, dense = sparse_rows(random, "f16", "f16", m)
    y = t.draw_codes(random, "f16", (n, 32))
    shared, tensor = np.zeros((2, SPACE), "u1"), np.zeros((2, 128, 512), "u4")
    place = t.layout("C", n)
    first = second = 0
    for cta in range(2):
        mine = slice(cta * 64, cta * 64 + 64)
        store_metadata(tensor[cta], meta[mine], "f16", [place(row, 0)[1] for row in range(64)], 0)
        first = t.place(shared[cta], A_AT, codes[mine], Swizzle.B32)
        second = t.place(shared[cta], 0, y[cta * 16 : cta * 16 + 16], Swizzle.B64)
    bits = descriptor("f16", m, n, ("f16", "f16"), "f32", sparse=True)
    text = instruction("tcgen05.mma.sp.cta_group::2.kind::f16", bits, str(first), second, meta="[%r6], ")
    output = t.run(text, shared, tensor)
    actual = result(t.gather_result(output, place, m, n, COLUMN), "f32")
    np.testing.assert_array_equal(actual, dense @ t.values(y, "f16").T)


@pytest.mark.parametrize(
    ("kind", "name", "code", "selector", "message"),
    [
        ("f16", "f16", 0b0101, 1, "metadata 0b0101 of a chunk of A is not legal"),
        ("i8", "s8", 0b0111, 0, "metadata 0b0111 of a chunk of A is not legal"),
        ("tf32", "tf32", 0b0110, 0, "metadata 0b0110 of a chunk of A is not legal"),
        ("i8", "s8", 0b0100, 1, "the sparsity selector of kind i8 must be 0, not 1"),
    ],
)
def test_illegal_metadata_is_reported(kind: str, name: str, code: int, selector: int, message: str) -> None:
    random, m, n = np.random.default_rng(11), 128, 8
    codes, meta, _ = sparse_rows(random, kind, name, m)
    meta[77, -1] = code
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    place = t.layout("D", n)
    store_metadata(tensor[0], meta, kind, [place(row, 0)[1] for row in range(m)], selector)
    first = t.place(shared[0], A_AT, encode_for_shared(codes, kind, name), Swizzle.B32)
    second = t.place(
        shared[0], 0, encode_for_shared(t.draw_codes(random, name, (n, 2 * K[kind])), kind, name), Swizzle.B128
    )
    d = "s32" if kind == "i8" else "f32"
    bits = descriptor(kind, m, n, (name, name), d, sparse=True, sparsity_selector=selector)
    text = instruction(f"tcgen05.mma.sp.cta_group::1.kind::{kind}", bits, str(first), second, meta="[%r6], ")
    with raises(PtxError, match=message):
        t.run(text, shared, tensor)
