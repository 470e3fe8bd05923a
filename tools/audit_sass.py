"""Audits that every corpus file, printed without its layout, assembles to the same SASS.

python -m tools.audit_sass [--sample 40] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from pyptx.emitter import emit
from pyptx.ir import strip_layout
from pyptx.parser import parse
from pyptx.toolchain import sass_difference

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"


def differences(path: Path) -> tuple[str, ...]:
    """Return the functions and data whose machine code differs between a file and its restyled text."""
    text = path.read_bytes().decode("utf-8", "surrogateescape").rstrip("\0")
    return sass_difference(text, emit(strip_layout(parse(text))))


def main() -> int:
    """Run the audit; print each difference and the count."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sample", type=int)
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args()
    paths = sorted(CORPUS.rglob("*.ptx"))
    if arguments.sample:
        paths = random.Random(arguments.seed).sample(paths, arguments.sample)
    differing = 0
    for path in paths:
        lines = differences(path)
        differing += bool(lines)
        if lines:
            print(f"{path.relative_to(CORPUS)}: {', '.join(lines)[:200]}")
    print(f"{len(paths)} files, {differing} whose SASS differs after printing without layout")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
