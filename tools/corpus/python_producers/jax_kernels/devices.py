"""Descriptions of GPUs that XLA compiles for without one; sizes and speeds are round and only steer its cost model."""

from __future__ import annotations

from dataclasses import dataclass

PATTERN = """
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {shared_per_core}
  threads_per_core_limit: {threads}
  core_count: {cores}
  fpus_per_core: {fpus}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth}
  l2_cache_size: {cache}
  clock_rate_ghz: {clock}
  device_memory_size: {memory}
  shared_memory_per_block_optin: {shared}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 }}
runtime_version {{ major: 12 minor: 9 }}
device_description_str: "{name}"
"""


@dataclass(frozen=True)
class Device:
    """What XLA's cost model and code generator ask of a GPU."""

    name: str
    major: int
    minor: int
    cores: int
    threads: int
    fpus: int
    shared: int
    shared_per_core: int
    cache: int
    memory: int
    bandwidth: int
    clock: float

    def text(self) -> str:
        """The target configuration in XLA's text form."""
        return PATTERN.format(**vars(self))


GIB = 1 << 30
DEVICES = {
    "sm_75": Device("Tesla T4", 7, 5, 40, 1024, 64, 65536, 65536, 4 << 20, 16 * GIB, 320 * 10**9, 1.59),
    "sm_80": Device("A100-SXM4-40GB", 8, 0, 108, 2048, 64, 166912, 167936, 40 << 20, 40 * GIB, 1555 * 10**9, 1.41),
    "sm_86": Device("RTX A6000", 8, 6, 84, 1536, 128, 101376, 102400, 6 << 20, 48 * GIB, 768 * 10**9, 1.8),
    "sm_89": Device("L40S", 8, 9, 142, 1536, 128, 101376, 102400, 96 << 20, 48 * GIB, 864 * 10**9, 2.52),
    "sm_90": Device("H100 80GB HBM3", 9, 0, 132, 2048, 128, 232448, 233472, 50 << 20, 80 * GIB, 3352 * 10**9, 1.98),
    "sm_100": Device("B200", 10, 0, 148, 2048, 128, 232448, 233472, 126 << 20, 180 * GIB, 8000 * 10**9, 1.96),
    "sm_120": Device("RTX PRO 6000", 12, 0, 188, 1536, 128, 101376, 102400, 128 << 20, 96 * GIB, 1792 * 10**9, 2.6),
}
