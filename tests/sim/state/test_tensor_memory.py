"""Tensor memory from batch to batch."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.execution.tracking import POISON

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
