"""Vector registers, whole and by members, wherever ptxas accepts them: against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyptx import sim
from pyptx.parser import parse
from pyptx.toolchain import assemble
from tests.sim.kernels import assert_reported

Words = NDArray[np.uint32]
DECLARED = """
.reg .v4 .u32 T, U; .reg .v4 .f32 F, G; .reg .v2 .u32 P, Q; .reg .v2 .f32 H; .reg .v2 .u64 D; .reg .v2 .f64 DD;
.reg .v4 .b32 A; .reg .v2 .b32 AB; .reg .v2 .s32 S2; .reg .v4 .b16 W; .reg .v2 .b16 W2; .reg .v4 .u16 V;
.reg .v4 .u8 CC;
.reg .v2 .b64 BB; .reg .v4 .u32 L<3>; .reg .u32 %r<10>; .reg .b32 %b<6>; .reg .f32 %f<6>; .reg .b64 %rd<8>, in, out;
.reg .b128 %q; .reg .pred %p; .reg .b16 %h<3>; .shared .align 16 .b8 sh[1024];
"""
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n.global .surfref sf; .global .texref tx;\n"
FUNCTIONS = """
.func (.reg .v4 .u32 made) turned (.reg .v4 .u32 given, .reg .v2 .f32 pair)
{ .reg .b32 %x; mov.b32 %x, pair.y; mov.v4.u32 made, {given.w, given.z, given.y, %x}; ret; }
.func (.reg .v2 .u64 made) wide (.reg .v2 .u64 given) { add.u64 made.y, given.x, given.y; mov.u64 made.x, 7; ret; }
"""


def entry(name: str, body: str) -> str:
    """Return an entry in which each thread has 16 words at `in` and 8 at `out`."""
    return f"""
.visible .entry {name}(.param .u64 given, .param .u64 made)
{{
{DECLARED}
ld.param.u64 in, [given]; ld.param.u64 out, [made];
mov.u32 %r0, %tid.x; mad.wide.u32 in, %r0, 64, in; mad.wide.u32 out, %r0, 32, out;
setp.lt.u32 %p, %r0, 20;
{body}
ret;
}}
"""


def rows(*columns: Any) -> Words:
    """Return the words that the threads store, from columns of 32 values; missing columns are 0."""
    output = np.zeros((32, 8), np.uint32)
    for index, column in enumerate(columns):
        output[:, index] = np.asarray(column)
    return output


def bits(values: Any) -> Words:
    return np.asarray(values, np.float32).view(np.uint32)


STORE = "st.global.v4.u32 [out], T;"
LOAD = "ld.global.v4.u32 T, [in]; ld.global.v4.u32 U, [in+16];"
CASES: dict[str, tuple[str, Callable[[Words], Words]]] = {
    "load and store": (f"ld.global.v4.u32 T, [in]; {STORE}", lambda x: rows(*x.T[:4])),
    "load floats": ("ld.global.v2.f32 H, [in]; st.global.v2.f32 [out], H;", lambda x: rows(*x.T[:2])),
    "load wide": ("ld.global.v2.u64 D, [in]; st.global.v2.u64 [out], D;", lambda x: rows(*x.T[:4])),
    "load doubles": ("ld.global.v2.f64 DD, [in]; st.global.v2.f64 [out], DD;", lambda x: rows(*x.T[:4])),
    "load halves": ("ld.global.v4.u16 V, [in]; st.global.v4.u16 [out], V;", lambda x: rows(*x.T[:2])),
    "load bytes": ("ld.global.v4.u8 CC, [in]; st.global.v4.u8 [out], CC;", lambda x: rows(x[:, 0])),
    "load bytes into halves": (
        "ld.global.v4.u8 V, [in]; cvt.u32.u16 %r1, V.w; st.global.u32 [out], %r1;", lambda x: rows(x[:, 0] >> 24),
    ),
    "load without coherence": (f"ld.global.nc.v4.u32 T, [in]; {STORE}", lambda x: rows(*x.T[:4])),
    "members in braces": (
        "ld.global.v4.u32 {T.x, T.w, %r1, U.y}, [in]; st.global.v4.u32 [out], {U.y, %r1, T.w, T.x};",
        lambda x: rows(*x.T[3::-1]),
    ),
    "load a member": (f"{LOAD} ld.global.u32 T.g, [in+20]; {STORE}", lambda x: rows(x[:, 0], x[:, 5], *x.T[2:4])),
    "load under a guard": (
        f"mov.v4.u32 T, {{1, 2, 3, 4}}; @%p ld.global.v4.u32 T, [in]; {STORE}",
        lambda x: np.where(np.arange(32)[:, None] < 20, rows(*x.T[:4]), rows(1, 2, 3, 4)),
    ),
    "store under a guard": (
        f"{LOAD} @!%p st.global.v4.u32 [out], T;",
        lambda x: np.where(np.arange(32)[:, None] < 20, rows(), rows(*x.T[:4])),
    ),
    "read members": (
        f"{LOAD} add.u32 %r1, T.x, T.w; sub.u32 %r2, U.r, U.a; xor.b32 %r3, T.g, U.b;"
        "st.global.v4.u32 [out], {%r1, %r2, %r3, T.z};",
        lambda x: rows(x[:, 0] + x[:, 3], x[:, 4] - x[:, 7], x[:, 1] ^ x[:, 6], x[:, 2]),
    ),
    "write members": (
        f"{LOAD} add.u32 T.x, T.x, T.y; mul.lo.u32 T.a, U.x, U.y; {STORE}",
        lambda x: rows(x[:, 0] + x[:, 1], x[:, 1], x[:, 2], x[:, 4] * x[:, 5]),
    ),
    "write a member under a guard": (
        f"{LOAD} @%p add.u32 T.y, T.x, 1; {STORE}",
        lambda x: rows(x[:, 0], np.where(np.arange(32) < 20, x[:, 0] + 1, x[:, 1]), *x.T[2:4]),
    ),
    "compare and choose": (
        f"{LOAD} setp.lt.u32 %p, T.x, T.y; selp.u32 T.z, T.x, T.y, %p; {STORE}",
        lambda x: rows(x[:, 0], x[:, 1], np.minimum(x[:, 0], x[:, 1]), x[:, 3]),
    ),
    "floats": (
        "ld.global.v4.u32 T, [in]; cvt.rn.f32.u32 F.x, T.x; cvt.rn.f32.u32 F.y, T.y; mov.f32 F.z, 0f3F800000;"
        "fma.rn.f32 F.w, F.x, F.z, F.y; st.global.v4.f32 [out], F;",
        lambda x: rows(
            bits(x[:, 0]), bits(x[:, 1]), bits(np.ones(32)),
            bits(x[:, 0].astype("f4").astype("f8") + x[:, 1].astype("f4")),
        ),
    ),
    "negative": (f"{LOAD} sub.u32 T.x, -5, T.y; {STORE}", lambda x: rows(-5 - x[:, 1].astype("i8"), *x.T[1:4])),
    "move whole": (f"{LOAD} mov.v4.u32 T, U; {STORE}", lambda x: rows(*x.T[4:8])),
    "move bits": (f"{LOAD} mov.v4.b32 T, U; {STORE}", lambda x: rows(*x.T[4:8])),
    "move whole under a guard": (
        f"{LOAD} @%p mov.v4.u32 T, U; {STORE}",
        lambda x: np.where(np.arange(32)[:, None] < 20, rows(*x.T[4:8]), rows(*x.T[:4])),
    ),
    "move pairs": ("ld.global.v2.u32 P, [in]; mov.v2.u32 Q, P; st.global.v2.u32 [out], Q;", lambda x: rows(*x.T[:2])),
    "turn": (f"{LOAD} mov.v4.u32 T, {{T.w, T.z, T.y, T.x}}; {STORE}", lambda x: rows(*x.T[3::-1])),
    "from scalars": (
        f"{LOAD} mov.v4.u32 {{%r1, %r2, %r3, %r4}}, T; mov.v4.u32 T, {{%r2, %r1, %r4, %r3}}; {STORE}",
        lambda x: rows(x[:, 1], x[:, 0], x[:, 3], x[:, 2]),
    ),
    "from a range": (
        "ld.global.v4.u32 L2, [in]; mov.v4.u32 L0, L2; st.global.v4.u32 [out], L0;", lambda x: rows(*x.T[:4]),
    ),
    "pack pairs": (
        "ld.global.v2.u32 P, [in]; mov.b64 %rd1, P; add.u64 %rd1, %rd1, 1; mov.b64 Q, %rd1; st.global.v2.u32 [out], Q;",
        lambda x: (np.ascontiguousarray(x[:, :2]).view("u8") + np.uint64(1)).view("u4") @ np.eye(2, 8, dtype="u4"),
    ),
    "pack halves": (
        "ld.global.v4.b16 W, [in]; mov.b64 %rd1, W; mov.b64 W, %rd1; st.global.v4.b16 [out], W;",
        lambda x: rows(*x.T[:2]),
    ),
    "pack a pair of halves": (
        "ld.global.v2.b16 W2, [in]; mov.b32 %b1, W2; mov.b32 W2, %b1; st.global.b32 [out], %b1;"
        "st.global.v2.b16 [out+4], W2;",
        lambda x: rows(x[:, 0], x[:, 0]),
    ),
    "pack bytes": (
        "ld.global.v4.u8 CC, [in]; mov.b32 %b1, CC; mov.b32 CC, %b1; st.global.b32 [out], %b1;"
        "st.global.v4.u8 [out+4], CC;",
        lambda x: rows(x[:, 0], x[:, 0]),
    ),
    "pack 128 bits": (
        "ld.global.v4.u32 T, [in]; mov.b128 %q, T; mov.b128 D, %q; st.global.v2.u64 [out], D; mov.b128 A, %q;"
        "st.global.v4.b32 [out+16], A;",
        lambda x: rows(*x.T[:4], *x.T[:4]),
    ),
    "special registers": (
        f"{LOAD} mov.u32 T.x, %tid.x; mov.u32 T.y, %ntid.x; {STORE}",
        lambda x: rows(np.arange(32), 32, *x.T[2:4]),
    ),
    "one of two results": (
        f"{LOAD} shfl.sync.bfly.b32 %r1|%p, T.y, 1, 31, -1; mov.u32 T.r, %r1; {STORE}",
        lambda x: rows(x[:, 1].reshape(-1, 2)[:, ::-1].ravel(), *x.T[1:4]),
    ),
    "a negated predicate": (
        f"{LOAD} setp.eq.and.u32 %p, T.r, T.x, !%p; selp.u32 T.g, 1, 2, %p; {STORE}",
        lambda x: rows(x[:, 0], np.where(np.arange(32) < 20, 2, 1), *x.T[2:4]),
    ),
    "a whole special register": (
        "mov.v4.u32 T, %tid; mov.v4.u32 {%r1, %r2, %r3, %r4}, %ntid; st.global.v4.u32 [out], T;"
        "st.global.v4.u32 [out+16], {%r1, %r2, %r3, %r4};",
        lambda x: rows(np.arange(32), 0, 0, 0, 32, 1, 1, 0),
    ),
    "a whole special register as halves under a guard": (
        "mov.v4.u32 T, {0, 0, 0, 0}; mov.b64 W, 0; @%p mov.v4.b16 W, %tid; st.global.v4.b16 [out], W;",
        lambda x: rows(np.arange(32) * (np.arange(32) < 20)),
    ),
    "widen": (
        "ld.global.v4.u32 T, [in]; cvt.u64.u32 D.x, T.y; mad.wide.u32 D.y, T.x, T.y, D.x; st.global.v2.u64 [out], D;",
        lambda x: np.stack(
            [x[:, 1].astype("u8"), x[:, 0].astype("u8") * x[:, 1] + x[:, 1]], axis=1
        ).view("u4") @ np.eye(4, 8, dtype="u4"),
    ),
    "shared memory": (
        f"{LOAD} mad.lo.u32 %r1, %r0, 16, 0; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2; st.shared.v4.u32 [%r1], U;"
        f"ld.shared.v4.u32 T, [%r1]; {STORE}",
        lambda x: rows(*x.T[4:8]),
    ),
    "shuffle": (
        "ld.global.v4.b32 A, [in]; shfl.sync.idx.b32 A.x, A.y, 3, 31, -1; st.global.v4.b32 [out], A;",
        lambda x: rows(np.full(32, x[3, 1]), *x.T[1:4]),
    ),
    "permute bytes": (
        "ld.global.v4.b32 A, [in]; prmt.b32 A.x, A.y, A.z, 0x7610; st.global.v4.b32 [out], A;",
        lambda x: rows(x[:, 1] & 0xFFFF | x[:, 2] & 0xFFFF0000, *x.T[1:4]),
    ),
    "reduce": (
        "ld.global.v4.f32 F, [in+32]; red.global.add.v4.f32 [out], F; red.global.add.v4.f32 [out], F;",
        lambda x: rows(*bits(2 * x[:, 8:12].view("f4")).T),
    ),
    "atomic": (
        "ld.global.v2.f32 H, [in+32]; atom.global.v2.f32.add {%f1, %f2}, [out], H;"
        "st.global.v2.f32 [out+8], {%f1, %f2};",
        lambda x: rows(*x.T[8:10], 0, 0),
    ),
    "surface": (
        "mov.b32 S2.x, %r0; mov.b32 S2.y, 1; shl.b32 S2.x, S2.x, 2; suld.b.2d.b32.trap {%b1}, [sf, S2];"
        "st.global.b32 [out], %b1;",
        lambda x: rows(100 + np.arange(32)),
    ),
    "surface of pairs": (
        "mov.b32 S2.x, %r0; mov.b32 S2.y, 0; shr.u32 %r1, %r0, 1; shl.b32 S2.x, %r1, 3;"
        "suld.b.2d.v2.b32.trap AB, [sf, S2]; st.global.v2.b32 [out], AB;",
        lambda x: rows(np.arange(32) & ~1, np.arange(32) | 1),
    ),
    "texture": (
        "mov.b32 S2.x, %r0; mov.b32 S2.y, 1; tex.2d.v4.u32.s32 T, [tx, S2]; st.global.v4.u32 [out], T;",
        lambda x: rows(100 + np.arange(32), 200 + 2 * np.arange(32), 0, 1),
    ),
    "texture at two of four members": (
        "mov.v4.u32 U, {0, 0, 9, 9}; mov.u32 U.x, %r0; tex.2d.v4.u32.s32 {%r1, T.y, T.z, T.w}, [tx, U];"
        "st.global.v2.u32 [out], {%r1, T.g};",
        lambda x: rows(np.arange(32), 2 * np.arange(32)),
    ),
    "call": (
        f"{LOAD} ld.global.v2.f32 H, [in+32]; call (U), turned, (T, H); mov.v4.u32 T, U; {STORE}",
        lambda x: rows(x[:, 3], x[:, 2], x[:, 1], x[:, 9]),
    ),
    "call with its own result": (
        f"{LOAD} ld.global.v2.f32 H, [in+32]; call (T), turned, (T, H); call (T), turned, (T, H); {STORE}",
        lambda x: rows(x[:, 9], x[:, 1], x[:, 2], x[:, 9]),
    ),
    "call with wide members": (
        "ld.global.v2.u64 D, [in]; call (D), wide, (D); st.global.v2.u64 [out], D;",
        lambda x: np.stack(
            [np.full(32, 7, "u8"), x.view("u8")[:, 0] + x.view("u8")[:, 1]], axis=1
        ).view("u4") @ np.eye(4, 8, dtype="u4"),
    ),
    "loop": (
        f"mov.v4.u32 T, {{0, 0, 0, 0}}; mov.u32 %r1, %r0;\nagain: add.u32 T.y, T.y, %r1; mov.v4.u32 U, T;"
        f"sub.u32 %r1, %r1, 1; setp.gt.s32 %p, %r1, 0; @%p bra again; {STORE}",
        lambda x: rows(0, np.arange(32) * (np.arange(32) + 1) // 2, 0, 0),
    ),
}  # fmt: skip


def test_ptxas_takes_every_case() -> None:
    entries = [entry(f"k{index}", body) for index, (body, _) in enumerate(CASES.values())]
    assert assemble(HEAD + FUNCTIONS + "".join(entries))


@pytest.mark.parametrize("schedule", ["eager", "adversarial"])
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, schedule: str) -> None:
    body, expected = CASES[case]
    source = np.random.default_rng(len(case)).integers(0, 1 << 32, (32, 16), np.uint32)
    source[:, 8:12] = bits(np.arange(128).reshape(32, 4) / 8)
    output = np.zeros((32, 8), np.uint32)
    surface = np.stack([np.arange(32), 100 + np.arange(32)]).astype(np.uint32)
    sim.run(
        parse(HEAD + FUNCTIONS + entry("k", body)), "k", block=32, args=[source, output], schedule=schedule,
        images={"sf": sim.Surface(surface), "tx": sim.Texture(np.stack([surface, 2 * surface], -1))},
    )  # fmt: skip
    np.testing.assert_array_equal(output, expected(source))


MATRICES = """
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a}, [%r1]; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {b}, [%r1];
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {a}, {b}, {c};
stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {a};
st.global.v4.f32 [out], {d}; ld.shared.v4.b32 {a}, [%r1]; st.global.v4.b32 [out+16], {a};
"""


def test_fragments_of_matrices() -> None:
    """The result is the same with registers in braces. With a vector register as D, ptxas 13.5 crashes or does not
    terminate."""
    start = (
        "shl.b32 %r1, %r0, 4; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2; ld.global.v4.b32 A, [in]; bar.sync 0;"
        "st.shared.v4.b32 [%r1], A; bar.sync 0; ld.global.v4.f32 G, [in+32]; mov.v4.f32 {%f2, %f3, %f4, %f5}, G;"
    )
    a, b, c, d = "{%b0, %b1, %b2, %b3}", "{%b4, %b5}", "{%f2, %f3, %f4, %f5}", "{%f2, %f3, %f4, %f5}"
    random, source = np.random.default_rng(0), np.zeros((32, 16), np.uint32)
    source.view(np.float16)[...] = random.standard_normal((32, 32))
    source[:, 8:12] = bits(np.arange(128).reshape(32, 4))
    outputs: list[Words] = []
    for body in (
        MATRICES.format(a=a, b=b, c=c, d=d), MATRICES.format(a="A", b="AB", c="G", d=d),
        MATRICES.format(a="A", b="AB", c="G", d="F"),
    ):  # fmt: skip
        text, output = HEAD + entry("k", start + body), np.zeros((32, 8), np.uint32)
        assert len(outputs) == 2 or assemble(text)
        sim.run(parse(text), "k", block=32, args=[source, output])
        outputs.append(output)
    np.testing.assert_array_equal(outputs[1], outputs[0])
    np.testing.assert_array_equal(outputs[2], outputs[0])
    assert outputs[0].any()


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("mov.u32 T.x, 1; add.u32 %r1, T.x, T.y; st.global.u32 [out], %r1;", "T.y"),
        ("mov.u32 T.x, 1; mov.u32 T.y, 1; mov.u32 T.z, 1; st.global.v4.u32 [out], T;", "T.w"),
        ("mov.u32 T.r, 1; mov.v2.u32 P, {T.x, T.g}; st.global.v2.u32 [out], P;", "P.y"),
        ("@%p ld.global.v4.u32 T, [in]; add.u32 %r1, T.z, 1; st.global.u32 [out], %r1;", "T.z"),
        ("ld.global.v2.f32 H, [in]; mov.v4.u32 T, {1, 2, 3, 4}; call (U), turned, (T, H);"
         "mov.u32 L0.x, U.x; st.global.v2.u32 [out], {L0.x, L1.x};", "L1.x"),
    ],
)  # fmt: skip
def test_a_member_that_nobody_has_written(body: str, name: str) -> None:
    text = HEAD + FUNCTIONS + entry("k", body)
    source, output = np.zeros((32, 16), np.uint32), np.zeros((32, 8), np.uint32)
    assert_reported(text, "PTX0911", name, entry="k", block=32, args=[source, output], poison=True)


def test_members_that_are_written_are_not_reported() -> None:
    body = "mov.u32 T.x, 1; @%p mov.u32 T.y, 2; @!%p mov.u32 T.y, T.x; st.global.v2.u32 [out], {T.r, T.g};"
    source, output = np.zeros((32, 16), np.uint32), np.zeros((32, 8), np.uint32)
    sim.run(parse(HEAD + entry("k", body)), block=32, args=[source, output], poison=True)
    np.testing.assert_array_equal(output, rows(1, np.where(np.arange(32) < 20, 2, 1)))
