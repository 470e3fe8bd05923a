"""Tensor copies whose operands override fields of their map."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.tensormap import ElementType, TensorMap

TEXT = """.version 9.4
.target sm_107a
.address_size 64
.visible .entry k(.param .align 128 .b8 map[128], .param .u64 base, .param .u64 out)
{{
.reg .b32 %t, %low; .reg .b16 %s<2>, %high; .reg .b64 %m, %base, %out; .reg .pred %p, %q;
.shared .align 128 .b32 box[64]; .shared .align 8 .b64 bar;
mov.u64 %m, map; cvta.param.u64 %m, %m;
ld.param.u64 %base, [base]; ld.param.u64 %out, [out];
mov.u16 %s0, 8; mov.u16 %s1, {rows}; mov.u32 %low, {stride}; mov.u16 %high, 0;
mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0;
@!%p mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
@%p bra wait;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
{copy}
wait: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
@!%q bra wait;
mov.u32 %low, box; mad.lo.u32 %low, %t, 4, %low; ld.shared.u32 %t, [%low];
mov.u32 %low, %tid.x; mad.wide.u32 %out, %low, 4, %out; st.global.u32 [%out], %t;
{store}
ret;
}}
"""
LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.override::global_address"
BASE = f"{LOAD} [box], [%m, %base, {{0, 1}}], [bar];"
WHOLE = f"{LOAD}.override::global_dim_stride [box], [%m, %base, {{%s0, %s1}}, {{%low}}, %high, {{0, 0}}], [bar];"


def run(copy: str, base: np.ndarray, rows: int = 4, stride: int = 4, store: str = "") -> np.ndarray:
    first = np.zeros((4, 8), "u4")
    out = np.zeros(32, "u4")
    tensor = sim.Tensor(first, TensorMap(ElementType.U32, 0, (8, 4), (32,), (8, 4)))
    sim.run(
        parse(TEXT.format(copy=copy, rows=rows, stride=stride, store=store)), block=32, args=[tensor, base, out],
    )  # fmt: skip
    return out.reshape(4, 8)


def test_another_address() -> None:
    other = np.arange(32, dtype="u4").reshape(4, 8) + 100
    wanted = np.vstack([other[1:], np.zeros((1, 8), "u4")])
    np.testing.assert_array_equal(run(BASE, other), wanted)


def test_other_sizes_and_strides() -> None:
    other = np.arange(128, dtype="u4").reshape(8, 16) + 100
    wanted = np.zeros((4, 8), "u4")
    wanted[:3] = other[:3, :8]
    np.testing.assert_array_equal(run(WHOLE, other, rows=3, stride=4), wanted)


def test_a_store_goes_where_the_address_says() -> None:
    other = np.zeros((4, 8), "u4")
    store = """bar.sync 0; @%p bra done;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.override::global_address [%m, %base, {0, 2}], [box];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; done:"""
    other[1] = 5
    made = run(BASE, other, store=store)
    assert made[0].tolist() == [5] * 8
    np.testing.assert_array_equal(other, np.array([[0], [5], [5], [0]]) * np.ones((4, 8)))


def test_sizes_need_coordinates_zero() -> None:
    with pytest.raises(PtxError, match="starts at coordinates 0"):
        run(WHOLE.replace("{0, 0}", "{0, 1}"), np.zeros((4, 8), "u4"))
