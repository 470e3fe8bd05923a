"""How fast PTX is parsed and printed on one core, and what a statement costs in memory.

    python benchmarks/parse.py [--seconds 5] [FILE.ptx ...]

Without files: every file of the test corpus. The yardstick is the standard library's `tokenize` on as many bytes of
Python source, timed in the same run. Times are process times, the best of several rounds.
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
import time
import tokenize
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pyptx.emitter import emit  # noqa: E402
from pyptx.ir import Instruction, visit  # noqa: E402
from pyptx.parser import parse  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    options = _options(arguments)
    paths: list[Path] = options.files or sorted((ROOT / "tests" / "corpus").rglob("*.ptx"))
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    size = sum(map(len, texts))
    if not size:
        print("no PTX to parse: name files", file=sys.stderr)
        return 2
    modules = [parse(text) for text in texts]
    share = options.seconds / 3
    parsed = _best(lambda: [parse(text) for text in texts], share)
    printed = _best(lambda: [emit(module) for module in modules], share)
    python = _python_source(min(size, 2_000_000))
    tokenized = _best(lambda: sum(1 for _ in tokenize.generate_tokens(io.StringIO(python).readline)), share)
    print(f"{len(texts)} files, {size:,} bytes")
    print(f"parse      {size / parsed / 1e6:6.1f} MB/s")
    print(f"emit       {size / printed / 1e6:6.1f} MB/s")
    yardstick = len(python) / tokenized
    print(f"tokenize   {yardstick / 1e6:6.1f} MB/s  (parse is {size / parsed / yardstick:.1f} x as fast)")
    _memory(texts)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time parsing and printing.")
    parser.add_argument("files", nargs="*", type=Path, help="PTX files; without any, the test corpus")
    parser.add_argument("--seconds", type=float, default=6, help="about how long to measure")
    return parser.parse_args(arguments)


def _best(work: Callable[[], object], seconds: float) -> float:
    """Return the least process time that `work` took, over about so many seconds."""
    best, end = float("inf"), time.monotonic() + seconds
    while True:
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
        if time.monotonic() > end:
            return best


def _python_source(size: int) -> str:
    """Return whole files of the standard library, about so many characters of them."""
    folder = Path(tokenize.__file__).parent
    chosen: list[str] = []
    for path in sorted(folder.glob("*.py")):
        if sum(map(len, chosen)) >= size:
            break
        chosen.append(path.read_text(encoding="utf-8", errors="replace"))
    return "\n".join(chosen)


def _memory(texts: Sequence[str]) -> None:
    """Print the bytes that stay allocated per statement, over the largest texts."""
    chosen = sorted(texts, key=len)[-5:]
    tracemalloc.start()
    modules = [parse(text) for text in chosen]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    statements = [statement for module in modules for statement in visit(module)]
    instructions = sum(isinstance(statement, Instruction) for statement in statements)
    print(
        f"memory     {held / len(statements):6.0f} bytes/statement ({len(statements):,}, {instructions:,} instructions)"
    )
    print(f"           {held / sum(map(len, chosen)):6.1f} bytes/byte of text, in the {len(chosen)} largest files")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
