"""Tensor memory: its columns, which CTAs allocate and free, and its contents from batch to batch."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.ir import Instruction
from pyptx.parser import parse
from pyptx.sim.execution.tracking import POISON
from pyptx.sim.state.tensor_memory import Holding, TensorMemory

_TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b32 %t, %n, %at, %v<4>; .reg .b64 %o; .shared .align 4 .b32 where;
mov.u32 %t, %tid.x; mov.u32 %n, %ctaid.x; mad.lo.u32 %n, %n, 32, %t;
ld.param.u64 %o, [out]; mad.wide.u32 %o, %n, 16, %o;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 32;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ld.shared.u32 %at, [where];
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0, %v1}, [%at];
tcgen05.wait::ld.sync.aligned;
add.u32 %v2, %n, 1; not.b32 %v3, %n;
tcgen05.st.sync.aligned.32x32b.x2.b32 [%at], {%v2, %v3};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v2, %v3}, [%at];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%o], {%v0, %v1, %v2, %v3};
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %at, 32;
ret;
}
"""


@pytest.mark.parametrize("poison", [False, True])
def test_a_batch_does_not_inherit_tensor_memory(poison: bool) -> None:
    out = np.zeros((96, 4), np.uint32)
    sim.run(parse(_TEXT), grid=3, block=32, args=[out], batch_lanes=32, poison=poison, check="none")
    assert (out[:, :2] == (POISON if poison else 0)).all()
    np.testing.assert_array_equal(out[:, 2], np.arange(96) + 1)
    np.testing.assert_array_equal(out[:, 3], ~np.arange(96, dtype=np.uint32))


def test_columns_are_allocated_where_free_ones_follow_one_another() -> None:
    random, memory = np.random.default_rng(5), TensorMemory(3, 0, 0)
    is_used = np.zeros((3, 512), np.bool_)
    held = list[tuple[int, int, int]]()
    ctas, columns = np.repeat(np.arange(3), 512), np.tile(np.arange(512), 3)
    outcomes = list[bool]()
    for _ in range(300):
        if held and random.random() < 0.45:
            cta, first, count = held.pop(int(random.integers(len(held))))
            assert memory.free(cta, first, count)
            is_used[cta, first : first + count] = False
        else:
            cta, count = int(random.integers(3)), 32 * int(random.integers(1, 9))
            runs = [at for at in range(0, 513 - count, 32) if not is_used[cta, at : at + count].any()]
            first = memory.allocate(cta, count)
            assert first == (runs[0] if runs else None)
            outcomes.append(first is not None)
            if first is not None:
                is_used[cta, first : first + count] = True
                held.append((cta, first, count))
        np.testing.assert_array_equal(memory.are_allocated(ctas, columns, columns), is_used.ravel())
    assert 20 < sum(outcomes) < len(outcomes) - 20


def test_columns_are_all_allocated_or_they_are_not_freed() -> None:
    memory = TensorMemory(2, 0, 0)
    assert [memory.allocate(0, count) for count in (512, 32)] == [0, None]
    assert memory.frees == 0
    assert memory.free(0, 448, 64)
    assert not memory.free(0, 416, 64)
    assert not memory.free(1, 0, 32)
    assert memory.free(0, 0, 416)
    assert not memory.free(0, 480, 64)
    assert memory.frees == 5


def test_an_access_lies_within_512_columns_even_if_columns_were_freed_later() -> None:
    memory = TensorMemory(2, 0, 0)
    memory.allocate(0, 512)
    cta, first, last = np.array([0, 0, 0, 0, 1]), np.array([0, 511, 0, -1, 0]), np.array([511, 511, 512, 0, 31])
    assert memory.are_allocated(cta, first, last).tolist() == [True, True, False, False, False]
    memory.free(0, 0, 32)
    assert memory.are_allocated(cta[:2], np.array([31, 32]), np.array([32, 63])).tolist() == [False, True]
    memory.free(0, 480, 32)
    assert memory.are_allocated(cta[:2], np.array([64, 64]), np.array([479, 480])).tolist() == [True, False]
    memory.assumes_allocated = True
    assert memory.are_allocated(cta, first, last).tolist() == [True, True, False, False, True]
    assert memory.cells.shape == (2, 128, 512)


def test_both_ctas_of_a_pair_get_the_same_columns() -> None:
    memory = TensorMemory(4, 0, 0)
    assert memory.allocate(2, 32) == 0
    assert [memory.allocate(3, count, pair=True) for count in (64, 32)] == [32, 96]
    assert memory.allocate(1, 32, pair=True) == 0
    assert memory.allocate(2, 64, pair=True) == 32
    with pytest.raises(ValueError, match="64 columns, but the other CTA of the pair has allocated 32"):
        memory.allocate(2, 64, pair=True)
    ctas = np.repeat(np.arange(4), 4)
    allocated = memory.are_allocated(ctas, np.tile([0, 32, 96, 128], 4), np.tile([31, 95, 127, 128], 4))
    pair, single = [True, False, False, False], [True, True, True, False]
    assert allocated.reshape(4, 4).tolist() == [pair, pair, single, [False, True, True, False]]


def test_holders_are_listed_by_column_until_they_free() -> None:
    memory, alloc = TensorMemory(2, 0, 7), Instruction("tcgen05", ())
    early, middle, late = (Holding(first, 32, 5, alloc) for first in (0, 64, 128))
    for holding in (late, early, middle):
        memory.record_holder(1, holding)
    assert memory.list_holders(0) == []
    assert memory.list_holders(1) == [early, middle, late]
    memory.free(1, 64, 32)
    assert memory.list_holders(1) == [early, late]
    memory.cells[1] = 3
    memory.refused_lanes.append(np.arange(32))
    memory.allocate(0, 512, pair=True)
    memory.reset()
    assert memory.list_holders(1) == memory.refused_lanes == []
    assert memory.frees == 0
    assert (memory.cells == 7).all()
    assert [memory.allocate(cta, 256, pair=True) for cta in (1, 0)] == [0, 0]
    assert memory.allocate(0, 64, pair=True) == 256
    assert memory.allocate(1, 32) == 320
