"""What to do about a hang, by what the awaited event lacks."""

from __future__ import annotations

from collections.abc import Collection

from pyptx.diagnostics import format_count

BARS = "let every warp that the barrier counts arrive: move it out of the branch, or count only the warps that arrive"
CLUSTERS = "let every thread of every CTA of the cluster execute `barrier.cluster.arrive` and `.wait`"
COLUMNS = (
    "let the warp that holds columns execute `tcgen05.dealloc` first, request fewer columns, or allocate once and "
    "divide them: a CTA has 512"
)
OTHERS = "`report` of the error, or `pyptx sim --verbose`, lists who waits for whom and who could still arrive"
PHASES = (
    "let a thread arrive, or correct the parity: the first phase of a fresh mbarrier has parity 0; a wait with parity "
    "1 passes immediately, as a producer that waits for free slots needs"
)
AHEAD = (
    "let the arriving threads wait for the waiting ones before they arrive again, as a producer waits for a free slot: "
    "they completed phases that no wait had observed, and this wait missed one"
)
WAIT_FIRST = (
    "let this thread wait until the previous phase was observed before it arrives again, as a producer waits for a "
    "free slot"
)
OVERWRITE = "let the first product of a tile overwrite its sums, by a false `scale-d`, or set them to zero before it"
COUNT = (
    "correct the count of `mbarrier.init`: more threads arrive in a phase than it counts, so phases complete early and "
    "a wait misses one"
)


def has_begun(pending: int, count: int, tx: int) -> bool:
    """Tell whether part of a phase has arrived, but not all."""
    return 0 < pending < count or tx != 0


def advise_phase(pending: int, count: int, tx: int, announced: int) -> str:
    """Say what can complete the current phase of an mbarrier, which was told to expect the announced bytes."""
    if tx > 0:
        return (
            f"`expect_tx` expects {announced} bytes and {announced - tx} arrived: lower it, or let the missing copy "
            "signal this mbarrier; out-of-bounds parts of a TMA box still count"
        )
    if tx < 0:
        return (
            f"let `expect_tx` expect the {announced - tx} bytes that arrived instead of {announced}, or let the copy "
            "that delivered too many signal another mbarrier"
        )
    if has_begun(pending, count, tx):
        return (
            f"`mbarrier.init` counts {count} arrivals, of which {count - pending} occurred: correct the count, or let "
            f"the other {pending} arrive"
        )
    return PHASES


def advise_cycle(kinds: Collection[str]) -> str:
    """Say how to break a circular wait for events of these kinds; empty if only the guilty wait can tell."""
    if kinds == {"mbarrier"}:
        return (
            "let one of these waits pass first: a consumer's first wait for data uses parity 0, a producer's first "
            "wait for a free slot parity 1, which passes immediately on a fresh mbarrier; or arrive before waiting"
        )
    if kinds == {"bar"}:
        return "let all warps reach these barriers in one order, or use `bar.arrive` where a warp need not wait"
    return ""


def describe_absent(noun: str, count: int) -> str:
    """Say how many threads or lanes have not arrived."""
    return f"{format_count(noun, count)} {'has' if count == 1 else 'have'} not arrived"


def describe_phase(phase: int, pending: int, count: int, tx: int, announced: int) -> str:
    """Say what the current phase of an mbarrier lacks."""
    parts: list[str] = []
    if pending:
        parts.append(f"{pending} of {count} arrivals missing")
    if tx:
        parts.append(f"{announced - tx} bytes arrived, {announced} expected")
    if pending == count and not tx and phase:
        parts.append(f"phase {phase - 1} completed; phase {phase} has not begun")
    return ", ".join(parts) or "complete"
