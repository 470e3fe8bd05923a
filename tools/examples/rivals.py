"""Published figures of others for the same problem, with their sources: what the kernels have to beat."""

from __future__ import annotations

BACKWARD = "561 TFLOP/s at 16k, head 128, on H100 for both parts together"
BACKWARD_SOURCE = "FlashAttention-3 paper, with five products where ours compute seven; cuDNN 516"
RIVALS = {
    "ampere/pipelined_gemm": ("221 TFLOP/s at 4096³ on A100", "a published PTX kernel; cuBLAS 244 in the same table"),
    "ampere/stream_k_gemm": ("221 TFLOP/s at 4096³ on A100", "a published PTX kernel; cuBLAS 244 in the same table"),
    "hopper/cluster_gemm": ("763 TFLOP/s at 4096³ on H100", "fast.cu; cuBLAS 716 in the same table"),
    "hopper/persistent_gemm": ("763 TFLOP/s at 4096³, 808 at 8192³ on H100", "fast.cu; cuBLAS 716 and 795"),
    "hopper/fp8_gemm": ("1550 TFLOP/s on H800", "DeepGEMM, its best shape"),
    "hopper/attention": ("648 TFLOP/s at 16k, head 128, on H100", "FlashAttention-3 paper; cuDNN 595"),
    "hopper/attention_overlap": ("648 TFLOP/s at 16k, head 128, on H100", "FlashAttention-3 paper; cuDNN 595"),
    "hopper/attention_backward_dq": (BACKWARD, BACKWARD_SOURCE),
    "hopper/attention_backward_dkv": (BACKWARD, BACKWARD_SOURCE),
    "hopper/decode_attention": ("6.9 µs at 1k keys on H200", "TileOPs; FlashInfer 9.5, FlashAttention-3 16.2"),
    "blackwell/two_sm_gemm": ("1170 TFLOP/s at 4096³ on B200", "gau-nernst/learn-cuda, the 2-SM step"),
    "blackwell/persistent_gemm": ("1610 TFLOP/s at 8192³ on B200", "tilus; cuBLAS 1600 in the same table"),
    "blackwell/block_scaled_gemm": ("2378 TFLOP/s for mxfp8 on B200", "Gluon"),
    "blackwell/nvfp4_gemm": ("4847 TFLOP/s for nvfp4 on B200", "Gluon"),
    "blackwell/attention": ("1613 TFLOP/s at 16k, head 128, on B200", "FlashAttention-4"),
    "rtx/bf16_gemm": ("201 TFLOP/s at 8192³ on RTX 5090", "a published PTX kernel; cuBLAS 167"),
    "any/softmax": ("3.01 TB/s on H100", "QuACK; torch.compile about 2.0 in the same test"),
}
"""By example: the figure, and where it is from."""
