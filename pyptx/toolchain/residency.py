"""How many CTAs of a kernel fit on one SM: the rules of the CUDA occupancy calculator, as a pure function."""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.isa.limits import WARP_SIZE, SmLimits, sm_limits


@dataclass(frozen=True, slots=True)
class Occupancy:
    """CTAs and warps resident on one SM. `limits` says how many CTAs each resource alone would allow, and `limited_by`
    names the most restrictive ones."""

    ctas: int
    warps: int
    max_warps: int
    limits: tuple[tuple[str, int], ...]

    @property
    def fraction(self) -> float:
        return self.warps / self.max_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        return tuple(name for name, count in self.limits if count == self.ctas)


def occupancy(target: str, threads: int, *, registers: int, shared: int = 0, barriers: int = 0) -> Occupancy:
    """Return how many CTAs of `threads` threads fit on one SM of `target`. `registers` is per thread; `shared` is
    static plus dynamic bytes per CTA, without the reserved part. No CTA fits if one alone exceeds a limit. Assumes the
    largest shared-memory carve-out, which a kernel that needs it should request."""
    if threads < 1 or registers < 0 or shared < 0 or barriers < 0:
        raise ValueError("expected at least one thread and no negative values")
    sm = sm_limits(target)
    warps = -(-threads // WARP_SIZE)
    limits = {"threads": _count_by_threads(sm, threads, warps), "ctas": sm.ctas}
    if registers:
        limits["registers"] = _count_by_registers(sm, registers, warps)
    if shared_use := _round_up(shared + sm.reserved_shared, sm.shared_granularity):
        limits["shared"] = sm.shared // shared_use if shared <= sm.shared_per_cta else 0
    if barriers and sm.barriers is not None:
        limits["barriers"] = sm.barriers // barriers
    ctas = min(limits.values())
    return Occupancy(ctas, ctas * warps, sm.threads // WARP_SIZE, tuple(limits.items()))


def _count_by_threads(sm: SmLimits, threads: int, warps: int) -> int:
    return 0 if threads > sm.threads_per_cta else sm.threads // WARP_SIZE // warps


def _count_by_registers(sm: SmLimits, registers: int, warps: int) -> int:
    """Return the number of CTAs that the registers allow: warps get registers in units of 256, all from one of the four
    partitions."""
    per_warp = _round_up(registers * WARP_SIZE, sm.register_granularity)
    if registers > sm.registers_per_thread:
        return 0
    return sm.registers // sm.partitions // per_warp * sm.partitions // warps


def _round_up(amount: int, step: int) -> int:
    return -(-amount // step) * step
