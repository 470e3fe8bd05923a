"""The GPUs that the driver can pretend to have, and their attributes. Limits of an SM come from `isa.limits`."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from pyptx.isa.limits import KIB, LARGEST_BLOCK, LARGEST_GRID, STATIC_SHARED, WARP_SIZE, sm_limits

_NAMESPACE = UUID("7d6f3a52-5d1c-4a86-9a3e-6a1f0c8f2b11")
_MIB, _GIB = 1 << 20, 1 << 30
MULTICAST_SUPPORTED = 132
"""The attribute of devices behind a switch, by its number in the enum `CUdevice_attribute`."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU: its name, target, SMs, bytes of memory and L2, clocks in kHz, and memory bus in bits."""

    name: str
    target: str
    sms: int
    memory: int
    l2: int
    clock: int
    memory_clock: int
    bus: int

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability."""
        number = int("".join(filter(str.isdigit, self.target)))
        return divmod(number, 10)

    def make_uuid(self, ordinal: int) -> bytes:
        """Return the identity of the device at an ordinal, the same in every run."""
        return uuid5(_NAMESPACE, f"{self.name} {ordinal}").bytes


DEVICES = {
    "a100": Device("NVIDIA A100-SXM4-80GB", "sm_80", 108, 80 * _GIB, 40 * _MIB, 1_410_000, 1_593_000, 5120),
    "h100": Device("NVIDIA H100 80GB HBM3", "sm_90a", 132, 80 * _GIB, 50 * _MIB, 1_980_000, 2_619_000, 5120),
    "h200": Device("NVIDIA H200", "sm_90a", 132, 141 * _GIB, 50 * _MIB, 1_980_000, 3_201_000, 6144),
    "b200": Device("NVIDIA B200", "sm_100a", 148, 180 * _GIB, 126 * _MIB, 1_965_000, 3_996_000, 8192),
    "b300": Device("NVIDIA B300", "sm_103a", 148, 270 * _GIB, 126 * _MIB, 1_965_000, 3_996_000, 8192),
    "rtx4090": Device("NVIDIA GeForce RTX 4090", "sm_89", 128, 24 * _GIB, 72 * _MIB, 2_520_000, 10_501_000, 384),
    "rtx5090": Device("NVIDIA GeForce RTX 5090", "sm_120a", 170, 32 * _GIB, 96 * _MIB, 2_407_000, 14_001_000, 512),
}


def list_attributes(device: Device, ordinal: int) -> dict[int, int]:
    """Return the attributes that differ from 0, by their number in the enum `CUdevice_attribute`."""
    limits = sm_limits(device.target)
    major, minor = device.capability
    is_hopper = major >= 9
    numbers = dict.fromkeys(_YES, 1)
    numbers |= {
        1: limits.threads_per_cta, 8: STATIC_SHARED, **dict(enumerate((*LARGEST_BLOCK, *LARGEST_GRID), 2)),
        9: 64 * KIB, 10: WARP_SIZE, 11: 2**31 - 1, 12: limits.registers, 13: device.clock, 14: 512, 16: device.sms,
        21: 131072, 22: 131072, 23: 65536, 24: 16384, 25: 16384, 26: 16384, 27: 32768, 28: 32768, 29: 2048, 30: 512,
        33: ordinal + 1, 36: device.memory_clock, 37: device.bus, 38: device.l2, 39: limits.threads, 40: 3,
        42: 32768, 43: 2048, 45: 32768, 46: 32768, 51: 32, 52: 32768, 53: 32768, 54: 2046, 55: 32768, 56: 131072,
        57: 65536, 58: 16384, 59: 16384, 60: 16384, 61: 32768, 62: 2048, 63: 32768, 64: 32768, 65: 2048, 66: 32768,
        67: 32768, 68: 2046, 69: 268435456, 70: 131072, 71: 65000, 72: 2097120, 73: 32768, 74: 32768, 75: major,
        76: minor, 77: 32768, 81: limits.shared, 82: limits.registers, 87: 2 if major in (8, 9, 10) else 64,
        97: limits.shared_per_cta, 106: limits.ctas, 108: device.l2 * 5 // 8, 109: 128 * _MIB,
        111: limits.reserved_shared, 120: int(is_hopper), 126: 4 if is_hopper else 1, 127: int(is_hopper),
        130: 0, 131: 0xFFFFFFFF, MULTICAST_SUPPORTED: int(major in (9, 10)), 134: 0xFFFFFFFF,
    }  # fmt: skip
    return numbers


_YES = (15, 19, 31, 41, 44, 78, 79, 80, 83, 89, 90, 91, 92, 93, 94, 95, 99, 102, 115, 122, 123, 129, 142, 144)
"""What every device can do: attributes that are 1."""
