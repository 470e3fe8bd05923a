"""Right versions of every synchronization pattern, as traces whose events have labels that can be left out.

A label that starts with `~` is not an event but a property: left out, the event is there in its weaker form.
Long: one function per pattern, and they share their words.
"""

from __future__ import annotations

from pyptx.sim.hazards import Place, Scope, Sem, Space
from pyptx.sim.hazards.state import Grid
from tests.sim.hazards.trace import Pattern, Role, Trace

RELEASE, ACQUIRE, RELAXED = Sem.RELEASE, Sem.ACQUIRE, Sem.RELAXED
GLOBAL = 3 << 20


def buffers(t: Trace) -> None:
    t.engine.state.add_buffer(1 << 20, 1 << 20, "input")
    t.engine.state.add_buffer(2 << 20, 1 << 20, "output")
    t.engine.state.add_buffer(3 << 20, 1 << 20, "flags")


def warps(t: Trace, grid: Grid, count: int = 4, first: int = 0, cta: int = 0) -> list[Role]:
    return [t.add_role(grid, range(32 * w, 32 * w + 32), cta) for w in range(first, first + count)]


def bar(t: Trace) -> None:
    """Four warps exchange data through shared memory, twice."""
    for role in warps(t, t.add_grid()):
        role.st("write", 0)
        role.bar("full")
        role.ld("read", 0, rotate=37)
        role.bar("empty")
        role.st("write again", 0)
        role.bar("full again")
        role.ld("read again", 0, rotate=64)
        role.exit()


def bar_one_warp(t: Trace) -> None:
    """The barrier of only one warp is omitted."""
    for index, role in enumerate(warps(t, t.add_grid())):
        role.st("write", 0)
        role.bar("full of warp 2" if index == 2 else "full")
        role.ld("read", 0, rotate=37)
        role.bar("empty of warp 3" if index == 3 else "empty")
        role.st("write again", 0)


def lanes(t: Trace) -> None:
    """The lanes of one warp exchange data."""
    role = t.add_role(t.add_grid(32), range(32))
    role.st("write", 0, 4)
    role.warp_sync("full")
    role.ld("read", 0, 4, rotate=1)
    role.warp_sync("empty")
    role.st("write again", 0, 4)
    role.warp_sync("full again")
    role.ld_same("broadcast", 0)
    role.warp_sync("empty again")
    leader = t.add_role(role.grid, [0])
    leader.st_one("leader writes", 0)
    role.actions += leader.actions
    t.roles.remove(leader)
    role.warp_sync("leader done")
    role.ld_same("read of the leader's", 0)


def named_barrier(t: Trace) -> None:
    """Producer and consumer warps with one full and one empty barrier."""
    grid = t.add_grid()
    full, empty = (1, 2) if t.has("~two barriers") else (1, 1)
    for role in warps(t, grid, 2):
        role.bar("producer waits empty", empty, 128)
        role.st("write", 0, 4)
        role.bar("producer arrives full", full, 128, "arrive")
        role.bar("producer waits empty again", empty, 128)
        role.st("write again", 0, 4)
        role.bar("producer arrives full again", full, 128, "arrive")
    for role in warps(t, grid, 2, 2):
        role.bar("consumer arrives empty", empty, 128, "arrive")
        role.bar("consumer waits full", full, 128 if t.has("~same count") else 96)
        role.ld("read", 0, 4, rotate=64)
        role.bar("consumer arrives empty again", empty, 128, "arrive")
        role.bar("consumer waits full again", full, 128)
        role.ld("read again", 0, 4, rotate=64)


def _init_ring(t: Trace, role: Role, slots: int, full: int, empty: int) -> None:
    for slot in range(slots):
        role.init(f"init full {slot}", 8 * slot, full)
        role.init(f"init empty {slot}", 64 + 8 * slot, empty)


def mbarrier_ring(t: Trace) -> None:
    """A generic producer warp and a consumer warp, two slots, two rounds."""
    grid = t.add_grid(96)
    setup, producer, consumer = t.add_role(grid, [64]), t.add_role(grid, range(32)), t.add_role(grid, range(32, 64))
    _init_ring(t, setup, 2, 32, 32)
    setup.warp_sync("setup converges", 1)
    idle_lanes = t.add_role(grid, range(65, 96))
    for role in (setup, idle_lanes):
        t.roles.remove(role)
    setup.actions += idle_lanes.actions
    setup_warp = t.add_role(grid, range(64, 96))
    setup_warp.actions = setup.actions + setup_warp.actions
    for role in (setup_warp, producer, consumer):
        role.bar("barriers initialized")
    for step in range(4):
        slot, parity = step % 2, step // 2
        producer.wait(f"wait empty {step}", 64 + 8 * slot, parity ^ 1)
        producer.st(f"write {step}", 1024 + 1024 * slot, 16)
        producer.arrive(f"arrive full {step}", 8 * slot, sem=RELEASE if t.has(f"~release {step}") else RELAXED)
        consumer.wait(f"wait full {step}", 8 * slot, parity, ACQUIRE if t.has(f"~acquire {step}") else RELAXED)
        consumer.ld(f"read {step}", 1024 + 1024 * slot, 16, rotate=64)
        consumer.arrive(f"arrive empty {step}", 64 + 8 * slot)


def tma_load(t: Trace) -> None:
    """TMA fills a ring of two slots; four warps read it with ordinary loads."""
    buffers(t)
    grid = t.add_grid(160)
    issuer = t.add_role(grid, [128])
    for slot in range(2):
        issuer.init(f"init full {slot}", 8 * slot, 1)
        issuer.init(f"init empty {slot}", 64 + 8 * slot, 4)
    idle_lanes = t.add_role(grid, range(129, 160))
    issuer.warp_sync("producer warp converges")
    t.roles.remove(idle_lanes)
    everyone = t.add_role(grid, range(128, 160))
    t.roles.remove(everyone)
    everyone.bar("barriers initialized")
    consumers = warps(t, grid)
    for role in consumers:
        role.bar("barriers initialized")
    issuer.actions += everyone.actions
    t.roles.append(everyone)
    everyone.actions = issuer.actions
    issuer.actions = []
    producer = t.add_role(grid, [128])
    t.roles.remove(producer)
    for step in range(4):
        slot, parity = step % 2, step // 2
        producer.wait(f"wait empty {step}", 64 + 8 * slot, parity ^ 1)
        producer.arrive(f"expect {step}", 8 * slot, expect=2048 if t.has(f"~bytes {step}") else 4096)
        producer.tma_load(f"load {step}", 4096 + 2048 * slot, 2048, 8 * slot)
        for role in consumers:
            role.wait(f"wait full {step}", 8 * slot, parity)
            role.ld(f"read {step}", 4096 + 2048 * slot)
            role.proxy_fence(f"fence {step}", Space.SHARED)
            role.warp_sync(f"warp done {step}")
            leader = role.leader()
            leader.arrive(f"arrive empty {step}", 64 + 8 * slot)
            role.actions += leader.actions
    everyone.actions += producer.actions
    # The producer does not exit before the last copies have been consumed.
    for role in (*consumers, everyone):
        role.bar("before exit")
        role.exit()


def tma_wgmma(t: Trace) -> None:
    """TMA fills two slots; a warpgroup multiplies and releases the slots after its waits."""
    buffers(t)
    grid = t.add_grid(160)
    group = t.add_role(grid, range(128))
    producer = t.add_role(grid, [128])
    for slot in range(2):
        producer.init(f"init full {slot}", 8 * slot, 1)
        producer.init(f"init empty {slot}", 64 + 8 * slot, 1)
    idle_lanes = t.add_role(grid, range(129, 160))
    idle_lanes.bar("barriers initialized")
    producer.bar("barriers initialized")
    t.roles.remove(idle_lanes)
    t.roles.remove(producer)
    everyone = t.add_role(grid, range(128, 160))
    init_actions = [a for a in producer.actions if a.place.text.startswith("init")]
    everyone.bar("barriers initialized")
    everyone.actions = init_actions + everyone.actions
    group.bar("barriers initialized")
    lead = Role(t, grid, 0, producer.group)
    for step in range(4):
        slot, parity = step % 2, step // 2
        lead.wait(f"wait empty {step}", 64 + 8 * slot, parity ^ 1)
        lead.arrive(f"expect {step}", 8 * slot, expect=2048)
        lead.tma_load(f"load {step}", 4096 + 2048 * slot, 2048, 8 * slot)
        group.wait(f"wait full {step}", 8 * slot, parity)
        group.wgmma_fence(f"wgmma fence {step}")
        group.wgmma(f"wgmma {step}", [(4096 + 2048 * slot, 2048)], range(32))
        group.wgmma_commit(f"commit {step}")
        group.wgmma_wait(f"wait group {step}")
        last = group.leader()
        last.arrive(f"arrive empty {step}", 64 + 8 * slot)
        group.warp_sync(f"converge {step}")
        group.actions += last.actions
    everyone.actions += lead.actions
    group.registers("use accumulators", range(32))


def tma_store(t: Trace) -> None:
    """Four warps stage a tile, one thread stores it, and the tile is staged again."""
    buffers(t)
    grid = t.add_grid()
    roles = warps(t, grid)
    for step in range(2):
        for index, role in enumerate(roles):
            role.st(f"stage {step}", 1024, 16, rotate=step)
            role.proxy_fence(f"fence {step}", Space.SHARED)
            role.bar(f"staged {step}")
            if index == 0:
                leader = role.leader()
                leader.tma_store(f"store {step}", 1024, 2048, (2 << 20) + 4096 * step)
                leader.commit_bulk(f"commit {step}")
                leader.wait_bulk(f"wait read {step}")
                role.actions += leader.actions
            role.bar(f"reusable {step}")
    for role in roles:
        role.exit()


def tma_store_exit(t: Trace) -> None:
    """The last wait for reading before exit."""
    buffers(t)
    role = t.add_role(t.add_grid(32), range(32))
    role.st("stage", 1024, 16)
    role.proxy_fence("fence", Space.SHARED)
    role.warp_sync("staged")
    leader = role.leader()
    leader.tma_store("store", 1024, 512)
    leader.commit_bulk("commit")
    leader.wait_bulk("wait read")
    role.actions += leader.actions
    role.exit()


def store_then_read(t: Trace) -> None:
    """The results of a bulk store are passed to another CTA, which reads them by a bulk load and by ordinary loads."""
    buffers(t)
    grid = t.add_grid(32, 2)
    writer, reader = t.add_role(grid, [0], 0), t.add_role(grid, [0], 1)
    writer.st_one("stage", 1024, 16)
    writer.proxy_fence("fence", Space.SHARED)
    writer.tma_store("store", 1024, 16)
    writer.commit_bulk("commit")
    writer.wait_bulk("wait", read=not t.has("~full wait"))
    writer.set_flag("flag", GLOBAL, RELEASE if t.has("~release") else RELAXED, Scope.GPU)
    reader.init("init", 0, 1)
    reader.see_flag("see", GLOBAL, ACQUIRE if t.has("~acquire") else RELAXED, Scope.GPU)
    reader.gld("read", 2 << 20, 16, per_thread=False)
    reader.proxy_fence("reader's fence", Space.GLOBAL)
    reader.arrive("expect", 0, expect=16)
    reader.tma_load("load", 1024, 16, 0, 2 << 20)
    reader.wait("wait full", 0, 0)


def generic_to_bulk_global(t: Trace) -> None:
    """Ordinary stores to global memory are read by a bulk copy of the same grid."""
    buffers(t)
    grid = t.add_grid(32, 2)
    writer, reader = t.add_role(grid, [0], 0), t.add_role(grid, [0], 1)
    writer.gst("write", 1 << 20, 16, per_thread=False)
    writer.proxy_fence("fence", *([Space.GLOBAL] if t.has("~global") else [Space.SHARED]))
    writer.set_flag("flag", GLOBAL, RELEASE, Scope.GPU if t.has("~gpu") else Scope.CTA)
    reader.init("init", 0, 1)
    reader.see_flag("see", GLOBAL, ACQUIRE, Scope.GPU)
    reader.arrive("expect", 0, expect=16)
    reader.tma_load("load", 1024, 16, 0)
    reader.wait("wait full", 0, 0)
    reader.ld_same("read", 1024, 16)


def cp_async(t: Trace) -> None:
    """A ring of two slots filled by cp.async, read by all threads."""
    buffers(t)
    for role in warps(t, t.add_grid()):
        role.cp_async("copy 0", 0)
        role.commit_cp("commit 0")
        role.cp_async("copy 1", 2048)
        role.commit_cp("commit 1")
        role.wait_cp("wait 0", 1)
        role.bar("full 0")
        role.ld("read 0", 0, rotate=37)
        role.bar("empty 0")
        role.cp_async("copy 2", 0)
        role.commit_cp("commit 2")
        role.wait_cp("wait 1", 1)
        role.bar("full 1")
        role.ld("read 1", 2048, rotate=37)
        role.wait_cp("wait 2", 0)
        role.bar("full 2")
        role.ld("read 2", 0, rotate=5)


def cp_async_own(t: Trace) -> None:
    """Each thread reads only what it copied: no barrier is needed."""
    buffers(t)
    for role in warps(t, t.add_grid()):
        role.cp_async("copy", 0)
        role.commit_cp("commit")
        role.wait_cp("wait")
        role.ld("read", 0)


def cp_async_wgmma(t: Trace) -> None:
    """cp.async feeds wgmma: the manual requires a proxy fence."""
    buffers(t)
    group = t.add_role(t.add_grid(), range(128))
    group.cp_async("copy", 0)
    group.commit_cp("commit")
    group.wait_cp("wait")
    group.proxy_fence("proxy fence", Space.SHARED)
    group.bar("full")
    group.wgmma_fence("wgmma fence")
    group.wgmma("wgmma", [(0, 2048)], range(32))
    group.wgmma_commit("wgmma commit")
    group.wgmma_wait("wgmma wait")
    group.st("overwrite", 0)


def cp_async_mbarrier(t: Trace) -> None:
    """cp.async signals an mbarrier, which other warps wait for."""
    buffers(t)
    grid = t.add_grid(64)
    producer, consumer = t.add_role(grid, range(32)), t.add_role(grid, range(32, 64))
    leader = producer.leader()
    leader.init("init", 2048, 32)
    producer.actions += leader.actions
    producer.bar("initialized")
    consumer.bar("initialized")
    producer.cp_async("copy", 0)
    producer.cp_arrive("arrive", 2048)
    consumer.wait("wait", 2048, 0)
    consumer.ld("read", 0, rotate=32)


def wgmma(t: Trace) -> None:
    """Operands written by threads; two groups in flight; a second product on the accumulators."""
    group = t.add_role(t.add_grid(), range(128))
    group.registers("clear accumulators", range(32))
    group.st("write A", 0)
    group.st("write B", 2048)
    group.proxy_fence("proxy fence", Space.SHARED)
    group.bar("written")
    group.wgmma_fence("fence")
    group.wgmma("product 0", [(0, 2048), (2048, 1024)], range(32))
    group.wgmma_commit("commit 0")
    group.wgmma("product 1", [(0, 2048), (3072, 1024)], range(32))
    group.wgmma_commit("commit 1")
    group.wgmma_wait("wait", 0)
    group.registers("scale accumulators", range(32))
    group.wgmma_fence("fence again")
    group.wgmma("product 2", [(0, 2048), (2048, 1024)], range(32))
    group.wgmma_commit("commit 2")
    group.wgmma_wait("wait again", 0)
    group.registers("store accumulators", range(32))
    group.bar("operands free")
    group.st("overwrite", 0)


def wgmma_one_warp(t: Trace) -> None:
    """Each warp waits for itself; a release by one warp needs the others' waits."""
    grid = t.add_grid()
    group = t.add_role(grid, range(128))
    group.st("write", 0)
    group.proxy_fence("proxy fence")
    group.bar("written")
    group.wgmma_fence("fence")
    group.wgmma("product", [(0, 2048)], range(32))
    group.wgmma_commit("commit")
    group.wgmma_wait("wait", 0 if t.has("~wait for all") else 1)
    group.registers("read accumulators", range(32))
    group.bar("free")
    group.st("overwrite", 0)


def tcgen05(t: Trace) -> None:
    """TMA feeds tcgen05.mma; four warps read the accumulator; two rounds through one accumulator and one slot."""
    buffers(t)
    grid = t.add_grid(192)
    epilogue = warps(t, grid)
    allocator = t.add_role(grid, range(128, 160))
    producer = t.add_role(grid, range(160, 192))
    leader = producer.leader()
    for name, offset, count in (("full", 0, 1), ("empty", 8, 1), ("done", 16, 1), ("drained", 24, 4)):
        leader.init(f"init {name}", offset, count)
    producer.actions += leader.actions
    allocator.alloc("alloc", 0, 64)
    for role in (*epilogue, allocator, producer):
        role.bar("set up")
    feed = producer.leader()
    issue = allocator.leader()
    for step in range(2):
        feed.wait(f"wait empty {step}", 8, step ^ 1)
        feed.arrive(f"expect {step}", 0, expect=2048)
        feed.tma_load(f"load {step}", 4096, 2048, 0)
        issue.wait(f"wait drained {step}", 24, step ^ 1)
        issue.tc_fence(f"issuer after {step}", False)
        issue.wait(f"wait full {step}", 0, step)
        issue.mma(f"mma {step}", [(4096, 2048)], 0, 64)
        issue.tc_commit(f"commit empty {step}", 8)
        issue.tc_commit(f"commit done {step}", 16)
        for role in epilogue:
            role.wait(f"wait done {step}", 16, step)
            role.tc_fence(f"after {step}", False)
            role.tc_move(f"tensor load {step}", 0, 64)
            role.tc_wait(f"wait::ld {step}")
            role.tc_fence(f"before {step}", True)
            role.warp_sync(f"converge {step}")
            arriver = role.leader()
            sem = RELEASE if t.has(f"~release {step}") else RELAXED
            arriver.arrive(f"arrive drained {step}", 24, sem=sem)
            role.actions += arriver.actions
    producer.actions += feed.actions
    allocator.actions += issue.actions
    for role in (*epilogue, allocator, producer):
        role.bar("before dealloc")
    allocator.tc_fence("allocator after", False)
    allocator.dealloc("dealloc", 0, 64)
    for role in (*epilogue, allocator, producer):
        role.exit()


def tcgen05_store(t: Trace) -> None:
    """Warps store an operand to tensor memory, one thread multiplies with it."""
    grid = t.add_grid()
    roles = warps(t, grid)
    roles[0].alloc("alloc", 0, 128)
    leader = roles[0].leader()
    leader.init("init", 0, 1)
    roles[0].actions += leader.actions
    for role in roles:
        role.bar("set up")
        role.tc_move("tensor store", 64, 64, stores=True)
        role.tc_wait("wait::st", stores=True)
        role.tc_fence("before", True)
        role.bar("stored")
    issue = roles[0].leader()
    issue.tc_fence("after", False)
    issue.mma("mma", [], 0, 64)
    a = issue.cells(64, 64)
    issue.add("mma with A", lambda p: t.engine.tensor.operate(issue.group.first, p, [a], [issue.cells(0, 64)]))
    peer_leader = roles[1].leader()
    (issue if t.has("~own commit") else peer_leader).tc_commit("commit", 0)
    roles[0].actions += issue.actions
    roles[1].actions += peer_leader.actions
    for role in roles:
        role.wait("wait", 0, 0)
        role.tc_fence("after mma", False)
        role.tc_move("tensor load", 0, 64)
        role.tc_wait("wait::ld")
        role.tc_fence("before dealloc", True)
        role.bar("drained")
    roles[0].tc_fence("allocator after", False)
    roles[0].dealloc("dealloc", 0, 128)
    for role in roles:
        role.exit()


def tcgen05_relaxed(t: Trace) -> None:
    """The accumulator is released by relaxed arrives: only the tcgen05 fences order it."""
    grid = t.add_grid(64)
    reader, issuer = t.add_role(grid, range(32)), t.add_role(grid, range(32, 64))
    reader.alloc("alloc", 0, 64)
    leader = reader.leader()
    leader.init("init done", 0, 1)
    leader.init("init drained", 8, 1)
    reader.actions += leader.actions
    for role in (reader, issuer):
        role.bar("set up")
    issue, reader_leader = issuer.leader(), reader.leader()
    issue.mma("mma 0", [], 0, 64)
    issue.tc_commit("commit", 0)
    issue.wait("wait drained", 8, 0, RELAXED)
    issue.tc_fence("issuer after", False)
    issue.mma("mma 1", [], 0, 64)
    issuer.actions += issue.actions
    reader.wait("wait done", 0, 0, RELAXED)
    reader.tc_fence("after", False)
    reader.tc_move("tensor load", 0, 64)
    reader.tc_wait("wait::ld")
    reader.tc_fence("before", True)
    reader_leader.arrive("arrive drained", 8, sem=RELAXED)
    reader.actions += reader_leader.actions


def tensor_map(t: Trace) -> None:
    """A tensor map is edited on the device, released, and acquired by two CTAs; then edited again."""
    buffers(t)
    grid = t.add_grid(32, 2)
    maps, users = t.engine.maps, [t.add_role(grid, [0], cta) for cta in range(2)]
    address = 1 << 20
    flying: set[int] = {7} if t.without == "wait for the copies" else set()
    users[0].add("replace", lambda p: maps.replace(grid.find_thread(0), p, address, set()))
    users[0].add("release", lambda p: maps.release(address))
    users[0].set_flag("flag", GLOBAL, RELEASE, Scope.GPU)
    users[1].see_flag("see", GLOBAL, ACQUIRE, Scope.GPU)
    for cta, role in enumerate(users):
        thread = grid.find_thread(cta)
        role.add(f"acquire of CTA {cta}", lambda p, thread=thread: maps.acquire(thread, address, Scope.GPU))
        role.add(f"use of CTA {cta}", lambda p, thread=thread: maps.use(thread, p, address, 7))
        role.set_flag(f"used by CTA {cta}", GLOBAL + 64, RELEASE, Scope.GPU, adds=True)
    t.has("wait for the copies")
    users[0].see_flag("all used", GLOBAL + 64, ACQUIRE, Scope.GPU, 2)
    users[0].add("replace again", lambda p: maps.replace(grid.find_thread(0), p, address, flying))


def host_map(t: Trace) -> None:
    """A tensor map in global memory that the host wrote: acquired at system scope."""
    role = t.add_role(t.add_grid(32), [0])
    scope = Scope.SYS if t.has("~sys") else Scope.GPU
    role.add("acquire", lambda p: t.engine.maps.acquire(role.group.first, 64, scope))
    role.add("use", lambda p: t.engine.maps.use(role.group.first, p, 64, 1))


def reused_barrier(t: Trace) -> None:
    """Shared memory of an mbarrier is used for data, and as a barrier with another count, after inval."""
    grid = t.add_grid(32)
    owner = t.add_role(grid, [0])
    owner.init("init", 0, 1)
    owner.arrive("arrive", 0)
    owner.wait("wait", 0, 0)
    owner.inval("inval", 0)
    owner.st_one("data", 0, 8)
    owner.init("init again", 0, 2 if t.has("~count") else 0)
    owner.arrive("arrive again", 0, expect=1024 if t.has("~range") else 2 << 20)


def cluster_barrier(t: Trace) -> None:
    """Arrive and wait on a cluster barrier, in step."""
    grid = t.add_grid(32, 2, 2)
    for cta in range(2):
        role = t.add_role(grid, range(32), cta)
        for step in range(2):
            role.cluster_arrive(f"arrive {step} of CTA {cta}")
            role.cluster_wait(f"wait {step} of CTA {cta}")


def cluster_dsmem(t: Trace) -> None:
    """Two CTAs write each other's shared memory between cluster barriers."""
    grid = t.add_grid(32, 2, 2)
    for cta in range(2):
        role = t.add_role(grid, range(32), cta)
        role.cluster_sync("peers exist")
        role.st("write remote", 0, 4, cta=1 - cta)
        role.cluster_arrive("arrive", RELEASE if t.has("~release") else RELAXED)
        role.cluster_wait("wait", ACQUIRE if t.has("~acquire") else RELAXED)
        role.ld("read", 0, 4, rotate=3)
        role.ld("read remote", 0, 4, rotate=5, cta=1 - cta)
        role.cluster_sync("before exit")
        role.exit()


def dsmem_mbarrier(t: Trace) -> None:
    """A CTA writes the other's shared memory and arrives on its mbarrier."""
    grid = t.add_grid(32, 2, 2)
    writer, reader = t.add_role(grid, range(32), 0), t.add_role(grid, range(32), 1)
    leader = reader.leader()
    leader.init("init", 0, 32)
    reader.actions += leader.actions
    for role in (writer, reader):
        role.cluster_sync("initialized")
    writer.st("write remote", 1024, 4, cta=1)
    sem = RELEASE if t.has("~release") else RELAXED
    writer.arrive("arrive remote", 0, cta=1, sem=sem, scope=Scope.CLUSTER if t.has("~release.cluster") else Scope.CTA)
    reader.wait("wait", 0, 0, ACQUIRE if t.has("~acquire") else RELAXED)
    reader.ld("read", 1024, 4, rotate=9)
    for role in (writer, reader):
        role.cluster_sync("before exit")
        role.exit()


def cluster_global(t: Trace) -> None:
    """Global data is passed to the other CTA of a cluster by a remote arrive."""
    buffers(t)
    grid = t.add_grid(32, 2, 2)
    writer, reader = t.add_role(grid, range(32), 0), t.add_role(grid, range(32), 1)
    leader = reader.leader()
    leader.init("init", 0, 32)
    reader.actions += leader.actions
    for role in (writer, reader):
        role.cluster_sync("initialized")
    writer.gst("write", 1 << 20)
    writer.arrive("arrive remote", 0, cta=1, scope=Scope.CLUSTER if t.has("~release.cluster") else Scope.CTA)
    reader.wait("wait", 0, 0, scope=Scope.CLUSTER if t.has("~acquire.cluster") else Scope.CTA)
    reader.gld("read", 1 << 20, rotate=9)
    for role in (writer, reader):
        role.cluster_sync("before exit")


def st_async(t: Trace) -> None:
    """st.async fills the other CTA's slot and signals its mbarrier; the data then goes to wgmma's proxy by a store."""
    buffers(t)
    grid = t.add_grid(32, 2, 2)
    writer, reader = t.add_role(grid, range(32), 0), t.add_role(grid, range(32), 1)
    owner = reader.leader()
    owner.init("init", 0, 1)
    reader.actions += owner.actions
    for role in (writer, reader):
        role.cluster_sync("initialized")
    expect = reader.leader()
    expect.arrive("expect", 0, expect=128)
    reader.actions += expect.actions
    writer.st_async("st.async", 1024, 0, 1)
    reader.wait("wait", 0, 0)
    reader.ld("read", 1024, 4, rotate=3)
    reader.proxy_fence("proxy fence", Space.SHARED)
    reader.warp_sync("converge")
    leader = reader.leader()
    leader.tma_store("bulk store", 1024, 128)
    leader.commit_bulk("commit")
    leader.wait_bulk("wait read")
    reader.actions += leader.actions
    for role in (writer, reader):
        role.cluster_sync("before exit")
        role.exit()


def multicast(t: Trace) -> None:
    """CTA 0 loads for both CTAs; both release the slot to CTA 0's barrier; two rounds."""
    buffers(t)
    grid = t.add_grid(64, 2, 2)
    issuer, readers = t.add_role(grid, range(32), 0), [t.add_role(grid, range(32, 64), cta) for cta in range(2)]
    idle = t.add_role(grid, range(32), 1)
    for role in (issuer, idle):
        leader = role.leader()
        leader.init("init full", 0, 1)
        if role is issuer:
            leader.init("init empty", 8, 2)
        leader.fence_init("fence.mbarrier_init")
        role.actions += leader.actions
    for role in (issuer, idle, *readers):
        role.cluster_arrive("arrive.relaxed", RELAXED)
        role.cluster_wait("cluster wait")
    local = [(issuer, idle)[cta].leader() for cta in range(2)]
    for step in range(2):
        local[0].wait(f"wait empty {step}", 8, step ^ 1)
        for cta in range(2):
            local[cta].arrive(f"expect {step} of CTA {cta}", 0, expect=1024)
        local[0].tma_load(f"load {step}", 1024, 1024, 0, ctas=[0, 1])
        local[1].wait(f"peer waits full {step}", 0, step)
        for cta, role in enumerate(readers):
            role.wait(f"wait full {step} of CTA {cta}", 0, step)
            role.ld(f"read {step}", 512, 16, rotate=0)
            role.proxy_fence(f"fence {step}", Space.SHARED)
            role.warp_sync(f"converge {step}")
            leader = role.leader()
            leader.arrive(f"arrive empty {step} of CTA {cta}", 8, cta=0)
            role.actions += leader.actions
    issuer.actions += local[0].actions
    idle.actions += local[1].actions
    for role in (issuer, idle, *readers):
        role.cluster_sync("before exit")
        role.exit()


def dependent_launch(t: Trace) -> None:
    """A dependent grid starts early and waits before it accesses data that the primary reads and writes."""
    buffers(t)
    first = t.add_grid(32)
    primary = t.add_role(first, range(32))
    primary.gld("primary reads", 1 << 20)
    primary.gst("primary writes", 2 << 20)
    primary.exit("primary exits")
    second = t.add_grid(32, overlaps=True)
    dependent = t.add_role(second, range(32))

    def wait(place: Place) -> None:
        t.engine.finish(first)
        t.engine.sync.grid_wait(dependent.group)

    dependent.add("wait", wait, lambda: not primary.actions)
    dependent.gld("dependent reads", 2 << 20, rotate=5)
    dependent.gst("dependent writes", 1 << 20)


def early_trigger(t: Trace) -> None:
    """Data covered by a release fence before launch_dependents may be read without waiting."""
    buffers(t)
    first = t.add_grid(32)
    primary = t.add_role(first, [0])
    primary.gst("primary writes", 2 << 20, per_thread=False)
    scope = Scope.GPU if t.has("~gpu") else Scope.CTA
    primary.fence("fence", Sem.ACQ_REL, scope)
    primary.add("launch_dependents", lambda p: t.engine.sync.launch_dependents(primary.group))
    second = t.add_grid(32, overlaps=True)
    dependent = t.add_role(second, [0])

    def start(place: Place) -> None:
        t.engine.start(second, [0], [0])

    dependent.add("start", start, lambda: not primary.actions)
    dependent.gld("dependent reads", 2 << 20, per_thread=False)


def flag(t: Trace) -> None:
    """Release and acquire on a flag in global memory."""
    buffers(t)
    grid = t.add_grid(32, 2)
    writer, reader = t.add_role(grid, [0], 0), t.add_role(grid, [0], 1)
    writer.gst("write", 1 << 20, per_thread=False)
    writer.set_flag("set", GLOBAL, RELEASE if t.has("~release") else RELAXED, Scope.GPU if t.has("~gpu") else Scope.CTA)
    sem = ACQUIRE if t.has("~acquire") else RELAXED
    reader.see_flag("see", GLOBAL, sem, Scope.GPU if t.has("~reader gpu") else Scope.CTA)
    reader.gld("read", 1 << 20, per_thread=False)


def flag_fences(t: Trace) -> None:
    """Fences and relaxed accesses; a whole CTA before and after."""
    buffers(t)
    grid = t.add_grid(64, 2)
    for role in warps(t, grid, 2):
        role.gst("write", 1 << 20)
        role.bar("written")
        if role.group.first == grid.find_thread(0):
            leader = role.leader()
            leader.fence("release fence", Sem.ACQ_REL, Scope.GPU if t.has("~gpu") else Scope.CTA)
            leader.set_flag("count", GLOBAL, RELAXED, Scope.GPU, adds=t.has("~atomic"))
            role.actions += leader.actions
    for role in warps(t, grid, 2, cta=1):
        if role.group.first == grid.find_thread(1):
            leader = role.leader()
            leader.see_flag("see", GLOBAL, RELAXED if t.has("~strong") else Sem.WEAK, Scope.GPU)
            leader.fence("acquire fence", Sem.ACQ_REL, Scope.GPU)
            role.actions += leader.actions
        role.bar("seen")
        role.gld("read", 1 << 20, rotate=40, readonly=not t.has("~coherent"))


def counter(t: Trace) -> None:
    """Three CTAs increment a counter; the last one to see all increments reads the others' results: a release
    sequence."""
    buffers(t)
    grid = t.add_grid(32, 3)
    for cta in range(2):
        role = t.add_role(grid, [0], cta)
        role.gst(f"write {cta}", (1 << 20) + 4 * cta, per_thread=False)
        sem = Sem.ACQ_REL if t.has(f"~release {cta}") else RELAXED
        role.set_flag(f"count {cta}", GLOBAL, sem, Scope.GPU, adds=True)
    role = t.add_role(grid, [0], 2)
    role.see_flag("see", GLOBAL, ACQUIRE if t.has("~acquire") else RELAXED, Scope.GPU, 2)
    role.gld("read 0", 1 << 20, per_thread=False)
    role.gld("read 1", (1 << 20) + 4, per_thread=False)


def issuer_fence(t: Trace) -> None:
    """CUB's position for the proxy fence: in the issuing thread, after the barrier."""
    buffers(t)
    grid = t.add_grid()
    for index, role in enumerate(warps(t, grid)):
        role.st("stage", 1024)
        role.bar("staged")
        if index == 0:
            leader = role.leader()
            leader.proxy_fence("issuer's fence", Space.SHARED)
            leader.tma_store("store", 1024, 2048)
            leader.commit_bulk("commit")
            leader.wait_bulk("wait read")
            role.actions += leader.actions
        role.bar("reusable")
        role.st("stage again", 1024)


def overwrite_by_load(t: Trace) -> None:
    """A bulk load overwrites data that threads wrote and read."""
    buffers(t)
    grid = t.add_grid(32)
    role = t.add_role(grid, range(32))
    leader = role.leader()
    leader.init("init", 0, 1)
    role.actions += leader.actions
    role.st("write", 1024)
    role.warp_sync("written")
    role.ld("read", 2048 if t.without == "~read" else 1024, rotate=1)
    role.proxy_fence("fence", Space.SHARED)
    role.warp_sync("free")
    load = role.leader()
    load.arrive("expect", 0, expect=512)
    load.tma_load("load", 1024, 512, 0)
    role.actions += load.actions
    role.wait("wait", 0, 0)
    role.ld("read the new", 1024, rotate=2)


PATTERNS: dict[str, Pattern] = {
    "bar": bar,
    "bar, one warp": bar_one_warp,
    "lanes": lanes,
    "named barrier": named_barrier,
    "mbarrier ring": mbarrier_ring,
    "TMA load": tma_load,
    "TMA to wgmma": tma_wgmma,
    "TMA store": tma_store,
    "TMA store, exit": tma_store_exit,
    "bulk store then read": store_then_read,
    "generic then bulk": generic_to_bulk_global,
    "cp.async ring": cp_async,
    "cp.async, own data": cp_async_own,
    "cp.async to wgmma": cp_async_wgmma,
    "cp.async, mbarrier": cp_async_mbarrier,
    "wgmma": wgmma,
    "wgmma, slot": wgmma_one_warp,
    "tcgen05": tcgen05,
    "tcgen05, stored operand": tcgen05_store,
    "tcgen05, relaxed": tcgen05_relaxed,
    "tensor map": tensor_map,
    "tensor map of the host": host_map,
    "barrier memory": reused_barrier,
    "cluster barrier": cluster_barrier,
    "DSMEM, cluster barrier": cluster_dsmem,
    "DSMEM, mbarrier": dsmem_mbarrier,
    "cluster, global data": cluster_global,
    "st.async": st_async,
    "multicast": multicast,
    "PDL": dependent_launch,
    "PDL, early trigger": early_trigger,
    "flag": flag,
    "flag, fences": flag_fences,
    "counter": counter,
    "issuer's fence": issuer_fence,
    "overwrite by load": overwrite_by_load,
}
