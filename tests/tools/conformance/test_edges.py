"""Operands at the edges: exact results near ties and limits, in a quarter of the tuples."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest

from tools.conformance import edges, forms, simulated

Array = forms.Array


@pytest.fixture(autouse=True)
def ignore_floating_point_warnings() -> Generator[None]:
    """Operands include NaNs and infinities."""
    with np.errstate(all="ignore"):
        yield


def draw(section: str, head: str) -> list[Array]:
    """Return the operands of a form, those at the edges only."""
    case = next(case for case in forms.cases([section]) if case.text.startswith(f"{head} "))
    return [column[3::4, 0] for column in simulated.draw_operands(case, 0)]


def read_singles(columns: list[Array]) -> list[Array]:
    return [column.astype("u4").view("f4").astype("f8") for column in columns]


@pytest.mark.parametrize("start", [0, 16])
def test_products_of_halves_are_near_the_smallest_normal_number(start: int) -> None:
    columns = draw("half_precision", "mul.ftz.f16x2")
    a, b = ((column >> np.uint64(start)).astype("u2").view("f2").astype("f8") for column in columns)
    size = np.abs(a * b) / 2.0**-14
    assert np.count_nonzero(np.abs(size - 1) < 2.0**-9) > 30
    assert np.count_nonzero((size < 1) & (size >= 1 - 2.0**-11)) > 5


def test_sums_are_near_ties() -> None:
    a, b = read_singles(draw("floating_point", "add.f32"))
    units = np.abs(b) / np.spacing(np.abs(a).astype("f4"))
    assert np.count_nonzero(units == 0.5) > 30
    assert np.count_nonzero((units != 0.5) & (np.abs(units - 0.5) < 1e-6)) > 60


def test_addends_cancel_products() -> None:
    a, b, c = read_singles(draw("floating_point", "fma.rn.f32"))
    assert np.count_nonzero((c != 0) & (np.abs(a * b + c) < np.abs(c) * 2.0**-22)) > 40


def test_conversions_to_halves_and_integers_meet_ties() -> None:
    (values,) = read_singles(draw("conversion", "cvt.rn.f16.f32"))
    near = values.astype("f2")
    assert np.count_nonzero(np.abs(values - near) == np.abs(np.spacing(near).astype("f8")) / 2) > 20
    (values,) = read_singles(draw("conversion", "cvt.rni.s32.f32"))
    assert np.count_nonzero(values % 1 == 0.5) > 20


def test_integers_have_no_such_edges() -> None:
    case = next(case for case in forms.cases(["integer"]) if case.text.startswith("add.s32 "))
    columns = [np.zeros(8, np.uint64)] * 2
    edges.place_edges(case, columns, 0)
    assert not np.any(columns)
