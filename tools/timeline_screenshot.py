"""`python -m tools.timeline_screenshot [PNG]`: runs the warp-specialized Hopper GEMM and saves the screenshot of its
timeline for docs/timeline.md. Needs Chromium: `python -m tools.browser` installs it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from examples.parts.example import find_example
from pyptx.sim.observers.timeline import Timeline
from tools.browser import browser, chromium

HOPPER_GEMM = find_example("hopper/cluster_gemm")

PICTURE = Path(__file__).parent.parent / "docs" / "timeline.png"
_ROWS, _COLUMNS, _DEPTH = 256, 256, 512


def gemm() -> Timeline:
    """Return the timeline of one cluster of the GEMM."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((rows, _DEPTH)).astype(ml_dtypes.bfloat16) for rows in (_ROWS, _COLUMNS))
    timeline = HOPPER_GEMM.make().simulate(a, b, schedule="lazy", timeline=True, statistics=True).timeline
    assert timeline is not None
    return timeline


def main(path: Path) -> int:
    program = chromium()
    if program is None:
        print("Chromium not found: `python -m tools.browser` installs it", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, browser(program) as page:
        gemm().save(Path(folder) / "run.html")
        page.call("Emulation.setDeviceMetricsOverride", width=1280, height=740, deviceScaleFactor=1, mobile=False)
        page.open(Path(folder) / "run.html", "#theme=light")
        # Warp 0 is the producer: its first wait is for the consumers of both CTAs.
        page.evaluate("timeline.select(timeline.items.find(i => i.kind === 'wait' && i.track === 0 && i.from > 11))")
        page.evaluate("new Promise(done => setTimeout(done, 300))")
        path.write_bytes(page.screenshot())
    print(f"{path}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE))
