"""What warpgroups have issued, accessed and waited for. Those with equal histories share a book; a query for some of
them splits it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyptx.sim.base.events import Ints, Place

Registers = frozenset[int]
Ranks = tuple[int, ...]
WHOLE: Ranks = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Product:
    """One wgmma in flight, with a row of records of its operands for each warpgroup of the book."""

    place: Place
    registers: Registers
    records: Ints


@dataclass(slots=True)
class WarpBook:
    """What one warp of each warpgroup has fenced, accessed and waited for; `known`: it has fenced or issued at all."""

    known: bool = False
    fenced: bool = False
    touched: dict[Registers, Place] = field(default_factory=dict[Registers, Place])
    committed: int = 0
    waited: int = 0

    def copy(self) -> WarpBook:
        return WarpBook(self.known, self.fenced, dict(self.touched), self.committed, self.waited)


@dataclass(slots=True, eq=False)
class Book:
    """The groups of several warpgroups, identified by their first warps, and their four warps by rank. `shapes` are
    those of the accumulators since the last fence, `latest` the last of them."""

    bases: list[int]
    warps: list[WarpBook] = field(default_factory=lambda: [WarpBook() for _ in WHOLE])
    open: list[Product] = field(default_factory=list[Product])
    groups: list[list[Product]] = field(default_factory=list[list[Product]])
    first_group: int = 0
    shapes: list[tuple[Registers, str]] = field(default_factory=list[tuple[Registers, str]])
    latest: tuple[Registers, str] = (frozenset(), "")

    @property
    def committed(self) -> int:
        """The number of groups so far."""
        return self.first_group + len(self.groups)

    @property
    def idle(self) -> bool:
        """Whether all warps have waited for everything issued."""
        return not self.open and not self.groups and all(
            warp.waited == warp.committed == self.first_group for warp in self.warps
        )  # fmt: skip

    def taken(self, bases: Iterable[int]) -> Book:
        """Remove some warpgroups and return their own book."""
        removed = set(bases)
        mine = [at for at, base in enumerate(self.bases) if base in removed]
        rest = [at for at, base in enumerate(self.bases) if base not in removed]
        other = Book(
            [self.bases[at] for at in mine], [warp.copy() for warp in self.warps], _select_products(self.open, mine),
            [_select_products(group, mine) for group in self.groups], self.first_group, list(self.shapes), self.latest,
        )  # fmt: skip
        self.bases = [self.bases[at] for at in rest]
        self.open, self.groups = (
            _select_products(self.open, rest),
            [_select_products(group, rest) for group in self.groups],
        )
        return other

    def join(self, other: Book) -> None:
        """Add the warpgroups of another idle book; all of them have just fenced."""
        self.bases += other.bases
        self.first_group = max(self.first_group, other.first_group)
        for warp in self.warps:
            warp.committed = warp.waited = self.first_group


def _select_products(products: list[Product], rows: list[int]) -> list[Product]:
    return [Product(product.place, product.registers, product.records[rows]) for product in products]


@dataclass(frozen=True, slots=True)
class Part:
    """Some warps of all warpgroups of a book, and the position of each warpgroup in the query."""

    book: Book
    ranks: Ranks
    at: list[int]


class Books:
    """The book of every warpgroup that has one. `version` rises when warpgroups change their book."""

    def __init__(self) -> None:
        self.version = 0
        self._of: dict[int, Book] = {}

    def forget(self, bases: Iterable[int]) -> None:
        """Forget ended warpgroups."""
        for base in bases:
            book = self._of.pop(base, None)
            if book is not None:
                self.version += 1
                if len(book.bases) > 1:
                    book.taken([base])

    def parts(self, bases: Sequence[int], ranks: Sequence[Ranks], create: bool) -> list[Part]:
        """Return the books of some warps of warpgroups; create missing ones only with `create`."""
        fresh = [base for base in dict.fromkeys(bases) if base not in self._of] if create else []
        if fresh:
            self._of.update(dict.fromkeys(fresh, Book(fresh)))
            self.version += 1
        chosen: dict[tuple[int, Ranks], tuple[Book, dict[int, int]]] = {}
        for at, (base, rank) in enumerate(zip(bases, ranks, strict=True)):
            book = self._of.get(base)
            if book is not None:
                chosen.setdefault((id(book), rank), (book, {}))[1][base] = at
        divided: list[Part] = []
        for (_, rank), (book, places) in chosen.items():
            if len(places) < len(book.bases):
                book = book.taken(places)
                self._of.update(dict.fromkeys(book.bases, book))
                self.version += 1
            divided.append(Part(book, rank, [places[base] for base in book.bases]))
        return divided

    def join(self, parts: Sequence[Part]) -> None:
        """Let idle warpgroups that have all just fenced share a book."""
        idle = [part.book for part in parts if part.ranks == WHOLE and part.book.idle]
        for book in idle[1:]:
            idle[0].join(book)
            self._of.update(dict.fromkeys(book.bases, idle[0]))
            self.version += 1
