"""Adds vectors of 1,000 elements with cuda.core: `cuda_core_add.py KIND N` compiles to KIND (ptx, cubin) and adds N."""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = """
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
"""
SIZE = 1000

kind, count = sys.argv[1], int(sys.argv[2])
device = Device()
device.set_current()
stream = device.create_stream()
program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
kernel = program.compile(kind).get_kernel("add")
pinned = LegacyPinnedMemoryResource()
on_host = [pinned.allocate(4 * SIZE, stream=stream) for _ in range(3)]
a, b, c = (np.from_dlpack(buffer).view(np.float32) for buffer in on_host)
a[:], b[:], c[:] = np.arange(SIZE), 0.5, 0
on_device = [device.allocate(4 * SIZE, stream=stream) for _ in range(3)]
for source, target in zip(on_host, on_device, strict=True):
    target.copy_from(source, stream=stream)
launch(stream, LaunchConfig(grid=4, block=256), kernel, *on_device, np.int32(count))
on_device[2].copy_to(on_host[2], stream=stream)
stream.sync()
np.testing.assert_array_equal(c, np.arange(SIZE, dtype=np.float32) + np.float32(0.5))
