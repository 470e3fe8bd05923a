"""Published rates of GPUs with their sources. No number is borrowed from another GPU: None is unknown.

Measured rates, except where a source is a specification.
"""

from __future__ import annotations

from dataclasses import dataclass

FLASH_VLA = "revollllt/flash-vla, constants and unit reports for H100"
MICROBENCH = "lookup1980/microbench-blackwell"


@dataclass(frozen=True)
class Machine:
    """A GPU: `tensor` is FLOP per clock and SM by operand bits, for the target's own instructions; `shared` and
    `ingest` are bytes per clock and SM, `memory` GB/s, `clock` MHz."""

    name: str
    sms: int
    clock: int
    tensor: dict[int, float]
    shared: int
    ingest: float | None
    memory: float | None
    sources: tuple[str, ...]


MACHINES = {
    "sm_80": Machine(
        "A100", 108, 1410, {16: 2048}, 128, None, 2039,
        (
            "tensor cores: 312 TFLOP/s of the specification, and the spacing that ptxas writes",
            "memory of the SXM version with 80 GB: specification",
        ),
    ),
    "sm_89": Machine(
        "RTX 4090", 128, 2520, {16: 512, 8: 1024}, 128, None, 1008,
        ("165.2 and 330.3 TFLOP/s with f32 accumulation, clock and memory: specification",),
    ),
    "sm_90a": Machine(
        "H100 SXM5", 132, 1830, {16: 4096, 8: 8192}, 128, 69, 3172,
        (
            f"TMA from L2 18,152 GB/s at 1.98 GHz and from memory 3,172 GB/s: {FLASH_VLA}",
            "wgmma intervals: the same; the clock behind 989 TFLOP/s: FlashAttention-3, appendix C.1",
        ),
    ),
    "sm_100a": Machine(
        "B200", 148, 1965, {16: 8192, 8: 16384, 4: 32768}, 128, 81, 7260,
        (
            f"tcgen05.mma intervals, 81 B/clk into one SM, TMA from memory 7,260 GB/s: {MICROBENCH}",
            "the reported clock during runs: the same",
        ),
    ),
    "sm_120a": Machine(
        "RTX 5090", 170, 2407, {16: 511, 8: 1022}, 128, None, 1503,
        (f"mma.sync with f32 accumulation, TMA from memory: {MICROBENCH}", "clock: 209.5 TFLOP/s of the specification"),
    ),
}  # fmt: skip
MACHINES["sm_90"] = MACHINES["sm_90a"]
