"""`pyptx simulate`: exit statuses, the summary, and the report."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pyptx.driver.folders import open_folder
from pyptx.driver.reports import format_report
from tests.driver.conftest import PROGRAMS
from tests.driver.test_programs import RACE

ROOT = Path(__file__).parent.parent.parent
RIGHT = """\
import sys
sys.path.insert(0, "site-packages")
from calls import *
start()
add = load(VECTOR_ADD, "add")
arrays = [ask("cuMemAlloc_v2", 400) for _ in range(3)]
for array in arrays:
    call("cuMemsetD32_v2", array, 0, 100)
launch(add, 1, 128, *arrays, 100)
"""
LOAD_CUBIN = """\
from pyptx.toolchain import assemble
start()
def load_cubin(text, name):
    cubin = assemble(text, "sm_90", lineinfo=True).data
    return ask("cuModuleGetFunction", ask("cuModuleLoadData", cubin), name.encode())
"""
WRONG = RIGHT + "launch(add, 1, 128, *arrays, 101)\n"


@pytest.fixture(scope="module", autouse=True)
def _library() -> None:
    from pyptx.driver.library import find_library

    find_library()


def simulate(tmp_path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command on a program."""
    (tmp_path / "program.py").write_text(text, "utf-8")
    if not (tmp_path / "site-packages").exists():
        (tmp_path / "site-packages").symlink_to(PROGRAMS)
    command = [sys.executable, "-m", "pyptx", "simulate", *options]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


def test_a_correct_program_succeeds(tmp_path: Path) -> None:
    process = simulate(tmp_path, RIGHT, "program.py")
    assert (process.returncode, process.stdout) == (0, "")
    assert process.stderr == "pyptx: 1 launch of 1 kernel: no findings\n"


def test_a_finding_gives_status_1(tmp_path: Path) -> None:
    process = simulate(tmp_path, WRONG, "program.py")
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == "pyptx: 2 launches of 1 kernel: 1 error (PTX1110)"


@pytest.mark.parametrize("text", ["def f():\n    return 1 / 0\nf()\n", "import json\njson.loads('{')\n", "x = = 5\n"])
def test_an_exception_of_the_program_is_shown_as_by_python(tmp_path: Path, text: str) -> None:
    process = simulate(tmp_path, text, "program.py")
    alone = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == alone.returncode == 1
    expected = alone.stderr.replace(f'"{tmp_path}/program.py"', '"program.py"')
    assert process.stderr.splitlines()[:-1] == expected.splitlines()


def test_a_program_that_activates_the_driver_itself_is_recorded(tmp_path: Path) -> None:
    text = "import pyptx.driver\npyptx.driver.activate(stop=True)\n" + WRONG
    process = simulate(tmp_path, text, "--device", "b200", "--report", "report.json", "program.py")
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == "pyptx: 2 launches of 1 kernel: 1 error (PTX1110)"
    assert len(json.loads((tmp_path / "report.json").read_text("utf-8"))["launches"]) == 2


def test_a_failing_program_keeps_its_status(tmp_path: Path) -> None:
    assert simulate(tmp_path, WRONG + "sys.exit(7)", "program.py").returncode == 7
    killed = simulate(tmp_path, RIGHT + "import os\nos.kill(os.getpid(), 9)", "program.py")
    assert killed.returncode == 137
    assert killed.stderr.splitlines()[-1] == "pyptx: 1 launch of 1 kernel: no findings"


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_program_ends_with_the_command(tmp_path: Path, number: signal.Signals, status: int) -> None:
    waiting = 'print("runs", flush=True)\nimport time\ntime.sleep(60)\n'
    (tmp_path / "program.py").write_text(RIGHT + waiting, "utf-8")
    (tmp_path / "site-packages").symlink_to(PROGRAMS)
    (tmp_path / "records").mkdir()
    # A shell starts background jobs with one of these signals ignored, and `nohup` all jobs with the other.
    command = ["env", "--default-signal=INT,HUP", sys.executable, "-m", "pyptx", "simulate"]
    command += ["--report", "report.json", "program.py"]
    environment = {
        "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "TMPDIR": str(tmp_path / "records")
    }  # fmt: skip
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        process.send_signal(number)
        try:
            # The pipe ends when no process has it any more.
            assert process.communicate(timeout=30) == ("", None)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == status
    is_killed = number is signal.SIGKILL
    assert len(list((tmp_path / "records").iterdir())) == is_killed
    assert (tmp_path / "report.json").exists() != is_killed


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, 137)])
def test_a_launch_that_runs_when_the_program_ends_is_named(tmp_path: Path, number: int, status: int) -> None:
    text = f"""\
import os, signal, sys, threading, time
from pathlib import Path
# A shell starts background jobs with it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.append("site-packages")
from calls import *
def end():
    while not any(file.stat().st_size for file in Path(os.environ["PYPTX_DRIVER_RECORDS"]).iterdir()):
        time.sleep(0.01)
    os.kill(os.getpid(), {number})
start()
spin = ".reg .b32 %n; .reg .pred %p; $more: add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 4000000000; @%p bra $more; ret;"
kernel = load(".version 8.0 .target sm_80 .address_size 64 .entry spin() {{ " + spin + " }}", "spin")
threading.Thread(target=end).start()
launch(kernel, 1, 1)
"""
    process = simulate(tmp_path, text, "--report", "report.json", "program.py")
    assert process.returncode == status
    assert process.stderr.splitlines()[-1] == "pyptx: 1 launch of 1 kernel, 1 of which did not end: no findings"
    (launch,) = json.loads((tmp_path / "report.json").read_text("utf-8"))["launches"]
    assert (launch["kernel"], launch["is_cut"]) == ("spin", True)
    page = format_report(".html", "h100", [launch], None)
    assert "<td>did not end</td>" in page


def test_the_next_command_removes_the_folder_of_one_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("killed", "live", "new", "other")
    folders = {name: tmp_path / f"pyptx-{'' if name == 'other' else 'simulate-'}{name}" for name in names}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / "1.jsonl").touch()
        os.utime(folder, None if name == "new" else (0, 0))
    (tmp_path / "pyptx-simulate-link").symlink_to(folders["other"])
    descriptor = os.open(folders["live"], os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with open_folder("pyptx-simulate-", tmp_path):
        assert [name for name in names if not folders[name].exists()] == ["killed"]
    os.utime(folders["new"], (0, 0))
    monkeypatch.setattr(os, "getuid", lambda: -1)
    with open_folder("pyptx-simulate-", tmp_path):
        assert folders["new"].exists()
    os.close(descriptor)


def test_a_program_without_launches_is_not_called_clean(tmp_path: Path) -> None:
    process = simulate(tmp_path, "", "program.py")
    assert (process.returncode, process.stderr) == (0, "pyptx: no kernel was launched, so nothing was checked\n")


def test_a_report_is_replaced_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("old", "utf-8")
    (tmp_path / "reader").hardlink_to(tmp_path / "report.json")
    simulate(tmp_path, "", "--report", "report.json", "program.py")
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["launches"] == []
    assert (tmp_path / "reader").read_text("utf-8") == "old"
    simulate(tmp_path, "", "--report", "new.json", "program.py")
    assert (tmp_path / "new.json").stat().st_mode == (tmp_path / "program.py").stat().st_mode


def test_the_program_gets_its_arguments(tmp_path: Path) -> None:
    process = simulate(tmp_path, "import sys\nprint(sys.argv[1:])", "program.py", "--device", "-x")
    assert process.stdout == "['--device', '-x']\n"
    shell = simulate(tmp_path, "", "--", "sh", "-c", "echo $0 $1", "a", "b")
    assert shell.stdout == "a b\n"


def test_the_report_lists_every_launch(tmp_path: Path) -> None:
    simulate(tmp_path, WRONG, "--device", "b200", "--report", "report.json", "program.py")
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    first, second = report["launches"]
    assert report["device"] == "b200"
    assert [first[name] for name in ("kernel", "grid", "block", "shared", "place", "diagnostics")] == [
        "add", [1, 1, 1], [128, 1, 1], 0, "program.py:9", [],
    ]  # fmt: skip
    assert [item["code"] for item in second["diagnostics"]] == ["PTX1110"]
    assert first["instructions"] == 128 * 10 + 100 * 10 + 128


def test_the_report_names_the_compiler_and_the_calls_of_a_launch(tmp_path: Path) -> None:
    header = "// Generated by NVIDIA NVVM Compiler\n// Cuda compilation tools, release 13.4, V13.4.92\n"
    text = RIGHT.replace("load(VECTOR_ADD", f"load({header!r} + VECTOR_ADD").replace(
        "launch(", "def run():\n    launch("
    )
    known = {"code": "PTX1110", "kernel": "a*", "compiler": "NVIDIA NVVM*", "reason": "a test"}
    (tmp_path / "known.json").write_text(json.dumps({"accepted": [known]}), "utf-8")
    wrong = text.replace("arrays, 100)", "arrays, 101)") + "def main():\n    run()\nmain()\n"
    process = simulate(tmp_path, wrong, "--report", "report.json", "program.py")
    assert (
        "launch of `add`, grid (1, 1, 1), block (128, 1, 1) at program.py:10, by program.py:12, by program.py:13"
        in (process.stderr)
    )
    (launch,) = json.loads((tmp_path / "report.json").read_text("utf-8"))["launches"]
    assert launch["stack"] == ["program.py:10", "program.py:12", "program.py:13"]
    assert launch["compiler"] == "NVIDIA NVVM Compiler, V13.4.92"
    assert simulate(tmp_path, wrong, "--baseline", "known.json", "program.py").returncode == 0
    (tmp_path / "known.json").write_text(json.dumps({"accepted": [{**known, "compiler": "LLVM*"}]}), "utf-8")
    assert simulate(tmp_path, wrong, "--baseline", "known.json", "program.py").returncode == 1


def test_help_says_what_the_command_is_for(tmp_path: Path) -> None:
    assert "not a runtime for other hardware" in " ".join(simulate(tmp_path, RIGHT, "--help").stdout.split())


def test_kernels_are_dumped_with_a_timeline(tmp_path: Path) -> None:
    program = WRONG.replace("101", "100") + 'call("cuMemFree_v2", arrays[0])\n'
    options = "--dump", "a/files", "--leaks", "--report", "b/report.html"
    (tmp_path / "b").mkdir()
    process = simulate(tmp_path, program, *options, "program.py")
    assert process.returncode == 0
    assert "PTX1305]: memory never freed: 800 bytes in 2 allocations of device memory" in process.stderr
    assert process.stderr.startswith("pyptx: the program's use of the device, at program.py:6\n")
    assert process.stderr.endswith("pyptx: 2 launches of 1 kernel: 1 warning (PTX1305)\n")
    page, ptx = sorted((tmp_path / "a" / "files").iterdir())
    assert (page.stem, page.suffix, ptx.suffix) == (ptx.stem, ".html", ".ptx")
    assert ptx.read_text("utf-8") in (PROGRAMS / "calls.py").read_text("utf-8").replace("\\\n", "", 1)
    assert "ld.global.f32" in page.read_text("utf-8")
    report = (tmp_path / "b" / "report.html").read_text("utf-8")
    assert report.count(f'<a href="../a/files/{ptx.name}">ptx</a> <a href="../a/files/{page.name}">timeline</a>') == 2
    assert "<h1>2 launches on a simulated h100</h1>" in report


def test_kernels_are_dumped_into_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    assert simulate(tmp_path, RIGHT, "--dump", "files", "program.py").returncode == 0


def test_ptx_in_images_is_used_on_request(tmp_path: Path) -> None:
    text = RIGHT.replace("load(", "load_cubin(").replace("start()", LOAD_CUBIN)
    refused = simulate(tmp_path, text, "program.py")
    assert refused.returncode == 1
    assert "pyptx: cuModuleLoadData: this image holds machine code" in refused.stderr
    accepted = simulate(tmp_path, text, "--from-images", "program.py")
    assert (accepted.returncode, accepted.stderr) == (0, "pyptx: 1 launch of 1 kernel: no findings\n")


def test_known_findings_are_neither_printed_nor_counted(tmp_path: Path) -> None:
    simulate(tmp_path, WRONG, "--report", "before.json", "program.py")
    again = simulate(tmp_path, WRONG, "--baseline", "before.json", "program.py")
    assert (again.returncode, again.stderr) == (0, "pyptx: 2 launches of 1 kernel: no new findings\n")
    other = WRONG.replace('"add")', '"add")\nlaunch(load(VECTOR_ADD.replace("add(", "sum("), "sum"), 1, 1, 0, 0, 0, 1)')
    process = simulate(tmp_path, other, "--baseline", "before.json", "--report", "after.sarif", "program.py")
    assert process.returncode == 1
    assert "launch of `sum`" in process.stderr
    assert "launch of `add`" not in process.stderr
    assert json.loads((tmp_path / "after.sarif").read_text("utf-8"))["runs"][0]["results"][0]["ruleId"] == "PTX1110"


def test_stop_makes_a_launch_with_an_error_fail(tmp_path: Path) -> None:
    again = "for _ in range(2):\n    print(launch(reverse, 1, 64, arrays[0]), try_call('cuCtxSynchronize'))\n"
    text = RIGHT + f"reverse = load({RACE.replace('BARRIER', '')!r}, 'reverse')\n{again}"
    outputs = {"": "0 0\n0 0\n", "--stop": "719 719\n719 719\n"}
    launches = {"": 3, "--stop": 2}
    for option, output in outputs.items():
        process = simulate(tmp_path, text, *filter(None, [option]), "program.py")
        assert (process.returncode, process.stdout) == (1, output)
        summary = f"pyptx: {launches[option]} launches of 2 kernels: 1 error (PTX0901)"
        assert process.stderr.splitlines()[-1] == summary


def test_the_order_decides_what_a_missing_synchronization_does(tmp_path: Path) -> None:
    text = (
        RIGHT
        + """\
stream, pinned = ask("cuStreamCreate", 0), ask("cuMemAllocHost_v2", 400)
values = (ctypes.c_float * 100).from_address(pinned)
call("cuMemcpyHtoDAsync_v2", arrays[0], pinned, 400, stream)
values[7] = 1
print(try_call("cuStreamQuery", stream))
call("cuStreamSynchronize", stream)
"""
    )
    outcomes = {(): (0, "0\n"), ("--order", "sync"): (0, "0\n"), ("--order", "deferred"): (1, "600\n")}
    for options, outcome in outcomes.items():
        process = simulate(tmp_path, text, *options, "program.py")
        assert (process.returncode, process.stdout) == outcome
        assert ("error[PTX1304]" in process.stderr) == bool(process.returncode)


def test_the_linker_gets_the_option_that_stores_ptx_unless_switched_off(tmp_path: Path) -> None:
    linked = LOAD_CUBIN.replace("lineinfo=True", 'engine="nvjitlink"')
    text = RIGHT.replace("load(", "load_cubin(").replace("start()", linked)
    assert simulate(tmp_path, text, "--from-images", "program.py").returncode == 0
    for option in ("--no-line-info", "--no-audit"):
        process = simulate(tmp_path, text, "--from-images", option, "program.py")
        assert process.returncode == 1
        assert "pyptx: cuModuleLoadData: this cubin holds machine code only: compile with `-lineinfo`" in process.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "h1000", "program.py"], "invalid choice: 'h1000'"),
        (["--devices", "0", "program.py"], "0 devices; there can be 1 to 16"),
        (["--check", "luck", "program.py"], "check 'luck': expected one of"),
        (["--report", "report.xml", "program.py"], "the name must end in .json, .sarif, .html"),
        (["--baseline", "absent.json", "program.py"], "--baseline absent.json: No such file or directory"),
        (
            ["--baseline", "program.py", "program.py"],
            "--baseline program.py: not JSON: Expecting value: line 1 column 1 (char 0)\n",
        ),
        (
            ["--report", "absent/report.json", "program.py"],
            "--report absent/report.json: there is no directory absent\n",
        ),
        (["--dump", "program.py/folder", "program.py"], "program.py/folder: Not a directory\n"),
        (["--", "./absent"], "./absent: No such file or directory"),
        (["absent.py"], "absent.py: No such file or directory"),
        (
            ["program"],
            "program: not found in PATH; to run the file in this directory: `-- ./program` or `-- python program`\n",
        ),
        (["--", "./program"], "./program: the interpreter that it names does not exist\n"),
        (["./kernel.ptx"], "./kernel.ptx: PTX is not a program; to simulate its kernel: `pyptx sim ./kernel.ptx`\n"),
        (["absent.ptx"], "absent.ptx: No such file or directory\n"),
        ([], "the following arguments are required: PROGRAM (see"),
    ],
)
def test_wrong_usage_gives_status_2(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "program").write_text("#!/absent/interpreter\n", "utf-8")
    (tmp_path / "kernel.ptx").write_text(".version 8.0\n", "utf-8")
    (tmp_path / "program").chmod(0o700)
    process = simulate(tmp_path, RIGHT, *options)
    assert process.returncode == 2
    assert message in process.stderr
    assert "Traceback" not in process.stderr
    # Nothing has run.
    assert process.stderr.count("\n") == 1
