"""atom and red by all lanes and by some, which meet at a few words, against Python integers in lane order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import assert_reported, kernel

Array = np.ndarray[Any, Any]
LANES = 64
SLOTS = 5
"""How many slots of 16 bytes are shared, and how many are global: lanes meet at each of them."""

_TEXT = f""".version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 slots, .param .u64 given, .param .u64 out)
{{{{
.reg .b32 %t, %n, %guard, %e; .reg .b64 %x, %y, %slots, %given, %out, %box, %a, %b<2>, %c<2>, %d<2>; .reg .b128 %q<4>;
.reg .b32 %s<4>; .reg .b16 %h<4>; .reg .pred %p, %far, %first;
.shared .align 16 .b8 box[{16 * SLOTS}];
mov.u32 %t, %tid.x; mov.u64 %box, box;
ld.param.u64 %slots, [slots]; ld.param.u64 %given, [given]; ld.param.u64 %out, [out];
mad.wide.u32 %given, %t, 48, %given; mad.wide.u32 %out, %t, 16, %out;
ld.global.v2.b64 {{{{%b0, %b1}}}}, [%given]; ld.global.v2.b64 {{{{%c0, %c1}}}}, [%given+16];
ld.global.v2.b32 {{{{%n, %guard}}}}, [%given+32]; ld.global.v2.b64 {{{{%d0, %d1}}}}, [%out];
setp.lt.u32 %first, %t, {SLOTS};
mad.wide.u32 %y, %t, 16, %box; mad.wide.u32 %a, %t, 16, %slots;
@%first ld.global.v2.b64 {{{{%x, %a}}}}, [%a];
@%first st.shared.v2.b64 [%y], {{{{%x, %a}}}};
bar.sync 0;
{{address}}
setp.ge.u32 %far, %n, {SLOTS};
@%far mov.u64 %a, %slots;
mad.wide.u32 %a, %n, 16, %a;
cvt.u32.u64 %s0, %b0; cvt.u32.u64 %s1, %c0; cvt.u16.u64 %h0, %b0; cvt.u16.u64 %h1, %c0;
cvt.u32.u64 %s2, %d0; cvt.u16.u64 %h2, %d0;
mov.b128 %q0, {{{{%b0, %b1}}}}; mov.b128 %q1, {{{{%c0, %c1}}}}; mov.b128 %q2, {{{{%d0, %d1}}}};
setp.ne.u32 %p, %guard, 0;
{{body}}
st.global.v2.b64 [%out], {{{{%d0, %d1}}}};
bar.sync 0;
mad.wide.u32 %a, %t, 16, %slots;
@%first ld.shared.v2.b64 {{{{%x, %y}}}}, [%y];
@%first st.global.v2.b64 [%a], {{{{%x, %y}}}};
ret;
}}}}
"""
WIDTHS = {
    16: ("%h2", "%h0", "%h1", "cvt.u64.u16 %d0, %h2;"), 32: ("%s2", "%s0", "%s1", "cvt.u64.u32 %d0, %s2;"),
    64: ("%d0", "%b0", "%c0", ""), 128: ("%q2", "%q0", "%q1", "mov.b128 {%d0, %d1}, %q2;"),
}  # fmt: skip
"""The registers of the old value and of two operands, and what brings the old value to %d0 and %d1."""
OPERATIONS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, b, c: old + b,
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "min": lambda old, b, c: min(old, b),
    "max": lambda old, b, c: max(old, b),
    "exch": lambda old, b, c: b,
    "inc": lambda old, b, c: 0 if old >= b else old + 1,
    "dec": lambda old, b, c: b if old == 0 or old > b else old - 1,
    "cas": lambda old, b, c: c if old == b else old,
}
FORMS = [
    "add.u32", "add.u64", "and.b32", "or.b64", "xor.b32", "min.s32", "min.u64", "max.u32", "max.s64", "inc.u32",
    "dec.u32", "exch.b32", "exch.b64", "exch.b128", "cas.b16", "cas.b32", "cas.b64", "cas.b128",
]  # fmt: skip


def draw(space: str, op: str, bits: int, seed: int) -> tuple[Array, Array, Array]:
    """Return slots, what each lane is given (b, c, the number of its slot, its guard), and what results start as."""
    random = np.random.default_rng(seed)
    limit = {"inc": 255, "dec": 255, "cas": 3}.get(op, (1 << 64) - 1)
    words = random.integers(0, limit, (2 * SLOTS + 2 * LANES, 2), np.uint64, endpoint=True)
    if op == "cas":
        # They often agree, or differ in the uppermost bit alone.
        words = (words & 1) << np.uint64(min(bits, 64) - 1) | words >> 1
    given = np.zeros((LANES, 6), np.uint64)
    given[:, :4] = words[2 * SLOTS :].reshape(LANES, 4)
    low, high = {"shared": (0, SLOTS), "global": (SLOTS, 2 * SLOTS), "": (0, 2 * SLOTS)}[space]
    given[:, 4] = random.integers(low, high, LANES) | random.integers(0, 3, LANES) << 32
    return words[: 2 * SLOTS].copy(), given, random.integers(0, 1 << min(bits, 63), (LANES, 2), np.uint64)


def as_integer(pair: Array, kind: str) -> int:
    """Return the number of a type in the low bits of 128."""
    bits = int(kind[1:])
    number = (int(pair[0]) | int(pair[1]) << 64) & ((1 << bits) - 1)
    return number - (1 << bits) if kind[0] == "s" and number >> bits - 1 else number


def replace_low(pair: Array, number: int, bits: int) -> tuple[int, int]:
    """Return a pair of words of which the low bits are a number's."""
    whole = (int(pair[0]) | int(pair[1]) << 64) >> bits << bits | number & ((1 << bits) - 1)
    return whole & ((1 << 64) - 1), whole >> 64


@pytest.mark.parametrize(("space", "guard"), [("", "@%p "), ("shared", ""), ("global", "@!%p ")])
@pytest.mark.parametrize("form", FORMS)
def test_lanes_update_words_in_their_order(form: str, space: str, guard: str) -> None:
    op, kind = form.split(".")
    bits = int(kind[1:])
    slots, given, old = draw(space, op, bits, FORMS.index(form))
    d, b, c, unpack = WIDTHS[bits]
    operands = f"[%a], {b}" + (f", {c}" if op == "cas" else "")
    name = f"{'.' + space if space else ''}.{form}"
    unread = f"red{name} {operands}" if op not in ("exch", "cas") else f"atom{name} _, {operands}"
    want_slots, want = slots.copy(), old.copy()
    for is_read in (True, False):
        for lane in range(LANES):
            if guard and bool(given[lane, 4] >> np.uint64(32)) != (guard == "@%p "):
                continue
            slot = int(given[lane, 4]) & 0xFFFFFFFF
            before, *numbers = (as_integer(v, kind) for v in (want_slots[slot], given[lane, :2], given[lane, 2:4]))
            want_slots[slot] = replace_low(want_slots[slot], OPERATIONS[op](before, *numbers), bits)
            if is_read:
                want[lane] = replace_low(old[lane], before, bits)
    address = "mov.u64 %a, %box;" if space else "cvta.shared.u64 %a, %box;"
    body = f"{guard}atom{name} {d}, {operands};\n{unpack}\nbar.sync 0;\n{guard}{unread};"
    sim.run(parse(_TEXT.format(address=address, body=body)), block=LANES, args=[slots, given, old])
    np.testing.assert_array_equal(slots, want_slots)
    np.testing.assert_array_equal(old, want)


@pytest.mark.parametrize("form", ["inc.u32", "dec.u32", "cas.b32", "exch.b32", "min.s32"])
def test_lanes_that_update_words_of_their_own(form: str) -> None:
    """All at once, unlike lanes that share words."""
    op = form.partition(".")[0]
    words = np.random.default_rng(FORMS.index(form)).integers(0, 5, (LANES, 4), np.uint32)
    want = words.copy()
    for row in want:
        old, b, c = (int(word) for word in row[:3])
        row[3], row[0] = old, OPERATIONS[op](old, b, c)
    third = ", %c" if op == "cas" else ""
    text = kernel(
        f""".reg .b32 %b, %c, %d, %t; .reg .b64 %w; ld.param.u64 %w, [words]; mov.u32 %t, %tid.x;
        mad.wide.u32 %w, %t, 16, %w; ld.global.b32 %b, [%w+4]; ld.global.b32 %c, [%w+8];
        atom.global.{form} %d, [%w], %b{third}; st.global.b32 [%w+12], %d; ret;""",
        params=".param .u64 words",
    )
    sim.run(parse(text), block=LANES, args=[words])
    np.testing.assert_array_equal(words, want)


VECTORS: dict[str, tuple[str, str, Callable[[Array, Array], Array]]] = {
    "add.v4.f32": ("b32", "f4", lambda old, b: old + b),
    "max.noftz.v8.f16": ("b16", "f2", np.maximum),
    "min.noftz.v4.f16x2": ("b32", "f2", np.minimum),
    "add.noftz.v2.f16x2": ("b32", "f2", lambda old, b: (old.astype("f4") + b.astype("f4")).astype("f2")),
}


@pytest.mark.parametrize("name", VECTORS)
def test_some_lanes_update_the_elements_of_vectors(name: str) -> None:
    """Lanes n and n + 32 meet at one vector; every third lane stays away."""
    register, dtype, update = VECTORS[name]
    vector = name.split(".")[-2]
    count = int(vector[1:]) * (2 if name.endswith("x2") else 1)
    random = np.random.default_rng(len(name))
    words = random.integers(-99, 99, (32, count)).astype(dtype) / 8
    given = random.integers(-99, 99, (LANES, count)).astype(dtype) / 8
    old = np.full((LANES, count), 7, dtype)
    size, pieces = old[0].nbytes, {"b16": "v4.b16", "b32": f"{vector}.b32"}[register]
    names = [[f"%{letter}{n}" for n in range(int(vector[1:]))] for letter in "db"]

    def move(how: str, address: str, registers: list[str]) -> str:
        step = 4 if register == "b16" else len(registers)
        lists = [(8 * n // 4, "{" + ", ".join(registers[n : n + step]) + "}") for n in range(0, len(registers), step)]
        return " ".join(
            f"ld.global.{pieces} {v}, [{address}+{at}];"
            if how == "ld"
            else f"st.global.{pieces} [{address}+{at}], {v};"
            for at, v in lists
        )

    d, b = ("{" + ", ".join(part) + "}" for part in names)
    text = f""".version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 words, .param .u64 given, .param .u64 out)
{{
.reg .b32 %t, %n; .reg .b64 %words, %given, %out; .reg .{register} %d<8>, %b<8>; .reg .pred %p;
mov.u32 %t, %tid.x; and.b32 %n, %t, 31;
ld.param.u64 %words, [words]; ld.param.u64 %given, [given]; ld.param.u64 %out, [out];
mad.wide.u32 %words, %n, {size}, %words; mad.wide.u32 %given, %t, {size}, %given; mad.wide.u32 %out, %t, {size}, %out;
{move("ld", "%given", names[1])} {move("ld", "%out", names[0])}
rem.u32 %n, %t, 3; setp.ne.u32 %p, %n, 0;
@%p atom.global.{name} {d}, [%words], {b};
{move("st", "%out", names[0])}
@%p red.global.{name} [%words], {b};
ret;
}}
"""
    want, want_old = words.copy(), old.copy()
    for is_read in (True, False):
        for lane in range(LANES):
            if lane % 3:
                want_old[lane] = want[lane % 32] if is_read else want_old[lane]
                want[lane % 32] = update(want[lane % 32], given[lane])
    sim.run(parse(text), block=LANES, args=[words, given, old])
    np.testing.assert_array_equal(words, want)
    np.testing.assert_array_equal(old, want_old)


def test_an_exchange_of_128_bits_names_the_thread_that_is_out_of_bounds() -> None:
    body = """add.u32 %r1, %t, 1; mul.wide.u32 %rd1, %r1, 16; ld.param.u64 %rd2, [out]; add.u64 %rd1, %rd1, %rd2;
.reg .b128 %q; mov.b128 %q, {%rd1, %rd2}; setp.gt.u32 %p0, %t, 2;
@%p0 atom.global.exch.b128 %q, [%rd1], %q;"""
    error = assert_reported(kernel(body), "PTX1110", block=32, args=[np.zeros(32, np.uint32)])
    [found] = error.diagnostics
    assert found.notes == ("in `k`, CTA 0, thread (7, 0, 0), one of 1 here",)
    assert found.message.startswith("`atom.global.exch.b128` accesses 16 bytes at 0x")
    assert found.message.endswith(": 0 bytes after its end")
