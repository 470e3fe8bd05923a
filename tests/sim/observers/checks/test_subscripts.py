"""Findings for an index in a register that points outside its allocation, wherever it points."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import Kernel, PtxError, kernel, ptx, smem
from pyptx.sim.hazards import Finding
from pyptx.types import u32
from tests.messages import raises

Access = Callable[[Any, Any, Any], Any]


def make_kernel(access: Access, padding: int = 0, **options: Any) -> Kernel:
    """Return a kernel whose first `limit` threads access 8 x 4 numbers and two barriers, each with a neighbor."""

    @kernel(arch="sm_90a", block=(32, 1, 1), raw_params=(("u32", "limit"),), **options)
    def k() -> None:
        limit, thread = ptx.param(u32, "limit"), ptx.special.tid.x()
        if padding:
            smem.alloc(u32, padding, name="first")
        a, b = (smem.alloc(u32, (8, 4), name=name) for name in "ab")
        bars = smem.mbarrier(2, name="bars")
        ptx.mbarrier.init(smem.mbarrier(32, name="others")[0], 1, pred=thread == 0)
        with ptx.if_(thread < 8):
            for column in range(4):
                a[thread, column] = thread
                b[thread, column] = thread
        ptx.bar.sync(0)
        with ptx.if_(thread < limit):
            access(a, bars, thread)

    return k


def check_access(access: Access, limit: int, **options: Any) -> list[Finding]:
    return make_kernel(access, **options).simulate(args=[limit], grid=(1,), check="bounds", on_hazard="report").hazards


def walk(a: Any, _bars: Any, thread: Any) -> None:
    """Address the next element by hand."""
    address = a[thread].address()
    address += 64
    smem.load(u32, address)


ACCESSES: dict[str, tuple[Access, int]] = {
    "element": (lambda a, bars, thread: a[thread, 1], 8),
    "two registers": (lambda a, bars, thread: a[thread, thread & 3], 8),
    "slice of a slice": (lambda a, bars, thread: smem.load(u32, a[thread][1]), 8),
    "start of a slice": (lambda a, bars, thread: smem.store(u32, a[thread], thread), 8),
    "column": (lambda a, bars, thread: smem.load(u32, a[1][thread * 4]), 7),
    "swizzled": (lambda a, bars, thread: a.swizzled(thread, 1).load(), 8),
    "barrier": (lambda a, bars, thread: ptx.mbarrier.init(bars[thread], 1), 2),
}


@pytest.mark.parametrize("options", [{}, {"padding": 20000}, {"extern_smem": True, "smem": 256}], ids=str)
@pytest.mark.parametrize("name", ACCESSES)
def test_an_index_past_the_end_is_reported(name: str, options: dict[str, Any]) -> None:
    access, size = ACCESSES[name]
    assert check_access(access, size, **options) == []
    (finding,) = check_access(access, size + 3, **options)
    assert (finding.rule.code, finding.count) == ("PTX0917", 3)
    variable, neighbor = ("bars", "others") if name == "barrier" else ("a", "b")
    assert re.match(
        rf"byte [\d,]+ of `{variable}`, which has [\d,]+ bytes; that address belongs to `{neighbor}`", finding.what
    )


def test_an_address_that_is_walked_on_by_hand_is_not() -> None:
    assert check_access(walk, 8) == []


def test_it_is_an_error_at_its_line() -> None:
    with raises(PtxError, match="PTX0917"):
        make_kernel(lambda a, bars, thread: a[thread, 1]).simulate(args=[9], grid=(1,))
