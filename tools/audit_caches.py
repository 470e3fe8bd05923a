"""Damages the user's cache in every way that happens, and looks for wrong entries: `python -m tools.audit_caches`.

Writers are killed in the middle, 16 processes write at once, the disk is full, files are cut, changed, or belong to
another user, the folder is read-only. A store may forget an entry, but never give back another one, and the reason why
it keeps nothing must be found. Last, it times processes that assemble one kernel, and that launch it on the simulated
driver: with an empty cache, where the driver's libraries must be built; with these only, as a wheel has them; and with
the code of the kernel's blocks, which is all that the simulated driver keeps of a kernel.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyptx.cache import Store, explain_problem, make_private
from pyptx.sim.launch.forking import call_in_copies

KILLS, PROCESSES, SECONDS, DAMAGED, STARTS = 200, 16, 10.0, 2000, 5
NOBODY = 65534
PART, SUFFIX = "audit", ".kept"
LIMIT = 1 << 26
WRITER = """\
import random, sys, time
from pathlib import Path
from pyptx.cache import Store
store, chance, end = Store(Path(sys.argv[1]), ".kept", 1 << 26), random.Random(int(sys.argv[2])), float(sys.argv[3])
print(flush=True)
count = wrong = 0
while time.time() < end:
    name = str(chance.randrange(8))
    store.write(name, name.encode() * chance.randrange(1, 1_000_000))
    found = store.read(name := str(chance.randrange(8)))
    count += found is not None
    wrong += found is not None and set(found) != set(name.encode())
print(count, wrong)
"""
CLOCK = """\
import hashlib
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
def read_clock():
    return sum(usage.ru_utime + usage.ru_stime for usage in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))
"""
ASSEMBLER = """\
from tools.executor_kernels import right
begin = read_clock()
machine_code = bytes(right.cubin(n=64))
print(read_clock() - begin, hashlib.sha256(machine_code).hexdigest())
"""
LAUNCHER = """\
import pyptx.driver
from pyptx import Tile, kernel, ptx, reg
from pyptx.types import u32
from tools.executor_kernels import list_blocks
@kernel(in_specs=[Tile("n", u32)], out_specs=[Tile("n", u32)], grid=list_blocks, block=(64, 1, 1))
def unrolled(x, y):
    px, py = ptx.global_ptrs(x, y)
    offset = (ptx.special.ctaid.x() * 64 + ptx.special.tid.x()) * 4
    value = reg.scalar(u32)
    ptx.ld(u32, value, ptx.addr(px, offset))
    for number in range(500):
        value += value >> number % 32
    ptx.st(u32, ptx.addr(py, offset), value)
pyptx.driver.activate("h100")
from cuda.core import Device
device = Device()
device.set_current()
class Input:
    memory = device.allocate(256, stream=device.default_stream)
    __cuda_array_interface__ = {"shape": (64,), "typestr": "<u4", "data": (int(memory.handle), False), "version": 3}
Input.memory.fill(b"\\1\\0\\0\\0", stream=device.default_stream)
begin = read_clock()
result = unrolled(Input()).to_numpy()
print(read_clock() - begin, hashlib.sha256(result).hexdigest())
"""
STATES = {
    ASSEMBLER: {"empty cache": "", "machine code cached": ""},
    LAUNCHER: {"empty cache": "", "driver's libraries cached": "code", "and code of blocks cached": ""},
}
"""What is cached when a process starts, one after another, and the part that is removed before."""
FILLER = """\
mount -t tmpfs -o size=32k none "$XDG_CACHE_HOME" && exec "$1" -c '
from itertools import count
from pyptx.cache import Store, explain_problem
store = Store.open("audit", ".kept", 1 << 26)
entries = {"2": b"2" * 5000, **{str(number): bytes([number]) * 20000 for number in range(3, 20)}}
for name, data in entries.items():
    store.write(name, data)
for name in map("small{}".format, count()):
    store.write(name, b"")
    if store.read(name) is None:
        break
bodies = [(store.read(name), data) for name, data in entries.items()]
print(sum(body is not None for body, _ in bodies), sum(body not in (None, data) for body, data in bodies))
print(explain_problem("audit"))
'
"""


def main() -> int:
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        folder = make_private(PART)
        checks: list[tuple[str, Callable[[], tuple[int, int, str]]]] = [
            (f"writers killed: {KILLS}", lambda: kill_writers(folder, chance)),
            (f"processes at once: {PROCESSES}", lambda: write_at_once(folder)),
            (f"files cut or changed: {DAMAGED}", lambda: damage_files(folder, chance)),
            ("no larger files", lambda: limit_files(folder)),
            ("full disk", fill_disk),
            ("another user's file, folder", lambda: lend_files(folder)),
            ("read-only folder", read_only),
            (
                f"processes that assemble a kernel: {STARTS * len(STATES[ASSEMBLER])}",
                lambda: start_processes(ASSEMBLER),
            ),
            (f"processes that launch a kernel: {STARTS * len(STATES[LAUNCHER])}", lambda: start_processes(LAUNCHER)),
        ]
        total = 0
        for label, check in checks:
            start = time.monotonic()
            count, wrong, rest = check()
            total += wrong
            print(f"{label}: {count:,} reads, {wrong} wrong; {rest}; {time.monotonic() - start:.0f} s", flush=True)
    return 1 if total else 0


def start_writer(folder: Path, seed: int, seconds: float) -> subprocess.Popen[bytes]:
    """Start a process that writes and reads entries for some seconds."""
    words = [sys.executable, "-c", WRITER, str(folder), str(seed), str(time.time() + seconds)]
    writer = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    return writer


def read_all(folder: Path) -> tuple[int, int]:
    """Return how many entries there are, and how many are wrong."""
    store, names = Store(folder, SUFFIX, LIMIT), [str(number) for number in range(8)]
    bodies = {name: store.read(name) for name in names}
    entries = {name: body for name, body in bodies.items() if body is not None}
    return len(entries), sum(set(body) != set(name.encode()) for name, body in entries.items())


def kill_writers(folder: Path, chance: random.Random) -> tuple[int, int, str]:
    count = wrong = 0
    unfinished = set[str]()
    for seed in range(KILLS):
        writer = start_writer(folder, seed, 60)
        time.sleep(chance.random() * 0.02)
        writer.kill()
        writer.communicate()
        entries, errors = read_all(folder)
        count, wrong = count + entries, wrong + errors
        unfinished |= {path.name for path in folder.glob("*.new")}
    for path in folder.glob("*.new"):
        os.utime(path, (0, 0))
    Store(folder, SUFFIX, LIMIT).write("0", b"0")
    return (
        count,
        wrong,
        f"{len(unfinished)} unfinished files left, {len(list(folder.glob('*.new')))} after the next write",
    )


def write_at_once(folder: Path) -> tuple[int, int, str]:
    writers = [start_writer(folder, seed, SECONDS) for seed in range(PROCESSES)]
    count = wrong = 0
    statuses = Counter[int]()
    for writer in writers:
        output, _ = writer.communicate()
        statuses[writer.returncode] += 1
        entries, errors = map(int, output.split())
        count, wrong = count + entries, wrong + errors
    entries, errors = read_all(folder)
    return count + entries, wrong + errors, f"exit statuses {dict(statuses)}"


def damage_files(folder: Path, chance: random.Random) -> tuple[int, int, str]:
    store = Store(folder, SUFFIX, LIMIT)
    survivors = wrong = 0
    for _ in range(DAMAGED):
        store.write("1", b"1" * 300)
        path = folder / "1.kept"
        data = bytearray(path.read_bytes())
        if chance.random() < 0.5:
            del data[chance.randrange(len(data)) :]
        else:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        body = store.read("1")
        survivors += body is not None
        wrong += body is not None
    return DAMAGED, wrong, f"{survivors} given back"


def fill_disk() -> tuple[int, int, str]:
    """Write to a file system of 32 KiB until it is full."""
    with tempfile.TemporaryDirectory() as disk:
        words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FILLER, "sh", sys.executable]
        environment = {**os.environ, "XDG_CACHE_HOME": disk}
        process = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        return 0, 0, f"not tried: {process.stderr.strip().splitlines()[-1]}"
    counts, reason = process.stdout.splitlines()
    count, wrong = map(int, counts.split())
    is_right = reason.endswith("No space left on device")
    return 18, wrong + (not is_right), f"{count} entries stay, the others are gone; {judge(reason, is_right)}"


def judge(reason: str, is_right: bool) -> str:
    """Return what is said about a reason why nothing is kept."""
    return f"the reason is found: {reason.rsplit(': ', 1)[-1]}" if is_right else f"another reason: {reason or 'none'}"


def limit_files(folder: Path) -> tuple[int, int, str]:
    """Limit the size of files, as a quota does."""
    store = Store(folder, SUFFIX, LIMIT)
    store.write("2", b"2" * 5000)
    previous = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, previous[1]))
    try:
        store.write("2", b"2" * 4000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, previous)
    body = store.read("2")
    return (
        1,
        int(body != b"2" * 5000),
        "the earlier entry stays" if body == b"2" * 5000 else "the earlier entry is lost",
    )


def lend_files(folder: Path) -> tuple[int, int, str]:
    if os.getuid() != 0:
        return 0, 0, "not tried: only root can give files to another user"
    store = Store(folder, SUFFIX, LIMIT)
    store.write("3", b"3")
    os.chown(folder / "3.kept", NOBODY, NOBODY)
    wrong = int(store.read("3") is not None)
    for path in (folder, folder.parent):
        os.chown(path, NOBODY, NOBODY)
        wrong += Store.open(PART, SUFFIX, LIMIT) is not None
        wrong += not explain_problem(PART).startswith(f"{path} belongs to another user")
        os.chown(path, 0, 0)
    return 3, wrong, "refused, and the reason is found" if not wrong else "read, or refused without the reason"


def read_only() -> tuple[int, int, str]:
    """Read and write as a user who may only read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        user = NOBODY if os.getuid() == 0 else os.getuid()
        (result,) = call_in_copies(partial(use_store, Path(name)), [user], 1)
        *bodies, reason = result
        (Path(name) / "pyptx").chmod(0o755)
        (Path(name) / "pyptx" / PART).chmod(0o755)
    stay, is_right = bodies == [b"4" * 5000, None], reason.endswith("Permission denied")
    text = "entries stay as they are" if stay else "entries changed"
    return 2, (not stay) + (not is_right), f"{text}; {judge(reason, is_right)}"


def use_store(home: Path, user: int) -> tuple[bytes | None, bytes | None, str]:
    """Become a user whose cache is read-only, write two entries, and return what is read, and why nothing is kept."""
    os.environ["XDG_CACHE_HOME"] = str(home)
    folder = make_private(PART)
    Store(folder, SUFFIX, LIMIT).write("4", b"4" * 5000)
    for path, mode in ((folder / "4.kept", 0o444), (folder, 0o555), (folder.parent, 0o555)):
        os.chown(path, user, -1)
        path.chmod(mode)
    os.setuid(user)
    store = Store.open(PART, SUFFIX, LIMIT)
    assert store is not None
    store.write("4", b"wrong")
    store.write("5", b"wrong")
    return store.read("4"), store.read("5"), explain_problem(PART)


def start_processes(program: str) -> tuple[int, int, str]:
    """Measure the processor time of processes that use a kernel, their children's included, by what is cached."""
    states, digests = STATES[program], set[str]()
    seconds: dict[str, list[tuple[float, float]]] = {label: [] for label in states}
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache}
            for label, part in states.items():
                if part:
                    shutil.rmtree(Path(cache, "pyptx", part))
                count = sum(1 for path in Path(cache).rglob("*") if path.is_file())
                begin = read_clock()
                output = subprocess.check_output([sys.executable, "-c", CLOCK + program], env=environment, text=True)
                seconds[label].append((read_clock() - begin, float(output.split()[0])))
                digests.add(output.split()[1])
                added = sum(1 for path in Path(cache).rglob("*") if path.is_file()) - count
                assert (added > 0) == (label != [*states][-1]), (label, added)
    texts = [
        f"{label} {min(whole for whole, _ in times):.2f} s, the call {1000 * min(call for _, call in times):.0f} ms"
        for label, times in seconds.items()
    ]
    return STARTS * len(states), len(digests) - 1, f"processor time: {'; '.join(texts)}"


def read_clock() -> float:
    """Return the processor time of the processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
