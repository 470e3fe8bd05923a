"""The functions of the device runtime library that modules declare without defining them."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.driver.device_runtime import link_device_runtime
from pyptx.parser import parse

CTAS, THREADS = 4, 64
ROUNDS = """\
.version 7.0
.target sm_90
.address_size 64
.extern .func  (.param .b32 func_retval0) cudaCGSynchronize
(
.param .b64 cudaCGSynchronize_param_0,
.param .b32 cudaCGSynchronize_param_1
)
;
.extern .func  (.param .b64 func_retval0) cudaCGGetIntrinsicHandle
(
.param .b32 cudaCGGetIntrinsicHandle_param_0
)
;
.visible .entry shift(.param .u64 numbers)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [numbers];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, 0;
    mov.u32 %r7, 1;
    call.uni (%rd5), cudaCGGetIntrinsicHandle, (%r7);
$round:
    mad.lo.u32 %r4, %r1, 64, %r2;
    add.u32 %r5, %r4, 64;
    and.b32 %r5, %r5, 255;
    mad.wide.u32 %rd2, %r4, 4, %rd1;
    mad.wide.u32 %rd3, %r5, 4, %rd1;
    ld.global.u32 %r6, [%rd3];
    SYNC;
    add.u32 %r6, %r6, 1;
    st.global.u32 [%rd2], %r6;
    SYNC;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 3;
    @%p1 bra $round;
    ret;
}
"""
"""Each CTA takes the numbers of the next one and adds 1, three times."""
SYNC = "call.uni (%r7), cudaCGSynchronize, (%rd5, %r7)"


@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_the_barrier_of_a_grid_orders_ctas(schedule: str) -> None:
    text = link_device_runtime(ROUNDS.replace("SYNC", SYNC))
    numbers = np.arange(CTAS * THREADS, dtype=np.uint32)
    result = sim.run(parse(text), grid=CTAS, block=THREADS, args=(numbers,), cooperative=True, schedule=schedule)
    np.testing.assert_array_equal(numbers, np.roll(np.arange(CTAS * THREADS), -3 * THREADS) + 3)
    assert result.hazards == []


def test_a_missing_barrier_of_the_grid_is_a_race() -> None:
    text = link_device_runtime(ROUNDS.replace("SYNC", SYNC, 1).replace("SYNC", "bar.sync 0"))
    result = sim.run(
        parse(text), grid=CTAS, block=THREADS, args=(np.zeros(256, np.uint32),), cooperative=True, on_hazard="report"
    )
    assert {hazard.rule.code for hazard in result.hazards} == {"PTX0901"}


def test_lines_keep_their_numbers_and_other_modules_their_text() -> None:
    text = ROUNDS.replace("SYNC", SYNC)
    lines = link_device_runtime(text).split("\n")
    body = slice(text.split("\n").index(")"), len(text.split("\n")) - 1)
    assert lines[body] == [line.replace(".extern", ".weak") for line in text.split("\n")[body]]
    plain = "\n".join([*text.split("\n")[:3], "// cudaCGSynchronize"])
    assert link_device_runtime(plain) == plain
