"""Control-C, the progress bar of long runs, and callers' arrays after an error: unchanged."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tqdm

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.launch import progress
from pyptx.sim.program.blocks import prepare
from tests.messages import raises
from tests.sim.kernels import HEAD, assert_reported, kernel

ENDLESS = """
import signal
import numpy as np
from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import kernel

text = kernel('''mov.u32 %r0, 5;
st.global.u32 [%o], %r0;
setp.ge.u32 %p0, %t, 32;
@%p0 bra wait;
loop: add.u32 %r1, %r1, 1;
bra loop;
wait: bar.sync 1, 64;''')
out = np.full(64, 9, np.int32)
module = parse(text)
sim.run(parse(kernel("")), args=(out,))
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    sim.run(module, block=64, args=(out,), max_steps=10**12, check="none")
except KeyboardInterrupt as stopped:
    print(type(stopped).__name__, stopped)
assert out.tolist() == [9] * 64
out[:] = 0
sim.run(parse(kernel("st.global.u32 [%o], %t;")), block=64, args=(out,))
print("again", out.tolist() == list(range(64)))
"""


def test_control_c_stops_with_a_report_and_leaves_arrays_alone() -> None:
    root = Path(__file__).parents[3]
    process = subprocess.run([sys.executable, "-c", ENDLESS], cwd=root, capture_output=True, text=True, timeout=60)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    assert lines[0].startswith("Interrupted stopped after ")
    assert lines[0].endswith(" instructions; arrays are unchanged")
    places = "\n".join(lines[1:3])
    assert "32 × running at `add.u32`" in places or "32 × running at `bra`" in places or "32 × polling" in places
    assert "32 × waiting at `bar.sync` at <ptx>:17:7: CTA 0 warp 1 …" in places
    assert lines[-1] == "again True"
    assert process.stderr == ""


SHELL = """
import signal, sys
from pathlib import Path
from pyptx.cli import main
from tests.sim.kernels import kernel

file = Path(sys.argv[1])
file.write_text(kernel("st.global.u32 [%o], %t;"))
launch = ["sim", str(file), "--block", "64", "--arg", "u32[64]=arange"]
assert main(launch) == 0
file.write_text(kernel("loop: add.u32 %t, %t, 1;\\nbra loop;"))
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.3)
sys.exit(main(launch))
"""


def test_control_c_in_the_shell_prints_the_report(tmp_path: Path) -> None:
    root, file = Path(__file__).parents[3], tmp_path / "endless.ptx"
    process = subprocess.run(
        [sys.executable, "-c", SHELL, str(file)], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert process.returncode == 130, process.stderr
    assert "instructions; arrays are unchanged" in process.stderr
    assert "64 × " in process.stderr
    assert "Traceback" not in process.stderr


STREAM = """
import resource, signal
from pathlib import Path
import numpy as np
from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.sim.kernels import kernel

out = np.full(64, 9, np.int32)
first = parse(kernel("mov.u32 %r0, 5; st.global.u32 [%o], %r0; griddepcontrol.launch_dependents; bar.sync 1, 96;"))
second = parse(kernel("loop: add.u32 %r1, %r1, 1;\\nbra loop;"))
sim.stream([sim.Launch(parse(kernel("")), args=[out])])
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.5)
launches = [
    sim.Launch(first, block=64, args=[out]),
    sim.Launch(second, block=32, args=[out], programmatic=True, label="again"),
    sim.Launch(second, block=32, args=[out]),
]
try:
    sim.stream(launches, max_steps=10**12, check="none")
except KeyboardInterrupt as stopped:
    print(type(stopped).__name__, stopped)
assert out.tolist() == [9] * 64

pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (100 << 20),) * 2)
try:
    sim.stream([sim.Launch(first, grid=1 << 17, block=256, args=[out])] * 2, batch_lanes=1 << 30, check="none")
except PtxError as error:
    print(error.diagnostics[0].code, error.diagnostics[0].line, error.diagnostics[0].message)
"""


def test_a_stream_that_is_interrupted_or_has_no_memory_says_so() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", STREAM], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    stopped, *places, memory = done.stdout.splitlines()
    assert re.fullmatch(r"Interrupted stopped after [1-9]\d* instructions; arrays are unchanged", stopped)
    assert places[0] == "  64 × waiting at `bar.sync` at <module 1>:11:76: `k (launch 1)` CTA 0 warp 0 …"
    assert re.fullmatch(r"  32 × \w+ at `\w+(.u32)?` at <module 2>:1[12]:\d+: `again` CTA 0 warp 0 …", places[1])
    assert len(places) == 2
    assert memory.startswith(f"PTX1107 5 not enough memory for grids of {1 << 26} threads: ")


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


LOOP = kernel("mov.u32 %r1, 0;\nl: add.u32 %r1, %r1, 1;\nbar.sync 0;\nsetp.lt.u32 %p0, %r1, 40;\n@%p0 bra l;")


@pytest.mark.parametrize(("stream", "is_shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_a_bar_is_shown_on_a_terminal_only(
    stream: io.StringIO, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_DELAY", 0)
    monkeypatch.setattr(sys, "stderr", stream)
    out = np.zeros(64 * 40, np.int32)
    sim.run(parse(LOOP), grid=40, block=64, args=(out,), batch_lanes=64)
    assert ("threads" in stream.getvalue()) is is_shown


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_launch_that_takes_very_long_says_so_once(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SETTLED", 0)
    monkeypatch.setattr(progress, "_VERY_LONG", 0)
    monkeypatch.setattr(progress, "_FASTEST", float("inf"))
    monkeypatch.setattr(sys, "stderr", stream)
    options: dict[str, Any] = {
        "grid": 40, "block": 64, "args": (np.zeros(64 * 40, np.int32),), "batch_lanes": 64,
    }  # fmt: skip
    if stream.isatty():
        sim.run(parse(LOOP), **options)
        notes = [line for line in stream.getvalue().splitlines() if "note: " in line]
    else:
        with pytest.warns(RuntimeWarning) as records:
            sim.run(parse(LOOP), **options)
        notes = [str(warning.message) for warning in records]
        assert stream.getvalue() == ""
        assert [warning.filename for warning in records] == [__file__]
    (note,) = notes
    assert re.search(r"a grid of 40 CTAs of 64 threads needs [a-z ]+ [\d.]+ \w+ more: 1 of 40 batches took", note)
    assert "take a smaller grid, or check=" in note


@pytest.mark.parametrize(("grid", "says"), [(2**26, False), (2**31 - 1, True)])
def test_a_launch_that_must_take_very_long_says_so_before_it_starts(grid: int, says: bool) -> None:
    body = "setp.ge.u32 %p1, %t, 5; @%p1 bra on; add.u32 %r1, %r1, 1;\non: trap;"
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        assert_reported(kernel(body), "PTX1120", grid=grid, block=64, args=(np.zeros(1, np.uint32),), check="none")
    notes = [str(warning.message) for warning in records]
    assert len(notes) == says
    assert not notes or "thread-instructions per second" in notes[0]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("add.u32 %r0, %r0, 1;", 3),
        ("add.u32 %r0, %r0, 1;\nbra end;\nadd.u32 %r0, %r0, 1;\nend: trap;", 4),
        ("@%p0 bra end;\nadd.u32 %r0, %r0, 1;\nadd.u32 %r0, %r0, 1;\nend:", 3),
        ("@%p0 bra end;\nexit;\nend: bar.sync 0;", 3),
        ("@%p0 bra end;\nbar.sync 0;\nbar.sync 0;\nexit;\nend:", 3),
        ("@%p0 trap;\nbar.sync 0;", 2),
        ("T: .branchtargets one, two;\nbrx.idx %t, T;\none: add.u32 %r0, %r0, 1;\ntwo: add.u32 %r0, %r0, 1;", 4),
        ("again: add.u32 %r0, %r0, 1;\n@%p0 bra again;", 4),
        ("call f;", 3),
        ("again: add.u32 %r0, %r0, 1;\nbra again;", 0),
    ],
)
def test_a_launch_executes_at_least_the_instructions_of_the_shortest_path(body: str, count: int) -> None:
    module = ".func f() { .reg .b32 %r<2>; mov.u32 %r0, 1; ret; }"
    program = prepare(parse(kernel(body, params="", module=module)), "k")
    assert progress.count_least_instructions(program) == count


def _stream() -> None:
    out = np.zeros(64 * 20, np.int32)
    launch = sim.Launch(parse(LOOP), grid=20, block=64, args=(out,))
    sim.stream([launch, launch], batch_lanes=64)


def _machine() -> None:
    sim.Machine(parse(LOOP), grid=40, block=64, args=(np.zeros(64 * 40, np.int32),), batch_lanes=64).finish()


@pytest.mark.parametrize(("run", "words"), [(_stream, "a stream of 2 grids"), (_machine, "a grid of 40 CTAs")])
@pytest.mark.parametrize("before", [True, False])
def test_streams_and_machines_say_that_they_take_very_long(
    run: Callable[[], None], words: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_SETTLED", float("inf") if before else 0)
    monkeypatch.setattr(progress, "_VERY_LONG", 0)
    monkeypatch.setattr(progress, "_FASTEST", 1e3 if before else float("inf"))
    with pytest.warns(RuntimeWarning, match="than any run" if before else "more: 1 of 40 batches took") as records:
        run()
    (note,) = [str(warning.message) for warning in records]
    assert note.startswith(words)


def test_a_machine_that_stops_on_its_way_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_VERY_LONG", 0)
    monkeypatch.setattr(progress, "_FASTEST", 1e3)
    machine = sim.Machine(parse(LOOP), grid=40, block=64, args=(np.zeros(64 * 40, np.int32),), batch_lanes=64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert machine.run(until=lambda state: True)
        assert not machine.run()


def test_a_launch_of_one_batch_or_of_seconds_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SETTLED", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.run(parse(LOOP), grid=40, block=64, args=(np.zeros(64 * 40, np.int32),), batch_lanes=64)
        monkeypatch.setattr(progress, "_VERY_LONG", 1e-9)
        monkeypatch.setattr(progress, "_FASTEST", float("inf"))
        sim.run(parse(LOOP), grid=40, block=64, args=(np.zeros(64 * 40, np.int32),))


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5.0 seconds"), (150, "2 minutes"), (7200, "2 hours"), (1e6, "12 days")]
)
def test_durations_are_in_the_largest_unit(seconds: float, text: str) -> None:
    assert progress.format_duration(seconds) == text


OUT_OF_BOUNDS = "mov.u32 %r0, 1;\nst.global.u32 [%o], %r0;\nbar.sync 0;\nst.global.u32 [%o+4096], %r0;"
WRITES = "mov.u32 %r0, 1;\nst.global.u32 [%o], %r0;\nbar.sync 0;\n"


@pytest.mark.parametrize(
    ("text", "options", "code", "words"),
    [
        (kernel(WRITES), {"entry": "other"}, "PTX1101", "no entry `other`. Entries: `k`"),
        (f"{HEAD}.func f() {{ ret; }}", {}, "PTX1101", "no entry: nothing to run"),
        (kernel(WRITES), {"args": ()}, "PTX1102", "the kernel has 1 parameter, found 0 arguments"),
        (kernel(WRITES, params=".param .u64 out, .param .u8 x"), {"args": (..., 300)}, "PTX1102", "300 does not fit"),
        (kernel(WRITES, params=".param .u64 out, .param .u32 x"), {"args": (..., b"ab")}, "PTX1102", "of 4 bytes"),
        (kernel(WRITES, params=".param .u64 out, .param .u32 x"), {"args": (..., object())}, "PTX1102", "object"),
        (kernel(WRITES), {"grid": 0}, "PTX1103", "grid: expected one to three positive integers, found 0"),
        (kernel(WRITES), {"grid": (2, 0)}, "PTX1103", "grid: expected one to three positive integers, found (2, 0)"),
        (kernel(WRITES), {"block": 0}, "PTX1103", "block: expected one to three positive integers, found 0"),
        (kernel(WRITES), {"block": -32}, "PTX1103", "block: expected one to three positive integers, found -32"),
        (kernel(WRITES), {"block": (1, 1, 1, 1)}, "PTX1103", "one to three positive integers"),
        (kernel(WRITES), {"block": 1025}, "PTX1103", "1025 threads, but the limit is 1024"),
        (kernel(WRITES), {"cluster": 0}, "PTX1103", "cluster: expected one to three positive integers, found 0"),
        (kernel(WRITES), {"shared": 1 << 20}, "PTX1103", "but the limit on sm_90a is 232448"),
        (kernel(WRITES), {"shared": -1}, "PTX1103", "shared: expected an integer of at least 0, found -1"),
        (kernel(WRITES), {"schedule": "soon"}, "PTX1103", "no schedule 'soon'"),
        (kernel(WRITES + "call missing;", module=".extern .func missing;"), {}, "PTX1104", "`missing`"),
        (kernel(WRITES + "mov.u64 %rd1, there;", module=".extern .global .u32 there;"), {}, "PTX1104", "`there`"),
        (kernel(WRITES + "add.f99 %r0, %r0, %r0;"), {}, "PTX1106", "add.f99"),
        (kernel(WRITES), {"grid": (1 << 30, 1 << 10), "cooperative": True}, "PTX1107", "to run 1099511627776 CTAs"),
        (kernel(OUT_OF_BOUNDS), {}, "PTX1110", "`st.global.u32` accesses 4 bytes"),
        (kernel(WRITES + "trap;"), {}, "PTX1120", "the kernel executed `trap`"),
        (kernel(WRITES + "l: add.u32 %r1, %r1, 1;\nbra l;"), {"max_steps": 5000}, "PTX1122", "more than 5000"),
        (kernel(WRITES + "bar.sync 1, 96;"), {}, "PTX0990", "2 of 3 warps have arrived"),
        (kernel(WRITES + "l: bra l;"), {}, "PTX0991", "never ends"),
    ],
)  # fmt: skip
def test_an_error_leaves_the_callers_arrays_alone(text: str, options: dict[str, Any], code: str, words: str) -> None:
    out = np.full(64, 9, np.int32)
    args = tuple(out if item is ... else item for item in options.pop("args", (...,)))
    launch: dict[str, Any] = {"entry": "k" if "entry k" in text else None, "block": 64, "args": args, **options}
    with raises(PtxError) as excinfo:
        sim.run(parse(text), **launch)
    assert excinfo.value.diagnostics[-1].code == code, str(excinfo.value)
    assert words in str(excinfo.value)
    assert (out == 9).all()


def test_the_step_limit_says_where_the_threads_are() -> None:
    text = kernel("setp.ge.u32 %p0, %t, 32;\n@%p0 bra wait;\nl: add.u32 %r1, %r1, 1;\nbra l;\nwait: bar.sync 1, 64;")
    with raises(PtxError) as excinfo:
        sim.run(parse(text), block=64, args=(np.zeros(64, np.int32),), max_steps=3000, check="none")
    (finding,) = excinfo.value.diagnostics
    assert finding.code == "PTX1122"
    assert any(note.startswith("32 × waiting at `bar.sync`") for note in finding.notes)
    assert finding.help == "pass a higher `max_steps` if it should run longer"


ENDED = [(5, 32), (9, 64), (14, 96), (18, 128), (23, 160), (27, 192)]


def test_the_bar_counts_threads_that_have_ended_and_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int]] = []

    class Bar:
        """A bar of tqdm that remembers what it shows."""

        def __init__(self, **options: Any) -> None:
            self.n, self.text = 0, ""
            assert options.pop("file") is sys.stderr
            expected = {"total": 3 * 64, "unit": " threads", "unit_scale": True, "disable": False}
            assert options == {**expected, "delay": 1.0, "leave": False}

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None:
            shown.append(("end", self.n))

        def set_postfix_str(self, text: str, refresh: bool) -> None:
            assert not refresh
            self.text = text

        def update(self, count: int) -> None:
            self.n += count
            shown.append((self.text, self.n))

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    monkeypatch.setattr(progress, "_EVERY", 1)
    monkeypatch.setattr(sys, "stderr", Terminal())
    text = kernel("setp.lt.u32 %p0, %t, 32;\n@%p0 exit;\nbar.sync 0;\nadd.u32 %r1, %t, 1;\nbar.sync 0;")
    sim.run(parse(text), grid=3, block=64, args=(np.zeros(64 * 3, np.int32),), batch_lanes=64)
    assert shown == [*((f"{count} instructions", ended) for count, ended in ENDED), ("end", 192)]


def test_the_bar_is_updated_every_64_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, looks = list[int](), list[int]()

    def look(_: progress.Pace) -> None:
        looks.append(turns[-1])

    monkeypatch.setattr(progress.Pace, "look", look)
    monkeypatch.setattr(sys, "stderr", Terminal())
    state: Any = SimpleNamespace(shape=SimpleNamespace(lanes=64), live=64, machine=SimpleNamespace(stats=sim.Stats()))
    with progress.show_progress(64, progress.Pace(1, "a grid", False, 0)) as tell:
        assert tell is not None
        for turn in range(1, 3 * 64):
            turns.append(turn)
            tell(state)
    assert looks == [64, 128]


@pytest.mark.parametrize(
    ("batches", "seconds", "words"),
    [
        (1000, 1.999, []), (1000, 2.0, ["at least 33 minutes more: 1 of 1000 batches took 2.0 seconds"]),
        (2, 600.0, []), (2, 600.5, ["at least 10 minutes more: 1 of 2 batches took 10 minutes"]),
    ],
)  # fmt: skip
def test_a_run_is_very_long_from_ten_minutes_on(
    batches: int, seconds: float, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((5.0, 5.0 + seconds))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        progress.Pace(batches, "a grid", False, 0).look()
    assert [str(record.message) for record in records] == [
        f"a grid needs {text}; take a smaller grid; Control-C stops the run" for text in words
    ]


def test_the_estimate_counts_the_batches_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 1.0, 1.5, 301.0, 900.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    pace = progress.Pace(9, "a grid", True, 0)
    for _ in range(2):
        pace.end_batch()
    with pytest.warns(RuntimeWarning) as records:
        pace.end_batch()
    pace.end_batch()
    text = 'about 10 minutes more: 3 of 9 batches took 5 minutes; take a smaller grid, or check="none" (--check none)'
    assert [str(record.message) for record in records] == [f"a grid needs {text}; Control-C stops the run"]


@pytest.mark.parametrize(("least", "count"), [(600 * 10**9, 0), (600 * 10**9 + 1, 1)])
def test_no_run_is_faster_than_a_billion_instructions_per_second(least: int, count: int) -> None:
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        progress.Pace(1, "a grid", False, least).begin_batch()
    assert len(records) == count


def test_a_launch_says_so_within_its_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(progress, "_EVERY", 1)
    monkeypatch.setattr(progress, "_SETTLED", 0)
    monkeypatch.setattr(progress, "_VERY_LONG", 0)
    monkeypatch.setattr(progress, "_FASTEST", float("inf"))
    monkeypatch.setattr(sys, "stderr", stream)
    sim.run(parse(LOOP), grid=40, block=64, args=(np.zeros(64 * 40, np.int32),), batch_lanes=64)
    (note,) = [line for line in stream.getvalue().splitlines() if "note: " in line]
    assert re.search(r"needs at least [\d.]+ \w+ more: 1 of 40 batches took", note)
