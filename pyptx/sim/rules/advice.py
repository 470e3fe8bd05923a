"""What to do about a hang, by what is missing of the thing that is waited for."""

from __future__ import annotations

from collections.abc import Collection

BARS = "let every warp that the barrier counts arrive: move it out of the branch, or count only the warps that arrive"
CLUSTERS = "let every thread of every CTA of the cluster execute `barrier.cluster.arrive` and `.wait`"
COLUMNS = (
    "let the warp that holds columns execute `tcgen05.dealloc` first, ask for fewer columns, or allocate once and "
    "divide them: a CTA has 512"
)
OTHERS = "`report` of the error, or `pyptx sim --verbose`, lists who waits for whom and who could still arrive"
PHASES = (
    "let a thread arrive, or correct the parity: the first phase of a fresh barrier has parity 0; a wait with parity 1 "
    "passes at once, which is right for a producer that waits for free slots"
)
COUNT = (
    "correct the count of `mbarrier.init`: more threads arrive in a phase than it counts, so phases end early and a "
    "wait misses one"
)


def begun(pending: int, count: int, tx: int) -> bool:
    """Tell whether something of a phase has come, and not all."""
    return 0 < pending < count or tx != 0


def of_phase(pending: int, count: int, tx: int) -> str:
    """Return what may complete the running phase of an mbarrier."""
    if tx > 0:
        return (
            f"`expect_tx` expects {tx} bytes that no copy delivered: lower it, or let the missing copy signal this "
            "barrier; out-of-bounds parts of a TMA box still count"
        )
    if tx < 0:
        return f"let `expect_tx` expect {-tx} bytes more, or let the copy that delivered them signal another barrier"
    if begun(pending, count, tx):
        return (
            f"`mbarrier.init` counts {count} arrivals and {count - pending} came: correct the count, or let the other "
            f"{pending} arrive"
        )
    return PHASES


def of_circle(kinds: Collection[str]) -> str:
    """Return what to do about a circular wait for things of these kinds, empty where that is up to the one to blame."""
    if kinds == {"mbarrier"}:
        return (
            "let one of these waits pass first: a producer's first wait for a free slot takes parity 1, which passes "
            "at once on a fresh barrier; or arrive before waiting"
        )
    if kinds == {"bar"}:
        return "let all warps come to these barriers in one order, or use `bar.arrive` where a warp need not wait"
    return ""


def phase_missing(phase: int, pending: int, count: int, tx: int, parity: int | None) -> str:
    """Say what the running phase of an mbarrier lacks, and what a wait with this parity makes of it."""
    parts: list[str] = []
    if pending:
        parts.append(f"{pending} of {count} arrivals missing")
    if tx:
        parts.append(f"{tx} bytes expected and not copied" if tx > 0 else f"{-tx} bytes copied that nobody expected")
    if parity is not None and phase & 1 != parity:
        parts.append(f"parity {parity} is that of the last phase, so this wait is already true")
    elif pending == count and not tx and phase:
        parts.append(f"phase {phase - 1} completed; nothing of phase {phase} has begun")
    return ", ".join(parts) or "complete"
