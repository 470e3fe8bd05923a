"""Writes the generated files, or with `--check` lists those that are out of date (exit 1).

The only list of them is `GENERATED`, which maps each committed file to the function that returns its text.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tools import isa_pages, stubs
from tools.examples.pictures import list_pictures
from tools.examples.readme import PAGE as EXAMPLES_PAGE
from tools.examples.readme import readme_page
from tools.package_picture import PAGE, architecture_page
from tools.rule_pages import diagnostics_page

GENERATED: dict[str, Callable[[], str]] = {
    "docs/diagnostics.md": diagnostics_page,
    PAGE: architecture_page,
    "docs/instructions.md": isa_pages.build_committed_index,
    EXAMPLES_PAGE: readme_page,
    **list_pictures(),
    stubs.STUB: stubs.stub,
    stubs.SPECIAL: stubs.special_stub,
    stubs.ARITHMETIC: stubs.arithmetic_stub,
}


def stale(root: Path) -> list[str]:
    """Return the generated files under `root` whose text is not what their generator returns."""
    return [path for path, render in GENERATED.items() if not _holds(root / path, render())]


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text("utf-8") == text


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description="Write the generated files.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is out of date")
    check = bool(parser.parse_args(argv).check)
    out_of_date = stale(Path())
    for path in out_of_date:
        if check:
            print(f"{path} is out of date: run `make fmt`", file=sys.stderr)
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            size = Path(path).write_text(GENERATED[path](), "utf-8")
            print(f"wrote {path}, {size:,} characters")
    return 1 if check and out_of_date else 0


if __name__ == "__main__":
    sys.exit(main())
