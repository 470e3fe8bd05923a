"""multimem instructions on replicas that are arrays of one device, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.messages import raises

Array = np.ndarray[Any, Any]
LANES = 64


def run(body: str, replicas: list[Array], out: Array, step: int) -> None:
    """Run lines in which every lane has `%m`, its offset from the multimem address, and `%o`, its offset in `out`."""
    text = f""".version 9.3
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 m, .param .u64 o)
{{
.reg .b32 %t, %r<8>; .reg .b16 %h<8>; .reg .f32 %f<4>; .reg .b64 %m, %o, %d; .reg .pred %p;
mov.u32 %t, %tid.x; ld.param.u64 %m, [m]; ld.param.u64 %o, [o];
mad.wide.u32 %m, %t, {step}, %m; mad.wide.u32 %o, %t, {step}, %o;
{body}
ret;
}}
"""
    sim.run(parse(text), block=LANES, args=[sim.Multicast(replicas), out])


@pytest.mark.parametrize("op", ["add.s32", "min.s32", "max.u32", "and.b32", "xor.b32"])
def test_integers_are_reduced_over_replicas(op: str) -> None:
    random = np.random.default_rng(1)
    replicas = [random.integers(0, 1 << 32, LANES).astype("u4") for _ in range(3)]
    out = np.zeros(LANES, "u4")
    run(f"multimem.ld_reduce.relaxed.gpu.global.{op} %r1, [%m]; st.global.u32 [%o], %r1;", replicas, out, 4)
    name, kind = op.split(".")
    folds: dict[str, Any] = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "xor": np.bitwise_xor,
    }  # fmt: skip
    stack = np.stack(replicas).view("i4" if kind == "s32" else "u4")
    np.testing.assert_array_equal(out, folds[name].reduce(stack, dtype=stack.dtype).view("u4"))


def test_halves_are_summed_in_the_precision_asked_for() -> None:
    random = np.random.default_rng(2)
    replicas = [(random.standard_normal(2 * LANES) * 30).astype("f2") for _ in range(4)]
    plain, wide = np.zeros(LANES, "u4"), np.zeros(LANES, "u4")
    run("multimem.ld_reduce.global.add.f16x2 %r1, [%m]; st.global.u32 [%o], %r1;", replicas, plain, 4)
    run("multimem.ld_reduce.global.add.acc::f32.f16x2 %r1, [%m]; st.global.u32 [%o], %r1;", replicas, wide, 4)
    total = replicas[0].copy()
    for replica in replicas[1:]:
        total = (total.astype("f4") + replica.astype("f4")).astype("f2")
    exact = replicas[0].astype("f4")
    for replica in replicas[1:]:
        exact = exact + replica.astype("f4")
    np.testing.assert_array_equal(plain.view("f2"), total)
    np.testing.assert_array_equal(wide.view("f2"), exact.astype("f2"))
    assert (plain != wide).any()


def test_vectors_of_floats_and_bytes() -> None:
    random = np.random.default_rng(3)
    replicas = [random.standard_normal(2 * LANES).astype("f4") for _ in range(2)]
    out = np.zeros(2 * LANES, "f4")
    run("multimem.ld_reduce.global.add.v2.f32 {%f1, %f2}, [%m]; st.global.v2.f32 [%o], {%f1, %f2};", replicas, out, 8)
    np.testing.assert_array_equal(out, replicas[0] + replicas[1])
    codes = [random.integers(0x20, 0x48, 4 * LANES).astype("u1") for _ in range(2)]
    least = np.zeros(LANES, "u4")
    run("multimem.ld_reduce.global.max.e4m3x4 %r1, [%m]; st.global.u32 [%o], %r1;", codes, least, 4)
    np.testing.assert_array_equal(least.view("u1"), np.maximum(*codes))


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_extremes_of_halves_ignore_nan_and_order_zeros(kind: str, op: str) -> None:
    random = np.random.default_rng(4)
    half: Any = np.float16 if kind == "f16x2" else ml_dtypes.bfloat16
    replicas = [random.standard_normal(2 * LANES).astype(half) for _ in range(3)]
    replicas[0][:5] = [np.nan, 0.0, -0.0, np.inf, np.nan]
    replicas[1][:5] = [np.nan, -0.0, 0.0, -np.inf, 1.5]
    replicas[2][:5] = [np.nan, -0.0, 0.0, 2.0, -2.5]
    out = np.zeros(LANES, "u4")
    run(f"multimem.ld_reduce.global.{op}.{kind} %r1, [%m]; st.global.u32 [%o], %r1;",
        [replica.view("u4") for replica in replicas], out, 4)  # fmt: skip
    fold: Any = np.fmin if op == "min" else np.fmax
    want = fold.reduce(np.stack(replicas).astype("f8")).astype(half)
    want[1:3] = -0.0 if op == "min" else 0.0
    want.view("u2")[0] = 0x7FFF
    np.testing.assert_array_equal(out.view("u2"), want.view("u2"))


def test_doubles_are_summed_in_the_order_of_the_replicas() -> None:
    random = np.random.default_rng(5)
    replicas = [random.standard_normal(LANES) * 10.0 ** random.integers(-20, 20, LANES) for _ in range(4)]
    out = np.zeros(LANES)
    run("multimem.ld_reduce.global.add.f64 %d, [%m]; st.global.b64 [%o], %d;", replicas, out, 8)
    np.testing.assert_array_equal(out, ((replicas[0] + replicas[1]) + replicas[2]) + replicas[3])


def test_stores_and_reductions_reach_every_replica() -> None:
    replicas = [np.arange(LANES, dtype="u4") * scale for scale in (1, 10, 100)]
    before = [replica.copy() for replica in replicas]
    run("multimem.red.global.add.u32 [%m], 7; setp.lt.u32 %p, %t, 5; @%p multimem.st.global.u32 [%m], %t;",
        replicas, np.zeros(LANES, "u4"), 4)  # fmt: skip
    for replica, old in zip(replicas, before, strict=True):
        np.testing.assert_array_equal(replica[5:], old[5:] + 7)
        np.testing.assert_array_equal(replica[:5], np.arange(5))


def test_asynchronous_forms() -> None:
    replicas = [np.zeros(LANES, "u4") for _ in range(2)]
    run(
        """.shared .align 16 .b32 box[64];
mov.u32 %r1, box; mad.lo.u32 %r2, %t, 4, %r1; add.u32 %r3, %t, 100; st.shared.u32 [%r2], %r3;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@%p bra rest;
multimem.cp.async.bulk.global.shared::cta.bulk_group [%m], [%r1], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%m], [%r1], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
rest: bar.sync 0;
multimem.red.async.release.gpu.global.add.u32 [%m], 1;""", replicas, np.zeros(LANES, "u4"), 4,
    )  # fmt: skip
    for replica in replicas:
        expected = np.arange(100, 100 + LANES)
        expected[:32] *= 2
        np.testing.assert_array_equal(replica, expected + 1)


def test_other_addresses_are_refused() -> None:
    with raises(PtxError, match="there is no multicast object"):
        run("multimem.st.global.u32 [%o], %t;", [np.zeros(LANES, "u4")], np.zeros(LANES, "u4"), 4)
    with raises(PtxError, match="which only `multimem` instructions access"):
        run("st.global.u32 [%m], %t;", [np.zeros(LANES, "u4")], np.zeros(LANES, "u4"), 4)
    with raises(PtxError, match="replicas of"):
        run("", [np.zeros(LANES, "u4"), np.zeros(3, "u4")], np.zeros(LANES, "u4"), 4)
