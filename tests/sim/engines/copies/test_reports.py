"""Bulk copies that report on their bytes, conditional phases of mbarriers, and copies with edges outside an array."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.messages import raises

TEXT = """.version 9.4
.target sm_107a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out)
{{
.reg .b32 %t, %r<8>; .reg .b64 %x, %out, %state; .reg .pred %p, %q, %bad, %good;
.shared .align 16 .b8 box[64]; .shared .align 8 .b64 bar;
ld.param.u64 %x, [data]; ld.param.u64 %out, [out];
mbarrier.init.{layout}.shared::cta.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
{copy}
wait: mbarrier.try_wait.parity.phase_type::primary.shared::cta.b64 %q|%bad, [bar], 0;
@!%q bra wait;
mbarrier.test_wait.parity.phase_type::conditional.shared::cta.b64 %good, [bar], 0;
mbarrier.check_layout.layout::v1.shared::cta.b64 %p, [bar];
selp.u32 %r1, 1, 0, %bad; selp.u32 %r2, 1, 0, %good; selp.u32 %r3, 1, 0, %p;
st.global.v2.u32 [%out], {{%r1, %r2}}; st.global.u32 [%out+8], %r3;
mov.u32 %r0, 0;
more: mov.u32 %r1, box; add.u32 %r1, %r1, %r0; ld.shared.u32 %r2, [%r1];
cvt.u64.u32 %state, %r0; add.u64 %x, %out, %state; st.global.u32 [%x+16], %r2;
add.u32 %r0, %r0, 4; setp.lt.u32 %p, %r0, 64;
@%p bra more;
ret;
}}
"""
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
PLAIN = "{copy}.mbarrier::report::validity::{report} [box], [%x], 64, [bar];"


def run(copy: str, data: np.ndarray, layout: str = "layout::v1") -> np.ndarray:
    out = np.zeros(20, "u4")
    sim.run(parse(TEXT.format(copy=copy, layout=layout)), args=[data, out])
    return out


@pytest.mark.parametrize(
    ("report", "position", "byte"),
    [("per_16bytes::80000000", 19, 0x80), ("per_16bytes::8000", 17, 0x80), ("per_16bytes::80", 32, 0x80),
     ("per_16bytes::8", 48, 0x18), ("per_element::ff", 37, 0xFF)],
)  # fmt: skip
def test_what_a_copy_finds_ends_no_conditional_phase(report: str, position: int, byte: int) -> None:
    data = np.zeros(64, "u1")
    copy = PLAIN.format(copy=COPY, report=report)
    assert run(copy, data)[:3].tolist() == [0, 1, 1]
    data[position] = byte
    output = run(copy, data)
    assert output[:3].tolist() == [1, 0, 1]
    np.testing.assert_array_equal(output[4:].view("u1"), data)


@pytest.mark.parametrize("expected", [64, 128])
def test_objects_of_later_ctas_have_no_reports(expected: int) -> None:
    """The first CTA's copy reports in a phase that it completes, or in one that waits for 64 more bytes."""
    body = f"""
mov.u32 %t, %ctaid.x; setp.ne.u32 %p, %t, 0;
@%p bra later;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {expected};
{PLAIN.format(copy=COPY, report="per_element::ff")}
ret;
later: mbarrier.test_wait.parity.phase_type::primary.shared::cta.b64 %q|%bad, [bar], 1;
mbarrier.arrive.shared::cta.b64 _, [bar];
mbarrier.test_wait.parity.phase_type::conditional.shared::cta.b64 %good, [bar], 0;
selp.u32 %r0, 1, 0, %q; selp.u32 %r1, 1, 0, %bad; selp.u32 %r2, 1, 0, %good;
st.global.v2.u32 [%out], {{%r0, %r1}}; st.global.u32 [%out+8], %r2;
"""
    text, out = TEXT[: TEXT.index("mbarrier.arrive")].format(layout="layout::v1") + body + "}", np.zeros(3, "u4")
    sim.run(parse(text), grid=2, batch_lanes=1, args=[np.full(64, 0xFF, "u1"), out], check="none")
    assert out.tolist() == [1, 0, 1]


def test_reports_need_their_layout() -> None:
    data = np.full(64, 0xFF, "u1")
    with raises(PtxError, match=r"was not initialized with `\.layout::v1`"):
        run(PLAIN.format(copy=COPY, report="per_element::ff"), data, "layout::v0")
    assert run(f"{COPY} [box], [%x], 64, [bar];", data, "layout::v0")[:3].tolist() == [0, 1, 0]


def test_edges_may_lie_outside_of_the_array() -> None:
    data = np.arange(1, 56, dtype="u1")
    output = run(f"{COPY}.ignore_oob [box], [%x], 64, 0, 9, [bar];", data)[4:].view("u1")
    np.testing.assert_array_equal(output[:55], data)
    assert set(output[55:64].tolist()) == {0xFF}
    output = run(f"{COPY}.ignore_oob [box], [%x+16], 64, 0, 15, [bar];", np.arange(80, dtype="u1")[:65])[4:].view("u1")
    np.testing.assert_array_equal(output[:49], np.arange(16, 65))
    output = run(f"{COPY}.ignore_oob [box], [%x+16], 64, 5, 0, [bar];", np.arange(80, dtype="u1"))[4:].view("u1")
    np.testing.assert_array_equal(output[:64], np.arange(16, 80))
    with raises(PtxError, match="nearest allocation"):
        run(f"{COPY}.ignore_oob [box], [%x], 64, 0, 8, [bar];", data)
