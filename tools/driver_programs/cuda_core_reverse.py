"""Reverses an array through shared memory with cuda.core: `cuda_core_reverse.py KIND` compiles reverse.cu to KIND (ptx,
cubin)."""

import sys
from pathlib import Path

from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

device = Device()
device.set_current()
stream = device.create_stream()
source = Path(__file__).with_name("reverse.cu")
options = ProgramOptions(arch=f"sm_{device.arch}", name=str(source), lineinfo=True)
kernel = Program(source.read_text("ascii"), "c++", options).compile(sys.argv[1]).get_kernel("reverse")
x, out = (device.allocate(4 * 64, stream=stream) for _ in range(2))
x.fill(1, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), kernel, x, out)
stream.sync()
