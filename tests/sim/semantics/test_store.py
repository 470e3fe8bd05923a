"""st.bulk, by some lanes of two CTAs, against bytes that NumPy clears."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse

LANES, BYTES = 40, 64

_TEXT = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 bytes, .param .u64 sizes)
{{
.reg .b32 %t, %n, %own, %far; .reg .b64 %bytes, %sizes, %size, %a, %x; .reg .pred %p, %more;
.shared .align 16 .b8 box[{total}];
mov.u32 %t, %tid.x; mov.u32 %own, box; mad.lo.u32 %own, %t, {each}, %own;
mov.u32 %n, %ctaid.x; mad.lo.u32 %n, %n, {lanes}, %t;
ld.param.u64 %bytes, [bytes]; ld.param.u64 %sizes, [sizes];
mad.wide.u32 %bytes, %n, {each}, %bytes; mad.wide.u32 %sizes, %n, 8, %sizes;
ld.global.u64 %size, [%sizes]; setp.ne.u64 %p, %size, 0;
mov.u32 %n, 0; mov.u64 %a, %bytes; mov.u32 %far, %own;
in: ld.global.b64 %x, [%a]; st.shared.b64 [%far], %x;
add.u32 %n, %n, 8; add.u64 %a, %a, 8; add.u32 %far, %far, 8;
setp.lt.u32 %more, %n, {each}; @%more bra in;
add.u32 %far, %own, 8; cvt.u64.u32 %a, %far; cvta.shared.u64 %a, %a; cvt.u32.u64 %n, %size;
{body}
mov.u32 %n, 0; mov.u64 %a, %bytes; mov.u32 %far, %own;
out: ld.shared.b64 %x, [%far]; st.global.b64 [%a], %x;
add.u32 %n, %n, 8; add.u64 %a, %a, 8; add.u32 %far, %far, 8;
setp.lt.u32 %more, %n, {each}; @%more bra out;
ret;
}}
"""


@pytest.mark.parametrize(
    ("body", "fixed"),
    [
        ("@%p st.bulk.weak.shared::cta [%far], %size, 0;", 0), ("@%p st.bulk [%a], %n, 0;", 0),
        ("st.bulk.weak [%a], %size, 0;", 0), ("@%p st.bulk.shared::cta [%far], 24, 0;", 24),
        ("setp.gt.u64 %p, %size, 999;\n@%p st.bulk.weak [%a], %size, 0;", -1),
    ],
)  # fmt: skip
def test_regions_are_cleared(body: str, fixed: int) -> None:
    """Each lane clears as many bytes of its own 64 as it is told, from the ninth on; `fixed` replaces them."""
    random = np.random.default_rng(3)
    before = random.integers(1, 256, (2 * LANES, BYTES)).astype(np.uint8)
    sizes = (random.permutation(2 * LANES) % 8 * 8).clip(0, 56).astype(np.uint64)
    want = before.copy()
    for lane, size in enumerate(sizes.tolist()):
        want[lane, 8 : 8 + max(0, fixed or size) * (size > 0)] = 0
    text = _TEXT.format(total=LANES * BYTES, each=BYTES, lanes=LANES, body=body)
    sim.run(parse(text), grid=2, block=LANES, args=[before, sizes])
    np.testing.assert_array_equal(before, want)
