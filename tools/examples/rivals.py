"""The best figures that others have published for the same problem, with their sources: what the kernels have to beat.

Hardly two are measured alike, so each names its GPU and its shape, also where the example's is another one. Rates of
times that a source has are by the bytes that the kernel must move, and "about" is read from a chart.
"""

from __future__ import annotations

NONE = "none known"
SQUARES = "at the best square size from 4096 to 15360"
CUBLAS = "cuBLAS through PyTorch, table of gau-nernst/gn-kernels"
COPY = f"1700 GB/s on A100 80 GB, 4055 on H200, 5982 on B200, 1509 on RTX 5090, {SQUARES} in bytes"
COPY_SOURCE = "Tensor.copy_ of PyTorch, table of gau-nernst/gn-kernels"
AMPERE = "246 TFLOP/s at 4096³, 262 at 8192³ on A100 40 GB"
AMPERE_SOURCE = (
    "cuBLAS in the table of gau-nernst/learn-cuda, 02b_matmul_sm80, where Triton has 229 and 242, and its own kernel "
    "225 and 240"
)
BACKWARD = "542 TFLOP/s at 4k, 561 at 16k, head 128, on H100 for both parts together"
BACKWARD_SOURCE = "FlashAttention-3 paper, with five products where ours compute seven; cuDNN 499 and 516"
SWIGLU_SOURCE = "Liger-Kernel, its stored times: 0.267 ms forward and 0.971 ms backward"
ONE_TILE = "a product of one tile, which others do not time"
ONE_STEP = "a few instructions in one CTA, of which others time the instruction only"

RIVALS = {
    "ampere/one_warp_gemm": (
        "60 TFLOP/s at 4096³ on A100 40 GB", "gau-nernst/learn-cuda, 02b_matmul_sm80, v1, which has tiles of a CTA"
    ),
    "ampere/two_stage_gemm": (
        "167 TFLOP/s at 4096³ on A100 40 GB",
        "gau-nernst/learn-cuda, 02b_matmul_sm80, v3: cp.async and padded rows; v2 without padding 65",
    ),
    "ampere/pipelined_gemm": (AMPERE, AMPERE_SOURCE),
    "ampere/stream_k_gemm": (AMPERE, AMPERE_SOURCE),
    "ampere/fp8_gemm": (
        f"480 TFLOP/s on RTX 5090 at 600 W, {SQUARES}", f"{CUBLAS}; on RTX 4090, no product of fp8 was found"
    ),
    "any/vector_add": (COPY, f"{COPY_SOURCE}: copies, not sums"),
    "any/transpose": (
        "2940 GB/s at 32768 × 32768 in f32 on H100",
        "yencal/gpu-matrix-transpose; with TMA, S. Veitner's articles have 2771 and 2775",
    ),
    "any/reduction": ("3240 GB/s for 2^30 elements on H100", "fast.cu; CUB 3193 in the same table"),
    "any/histogram": (
        "2297 GB/s for 2^30 bytes in 256 bins on H100", "yencal/gpu-histogram-optimization; CUB 2139 in the same table"
    ),
    "any/softmax": (
        "about 2.89 TB/s at 32768 × 4096 in bf16, 3.01 at 16384 × 131072 in f32, on H100",
        "QuACK; torch.compile about 2.0 for the latter",
    ),
    "any/rmsnorm": ("about 2.90 TB/s at 32768 × 4096 in bf16 on H100", "QuACK; cuDNN about 2.74 in the same chart"),
    "any/layernorm": ("2.83 TB/s at 4096 × 8192 in f32 on H100", "Liger-Kernel, its stored times: 0.0948 ms"),
    "any/swiglu": ("3.02 TB/s at 8192 × 16384 in bf16 on H100", SWIGLU_SOURCE),
    "any/rotary": (
        "5.13 TB/s for 8192 rows of 40 heads of 128 in bf16 on B200", "Liger-Kernel, its stored times: 0.0327 ms"
    ),
    "any/swiglu_backward": ("1.38 TB/s at 8192 × 16384 in bf16 on H100", SWIGLU_SOURCE),
    "any/rmsnorm_backward": (
        "620 GB/s at 4096 × 4096, 884 at 4096 × 16384 in bf16 on H100",
        "stored times of Liger-Kernel: 0.162 ms by Megatron, 0.456 ms by Liger, both with the sums over rows",
    ),
    "any/column_sums": (NONE, "others sum the parts in the kernel before, or time both together"),
    "hopper/tma_copy": (COPY, COPY_SOURCE),
    "hopper/wgmma_tile": (NONE, ONE_TILE),
    "hopper/tma_ring": ("423 TFLOP/s at 4096³ on H100", "fast.cu, article, kernel 3: one warpgroup; cuBLAS 716"),
    "hopper/warp_specialized": (
        "631 TFLOP/s at 4096³ on H100", "fast.cu, article, kernel 5: two consumers; with one 498; cuBLAS 716"
    ),
    "hopper/cluster_gemm": (
        "764 TFLOP/s at 4096³ on H100",
        "fast.cu, article, its last kernel, a persistent one; 734 when it had clusters; cuBLAS 716",
    ),
    "hopper/persistent_gemm": (
        f"764 TFLOP/s at 4096³, 808 at 8192³ on H100; 763 on H200, {SQUARES}",
        f"fast.cu, cuBLAS 716 and 795 there; {CUBLAS}; ThunderKittens' README has 855 for H100 without a shape",
    ),
    "hopper/fp8_gemm": (
        "1424 TFLOP/s at 4096 × 4096 × 7168, 1484 at 4096 × 7168 × 16384 on H800",
        "DeepGEMM, pull request 168; its README has 1550 without a shape",
    ),
    "hopper/grouped_gemm": (
        "1297 TFLOP/s in fp8 for 4 groups of 8192 rows, N 4096, K 7168, on H800; in bf16, 160 for 128 groups of about "
        "512 rows, N 1536, K 2048, on H100",
        "DeepGEMM, its first README; tgale96/grouped_gemm, pull request 37, with CUTLASS",
    ),
    "hopper/attention": (
        "590 TFLOP/s for 4 × 16 heads of 4096 rows, head 128, 648 at 16k, on H100",
        "FlashAttention-3 in pytorch/benchmark, pull request 2391, and in its paper; cuDNN 595 at 16k",
    ),
    "hopper/attention_overlap": ("648 TFLOP/s at 16k, head 128, on H100", "FlashAttention-3 paper; cuDNN 595"),
    "hopper/decode_attention": (
        "135 µs (4.0 TB/s) for 32 sequences of 4096 keys, 32 heads on 8 of keys, head 128, on H200",
        "TileOPs, pull request 2136, faster than FlashInfer and FlashAttention-3 there; as many bytes as ours",
    ),
    "hopper/attention_backward_dq": (BACKWARD, BACKWARD_SOURCE),
    "hopper/attention_backward_dkv": (BACKWARD, BACKWARD_SOURCE),
    "blackwell/tcgen05_tile": (NONE, ONE_TILE),
    "blackwell/ring_gemm": (
        "1054 TFLOP/s at 4096³ on B200",
        "gau-nernst/learn-cuda, 02e_matmul_sm100, v4; cuBLAS 1359 in the same table",
    ),
    "blackwell/two_sm_gemm": (
        "1285 TFLOP/s at 4096³ on B200",
        "ThunderKittens, educational_b200, level 9; gau-nernst/learn-cuda, v5, 1170",
    ),
    "blackwell/persistent_gemm": (
        f"1540 TFLOP/s at 4096³, 1610 at 8192³, 1723 {SQUARES}, on B200",
        f"ThunderKittens; tilus in fp16, as fast as cuBLAS there; {CUBLAS}; Modular's last article has 1772",
    ),
    "blackwell/block_scaled_gemm": (
        f"3172 TFLOP/s for mxfp8 on B200, {SQUARES}",
        f"{CUBLAS}; Gluon's tutorial has 2378 at 8192³ on a Blackwell GPU without a name",
    ),
    "blackwell/grouped_gemm": (
        "1.21 times CUTLASS for seven sets of 3 or 4 groups in fp16, as fast as DeepGEMM for its eight shapes in bf16, "
        "on B200",
        "Helion, pull requests 3318 and 3319",
    ),
    "blackwell/attention": (
        "1613 TFLOP/s on B200 at its best shape", "FlashAttention-4 paper, up to 1.3 times cuDNN 9.13"
    ),
    "blackwell/nvfp4_gemm": (
        f"6242 TFLOP/s for nvfp4 on B200, {SQUARES}",
        f"{CUBLAS}; Gluon's tutorial has 4847 at 8192³ on a Blackwell GPU without a name",
    ),
    "patterns/dependent_launch": (NONE, "what the overlap saves depends on the kernels before and after"),
    "patterns/grid_barrier": (
        "1.09 µs for a barrier of 132 CTAs on H100", "revollllt/flash-vla, of cooperative groups: ours is in the kernel"
    ),
    "patterns/cluster_reduction": (
        "about 3.02 TB/s at 32768 × 65536 in bf16 on H100", "QuACK's RMSNorm, which sums rows over a cluster, too"
    ),
    "patterns/kernel_timeline": (NONE, "a small copy that is there to be observed"),
    "rtx/bf16_gemm": (
        "236 TFLOP/s at 8192³ on RTX 5090; at 400 W 201, where cuBLAS has 167",
        "cuBLAS in zzc0721/torch-performance-test-data, pull request 15; gau-nernst/learn-cuda, 02c_matmul_sm120",
    ),
    "rtx/fp8_gemm": (
        "503 TFLOP/s at 4096 × 4096 × 8192 on RTX 5090 at 400 W",
        "gau-nernst/learn-cuda, 08_row_scaled_mm, by the instruction for mxfp8; CUTLASS 389 at 4096³ in "
        "pytorch/pytorch, pull request 155991",
    ),
    "rtx/block_scaled_gemm": (
        f"660 TFLOP/s for mxfp8 and 1306 for nvfp4 on RTX 5090 at 600 W, 552 and 1165 at 400 W, {SQUARES}", CUBLAS
    ),
    "tcgen05/alloc": (NONE, ONE_STEP),
    "tcgen05/load_store": (NONE, ONE_STEP),
    "tcgen05/copy": (NONE, ONE_STEP),
    "tcgen05/shift": (NONE, ONE_STEP),
    "tcgen05/commit_and_fences": (NONE, ONE_STEP),
    "tcgen05/mma_tf32": (NONE, ONE_TILE),
    "tcgen05/mma_i8": (NONE, ONE_TILE),
    "tcgen05/mma_f8f6f4": (NONE, ONE_TILE),
    "tcgen05/mma_mxf8": (NONE, ONE_TILE),
    "tcgen05/mma_mxf4": (NONE, ONE_TILE),
    "tcgen05/mma_nvf4": (NONE, ONE_TILE),
    "tcgen05/mma_ws": (NONE, ONE_TILE),
    "tcgen05/mma_sparse": (NONE, ONE_TILE),
}  # fmt: skip
"""By example: the figure, and where it is from; or that none is known, and why."""
