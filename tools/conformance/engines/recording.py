"""Records all cases on a device: several processes at a time, each with a batch, restarted after a fault or a hang."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.conformance.engines.answers import Answer, write_answers
from tools.conformance.engines.cases import Case
from tools.conformance.engines.selection import make_batches, select_cases
from tools.conformance.engines.worker import describe_failure

_START_SECONDS = 40.0
"""How long a process may take until its first case."""
_INTERVAL = 0.1


def record(arguments: argparse.Namespace) -> int:
    """Record the selected cases to `arguments.record`; print what happened."""
    start = time.perf_counter()
    folder = Path(arguments.record)
    folder.mkdir(parents=True, exist_ok=True)
    cases = select_cases(arguments.family, arguments.sample, arguments.seed)
    batches = make_batches(cases)
    deadline = time.monotonic() + arguments.limit
    with tempfile.TemporaryDirectory() as parts, ThreadPoolExecutor(arguments.jobs) as pool:
        paths = [Path(parts) / f"{number}.jsonl" for number in range(len(batches))]
        futures = [
            pool.submit(_record_batch, arguments, number, batch, path, deadline)
            for number, (batch, path) in enumerate(zip(batches, paths, strict=True))
        ]
        for future in futures:
            future.result()
        abouts, answers = _read_parts(paths)
    about = ", ".join(sorted(abouts)) or "no device"
    files = write_answers(folder, answers, f"{about}, seed {arguments.seed}")
    _report(about, cases, answers, files, time.perf_counter() - start)
    return 0 if answers and len(answers) == len(cases) else 1


def _record_batch(
    arguments: argparse.Namespace, number: int, batch: list[Case], path: Path, deadline: float
) -> None:  # fmt: skip
    path.touch()
    for _ in batch:
        done = _count_answers(path)
        if done >= len(batch) or time.monotonic() > deadline:
            return
        reason = _run_process(arguments, number, done, path, deadline)
        if reason and _count_answers(path) < len(batch):
            done_now = _count_answers(path)
            if done_now == done or reason == "hung" or not reason.startswith("fault"):
                failure = describe_failure(batch[done_now], arguments.seed, reason)
                with path.open("a") as part:
                    print(failure.to_json(), file=part)


def _run_process(arguments: argparse.Namespace, number: int, start: int, path: Path, deadline: float) -> str:
    """Run a batch from a case on; return why it ended before the last, or nothing."""
    command = [sys.executable, "-m", "tools.conformance.engines.worker", "--batch", str(number), "--start", str(start),
               "--part", str(path), "--seed", str(arguments.seed)]  # fmt: skip
    for family in arguments.family:
        command += ["--family", family]
    if arguments.sample is not None:
        command += ["--sample", str(arguments.sample)]
    if arguments.simulated:
        command += ["--simulated", arguments.simulated]
    log = path.with_suffix(".log")
    with log.open("w") as errors, subprocess.Popen(command, stdout=errors, stderr=errors) as process:
        last, size, limit = time.monotonic(), path.stat().st_size, _START_SECONDS
        while process.poll() is None:
            time.sleep(_INTERVAL)
            now = time.monotonic()
            if (new_size := path.stat().st_size) != size:
                last, size, limit = now, new_size, arguments.patience
            if now - last > limit or now > deadline:
                process.kill()
                process.wait()
                return "hung" if now <= deadline else "no time left"
    if process.returncode == 0:
        return ""
    if process.returncode == 3:
        return "fault"
    return f"process ended with status {process.returncode}: {log.read_text()[-600:]}"


def _count_answers(path: Path) -> int:
    with path.open() as part:
        return sum(line.startswith('{"name"') and line.endswith("\n") for line in part)


def _read_parts(paths: list[Path]) -> tuple[set[str], list[Answer]]:
    abouts, answers = set[str](), list[Answer]()
    for path in paths:
        for line in path.read_text().splitlines():
            if line.startswith('{"about"'):
                abouts.add(json.loads(line)["about"])
            elif line:
                answers.append(Answer.from_json(line))
    return abouts, answers


def _report(about: str, cases: list[Case], answers: list[Answer], files: list[Path], seconds: float) -> None:
    print(f"{about}: {len(answers)} of {len(cases)} cases in {seconds:.1f} s")
    counts = Counter(answer.name.split("/", 1)[0] for answer in answers)
    failures = [answer for answer in answers if answer.error and not answer.error.startswith("refused")]
    refused = sum(answer.error.startswith("refused") for answer in answers)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    print(f"{refused} maps refused, {len(failures)} failures")
    for answer in failures[:12]:
        print(f"  {answer.name}: {answer.error[:300]}")
    for path in files:
        print(f"{path}: {path.stat().st_size} bytes")
