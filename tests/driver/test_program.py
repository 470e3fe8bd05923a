"""The main program of `pyptx simulate`: Triton gets the simulated driver when the program imports it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_simulate import simulate

TRITON = {
    "__init__.py": "from triton.runtime import driver\nimports = ['here']\n",
    "runtime.py": "class driver:\n    active = 'a GPU'\n    def set_active(new): driver.active = new\n",
    "backends/nvidia/driver.py": "class CudaDriver: pass\nclass CudaLauncher: pass\n",
    "knobs.py": "class runtime: pass\n",
    "testing.py": "do_bench = None\n",
}
PROGRAM = """
import sys
before = len(sys.meta_path)
import triton
print(triton.imports, triton.driver.active.get_device_capability(), before - len(sys.meta_path))
import triton.testing
print(triton.testing.do_bench(list) >= 1)
"""


def test_triton_is_served_as_soon_as_it_is_imported(tmp_path: Path) -> None:
    for name, text in TRITON.items():
        path = tmp_path / "triton" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    process = simulate(tmp_path, PROGRAM, "--device", "b200", "program.py")
    assert process.stdout == "['here'] (10, 0) 1\nTrue\n", process.stderr


def test_a_program_without_triton_is_told_so_by_python(tmp_path: Path) -> None:
    process = simulate(tmp_path, "import triton\n", "program.py")
    assert process.returncode == 1
    assert process.stderr.splitlines()[-2] == "ModuleNotFoundError: No module named 'triton'"
