"""Tensor copies whose operands override fields of their map."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.base.lanes import Shape
from pyptx.sim.engines.copies.overrides import read_overrides
from pyptx.tensormap import ElementType, TensorMap
from tests.messages import raises

TEXT = """.version 9.4
.target sm_107a
.address_size 64
.visible .entry k(.param .align 128 .b8 map[128], .param .u64 base, .param .u64 out)
{{
.reg .b32 %t, %low; .reg .b16 %s<2>, %high; .reg .b64 %m, %base, %odd, %out; .reg .pred %p, %q;
.shared .align 128 .b32 box[64]; .shared .align 8 .b64 bar;
mov.u64 %m, map; cvta.param.u64 %m, %m;
ld.param.u64 %base, [base]; add.u64 %odd, %base, 8; ld.param.u64 %out, [out];
mov.u16 %s0, 8; mov.u16 %s1, {rows}; mov.u32 %low, {stride}; mov.u16 %high, {high};
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


def run(
    copy: str, base: np.ndarray, rows: int = 4, stride: int = 4, store: str = "", high: int = 0
) -> np.ndarray:  # fmt: skip
    first = np.zeros((4, 8), "u4")
    out = np.zeros(32, "u4")
    tensor = sim.Tensor(first, TensorMap(ElementType.U32, 0, (8, 4), (32,), (8, 4)))
    sim.run(
        parse(TEXT.format(copy=copy, rows=rows, stride=stride, store=store, high=high)), block=32,
        args=[tensor, base, out],
    )  # fmt: skip
    return out.reshape(4, 8)


def test_another_address() -> None:
    replacement = np.arange(32, dtype="u4").reshape(4, 8) + 100
    expected = np.vstack([replacement[1:], np.zeros((1, 8), "u4")])
    np.testing.assert_array_equal(run(BASE, replacement), expected)


def test_other_sizes_and_strides() -> None:
    replacement = np.arange(128, dtype="u4").reshape(8, 16) + 100
    expected = np.zeros((4, 8), "u4")
    expected[:3] = replacement[:3, :8]
    np.testing.assert_array_equal(run(WHOLE, replacement, rows=3, stride=4), expected)


def test_of_a_size_the_lower_byte_counts() -> None:
    replacement = np.arange(32, dtype="u4").reshape(4, 8) + 100
    expected = np.vstack([replacement[:3], np.zeros((1, 8), "u4")])
    np.testing.assert_array_equal(run(WHOLE, replacement, rows=0x5A03, stride=2), expected)


def test_an_upper_word_carries_the_second_row_out_of_the_array() -> None:
    with raises(PtxError, match="PTX1110"):
        run(WHOLE, np.zeros((4, 8), "u4"), stride=2, high=1)


@pytest.mark.parametrize("lane", [0, 5])
def test_every_lane_overrides_by_its_own_words(lane: int) -> None:
    lanes = Shape((8, 1, 1), 1).select_all()
    ramp = np.arange(8, dtype=np.uint32)
    low, high = (ramp + 3, ramp * 0 + 0xFFFFFFFF, ramp * 7), ramp + 0x3A1
    sizes = tuple(ramp + size for size in (0x120, 0xFF07, 2, 9))
    change = read_overrides(
        lanes, None, [4, {"address": ramp * 16 + 0x1000, "size": sizes, "low": low, "high": high}]
    )(lane)  # fmt: skip
    assert change is not None
    tensor = change(TensorMap(ElementType.U32, 0, (8, 4, 1, 1), (32, 128, 128), (8, 4, 1, 1)))
    # Manual: ((tensorLowerStrideToOverride[i] + (tensorUpperStrideToOverride[i] << 32)) << 4), four bits of each.
    uppers = [(0x3A1 + lane) >> shift & 0xF for shift in (0, 4, 8)]
    assert tensor.strides == tuple(
        (int(word[lane]) + (upper << 32)) << 4 for word, upper in zip(low, uppers, strict=True)
    )
    assert tensor.dims == tuple(size + lane for size in (0x20, 0x07, 2, 9))
    assert tensor.address == 0x1000 + 16 * lane


def test_an_address_between_units_is_refused() -> None:
    with raises(PtxError, match="not a multiple of 16"):
        run(BASE.replace("%base,", "%odd,"), np.zeros((4, 8), "u4"))


def test_a_store_goes_where_the_address_says() -> None:
    replacement = np.zeros((4, 8), "u4")
    store = """bar.sync 0; @%p bra done;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.override::global_address [%m, %base, {0, 2}], [box];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; done:"""
    replacement[1] = 5
    result = run(BASE, replacement, store=store)
    assert result[0].tolist() == [5] * 8
    np.testing.assert_array_equal(replacement, np.array([[0], [5], [5], [0]]) * np.ones((4, 8)))


def test_sizes_need_coordinates_zero() -> None:
    with raises(PtxError, match="must start at coordinates 0"):
        run(WHOLE.replace("{0, 0}", "{0, 1}"), np.zeros((4, 8), "u4"))
