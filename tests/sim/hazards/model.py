"""A naive model of the memory model: which accesses each thread knows, as sets in which every access is one bit.

Each byte lists all its accesses. Nothing is merged or computed together, so it is slow and hard to get wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyptx.sim.hazards import Access, Family, Place, Scope, Sem, Space

SEEN, CROSSED_SHARED, CROSSED_GLOBAL, WIDE_SHARED, WIDE_GLOBAL, NARROW = range(6)
"""What a thread knows: by any edge; also through a proxy fence; also by edges whose scope spans CTAs; and what an edge
of too narrow a scope would have told."""
Knowledge = tuple[int, ...]
NOTHING: Knowledge = (0,) * 6
_CROWD = 64
"""More threads than this that update one location by one instruction observe everything that all of them release."""


def unite(*parts: Knowledge) -> Knowledge:
    """Return what is known by any of the parts."""
    together = NOTHING
    for part in parts:
        together = tuple(map(int.__or__, together, part))
    return together


def select(part: Knowledge, *kinds: int) -> Knowledge:
    """Return only these kinds of knowledge."""
    return tuple(bits if kind in kinds else 0 for kind, bits in enumerate(part))


def list_bits(bits: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


@dataclass(frozen=True)
class Thread:
    """A thread in the program's terms; its number is reused by later CTAs."""

    cluster: int
    cta: int
    warp: int
    lane: int


@dataclass(frozen=True)
class Conflict:
    """A thread's access that breaks a rule, with the earlier access; -1: its bytes were never written."""

    code: str
    thread: Thread
    earlier: int
    is_observed: bool = False
    """Whether the thread's CTA read what the earlier access wrote: the engine, which does not order all accesses, may
    report it."""


@dataclass(frozen=True, eq=False)
class Release:
    """What a release passes on to threads in its scope."""

    thread: Thread
    scope: Scope
    knowledge: Knowledge


_Observation = tuple[tuple[Space, int], Scope, Release]
"""The location and the scope of a read, and the release that it observed."""


@dataclass
class Phase:
    """The arrivals of one phase of an mbarrier: what every waiter learns, and what waits of cluster scope learn too."""

    near: list[Knowledge] = field(default_factory=list[Knowledge])
    far: list[Release] = field(default_factory=list[Release])


class Model:
    """One execution. Threads are the engine's numbers."""

    def __init__(self) -> None:
        self.threads: dict[int, Thread] = {}
        self.known: dict[int, Knowledge] = {}
        self.accesses: list[tuple[Access, Thread]] = []
        self.before: list[int] = []
        """What the thread of each access knew of other accesses."""
        self._writes: defaultdict[tuple[Space, int], int] = defaultdict(int)
        self._reads: defaultdict[tuple[Space, int], int] = defaultdict(int)
        self._of: defaultdict[object, int] = defaultdict(int)
        """The accesses of each CTA, cluster, warp, kind of proxy, and each size and scope of strong accesses."""
        self._heads: dict[tuple[Space, int], list[Release]] = {}
        """The releases that the current value of a location continues."""
        self._fences: defaultdict[int, dict[Scope, Release]] = defaultdict(dict[Scope, Release])
        """The last release of each scope by fences of a thread."""
        self._observed: defaultdict[int, dict[_Observation, None]] = defaultdict(dict[_Observation, None])
        self._orders: dict[object, Knowledge] = {}

    def start(self, number: int, thread: Thread, prior: Knowledge = NOTHING) -> None:
        """Start a thread that knows what earlier grids did."""
        self.threads[number], self.known[number] = thread, prior
        for table in (self._fences, self._observed):
            table.pop(number, None)

    def clear(self, space: Space, start: int, size: int) -> None:
        """Forget the accesses to bytes: the memory of a CTA that starts."""
        for byte in range(start, start + size):
            self._writes.pop((space, byte), None)
            self._reads.pop((space, byte), None)
            self._heads.pop((space, byte), None)

    # Accesses

    def find_conflicts(self, access: Access, threads: Sequence[int], addresses: Sequence[int]) -> Iterator[Conflict]:
        """Yield the conflicts of an instruction's accesses with earlier ones, and with each other."""
        yield from self._find_conflicts_within(access, threads, addresses)
        earlier_at: dict[int, tuple[set[tuple[int, int]], bool]] = {}
        for number, address in zip(threads, addresses, strict=True):
            if address not in earlier_at:
                earlier_at[address] = self._list_earlier(access, address)
            bytes_earlier, is_unwritten = earlier_at[address]
            if is_unwritten:
                yield Conflict("PTX0910", self.threads[number], -1)
            bad = 0
            for bits, written in bytes_earlier:
                bad |= self._find_bad(access, number, bits, written)
            for earlier in list_bits(bad):
                is_observed = not access.async_proxy and self._is_observed(access.space, address, number, earlier)
                yield Conflict(self._find_code(access, number, earlier), self.threads[number], earlier, is_observed)

    def _is_observed(self, space: Space, address: int, number: int, earlier: int) -> bool:
        """Tell whether an earlier access is a strong write that a strong read by the thread's CTA observed before, so
        that it precedes the thread's access by Causality Order."""
        write, writer = self.accesses[earlier]
        if not (write.strong and write.writes and write.family is Family.THREAD):
            return False
        thread, known = self.threads[number], self.known[number][SEEN]
        for byte in range(address, address + 16):
            bits = self._writes.get((space, byte), 0)
            if not bits >> earlier & 1:
                continue
            later = (bits | self._reads.get((space, byte), 0)) >> earlier + 1
            for read in (earlier + 1 + bit for bit in list_bits(later)):
                access, reader = self.accesses[read]
                if bits >> read & 1 and not access.reads:
                    break
                is_mutual = access.size == write.size and self._is_in_scope(
                    writer, reader, min(access.scope, write.scope)
                )
                if access.strong and access.reads and is_mutual and reader.cta == thread.cta and known >> read & 1:
                    return True
        return False

    def _list_earlier(self, access: Access, address: int) -> tuple[set[tuple[int, int]], bool]:
        """Return, for each byte of an access, the earlier accesses that matter and the writes, and whether a byte lacks
        one."""
        pairs: set[tuple[int, int]] = set()
        for byte in range(address, address + access.size):
            writes, reads = (table.get((access.space, byte), 0) for table in (self._writes, self._reads))
            pairs.add((writes | reads if access.writes else writes, writes))
        # The engine does not check the reads of atomics on shared memory.
        is_checked = access.space is Space.SHARED and access.reads and not access.writes
        return pairs, is_checked and any(not writes for _, writes in pairs)

    def _find_bad(self, access: Access, number: int, bits: int, written: int) -> int:
        """Return the accesses to a byte, among these, that do not precede a thread's access and may not be
        concurrent."""
        thread, known = self.threads[number], self.known[number]
        wide = WIDE_SHARED if access.space is Space.SHARED else WIDE_GLOBAL
        far = written & self._of["cluster", thread.cluster] & ~self._of["cta", thread.cta] & ~self._of["operations"]
        bad = bits & ~known[SEEN] | far & ~known[wide]
        if access.async_proxy:
            crossed = CROSSED_SHARED if access.space is Space.SHARED else CROSSED_GLOBAL
            bad |= bits & self._of["generic"] & ~known[crossed]
        if not access.strong:
            return bad
        bad &= ~self._find_morally_strong(access, thread)
        return bad & ~self._find_hidden(bad, written) if bad else bad

    def _find_hidden(self, bad: int, written: int) -> int:
        """Return the accesses to a byte that a strong access is not compared with, by the engine's rule: writes before
        the last one, even if that is strong, and what these follow."""
        later = [number for number in list_bits(written & ~bad) if self.accesses[number][0].strong]
        weak = [number for number in list_bits(bad & written) if not self.accesses[number][0].strong]
        hidden = sum(1 << old for old in weak if any(self.before[new] >> old & 1 for new in later))
        return hidden | sum(
            1 << old
            for old in list_bits(bad & ~hidden)
            if any(self.before[new] >> old & 1 for new in list_bits(hidden))
        )

    def _find_morally_strong(self, access: Access, thread: Thread) -> int:
        bits = 0
        for scope in Scope:
            alike = self._of["strong", access.size, scope]
            least = min(scope, access.scope)
            if least is Scope.CLUSTER:
                alike &= self._of["cluster", thread.cluster]
            elif least is Scope.CTA:
                alike &= self._of["cta", thread.cta]
            bits |= alike
        return bits

    def _find_code(self, access: Access, number: int, earlier: int) -> str:
        thread, known, bit = self.threads[number], self.known[number], 1 << earlier
        other, peer = self.accesses[earlier]
        if known[SEEN] & bit:
            crossed = CROSSED_SHARED if access.space is Space.SHARED else CROSSED_GLOBAL
            if not access.async_proxy or known[crossed] & bit or other.async_proxy:
                return "PTX0903"
            if not other.writes:
                return "PTX0923"
            if access.writes:
                return "PTX0921"
            return "PTX0922" if other.family is Family.CP_ASYNC else "PTX0920"
        if known[NARROW] & bit:
            return "PTX0903"
        if other.family is Family.CP_ASYNC and other.writes:
            return "PTX0931"
        if other.family is Family.BULK_STORE:
            return "PTX0932" if other.writes else "PTX0942"
        if access.strong and other.strong:
            return "PTX0904" if access.size != other.size else "PTX0903"
        lanes = access.family is other.family is Family.THREAD
        return "PTX0902" if lanes and (peer.cta, peer.warp) == (thread.cta, thread.warp) else "PTX0901"

    def _find_conflicts_within(self, access: Access, threads: Sequence[int], addresses: Sequence[int]) -> set[Conflict]:
        """Return the conflicts between threads that write to one location by one instruction."""
        users: defaultdict[int, list[Thread]] = defaultdict(list)
        for number, address in zip(threads, addresses, strict=True):
            users[address].append(self.threads[number])
        groups = [group for group in users.values() if len(group) > 1] if access.writes else []
        if not access.strong:
            warps = [len({(thread.cta, thread.warp) for thread in group}) for group in groups]
            return {
                Conflict("PTX0901" if count > 1 else "PTX0907", group[0], -2)
                for count, group in zip(warps, groups, strict=True)
            }
        conflicts: set[Conflict] = set()
        for group in groups:
            names = {thread.cta if access.scope is Scope.CTA else thread.cluster for thread in group}
            if access.scope < Scope.GPU and len(names) > 1:
                conflicts |= {Conflict("PTX0903", thread, -2) for thread in group}
        return conflicts

    def find_latest(self, conflicts: Iterable[Conflict]) -> set[Place]:
        """Return the places of the conflicting accesses that no other one follows: they must be reported."""
        numbers = {conflict.earlier for conflict in conflicts if conflict.earlier >= 0}
        latest = {number for number in numbers if not any(self.before[other] >> number & 1 for other in numbers)}
        return {self.accesses[number][0].place for number in latest}

    def record(
        self, access: Access, threads: Sequence[int], addresses: Sequence[int], *, operation: bool = False
    ) -> list[int]:
        """Record the accesses of an instruction, and return their numbers. `operation`: no thread knows them yet."""
        numbers: list[int] = []
        for number, address in zip(threads, addresses, strict=True):
            thread, bit = self.threads[number], 1 << len(self.accesses)
            numbers.append(len(self.accesses))
            self.accesses.append((access, thread))
            self.before.append(self.known[number][SEEN])
            for key in (("cluster", thread.cluster), ("cta", thread.cta), ("warp", thread.cta, thread.warp)):
                self._of[key] |= bit
            self._of["operations"] |= bit if operation else 0
            self._of["generic"] |= 0 if access.async_proxy else bit
            if access.strong:
                self._of["strong", access.size, access.scope] |= bit
            for byte in range(address, address + access.size):
                table = self._writes if access.writes else self._reads
                table[access.space, byte] |= bit
            if access.writes and not access.strong and not access.async_proxy:
                # Who reads a weak write observes no release. By the engine's rule, it ends those at its own address.
                self._heads.pop((access.space, address), None)
            if not operation:
                self._learn(number, (bit, 0, 0, bit, bit, 0))
        return numbers

    # Synchronization

    def _learn(self, number: int, knowledge: Knowledge) -> None:
        self.known[number] = tuple(map(int.__or__, self.known[number], knowledge))

    def synchronize(self, threads: Iterable[int], *, stamps: Iterable[Knowledge] = ()) -> None:
        """Let threads know what all of them know, and the stamps."""
        numbers = list(threads)
        together = unite(*(self.known[number] for number in numbers), *stamps)
        for number in numbers:
            self.known[number] = together

    def acquire(self, threads: Iterable[int], knowledge: Knowledge) -> None:
        """Let threads learn what a release passed on."""
        for number in threads:
            self._learn(number, knowledge)

    def release(self, threads: Iterable[int]) -> Knowledge:
        """Return what threads together pass on."""
        return unite(*(self.known[number] for number in threads))

    def cross(self, threads: Iterable[int], spaces: Sequence[Space]) -> None:
        """Execute `fence.proxy.async`."""
        for number in threads:
            seen = self.known[number][SEEN]
            shared, globl = (seen if space in spaces else 0 for space in (Space.SHARED, Space.GLOBAL))
            self._learn(number, (0, shared, globl, 0, 0, 0))

    def complete(self, number: int, accesses: Iterable[int], kinds: Sequence[int]) -> None:
        """Let a thread know asynchronous accesses."""
        bits = sum(1 << access for access in accesses)
        self._learn(number, select((bits,) * 6, *kinds))

    def _is_in_scope(self, thread: Thread, peer: Thread, scope: Scope) -> bool:
        if scope >= Scope.GPU:
            return True
        return thread.cluster == peer.cluster if scope is Scope.CLUSTER else thread.cta == peer.cta

    def _take(self, number: int, release: Release, scope: Scope) -> None:
        """Let a thread acquire a release, or note what the scopes keep from it."""
        if self._is_in_scope(self.threads[number], release.thread, min(scope, release.scope)):
            self._learn(number, release.knowledge)
        else:
            self._learn(number, (0, 0, 0, 0, 0, release.knowledge[SEEN]))

    def fence(self, threads: Sequence[int], sem: Sem, scope: Scope) -> None:
        """Execute `fence` by threads at once."""
        for number in threads if sem.acquires else ():
            for _, least, release in self._observed.pop(number, {}):
                self._take(number, release, min(scope, least))
        if sem is Sem.SC:
            for number in threads:
                # That a warp's own lanes execute fences in order only shows how they are simulated.
                thread = self.threads[number]
                own = self._of["warp", thread.cta, thread.warp]
                order = self._orders.get(self._name_order(thread, scope), NOTHING)
                self._learn(number, tuple(bits & ~own for bits in order))
        for number in threads if sem.releases else ():
            self._fences[number][scope] = Release(self.threads[number], scope, self.known[number])
        if sem is Sem.SC:
            for number in threads:
                key = self._name_order(self.threads[number], scope)
                self._orders[key] = unite(self._orders.get(key, NOTHING), self.known[number])

    def _name_order(self, thread: Thread, scope: Scope) -> object:
        """Return the total order of `fence.sc` of a scope."""
        return thread.cta if scope is Scope.CTA else (thread.cluster,) if scope is Scope.CLUSTER else "all"

    def access_strongly(self, access: Access, threads: Sequence[int], addresses: Sequence[int]) -> None:
        """Synchronize threads by strong accesses of one instruction, in the order of its lanes."""
        users: defaultdict[int, list[int]] = defaultdict(list)
        for number, address in zip(threads, addresses, strict=True):
            users[address].append(number)
        for address, numbers in users.items():
            location = access.space, address
            if len(numbers) > _CROWD and access.scope >= Scope.GPU:
                self._access_together(access, numbers, location)
                continue
            for number in numbers:
                heads = self._heads.get(location, [])
                if access.reads and not access.red:
                    self._read(access, number, location, heads)
                if access.writes:
                    # A thread's later strong writes continue its release, by the engine's rule only until another
                    # thread overwrites it.
                    kept = [head for head in heads if access.reads or head.thread == self.threads[number]]
                    self._heads[location] = [*kept, *self._list_releases(access, number)]

    def _access_together(self, access: Access, numbers: Sequence[int], location: tuple[Space, int]) -> None:
        heads = self._heads.get(location, [])
        if access.writes:
            heads = list(heads) if access.reads else []
            for number in numbers:
                heads += self._list_releases(access, number)
            self._heads[location] = heads
        for number in numbers if access.reads and not access.red else ():
            self._read(access, number, location, heads)

    def _read(self, access: Access, number: int, location: tuple[Space, int], heads: Iterable[Release]) -> None:
        observed = self._observed[number]
        observed.update(dict.fromkeys((location, access.scope, release) for release in heads))
        for place, least, release in observed if access.sem.acquires else ():
            if place == location:
                self._take(number, release, min(access.scope, least))

    def _list_releases(self, access: Access, number: int) -> list[Release]:
        """Return the releases of a thread's strong write, its own and those of its earlier fences."""
        own = [Release(self.threads[number], access.scope, self.known[number])] if access.sem.releases else []
        fences = self._fences[number].values()
        return [*(Release(part.thread, min(part.scope, access.scope), part.knowledge) for part in fences), *own]

    # mbarriers

    def arrive(self, phase: Phase, threads: Sequence[int], sem: Sem, scope: Scope, *, remote: bool) -> None:
        """Let threads of a CTA arrive on an mbarrier; `remote`: it is another CTA's."""
        if sem.releases:
            releases = [Release(self.threads[number], scope, self.known[number]) for number in threads]
        else:
            releases = [fence for number in threads for fence in self._fences[number].values()]
        for release in releases:
            least, knowledge = min(scope, release.scope), release.knowledge
            if not remote:
                phase.near.append(knowledge)
            elif least < Scope.CLUSTER:
                # Who has only read may release with the default scope: writes stay unknown to other CTAs.
                phase.near.append(select(knowledge, SEEN, CROSSED_SHARED, CROSSED_GLOBAL, NARROW))
            else:
                phase.near.append(select(knowledge, SEEN, CROSSED_SHARED, CROSSED_GLOBAL, WIDE_SHARED, NARROW))
                phase.far.append(Release(release.thread, least, select(knowledge, WIDE_GLOBAL)))

    def wait(self, phase: Phase, threads: Sequence[int], scope: Scope) -> None:
        """Let threads observe a completed phase with an acquire."""
        self.acquire(threads, unite(*phase.near))
        if scope >= Scope.CLUSTER:
            self.acquire(threads, unite(*(release.knowledge for release in phase.far)))
