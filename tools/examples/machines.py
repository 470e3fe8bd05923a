"""Published rates of GPUs with their sources. No number is borrowed from another GPU: None is unknown.

Measured rates, except where a source is a specification.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FLASH_VLA = "revollllt/flash-vla, constants and unit reports for H100"
MICROBENCH = "lookup1980/microbench-blackwell"
HOPPER_PAPER = "arXiv 2402.13499"


@dataclass(frozen=True)
class Machine:
    """A GPU: `tensor` is FLOP per clock and SM by operand bits, for the target's own instructions. `shared` is bytes
    per clock and SM of shared memory and of L1, `ingest` of asynchronous loads; `l2` is bytes per clock of all SMs
    together, `memory` GB/s, `clock` MHz."""

    name: str
    sms: int
    clock: int
    tensor: dict[int, float]
    shared: int
    ingest: float | None
    l2: float | None
    memory: float | None
    sources: tuple[str, ...]


MACHINES = {
    "sm_80": Machine(
        "A100", 108, 1410, {16: 2048}, 128, None, 2008, 2039,
        (
            "tensor cores: 312 TFLOP/s of the specification, and the spacing that ptxas writes",
            "memory of the SXM version with 80 GB: specification",
            f"L2: 2,008 B/clk of plain loads, {HOPPER_PAPER}; cuBLAS's 262 TFLOP/s at 8192³ need 8 % more, if its "
            "tiles are 128 x 256",
        ),
    ),
    "sm_89": Machine(
        "RTX 4090", 128, 2520, {16: 512, 8: 1024}, 128, None, 1708, 1008,
        (
            "165.2 and 330.3 TFLOP/s with f32 accumulation, clock and memory: specification",
            f"L2: 1,708 B/clk of plain loads, {HOPPER_PAPER}",
        ),
    ),
    "sm_90a": Machine(
        "H100 SXM5", 132, 1830, {16: 4096, 8: 8192}, 128, 69, 9168, 3172,
        (
            f"TMA from L2 18,152 GB/s at 1.98 GHz and from memory 3,172 GB/s: {FLASH_VLA}",
            "L2: the same 18,152 GB/s, 9,168 B/clk, of few lines that all SMs read; plain loads of an H800 with 114 "
            f"SMs reached 3,942 B/clk ({HOPPER_PAPER}), less than tma_ring needs for its rate on an H200",
            "wgmma intervals: the same; the clock behind 989 TFLOP/s: FlashAttention-3, appendix C.1",
        ),
    ),
    "sm_100a": Machine(
        "B200", 148, 1965, {16: 8192, 8: 16384, 4: 32768}, 128, 81, None, 7260,
        (
            f"tcgen05.mma intervals, 81 B/clk into one SM, TMA from memory 7,260 GB/s: {MICROBENCH}",
            "the reported clock during runs: the same",
            "L2: not known; the probe's 13,179 GB/s are less than gau-nernst/learn-cuda needs for 1,054 TFLOP/s with "
            "tiles of 128 x 128",
        ),
    ),
    "sm_120a": Machine(
        "RTX 5090", 170, 2407, {16: 511, 8: 1022}, 128, None, None, 1503,
        (f"mma.sync with f32 accumulation, TMA from memory: {MICROBENCH}", "clock: 209.5 TFLOP/s of the specification"),
    ),
}  # fmt: skip
MACHINES["sm_90"] = MACHINES["sm_90a"]
H200 = replace(
    MACHINES["sm_90a"], name="H200", ingest=None, l2=None, memory=4800,
    sources=("SMs, clock and tensor cores as of the H100, whose 989 TFLOP/s it has, and memory: specification",),
)  # fmt: skip
"""What has timed the examples."""
