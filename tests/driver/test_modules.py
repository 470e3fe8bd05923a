"""What the driver says about kernels."""

from __future__ import annotations

from pyptx.driver.modules import load_text
from pyptx.driver.process import Driver
from pyptx.driver.settings import Settings
from pyptx.driver.signatures import ENTRIES

TEXT = """\
.version 8.0
.target sm_90
.address_size 64
.const .align 8 .b8 table[80], more[4];
.global .b32 counter;
.visible .entry first()
{
    .local .align 16 .b8 depot[4000];
    {
        .local .v2 .f64 inner[2];
    }
    ret;
}
.visible .entry second()
{
    ret;
}
"""
CONST, LOCAL = 2, 3
"""Attributes by their number in the enum `CUfunction_attribute`."""


def test_the_memory_of_a_kernel_is_that_of_its_variables() -> None:
    driver = Driver(Settings(), list(ENTRIES.values()))
    image = load_text(driver, TEXT)
    found = {
        name: [image.get_kernel(name).find_attribute(driver, number) for number in (CONST, LOCAL)]
        for name in ("first", "second")
    }
    assert found == {"first": [84, 4032], "second": [84, 0]}
