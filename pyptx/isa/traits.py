"""The effects of an instruction, and the kind of value it computes, as listed in its section of the table.

A section's TRAITS assign these words to instructions of its MEANING, optionally with an object: `jumps:table`. Traits
implied by the spelling are not repeated there: `.sync` gathers a warp.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from types import MappingProxyType


class Trait(StrEnum):
    """An effect of an instruction."""

    # Enum computes hashes in Python; traits are queried as often as instructions occur.
    __hash__ = str.__hash__

    JUMPS = "jumps"
    """Branches to a label; with `table`, to one of several, and never falls through."""
    CALLS = "calls"
    RETURNS = "returns"
    EXITS = "exits"
    """Ends the thread."""
    TRAPS = "traps"
    """Stops the kernel with an error."""

    GATHERS = "gathers"
    """Executed by the threads of a `warp` or `warpgroup` together. Implied by `.sync`, unless it meets."""
    ALIGNED = "aligned"
    """All threads of the warp must execute it together. Implied by `.aligned`."""
    MEETS = "meets"
    """Arrives or waits at a barrier of the `warp`, `cta` or `cluster`, or waits for another `grid`."""
    ARRIVES = "arrives"
    """Arrives without waiting. Implied by `.arrive` and `.launch_dependents`, if it meets."""
    REDUCES = "reduces"
    """Reduces a predicate over the threads that meet. Implied by `.red`."""
    SUSPENDS = "suspends"
    """May suspend the thread until `registers` or `columns` are available, or the `phase` of an mbarrier completes."""
    PAUSES = "pauses"
    """Suspends the thread for some time, as polling loops do."""

    ISSUES = "issues"
    """Issues work to an asynchronous engine."""
    COMMITS = "commits"
    """Closes a group of the work issued to an engine, or lets an mbarrier track it."""
    LANDS = "lands"
    """Waits for groups of an engine's work."""

    OPAQUE = "opaque"
    """Operates on an `mbarrier` or `tensormap` object in memory, whose bytes are opaque to programs."""
    INITIALIZES = "initializes"
    SIGNALS = "signals"
    """Changes the pending count or the transaction bytes of an mbarrier's phase: by an `arrival`, one that is also a
    `drop`, an `expectation` of bytes, or their `completion`."""
    TESTS = "tests"
    """Tests the phase of an mbarrier."""

    LOADS = "loads"
    STORES = "stores"
    UPDATES = "updates"
    """Reads, modifies and writes memory in one step."""
    ORDERS = "orders"
    """A fence: orders memory accesses, register accesses of matrix products (`registers`), operations of `tcgen05`, or
    the copy of a `tensormap`."""
    HINTS = "hints"
    """Names memory, but neither changes nor returns it."""
    ALLOCATES = "allocates"
    """Allocates `stack` or `columns` of tensor memory."""
    FREES = "frees"
    """Frees `columns` of tensor memory, relinquishes the `permit` to allocate them, or frees the bytes of an
    `mbarrier`."""
    TENSOR = "tensor"
    """Operates on tensor memory."""
    MOVES = "moves"
    """Moves data to or within tensor memory, as a `copy` of shared memory or a `shift` of rows."""

    MULTIPLIES = "multiplies"
    """Multiplies matrices."""
    REARRANGES = "rearranges"
    """Moves a matrix between memory and a warp's registers, by `rows` addressed by lanes or as one `fragment`, or
    between its `lanes`."""
    CARRIES = "carries"
    """Copies bits unchanged: uninitialized data is harmless before it is used."""
    COMPUTES = "computes"
    """Returns a value of one of `VALUES`."""
    YIELDS = "yields"
    """Returns a `uniform` value, equal in all lanes of a warp, or a `varying` one, regardless of its operands."""


LEAVES = frozenset((Trait.RETURNS, Trait.EXITS))
"""The thread leaves the function or the kernel."""
Traits = Mapping[Trait, str]
"""The traits of an instruction, each with its object or an empty string."""


VALUES = {
    "copy": "the operand itself",
    "offset": "a value at a distance from an operand: an address, if the operand is one",
    "bitwise": "a number each of whose bits comes from the operands' bits at the same position",
    "pattern": "bits of the operands at other positions",
    "part": "a number that is a part of an operand",
    "mask": "a bit per lane",
}
"""The kinds of values that analyses of addresses, lanes and widths tell apart."""


PROXIES = {
    "cp.async": "generic", "store": "generic", "bulk": "async", "launch": "async", "wgmma": "async", "tcgen05": "async",
    "tcgen05.ld": "", "tcgen05.st": "",
}  # fmt: skip
"""The proxy through which each engine accesses shared and global memory (manual: Proxies), none if it does not."""

_SPELLED = (
    ("sync", Trait.GATHERS, "warp", False),
    ("aligned", Trait.ALIGNED, "", None),
    ("arrive", Trait.ARRIVES, "", True),
    ("launch_dependents", Trait.ARRIVES, "", True),
    ("red", Trait.REDUCES, "", True),
)
"""Traits implied by modifiers: of instructions that meet (True), of others (False), or of all."""


def read(words: str, modifiers: Collection[str]) -> Traits:
    """Return the traits that the table's words name, `multiplies issues:wgmma`, with those implied by modifiers."""
    traits = {Trait(word): parameter for word, _, parameter in (part.partition(":") for part in words.split())}
    for modifier, trait, parameter, meets in _SPELLED:
        if modifier in modifiers and meets in (None, Trait.MEETS in traits):
            traits.setdefault(trait, parameter)
    return MappingProxyType(traits)
