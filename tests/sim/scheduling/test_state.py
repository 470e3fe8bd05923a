"""Operands that the scheduler reads: registers, predicates, elements of vectors, and constants."""

from __future__ import annotations

import pytest

from tests.sim.kernels import results


@pytest.mark.parametrize("count", ["32", "WARP_SZ", "%r1"])
@pytest.mark.parametrize("number", ["2", "1+1", "%r2", "%v.y"])
def test_numbers_and_counts_of_barriers(number: str, count: str) -> None:
    body = f"""setp.ge.u32 %p0, %t, 32;
.reg .v2 .b32 %v;
mov.u32 %r1, 32; mov.u32 %r2, 2; mov.b32 %v.y, 2;
@%p0 bra end;
bar.sync {number}, {count};
st.global.u32 [%o], 7;
end:"""
    assert results(body) == [7] * 32 + [0] * 32


@pytest.mark.parametrize(("negation", "threads"), [("", 10), ("!", 54)])
def test_predicates_that_barriers_combine(negation: str, threads: int) -> None:
    body = f"setp.lt.u32 %p1, %t, 10;\nbar.red.popc.u32 %r0, 0, {negation}%p1;\nst.global.u32 [%o], %r0;"
    assert results(body) == [threads] * 64


@pytest.mark.parametrize(("negation", "threads"), [("", range(10)), ("!", range(10, 64))])
def test_predicates_of_exits(negation: str, threads: range) -> None:
    body = f"setp.lt.u32 %p1, %t, 10;\n@{negation}%p1 exit;\nst.global.u32 [%o], 7;"
    assert results(body) == [0 if thread in threads else 7 for thread in range(64)]
