"""Maps statements to the tests that execute them: measured once per test file, kept until that file changes.

Statements are identified by their text, so the map survives edits of the package. For a statement that is newer than
the measurement of a test file, the tests that executed its function count, or its module if the function is newer too.
"""

from __future__ import annotations

import hashlib
import pickle
import queue
import sys
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tools.mutation.trees import Point, Tree, compile_counting, compile_plain

Bits = np.ndarray[Any, np.dtype[np.uint8]]
FILE_SECONDS = 3600.0


@dataclass(frozen=True)
class Measured:
    """One test: its file, its time in seconds while being measured, and whether it passed."""

    file: str
    name: str
    seconds: float
    passed: bool


@dataclass
class FileRecord:
    """The statements that the tests of a file execute, as packed indices into `TestMap.points`; `version` says which
    statements existed."""

    digest: str
    version: int
    collected: bytes
    tests: dict[str, tuple[float, bytes, bool]]


@dataclass
class TestMap:
    """The records of all files; `points` and `versions` only grow."""

    points: list[Point] = field(default_factory=list[Point])
    versions: list[bytes] = field(default_factory=list[bytes])
    files: dict[str, FileRecord] = field(default_factory=dict[str, FileRecord])


def load(path: Path) -> TestMap:
    """Return the map stored in a file, or an empty one."""
    return pickle.loads(path.read_bytes()) if path.exists() else TestMap()


def save(known: TestMap, path: Path) -> None:
    """Store a map atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_bytes(pickle.dumps(known))
    beside.replace(path)


def test_files(root: Path) -> list[str]:
    """Return the test files by path."""
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))


def stale(known: TestMap, root: Path) -> list[str]:
    """Return the test files that changed since they were measured, and forget deleted ones."""
    present = test_files(root)
    known.files = {name: record for name, record in known.files.items() if name in set(present)}
    return [name for name in present if name not in known.files or known.files[name].digest != _digest(root / name)]


def measure(known: TestMap, files: Sequence[str], trees: Sequence[Tree], kept: Path) -> None:
    """Run the files in the trees, one file per tree at a time, and record in the map what their tests execute."""
    waiting = queue.SimpleQueue[str]()
    for name in files:
        waiting.put(name)
    points: list[Point] = []
    for tree in trees:
        points = compile_counting(tree)
    known.points = list(dict.fromkeys([*known.points, *points]))
    place = {point: number for number, point in enumerate(known.points)}
    places = np.array([place[point] for point in points])
    known.versions.append(_packed(places, len(known.points)))
    lock, errors = threading.Lock(), list[BaseException]()

    def drain(tree: Tree) -> None:
        try:
            while True:
                name = waiting.get_nowait()
                record = _record(tree, name, places, known)
                with lock:
                    known.files[name] = record
                    save(known, kept)
                    bad = sum(not passed for *_, passed in record.tests.values())
                    done = (
                        f"measured {name}: {len(record.tests)} tests, {bad} not passed, {waiting.qsize()} files to go"
                    )
                    print(done, file=sys.stderr, flush=True)
        except queue.Empty:
            return
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=drain, args=[tree]) for tree in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for tree in trees:
        (tree.root / "mutation_hits.py").unlink()
        compile_plain(tree)
    if errors:
        raise errors[0]


def _record(tree: Tree, name: str, places: Bits, known: TestMap) -> FileRecord:
    output = tree.folder / "record.pickle"
    output.unlink(missing_ok=True)
    (tree.root / "mutation_hits.bin").write_bytes(bytes(len(places)))
    status = tree.run([name], {"MUTATION_RECORD": str(output)}, FILE_SECONDS)
    if not output.exists():
        raise OSError(f"pytest {name} ended with {status} and no record:\n{(tree.folder / 'output.txt').read_text()}")
    collected, tests = pickle.loads(output.read_bytes())

    def packed(hits: bytes) -> bytes:
        return _packed(places[np.frombuffer(zlib.decompress(hits), np.uint8) != 0], len(known.points))

    return FileRecord(
        _digest(tree.root / name), len(known.versions) - 1, packed(collected),
        {test: (seconds, packed(hits), outcome == "passed") for test, (seconds, hits, outcome) in tests.items()},
    )  # fmt: skip


def _packed(places: Bits, size: int) -> bytes:
    bits = np.zeros(size, np.uint8)
    bits[places] = 1
    return zlib.compress(np.packbits(bits).tobytes())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Coverage:
    """Finds the tests that execute a statement, without those that failed or were skipped while being measured."""

    def __init__(self, known: TestMap) -> None:
        self.place = {point: number for number, point in enumerate(known.points)}
        self.of_path: dict[str, list[tuple[Point, int]]] = {}
        for point, number in self.place.items():
            self.of_path.setdefault(point.path, []).append((point, number))
        width = (len(known.points) + 7) // 8
        self.tests = [
            Measured(file, name, seconds, passed)
            for file, record in sorted(known.files.items())
            for name, (seconds, _, passed) in record.tests.items()
        ]
        self.all_names = [test.name for test in self.tests]
        self.broken = set[str]()
        """Tests that fail on the unmodified tree, and so detect nothing."""
        self.matrix = np.zeros((len(self.tests), width), np.uint8)
        rows = (hits for _, record in sorted(known.files.items()) for _, hits, _ in record.tests.values())
        for row, hits in enumerate(rows):
            self.matrix[row] = _filled(hits, width)
        self.collected = {file: _filled(record.collected, width) for file, record in known.files.items()}
        self.by_file: dict[str, list[int]] = {}
        for number, test in enumerate(self.tests):
            self.by_file.setdefault(test.file, []).append(number)
        versions = {record.version for record in known.files.values()}
        self.present = {version: _filled(known.versions[version], width) for version in versions}
        self.files = {
            version: [file for file, record in known.files.items() if record.version == version] for version in versions
        }

    def ranked(self, point: Point) -> list[Measured]:
        """Return the tests that may detect a change to a statement, likeliest and fastest first: of the file named
        after the module, of its package, those that executed the statement, then the others of a file with such a test,
        because tests may share results."""
        hit = np.zeros(len(self.tests), bool)
        imported = set[str]()
        for version, files in self.files.items():
            mask = self._mask(point, self.present[version])
            rows = [number for file in files for number in self.by_file.get(file, ())]
            hit[rows] = (self.matrix[rows] & mask).any(axis=1)
            imported |= {file for file in files if (self.collected[file] & mask).any()}
        near = {self.tests[number].file for number in np.flatnonzero(hit)} | imported
        affinity = self._affinity(point.path) if imported else hit
        ranks: list[tuple[tuple[bool, bool, bool, bool, float], Measured]] = []
        for file in near:
            mirrors, of_package = _mirrors(file, point.path), is_of_package(file, point.path)
            for number in self.by_file.get(file, ()):
                test = self.tests[number]
                runs = hit[number] or file in imported
                key = (not (mirrors and runs), not (of_package and runs), not hit[number], not affinity[number])
                if test.passed and test.name not in self.broken:
                    ranks.append(((*key, test.seconds), test))
        return [test for _, test in sorted(ranks, key=lambda rank: rank[0])]

    def _mask(self, point: Point, present: Bits) -> Bits:
        """Return the measured statements that stand for a statement: itself, or those of its function, or of its
        file."""
        there = np.unpackbits(present)
        own = self.place.get(point)
        file = [(other.function, number) for other, number in self.of_path.get(point.path, ()) if there[number]]
        function = [number for name, number in file if name == point.function]
        chosen = [own] if own is not None and there[own] else function or [number for name, number in file if name]
        mask = np.zeros(len(there), np.uint8)
        mask[chosen] = 1
        return np.packbits(mask)

    def _affinity(self, path: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return, for each test, whether it executes a function of a module."""
        mask = np.zeros(self.matrix.shape[1] * 8, np.uint8)
        mask[[number for point, number in self.of_path.get(path, ()) if point.function]] = 1
        return np.asarray((self.matrix & np.packbits(mask)).any(axis=1))


def _filled(packed: bytes, width: int) -> Bits:
    bits = np.frombuffer(zlib.decompress(packed), np.uint8)
    return np.concatenate([bits, np.zeros(width - len(bits), np.uint8)])


def _mirrors(test: str, module: str) -> bool:
    """Return whether a test file is named after a module, such as tests/sim/hazards/test_bulk.py after bulk.py."""
    name = Path(module)
    stem = name.parent.name if name.stem == "__init__" else name.stem
    words = Path(test).stem.removeprefix("test_")
    return words == stem and (len(name.parts) < 3 or name.parts[1] in Path(test).parts or len(Path(test).parts) == 2)


def is_of_package(test: str, module: str) -> bool:
    """Return whether a test file lies where the tests of a module's package do, or of the package around it."""
    own, others = Path(module).parts[1:-1], Path(test).parts[1:-1]
    return bool(others) and own[: len(others)] == others
