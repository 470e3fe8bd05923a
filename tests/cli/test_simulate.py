"""`pyptx simulate`: exit statuses, the summary, and the report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.driver.conftest import PROGRAMS

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


def test_a_failing_program_keeps_its_status(tmp_path: Path) -> None:
    assert simulate(tmp_path, WRONG + "sys.exit(7)", "program.py").returncode == 7
    killed = simulate(tmp_path, RIGHT + "import os\nos.kill(os.getpid(), 9)", "program.py")
    assert killed.returncode == 137


def test_a_command_that_is_terminated_ends_its_program_and_leaves_nothing(tmp_path: Path) -> None:
    endless = 'load(VECTOR_ADD.replace("    ret;", "    bra DONE;"), "add")\nprint("runs", flush=True)'
    text = RIGHT.replace('load(VECTOR_ADD, "add")', endless)
    (tmp_path / "program.py").write_text(text, "utf-8")
    (tmp_path / "site-packages").symlink_to(PROGRAMS)
    (tmp_path / "records").mkdir()
    command = [sys.executable, "-m", "pyptx", "simulate", "program.py"]
    environment = {
        "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "TMPDIR": str(tmp_path / "records")
    }  # fmt: skip
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        process.terminate()
        # The pipe ends when no process has it any more.
        assert process.stdout.read() == ""
        assert process.wait(timeout=60) == 143
    assert list((tmp_path / "records").iterdir()) == []


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
        (["--baseline", "program.py", "program.py"], "--baseline program.py: program.py is not JSON"),
        (["--", "./absent"], "./absent: No such file or directory"),
        (["absent.py"], "absent.py: No such file or directory"),
        ([], "the following arguments are required: PROGRAM"),
    ],
)
def test_wrong_usage_gives_status_2(tmp_path: Path, options: list[str], message: str) -> None:
    process = simulate(tmp_path, RIGHT, *options)
    assert process.returncode == 2
    assert message in process.stderr
    assert "Traceback" not in process.stderr
