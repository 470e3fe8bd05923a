"""What to do about a hang, by what is missing of the thing that is waited for."""

from __future__ import annotations

BARS = "let every warp that the barrier counts come to it: move it out of the branch, or count those that do come"
CLUSTERS = "let every thread of every CTA of the cluster execute `barrier.cluster.arrive` and `.wait`"
COLUMNS = (
    "let who holds columns come to `tcgen05.dealloc` before, ask for fewer, or allocate once and divide: a CTA has 512"
)
OTHERS = "see in the notes who waits for whom, and who could bring it about"
_PHASES = (
    "let somebody arrive, or correct the parity: the first phase of a fresh barrier has parity 0; a wait with parity 1 "
    "passes it at once, which is what a producer wants that waits for free slots"
)


def begun(pending: int, count: int, tx: int) -> bool:
    """Tell whether something of a phase has come, and not all."""
    return 0 < pending < count or tx != 0


def of_phase(pending: int, count: int, tx: int) -> str:
    """Return what may complete the running phase of an mbarrier."""
    if tx > 0:
        return (
            f"`expect_tx` asks for {tx} bytes too many, or a copy that brings them is missing or names another "
            "barrier; whole boxes count, also out of bounds"
        )
    if tx < 0:
        return f"let `expect_tx` ask for {-tx} bytes more, or let the copy that brought them name another barrier"
    if begun(pending, count, tx):
        return (
            f"{count - pending} of the {count} arrivals that `mbarrier.init` asks for came: let the others arrive, "
            "or ask for fewer"
        )
    return _PHASES
