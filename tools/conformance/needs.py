"""Prints the packages that Python lacks to compare the simulator with a GPU: `python -m tools.conformance.needs`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

PACKAGES = {
    "numpy": "numpy", "ml_dtypes": "ml-dtypes", "cuda.bindings.driver": "cuda-bindings",
}  # fmt: skip
"""Modules and their packages."""


def missing() -> list[str]:
    """Return the packages that are not installed."""
    return [package for module, package in PACKAGES.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def main() -> int:
    lacking = missing()
    if lacking:
        print(f"{sys.executable} lacks {', '.join(lacking)}: pip install {' '.join(lacking)}", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
