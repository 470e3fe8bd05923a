"""Calls in copies of a process: their order, what they return, raise and print, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from pyptx import PtxError, sim
from pyptx.parser import parse
from pyptx.sim.launch.forking import call_in_copies
from pyptx.sim.launch.processes import call_in_order

ROOT = Path(__file__).parents[3]
# The process of a test may have other threads; the tests that depend on it run scripts.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
HANGS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k() {
    .shared .b64 full; .reg .pred %p;
    mbarrier.init.shared.b64 [full], 1;
    LOOP: mbarrier.try_wait.parity.shared.b64 %p, [full], 0;
    @!%p bra LOOP;
    ret;
}
"""


def run_script(text: str, *, seconds: float = 60) -> str:
    """Run a script in a process of its own, which has no other threads, and return what it prints."""
    words = [sys.executable, "-W", "error", "-c", text]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


def sleep_longer_first(item: int) -> tuple[int, int]:
    """Return the item and the process; the first items take longest."""
    time.sleep(0.1 / (item + 1))
    return item, os.getpid()


def test_results_come_in_the_order_of_the_items() -> None:
    outputs = list(call_in_copies(sleep_longer_first, range(6), 3))
    assert [item for item, _ in outputs] == list(range(6))
    assert os.getpid() not in {process for _, process in outputs}
    assert len({process for _, process in outputs}) == 3


def test_local_functions_need_no_executor() -> None:
    factor = 3
    assert list(call_in_copies(lambda item: item * factor, [1, 2], 2)) == [3, 6]


def fail_at(items: tuple[int, ...]) -> Callable[[int], int]:
    """Return a function that fails for some items, the first of them last."""

    def call(item: int) -> int:
        if item in items:
            time.sleep(0.2 if item == items[0] else 0)
            raise LookupError(f"no {item}")
        return item

    return call


def test_the_first_error_in_order_is_raised_with_its_traceback() -> None:
    outputs = list[int]()
    with pytest.raises(LookupError, match="no 2") as caught:
        outputs.extend(call_in_copies(fail_at((2, 3)), range(8), 2))
    assert "in call" in str(caught.value.__cause__)


class Awkward(Exception):
    """An exception that cannot be unpickled."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first + second)


def raise_awkward(item: int) -> None:
    """Raise what cannot be sent."""
    raise Awkward(item, item)


def test_what_cannot_be_sent_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="Awkward: 2"):
        list(call_in_copies(raise_awkward, [1, 2], 2))
    with pytest.raises(RuntimeError, match=r"cannot send a result from another process: .*processes=1"):
        list(call_in_copies(lambda item: lambda: item, [1, 2], 2))


def test_a_process_that_dies_is_named_by_its_item() -> None:
    def die(item: int) -> int:
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(RuntimeError, match=r"worked on 1 was killed by SIGKILL, .*memory ran out; processes=1"):
        list(call_in_copies(die, [0, 1, 2, 3], 2))


def test_warnings_reach_the_caller() -> None:
    def warn(item: int) -> None:
        warnings.warn(f"item {item}", UserWarning, stacklevel=1)

    with pytest.warns(UserWarning, match="item 1"):
        list(call_in_copies(warn, [1], 1))


def test_copies_end_with_the_generator() -> None:
    calls = call_in_copies(lambda item: (os.getpid(), time.sleep(60 * item))[0], [0, 1, 1], 2)
    process = next(calls)
    start = time.monotonic()
    calls.close()
    assert time.monotonic() - start < 30
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_errors_of_runs_keep_their_class_and_report() -> None:
    def hang(recorded: bool) -> Any:
        try:
            return sim.run(parse(HANGS), block=1, timeline=recorded)
        except PtxError as why:
            return why

    here, there = map(hang, (False, True)), call_in_copies(hang, [False, True], 2)
    for expected, error in zip(here, there, strict=True):
        assert isinstance(error, sim.Hang)
        assert type(error) is type(expected)
        assert str(error) == str(expected)
        assert error.report.as_json() == expected.report.as_json()
        assert (getattr(error, "timeline", None) is None) == (getattr(expected, "timeline", None) is None)


SLOW = """
import os, time
from pyptx.sim.launch.processes import call_in_order
def slow(item):
    time.sleep(SECONDS)
    return os.getpid()
os.sched_getaffinity = lambda _: {0, 1}
here = [process == os.getpid() for process in call_in_order(slow, range(8), None, PROCESSES)]
print(here)
"""


@pytest.mark.parametrize(
    ("seconds", "processes", "count"), [(0, None, 8), (0.2, None, 2), (0.2, 1, 8), (0, 2, 1)],
    ids=["short", "long", "one process", "on request"],
)  # fmt: skip
def test_copies_take_over_if_they_save_time(seconds: float, processes: int | None, count: int) -> None:
    text = SLOW.replace("SECONDS", str(seconds)).replace("PROCESSES", str(processes))
    assert run_script(text) == f"{[True] * count + [False] * (8 - count)}\n"


@pytest.mark.parametrize("thread", ["python", "jax"])
def test_a_process_with_threads_is_not_copied(thread: str) -> None:
    start = {
        "python": "import threading; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "jax": "import jax; jax.numpy.ones(3).block_until_ready()",
    }[thread]
    text = SLOW.replace("SECONDS", "0.2").replace("PROCESSES", "None").replace("def slow", f"{start}\ndef slow")
    assert run_script(text) == f"{[True] * 8}\n"


def test_threads_of_pytorch_do_not_stop_copies() -> None:
    text = """
import torch
from pyptx.sim.launch.forking import call_in_copies
x = torch.ones(1000, 1000)
product = (x @ x).sum() + torch.relu(torch.ones(1000000)).sum()
print([int(y) for y in call_in_copies(lambda n: (x @ x).sum() + torch.relu(torch.ones(1000000)).sum(), [1, 2], 2)])
"""
    assert run_script(text) == f"{[1001000000] * 2}\n"


def test_processes_on_request_need_a_process_without_threads() -> None:
    ready, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (ready.set(), release.wait()), name="listener")
    thread.start()
    try:
        with pytest.raises(ValueError, match=r"processes=2: this process has other threads \(.*listener.*executor="):
            list(call_in_order(abs, [1], None, 2))
    finally:
        release.set()
        thread.join()


def test_a_wrong_number_of_processes_is_refused() -> None:
    with pytest.raises(ValueError, match="processes=0: expected a positive number"):
        list(call_in_order(abs, [1], None, 0))
    with ProcessPoolExecutor(1, get_context("spawn")) as workers, pytest.raises(ValueError, match="not both"):
        list(call_in_order(abs, [1], workers, 2))


def test_a_local_function_is_named_if_an_executor_cannot_send_it() -> None:
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as workers,
        pytest.raises(TypeError, match=r"cannot send the function to another process: .*<lambda>.* top level"),
    ):
        list(call_in_order(lambda item: item, [1], workers, None))


IN_MAIN = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pyptx import sim
def attempt(schedule, seed):
    pass
with ProcessPoolExecutor(1, get_context("spawn")) as workers:
    print(all(trial.ok for trial in sim.sweep(attempt, 1, workers)))
"""


@pytest.mark.parametrize("is_file", [False, True], ids=["no file", "no guard"])
def test_processes_that_cannot_load_the_program_are_explained(*, is_file: bool, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(IN_MAIN, "utf-8")
    words, text = ([sys.executable, "program.py"], None) if is_file else ([sys.executable, "-"], IN_MAIN)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        words, input=text, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert process.stderr.splitlines()[-1].endswith(
        "Its processes load the program again to find `__main__`, which must be a file; start them below "
        '`if __name__ == "__main__":`, or define what they call in a module'
    )


INTERRUPTED = """
import os, signal, time
from pyptx import sim
# A shell starts what runs in the background with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
def attempt(schedule, seed):
    os.write(1, b"begun\\n")
    time.sleep(100 if seed else 0.3)
try:
    sim.sweep(attempt, processes=2)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill"])
def test_control_c_ends_all_processes_at_once(whole_group: bool) -> None:
    words = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(words, cwd=ROOT, stdout=-1, stderr=-1, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        # `eager`, `lazy` and the first seed of `random` end; two others begin and take long.
        for _ in range(5):
            assert process.stdout.readline() == "begun\n"
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (0, "interrupted\n", "")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
