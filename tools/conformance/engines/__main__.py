"""Compares the simulator's copy engines and `wgmma` with recorded answers of a GPU.

`python -m tools.conformance.engines --gpu --record FOLDER` runs the cases on the GPU of this machine (with
`--simulated h100` on the simulated driver) and writes at most a few files. `--answers FOLDER` compares them, anywhere;
without a folder, the digests in the repository are compared.
"""

from __future__ import annotations

import argparse
import os
import sys

from tools.conformance.engines.comparison import compare
from tools.conformance.engines.recording import record
from tools.conformance.engines.worker import add_selection


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_selection(options)
    options.add_argument("--gpu", action="store_true", help="record on the GPU of this machine")
    options.add_argument("--record", metavar="FOLDER", help="where to write the answers")
    options.add_argument("--answers", metavar="FOLDER", help="compare the simulator with the answers of a recording")
    options.add_argument("--digests", metavar="FILE", help="with --answers: write their digests to this file")
    options.add_argument("--show", type=int, default=20, help="how many of the cases that differ to print")
    options.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1), help="processes at a time")
    options.add_argument("--patience", type=float, default=8.0, help="seconds after which a case has hung")
    options.add_argument("--limit", type=float, default=60.0, help="seconds after which no more cases are recorded")
    arguments = options.parse_args(argv)
    if arguments.record and (arguments.gpu or arguments.simulated):
        return record(arguments)
    if arguments.record or arguments.gpu:
        print("give both --gpu and --record FOLDER", file=sys.stderr)
        return 2
    return compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
