"""Compare measured ratios with the committed ones, benchmarks/baseline.json. Knows no benchmark, measures nothing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

PATH = Path(__file__).with_name("baseline.json")
FACTOR = 2.0
"""A ratio is worse if its median and its best value both exceed the committed ones by more than this factor.

Two full runs on two processors with a load of 8 differ by a factor of at most 1.2 in this measure and typically 1.03;
their medians alone differ by up to 1.3. Ratios of first to second calls of a few milliseconds have differed by 1.6 in
four runs."""


@dataclass(frozen=True)
class Ratio:
    """Our time divided by the peer's: the median over all rounds, and the ratio of the best times."""

    median: float
    best: float


def compute_growth(committed: Ratio, measured: Ratio) -> float:
    """Return the factor by which a ratio grew: the smaller of the median's and the best's, as noise rarely changes
    both."""
    return min(measured.median / committed.median, measured.best / committed.best)


def find_worse(committed: Mapping[str, Ratio], measured: Mapping[str, Ratio]) -> list[str]:
    """Return the names of the ratios that grew by more than `FACTOR`."""
    known = [name for name in measured if name in committed]
    return [name for name in known if compute_growth(committed[name], measured[name]) > FACTOR]


def explain(committed: Ratio, measured: Ratio) -> str:
    """Return the committed and the measured value of a worse ratio, and the remedy."""
    return (
        f"expected a ratio of at most {FACTOR * committed.median:.3g} ({FACTOR} times {committed.median:.3g}), "
        f"measured {measured.median:.3g}; find what became slower, or if only the peer became faster, rewrite the "
        "baseline: make bench UPDATE=1"
    )


def format_row(name: str, committed: Ratio | None, measured: Ratio) -> str:
    """Format a line of the report."""
    start = f"{name:72} {measured.median:9.3g}"
    if committed is None:
        return f"{start}   not in the baseline"
    factor = compute_growth(committed, measured)
    return f"{start} {committed.median:9.3g}   x {factor:4.2f}{'   WORSE' if factor > FACTOR else ''}"


def read(path: Path = PATH) -> dict[str, Ratio]:
    """Return the committed ratios by name; none if there is no baseline."""
    if not path.exists():
        return {}
    return {name: Ratio(**fields) for name, fields in json.loads(path.read_text("utf-8"))["ratios"].items()}


def write(measured: Mapping[str, Ratio], path: Path = PATH) -> None:
    """Replace the baseline."""
    rounded = {name: {key: float(f"{v:.3g}") for key, v in asdict(ratio).items()} for name, ratio in measured.items()}
    path.write_text(json.dumps(_header() | {"ratios": rounded}, indent=2) + "\n", "utf-8")


def _header() -> dict[str, str]:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(command, cwd=PATH.parent, check=True, capture_output=True, text=True).stdout.strip()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
    }
