"""The `wgmma` history of warpgroups. Warpgroups with equal histories share a book; a query for some of them splits
it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyptx.sim.base.events import Ints, Place

Registers = frozenset[int]
Ranks = tuple[int, ...]
WHOLE: Ranks = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Product:
    """One `wgmma` in flight, with a row of operand records for each warpgroup of the book."""

    place: Place
    registers: Registers
    records: Ints


@dataclass(slots=True)
class WarpBook:
    """The history of the warps of one rank. `has_begun`: they have fenced or issued at all; `accesses`: registers
    accessed by other instructions since the last fence; `waits`: the number of groups waited for."""

    has_begun: bool = False
    has_fence: bool = False
    accesses: dict[Registers, Place] = field(default_factory=dict[Registers, Place])
    commits: int = 0
    waits: int = 0

    def copy(self) -> WarpBook:
        return WarpBook(self.has_begun, self.has_fence, dict(self.accesses), self.commits, self.waits)


@dataclass(slots=True, eq=False)
class Book:
    """The history of warpgroups, identified by their first warps: their warps by rank and their groups. `shapes` are
    the accumulator shapes since the last fence, `latest` the last of them."""

    bases: list[int]
    warps: list[WarpBook] = field(default_factory=lambda: [WarpBook() for _ in WHOLE])
    open: list[Product] = field(default_factory=list[Product])
    groups: list[list[Product]] = field(default_factory=list[list[Product]])
    first_group: int = 0
    shapes: list[tuple[Registers, str]] = field(default_factory=list[tuple[Registers, str]])
    latest: tuple[Registers, str] = (frozenset(), "")

    @property
    def group_count(self) -> int:
        """The number of groups committed so far."""
        return self.first_group + len(self.groups)

    @property
    def is_idle(self) -> bool:
        """Whether all warps have waited for all products."""
        return not self.open and not self.groups and all(
            warp.waits == warp.commits == self.first_group for warp in self.warps
        )  # fmt: skip

    def split_off(self, bases: Iterable[int]) -> Book:
        """Move some warpgroups to a new book and return it."""
        leaving = set(bases)
        mine = [index for index, base in enumerate(self.bases) if base in leaving]
        remaining = [index for index, base in enumerate(self.bases) if base not in leaving]
        split = Book(
            [self.bases[index] for index in mine], [warp.copy() for warp in self.warps],
            _select_products(self.open, mine), [_select_products(group, mine) for group in self.groups],
            self.first_group, list(self.shapes), self.latest,
        )  # fmt: skip
        self.bases = [self.bases[index] for index in remaining]
        self.open, self.groups = (
            _select_products(self.open, remaining),
            [_select_products(group, remaining) for group in self.groups],
        )
        return split

    def join(self, other: Book) -> None:
        """Add the warpgroups of another book. Both are idle, and all their warps have just fenced."""
        self.bases += other.bases
        self.first_group = max(self.first_group, other.first_group)
        for warp in self.warps:
            warp.commits = warp.waits = self.first_group


def _select_products(products: list[Product], rows: list[int]) -> list[Product]:
    return [Product(product.place, product.registers, product.records[rows]) for product in products]


@dataclass(frozen=True, slots=True)
class Part:
    """The warps of some ranks in a book, and the position of each warpgroup in the query."""

    book: Book
    ranks: Ranks
    positions: list[int]


class Books:
    """The books of all warpgroups. `version` is incremented when warpgroups change their book."""

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
                    book.split_off([base])

    def find_parts(self, bases: Sequence[int], ranks: Sequence[Ranks], create: bool) -> list[Part]:
        """Return the books of warps, given by warpgroup and ranks; add missing ones only with `create`."""
        fresh = [base for base in dict.fromkeys(bases) if base not in self._of] if create else []
        if fresh:
            self._of.update(dict.fromkeys(fresh, Book(fresh)))
            self.version += 1
        selection: dict[tuple[int, Ranks], tuple[Book, dict[int, int]]] = {}
        for index, (base, rank) in enumerate(zip(bases, ranks, strict=True)):
            book = self._of.get(base)
            if book is not None:
                selection.setdefault((id(book), rank), (book, {}))[1][base] = index
        parts: list[Part] = []
        for (_, rank), (book, places) in selection.items():
            if len(places) < len(book.bases):
                book = book.split_off(places)
                self._of.update(dict.fromkeys(book.bases, book))
                self.version += 1
            parts.append(Part(book, rank, [places[base] for base in book.bases]))
        return parts

    def join(self, parts: Sequence[Part]) -> None:
        """Let idle warpgroups that have all just fenced share a book."""
        idle = [part.book for part in parts if part.ranks == WHOLE and part.book.is_idle]
        for book in idle[1:]:
            idle[0].join(book)
            self._of.update(dict.fromkeys(book.bases, idle[0]))
            self.version += 1
