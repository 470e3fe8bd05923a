"""The page in a real browser: it loads without network access or errors, runs nothing from hostile names, and responds
to clicks and keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyptx.sim.observers.timeline import Stopped, Timeline
from tests.sim.observers.timeline.runs import BULK, HAND_OVER, timeline
from tests.sim.observers.timeline.test_page import hostile
from tools.browser import Page, browser, chromium

CHROMIUM = chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; `python -m tools.browser` installs one")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    assert CHROMIUM is not None
    with browser(CHROMIUM) as browser_page:
        yield browser_page


def show(page: Page, record: Timeline, folder: Path, link: str = "") -> None:
    record.save(folder / "run.html")
    page.events.clear()
    page.open(folder / "run.html", link)


def complaints(page: Page) -> list[str]:
    """Return the browser's messages: errors, policy violations, requests for anything but the file."""
    messages = [
        str(e["params"]) for e in page.events if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")
    ]
    urls = [e["params"]["request"]["url"] for e in page.events if e.get("method") == "Network.requestWillBeSent"]
    return messages + [url for url in urls if not url.startswith("file://")]


def text(page: Page, place: str) -> str:
    return page.evaluate(f"document.querySelector('{place}').innerText")


def test_the_page_loads_and_asks_for_nothing(page: Page, tmp_path: Path) -> None:
    show(page, timeline(BULK, 64), tmp_path)
    assert complaints(page) == []
    assert text(page, "h1") == "k"
    assert "not timing" in text(page, "#unit")
    assert page.evaluate("window.timeline.rows.length") == 5
    pixel_count = "new Set(new Uint32Array(timeline.pen.getImageData(200, 30, 800, 200).data.buffer)).size"
    assert page.evaluate(pixel_count) > 5


def test_hostile_names_run_nothing(page: Page, tmp_path: Path) -> None:
    show(page, hostile(), tmp_path)
    page.key("h")
    assert complaints(page) == []
    assert not [e for e in page.events if e.get("method") == "Page.javascriptDialogOpening"]
    assert page.evaluate("document.images.length") == 0
    assert "<img src=x" in text(page, "#panel")


def test_a_click_on_a_slice_shows_its_line(page: Page, tmp_path: Path) -> None:
    show(page, timeline(HAND_OVER, 64), tmp_path)
    position = page.evaluate(
        "(() => { const wait = timeline.items.find(i => i.name === 'full[1]'), row = timeline.rowOf.get(wait.track);"
        "const box = timeline.canvas.getBoundingClientRect();"
        "return [box.left + timeline.x((wait.start + wait.end) / 2), box.top + timeline.y(row) + 8]; })()"
    )
    page.move(*position)
    assert "mbarrier.try_wait" in page.evaluate("document.getElementById('tip').innerText")
    page.click(*position)
    assert text(page, "#panel h2") == "wait full[1]"
    assert "mbarrier.try_wait" in text(page, "#ptx tr.on")


def test_keys_walk_through_slices_and_zoom(page: Page, tmp_path: Path) -> None:
    show(page, timeline(HAND_OVER, 64), tmp_path)
    page.key("ArrowRight")
    assert text(page, "#panel h2") == "k"
    page.key("ArrowDown")
    page.key("ArrowRight")
    assert text(page, "#panel h2") == "wait full[1]"
    assert "wait full[1]" in page.evaluate("document.getElementById('said').textContent")
    whole = page.evaluate("timeline.span")
    page.key("Enter")
    assert page.evaluate("timeline.span") < whole
    page.key("0")
    assert page.evaluate("timeline.span") == whole
    page.key("c")
    assert page.evaluate("timeline.rows.length") == 1


def test_a_hazard_is_jumped_to(page: Page, tmp_path: Path) -> None:
    show(page, hostile(), tmp_path, "#theme=dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("timeline.zoomTo(timeline.items[0])")
    page.key("h")
    assert page.evaluate("timeline.hazard") == 0
    assert "setp.ge" in text(page, "#ptx tr.on")
    assert "help:" in text(page, "#panel")


def test_a_line_marks_what_ran_it(page: Page, tmp_path: Path) -> None:
    show(page, timeline(HAND_OVER, 64), tmp_path, "#line=16")
    assert text(page, "#panel h2") == "PTX line 16"
    assert page.evaluate("timeline.marked") == 16
    page.key("Escape")
    assert page.evaluate("timeline.marked") is None


def test_everything_fits_into_1280_pixels(page: Page, tmp_path: Path) -> None:
    show(page, timeline(BULK, 64), tmp_path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.evaluate(
        "[...document.querySelectorAll('header *')].every(e => e.getBoundingClientRect().right <= 1280)"
    )


def test_a_deadlock_stands_at_the_warp_that_is_stuck(page: Page, tmp_path: Path) -> None:
    with pytest.raises(Stopped) as excinfo:
        timeline(HAND_OVER.replace("    mbarrier.arrive.shared::cta.b64 _, [full+8];\n", ""), 64)
    show(page, excinfo.value.timeline, tmp_path, "#hazard=1")
    assert complaints(page) == []
    assert "deadlock" in text(page, "#panel")
    assert page.evaluate("timeline.tracks[timeline.data.hazards[0].track].name") == "warp 1"
    assert "mbarrier.try_wait" in text(page, "#ptx tr.on")
