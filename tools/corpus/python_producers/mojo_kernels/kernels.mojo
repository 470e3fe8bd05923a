# Kernels in Mojo; the program prints the PTX of each for the targets below, which need not be present.
from max.gpu import barrier, block_dim, block_idx, lane_id, thread_idx
from max.gpu.host import get_gpu_target
from max.gpu.host.compile import _compile_code
from max.gpu.memory import AddressSpace
from max.gpu.primitives.warp import shuffle_xor
from std.math import exp, sqrt
from std.memory import stack_allocation

comptime Floats = UnsafePointer[Float32, MutAnyOrigin]
comptime Ints = UnsafePointer[Int32, MutAnyOrigin]
comptime Doubles = UnsafePointer[Float64, MutAnyOrigin]


def saxpy(x: Floats, y: Floats, alpha: Float32, n: Int):
    var i = Int(block_idx.x * block_dim.x + thread_idx.x)
    if i < n:
        y[i] = alpha * x[i] + y[i]


def sigmoid(x: Floats, result: Floats, n: Int):
    var i = Int(block_idx.x * block_dim.x + thread_idx.x)
    if i < n:
        result[i] = 1.0 / (1.0 + exp(-x[i]))


def warp_sum(x: Floats, result: Floats):
    var i = Int(block_idx.x * block_dim.x + thread_idx.x)
    var total = x[i]
    comptime for k in range(5):
        total += shuffle_xor(total, UInt32(1 << k))
    result[i] = total


def reverse_shared(x: Ints, result: Ints):
    var tile = stack_allocation[64, DType.int32, address_space=AddressSpace.SHARED]()
    var i = Int(thread_idx.x)
    tile[i] = x[i]
    barrier()
    result[i] = tile[63 - i]


def matmul(a: Doubles, b: Doubles, result: Doubles, n: Int):
    var row = Int(block_idx.y * block_dim.y + thread_idx.y)
    var column = Int(block_idx.x * block_dim.x + thread_idx.x)
    if row < n and column < n:
        var total: Float64 = 0.0
        for k in range(n):
            total += a[row * n + k] * b[k * n + column]
        result[row * n + column] = total


def triangle_numbers(x: Ints, result: Ints, n: Int):
    var i = Int(block_idx.x * block_dim.x + thread_idx.x)
    if i < n:
        var value = x[i]
        var steps: Int32 = 0
        while value > 0:
            steps += 1
            value -= steps
        result[i] = steps


def main() raises:
    print("=== saxpy")
    print(_compile_code[saxpy, target = get_gpu_target["sm_80"]()]().asm)
    print("=== sigmoid")
    print(_compile_code[sigmoid, target = get_gpu_target["sm_90a"]()]().asm)
    print("=== warp_sum")
    print(_compile_code[warp_sum, target = get_gpu_target["sm_86"]()]().asm)
    print("=== reverse_shared")
    print(_compile_code[reverse_shared, target = get_gpu_target["sm_100a"]()]().asm)
    print("=== matmul")
    print(_compile_code[matmul, target = get_gpu_target["sm_89"]()]().asm)
    print("=== triangle_numbers")
    print(_compile_code[triangle_numbers, target = get_gpu_target["sm_120a"]()]().asm)
