"""Launches a kernel with a planted error from bugs.cuh with cuda.core and NVRTC: `cuda_core_bugs.py KIND NAME` compiles
to KIND (ptx, cubin)."""

import sys
from pathlib import Path

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SIZE = 64
kind, name = sys.argv[1:]
device = Device()
device.set_current()
stream, other = device.create_stream(), device.create_stream()
source = Path(__file__).with_name("bugs.cuh")
options = ProgramOptions(arch=f"sm_{device.arch}", name=str(source), lineinfo=True, include_path=str(source.parent))
kernel = Program(source.read_text("ascii"), "c++", options).compile(kind).get_kernel(name)
x, y, z = (device.allocate(4 * SIZE, stream=stream) for _ in range(3))
for buffer in (x, y, z):
    buffer.fill(1, stream=stream)
stream.sync()
config = LaunchConfig(grid=1, block=2 * SIZE if name == "scale" else SIZE)
pair = x, y
if name == "scale":
    launch(stream, config, kernel, x, np.int32(SIZE))
elif name == "sum":
    launch(stream, config, kernel, *pair, np.int32(SIZE))
else:
    launch(stream, config, kernel, *pair)
if name == "shift":
    launch(other, config, kernel, y, z)  # planted: this stream waits for nothing
stream.sync()
other.sync()
