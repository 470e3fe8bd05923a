"""Products of matrices and attention in Triton, compared with PyTorch: tuned, with arrays of pointers, with tensor maps
of the host and of the device, and with block scales where the GPU multiplies them."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tools.corpus.python_producers.triton_kernels.products import (
    attention,
    matmul,
    matmul_descriptor,
    matmul_persistent,
    matmul_scaled,
)

CONFIGS = [triton.Config({"BM": rows, "BN": 64, "BK": 32}, num_warps=warps) for rows, warps in ((64, 4), (128, 8))]
FP8, FP4 = torch.float8_e4m3fn, (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@triton.jit
def matmul_pointers(a, b, out, sizes, COUNT: tl.constexpr, CTAS: tl.constexpr, BLOCK: tl.constexpr):
    """Multiply pairs of matrices, whose addresses and sizes are in arrays; sizes are multiples of the block."""
    tile = tl.program_id(0)
    first = 0
    across = tl.arange(0, BLOCK)
    for pair in range(COUNT):
        m = tl.load(sizes + 3 * pair)
        n = tl.load(sizes + 3 * pair + 1)
        k = tl.load(sizes + 3 * pair + 2)
        last = first + (m // BLOCK) * (n // BLOCK)
        left = tl.load(a + pair).to(tl.pointer_type(tl.float16))
        right = tl.load(b + pair).to(tl.pointer_type(tl.float16))
        result = tl.load(out + pair).to(tl.pointer_type(tl.float16))
        while tile < last:
            i = (tile - first) // (n // BLOCK) * BLOCK + across
            j = (tile - first) % (n // BLOCK) * BLOCK + across
            total = tl.zeros([BLOCK, BLOCK], tl.float32)
            for start in range(0, k, BLOCK):
                depth = start + across
                x = tl.load(left + i[:, None] * k + depth[None, :])
                y = tl.load(right + depth[:, None] * n + j[None, :])
                total = tl.dot(x, y, total)
            tl.store(result + i[:, None] * n + j[None, :], total.to(tl.float16))
            tile += CTAS
        first = last


def make_halves(*shape: int) -> torch.Tensor:
    return torch.randn(shape).to(torch.float16)


def compare(out: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    """Compare a product with that of the same numbers in 32 bits."""
    torch.testing.assert_close(out.float(), a.float() @ b.float(), rtol=2e-3, atol=2e-3)


def check_tuned() -> None:
    a, b, out = make_halves(128, 96), make_halves(96, 128), torch.empty(128, 128)
    tuned = triton.autotune(CONFIGS, key=["m", "n", "k"])(matmul)
    grid = lambda meta: (triton.cdiv(128, meta["BM"]), triton.cdiv(128, meta["BN"]))  # noqa: E731
    tuned[grid](a, b, out, 128, 128, 96, OUT=tl.float32)
    compare(out, a, b)


def check_pointers() -> None:
    shapes = (64, 96, 32), (32, 32, 64), (96, 64, 96)
    left, right = [make_halves(m, k) for m, _, k in shapes], [make_halves(k, n) for _, n, k in shapes]
    out = [torch.empty(m, n, dtype=torch.float16) for m, n, _ in shapes]
    pointers = [torch.tensor([matrix.data_ptr() for matrix in matrices]) for matrices in (left, right, out)]
    sizes = torch.tensor(shapes, dtype=torch.int32)
    matmul_pointers[(4,)](*pointers, sizes, COUNT=len(shapes), CTAS=4, BLOCK=32)
    for result, a, b in zip(out, left, right, strict=True):
        compare(result, a, b)


def check_tensor_maps() -> None:
    a, b = make_halves(256, 128), make_halves(128, 128)
    for_host, for_device = torch.empty(2, 256, 128, dtype=torch.float16)
    blocks = (a, [128, 64]), (b, [64, 128]), (for_host, [128, 128])
    maps = [TensorDescriptor.from_tensor(matrix, block) for matrix, block in blocks]
    matmul_descriptor[(2, 1)](*maps, 128, BM=128, BN=128, BK=64)
    compare(for_host, a, b)
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    transposed = b.T.contiguous()
    matmul_persistent[(2,)](a, transposed, for_device, 256, 128, 128, BM=128, BN=64, BK=64, CTAS=2)
    compare(for_device, a, b)


def check_attention() -> None:
    heads, length, width = 2, 128, 64
    q, k, v = make_halves(3, heads, length, width)
    for causal in (False, True):
        out = torch.empty_like(q)
        attention[(length // 64, heads)](q, k, v, out, length, 0.125, CAUSAL=causal, BM=64, BN=32, D=width)
        expected = torch.nn.functional.scaled_dot_product_attention(
            q.float(), k.float(), v.float(), is_causal=causal, scale=0.125
        )
        torch.testing.assert_close(out.float(), expected, rtol=4e-3, atol=4e-3)


def check_scaled() -> None:
    rows, cols, depth = 128, 128, 128
    scales = [torch.randint(124, 130, (size, depth // 32), dtype=torch.uint8) for size in (rows, cols)]
    factors = [torch.exp2(scale.float() - 127).repeat_interleave(32, 1) for scale in scales]
    for format in ("e4m3", "e2m1"):
        if format == "e4m3":
            stored = [torch.randn(size, depth).to(FP8) for size in (rows, cols)]
            values = [matrix.float() for matrix in stored]
        else:
            codes = [torch.randint(0, 16, (size, depth), dtype=torch.uint8) for size in (rows, cols)]
            values = [torch.tensor(FP4)[(code & 7).long()] * (1 - 2.0 * (code >> 3)) for code in codes]
            stored = [code[:, ::2] | code[:, 1::2] << 4 for code in codes]
        out = torch.empty(rows, cols)
        matmul_scaled[(1,)](
            stored[0], scales[0], stored[1], scales[1], out, cols, depth, FORMAT=format, BM=rows, BN=cols, BK=depth
        )
        left, right = (value * factor for value, factor in zip(values, factors, strict=True))
        torch.testing.assert_close(out, left @ right.T, rtol=1e-4, atol=1e-3)


torch.manual_seed(0)
check_tuned()
check_pointers()
check_tensor_maps()
check_attention()
check_scaled()
