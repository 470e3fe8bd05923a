"""A check of which driver a program has: `pyptx simulate` redirects its program and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyptx.driver.devices import DEVICES
from pyptx.driver.launcher import make_environment
from pyptx.driver.settings import Settings
from pyptx.runtime.bindings import call
from tools.gpu.checks import Machine, check

PROGRAM = """\
import subprocess
import sys

from pyptx.driver import is_active
from pyptx.runtime.bindings import call


def print_device():
    name = call("cuDeviceGetName", 256, 0).split(b"\\0")[0].decode()
    print(name, "simulated" if is_active() else "real", sep=", ", flush=True)


print_device()
if sys.argv[1:]:
    command = [sys.executable, "-m", "pyptx", "simulate", "--device", sys.argv[1], __file__]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    print_device()
"""
"""Prints its device, starts itself on a simulated one, and prints its own again."""


@check("a program with its driver that starts another with `pyptx simulate`: only that one has the simulated driver; "
       "simulated, the first has a simulated driver, too")  # fmt: skip
def programs_keep_their_driver(machine: Machine) -> str:
    """Compare the names of the devices of a program, before and after it starts another, and of that one."""
    own = call("cuDeviceGetName", 256, 0).split(b"\0")[0].decode()
    other = next(device for device, data in DEVICES.items() if data.name != own)
    environment = make_environment(Settings(machine.device)) if machine.is_simulated else dict(os.environ)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"
        file.write_text(PROGRAM, "utf-8")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        process = subprocess.run(
            [sys.executable, str(file), other], env=environment, capture_output=True, text=True, check=False
        )
    mine = f"{own}, {'simulated' if machine.is_simulated else 'real'}"
    expected = [mine, f"{DEVICES[other].name}, simulated", mine]
    lines = process.stdout.splitlines()
    assert (process.returncode, lines) == (0, expected), f"found {lines}, expected {expected}\n{process.stderr}"
    return f"{own} and {DEVICES[other].name}"
