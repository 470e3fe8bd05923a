"""What an instruction does beyond computing, as its section of the table says.

A section's TRAITS give an instruction of its MEANING some of these words, perhaps with an object: `jumps:table`. What a
spelling says by itself is not repeated there: `.sync` gathers a warp.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from types import MappingProxyType


class Trait(StrEnum):
    """Something an instruction does."""

    # Enum hashes in Python; asking for a trait is as frequent as instructions are.
    __hash__ = str.__hash__

    JUMPS = "jumps"
    """Goes to a label; with `table`, to one of several, and never falls through."""
    CALLS = "calls"
    RETURNS = "returns"
    EXITS = "exits"
    """Ends the thread."""
    TRAPS = "traps"
    """Stops the kernel with an error."""

    GATHERS = "gathers"
    """Executed by the threads of a `warp` or `warpgroup` together. Follows from `.sync`, unless it meets."""
    ALIGNED = "aligned"
    """All threads of the warp must execute it together. Follows from `.aligned`."""
    MEETS = "meets"
    """Arrives or waits at a barrier of the `warp`, `cta` or `cluster`, or waits for another `grid`."""
    SUSPENDS = "suspends"
    """May suspend the thread until there are `registers` or `columns`, or the `phase` of an mbarrier completes."""
    PAUSES = "pauses"
    """Suspends the thread for some time, which loops that poll do."""

    ISSUES = "issues"
    """Gives work to an asynchronous engine."""
    COMMITS = "commits"
    """Closes a group of the work given to an engine, or lets an mbarrier track it."""
    LANDS = "lands"
    """Waits for groups of an engine's work."""

    OPAQUE = "opaque"
    """Works on an `mbarrier` or a `tensormap` in memory, whose bytes mean nothing to a program."""
    INITIALIZES = "initializes"
    SIGNALS = "signals"
    """Changes the pending count or the bytes of an mbarrier's phase."""
    TESTS = "tests"
    """Looks at the phase of an mbarrier."""

    LOADS = "loads"
    STORES = "stores"
    UPDATES = "updates"
    """Reads, changes and writes memory in one step."""
    ORDERS = "orders"
    """A fence: orders memory accesses, or accesses of the `registers` of products, or operations of `tcgen05`."""
    HINTS = "hints"
    """Names memory, but changes none and returns nothing of it."""
    ALLOCATES = "allocates"
    """Allocates `stack` or `columns` of tensor memory."""
    FREES = "frees"
    """Frees `columns` of tensor memory, or gives up the `permit` to allocate them."""
    TENSOR = "tensor"
    """Works on tensor memory."""

    MULTIPLIES = "multiplies"
    """Multiplies matrices."""
    REARRANGES = "rearranges"
    """Moves a matrix between memory and a warp's registers, by `rows` that lanes point to or as one `fragment`, or
    between its `lanes`."""
    CARRIES = "carries"
    """Copies bits unchanged: what nobody wrote does no harm before it is used."""
    YIELDS = "yields"
    """Returns a `uniform` value, equal in all lanes of a warp, or a `varying` one, whatever its operands are."""


LEAVES = frozenset((Trait.RETURNS, Trait.EXITS))
"""The thread leaves the function or the kernel."""
Traits = Mapping[Trait, str]
"""What an instruction does, each with its object; an empty string where there is none."""


_SPELLED = (("sync", Trait.GATHERS, "warp"), ("aligned", Trait.ALIGNED, ""))
"""What modifiers say by themselves."""


def read(words: str, modifiers: Collection[str]) -> Traits:
    """Return the traits that words of the table name, `multiplies issues:wgmma`, with those that modifiers add."""
    traits = {Trait(word): thing for word, _, thing in (part.partition(":") for part in words.split())}
    for modifier, trait, thing in _SPELLED:
        if modifier in modifiers and not (trait is Trait.GATHERS and Trait.MEETS in traits):
            traits.setdefault(trait, thing)
    return MappingProxyType(traits)
