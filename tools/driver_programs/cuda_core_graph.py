"""Adds in a graph with cuda.core and NVRTC, and prints from the kernel: `cuda_core_graph.py KIND` compiles to KIND
(ptx, cubin)."""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = """
template <class T> __global__ void add(T *x, T step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += step;
    if (i == 0)
        printf("added %g to %d elements\\n", double(step), n);
}
"""
SIZE = 1000

device = Device()
device.set_current()
stream = device.create_stream()
program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17"))
compiled = program.compile(sys.argv[1], name_expressions=("add<float>", "add<double>"))
config = LaunchConfig(grid=4, block=256)
for name, kind in (("add<float>", np.float32), ("add<double>", np.float64)):
    kernel = compiled.get_kernel(name)
    size = kind().itemsize * SIZE
    x, on_host = device.allocate(size, stream=stream), LegacyPinnedMemoryResource().allocate(size, stream=stream)
    x.fill(0, stream=stream)
    builder = device.create_graph_builder()
    builder.begin_building()
    for step in (1, 2):
        launch(builder, config, kernel, x, kind(step), np.int32(SIZE))
    graph = builder.end_building().complete()
    for _ in range(3):
        graph.launch(stream)
    x.copy_to(on_host, stream=stream)
    stream.sync()
    np.testing.assert_array_equal(np.from_dlpack(on_host).view(kind), np.full(SIZE, 9, kind))
