"""Display of results: one short line, words, and the cell of a notebook."""

from __future__ import annotations

from html import unescape
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.launch import results
from pyptx.sim.observers.checks.choice import CLASSES, OPTIONAL
from pyptx.sim.observers.timeline import Stopped
from tests.messages import raises
from tests.sim.kernels import kernel

UNCHECKED = ", ".join(name for name in CLASSES if name in OPTIONAL)
STORES = parse(kernel("st.global.u32 [%o], %t;"))
RACY = parse(kernel("st.global.u32 [%rd1], %t;").replace("mad.wide.u32", "ld.param.u64 %rd1, [out];\nmad.wide.u32"))


def test_a_result_is_a_line_however_large_its_arrays_are() -> None:
    out = np.zeros((1000, 1000), np.uint32)
    result = sim.run(STORES, block=64, args=[out])
    assert repr(result) == "<result: 64 threads, 320 instructions, 0 hazards, out uint32[1000, 1000]>"
    assert str(result).splitlines() == [
        repr(result)[1:-1],
        f"covers one input in one order (schedule eager); hazards not checked: {UNCHECKED}; not modeled: timing",
    ]


def test_a_run_that_was_not_checked_does_not_look_right() -> None:
    def run(**options: Any) -> str:
        return str(sim.run(STORES, block=64, args=[np.zeros(64, np.uint32)], **options))

    assert "hazard" not in run(check="none").replace("hazards not checked", "")
    assert "(schedule random, seed 3); hazards not checked; " in run(check="none", schedule="random", seed=3)
    assert "; all hazards checked; " in run(check=["all", *OPTIONAL])
    assert "hazards not checked: uninitialised, proxies, async, " in run(check="races")


def test_a_run_names_the_instructions_whose_last_bits_may_differ() -> None:
    sines = parse(kernel("sin.approx.f32 %f1, 0f3F800000;\nst.global.f32 [%o], %f1;"))
    result = sim.run(sines, block=1, args=[np.zeros(1, np.uint32)])
    assert str(result.coverage).endswith("not modeled: timing, the last bits of sin.approx.f32")


@pytest.mark.parametrize(("count", "more"), [(0, None), (1, ""), (3, ""), (4, " and 1 more"), (6, " and 3 more")])
def test_a_coverage_names_three_instructions(count: int, more: str | None) -> None:
    names = tuple(f"op{index}" for index in range(count))
    coverage = results.Coverage("lazy", 5, ("races",), ("async", "proxies"), names)
    end = "" if more is None else f", the last bits of {', '.join(names[:3])}{more}"
    start = "covers one input in one order (schedule lazy)"
    assert str(coverage) == f"{start}; hazards not checked: async, proxies; not modeled: timing{end}"
    assert coverage.describe("9 orders").startswith("covers one input in 9 orders; hazards not checked")


def test_the_counts_of_a_run_are_text_and_json() -> None:
    stats = results.Stats(instructions=7, lane_instructions=200, lanes=32, approximate={"sin", "ex2"})
    assert str(stats) == "32 threads, 7 group instructions, 200 of threads\napproximate: ex2, sin"
    numbers = {"instructions": 7, "lane_instructions": 200, "lanes": 32}
    assert stats.as_json() == {**numbers, "approximate": ["ex2", "sin"]}
    stats.approximate.clear()
    assert str(stats) == "32 threads, 7 group instructions, 200 of threads"


def test_findings_are_in_the_words_and_in_the_cell() -> None:
    result = sim.run(RACY, block=64, args=[np.zeros(64, np.uint32)], on_hazard="report")
    assert "1 hazard (PTX0901), out uint32[64]" in repr(result)
    assert "error[PTX0901]" in str(result)
    cell = result._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "error[PTX0901]" in cell
    assert "&lt;ptx&gt;" in cell
    assert "<iframe" not in cell


def test_a_recorded_timeline_is_a_frame_of_the_cell() -> None:
    result = sim.run(STORES, block=64, args=[np.zeros(64, np.uint32)], timeline=True)
    assert result.timeline is not None
    cell = result._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert cell.count('<iframe sandbox="allow-scripts"') == 1
    assert result.timeline.html() in unescape(cell)
    inside = cell.partition('srcdoc="')[2].removesuffix('"></iframe>')
    assert '"' not in inside
    assert "<" not in inside


def test_a_recorded_hang_is_a_hang() -> None:
    waits = parse(kernel("setp.lt.u32 %p1, %t, 32;\n@%p1 bar.sync 1, 64;\nbar.sync 0;"))
    with raises(sim.Hang) as excinfo:
        sim.run(waits, block=64, args=[np.zeros(64, np.uint32)], timeline=True)
    assert isinstance(excinfo.value, Stopped)
    assert excinfo.value.timeline.html()
    assert excinfo.value.report.guilty is not None


def test_the_cell_shows_the_beginning_of_what_was_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = kernel(
        "mov.u64 %rd1, text; mov.u64 %rd2, 0; { .param .b64 f; .param .b64 a; .param .b32 r;\n"
        "st.param.b64 [f], %rd1; st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a); }",
        module=".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 text[] = {60, 98, 62, 10, 0};",
    )
    result = sim.run(parse(text), block=2, args=[np.zeros(2, np.uint32)])
    assert result.printed == "<b>\n<b>\n"

    def cell() -> str:
        return result._repr_html_().rpartition("<pre>")[2]  # pyright: ignore[reportPrivateUsage]

    assert cell() == "&lt;b&gt;\n&lt;b&gt;\n</pre>"
    monkeypatch.setattr(results, "_MOST_PRINTED", 8)
    assert cell() == "&lt;b&gt;\n&lt;b&gt;\n</pre>"
    monkeypatch.setattr(results, "_MOST_PRINTED", 5)
    assert cell() == "&lt;b&gt;\n&lt;\n… 3 more characters</pre>"
