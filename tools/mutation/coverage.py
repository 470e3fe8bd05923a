"""Which tests run which statement: measured once per test file, kept until that file changes.

A statement is known by its text, so the map outlives edits of the package. For one that is newer than the measurement
of a file of tests, those that ran its function count, or its module, if the function is newer too.
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
    """One test: its file, its seconds while statements were counted, and whether it passed."""

    file: str
    name: str
    seconds: float
    passed: bool


@dataclass
class FileRecord:
    """What the tests of a file run: statements by their place in `TestMap.points`, packed. `version`: which of them
    there were."""

    digest: str
    version: int
    collected: bytes
    tests: dict[str, tuple[float, bytes, bool]]


@dataclass
class TestMap:
    """All files' records; `points` and `versions` only grow."""

    points: list[Point] = field(default_factory=list[Point])
    versions: list[bytes] = field(default_factory=list[bytes])
    files: dict[str, FileRecord] = field(default_factory=dict[str, FileRecord])


def load(path: Path) -> TestMap:
    """Return the map kept in a file, an empty one if there is none."""
    return pickle.loads(path.read_bytes()) if path.exists() else TestMap()


def save(known: TestMap, path: Path) -> None:
    """Keep a map, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_bytes(pickle.dumps(known))
    beside.replace(path)


def test_files(root: Path) -> list[str]:
    """Return the files of tests by their paths."""
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))


def stale(known: TestMap, root: Path) -> list[str]:
    """Return the test files that changed since they were measured, and forget those that are gone."""
    present = test_files(root)
    known.files = {name: record for name, record in known.files.items() if name in set(present)}
    return [name for name in present if name not in known.files or known.files[name].digest != _digest(root / name)]


def measure(known: TestMap, files: Sequence[str], trees: Sequence[Tree], kept: Path) -> None:
    """Run the files in the trees, each tree one at a time, and write what their tests ran into the map."""
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
    """Answers which tests run a statement. Tests that failed or were skipped while measured are not in it."""

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
        """Tests that fail on the tree as it is: they notice nothing."""
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
        """Return the tests that may notice a change of a statement, the likeliest and quickest first: those of the file
        that is named as the module, those that ran the statement, then the others of a file one of whose tests ran it,
        for what they share may have been computed once."""
        hit = np.zeros(len(self.tests), bool)
        imported = set[str]()
        for version, files in self.files.items():
            mask = self._mask(point, self.present[version])
            rows = [number for file in files for number in self.by_file.get(file, ())]
            hit[rows] = (self.matrix[rows] & mask).any(axis=1)
            imported |= {file for file in files if (self.collected[file] & mask).any()}
        near = {self.tests[number].file for number in np.flatnonzero(hit)} | imported
        affinity = self._affinity(point.path) if imported else hit
        ranks: list[tuple[tuple[bool, bool, bool, float], Measured]] = []
        for file in near:
            mirrors = _mirrors(file, point.path)
            for number in self.by_file.get(file, ()):
                test = self.tests[number]
                key = (not (mirrors and (hit[number] or file in imported)), not hit[number], not affinity[number])
                if test.passed and test.name not in self.broken:
                    ranks.append(((*key, test.seconds), test))
        return [test for _, test in sorted(ranks, key=lambda rank: rank[0])]

    def _mask(self, point: Point, present: Bits) -> Bits:
        """Return the statements, of those that there were, whose tests are those of a statement: itself, or those of
        its function, or of its file."""
        there = np.unpackbits(present)
        own = self.place.get(point)
        file = [(other.function, number) for other, number in self.of_path.get(point.path, ()) if there[number]]
        function = [number for name, number in file if name == point.function]
        chosen = [own] if own is not None and there[own] else function or [number for name, number in file if name]
        mask = np.zeros(len(there), np.uint8)
        mask[chosen] = 1
        return np.packbits(mask)

    def _affinity(self, path: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each test runs a function of a module."""
        mask = np.zeros(self.matrix.shape[1] * 8, np.uint8)
        mask[[number for point, number in self.of_path.get(path, ()) if point.function]] = 1
        return np.asarray((self.matrix & np.packbits(mask)).any(axis=1))


def _filled(packed: bytes, width: int) -> Bits:
    bits = np.frombuffer(zlib.decompress(packed), np.uint8)
    return np.concatenate([bits, np.zeros(width - len(bits), np.uint8)])


def _mirrors(test: str, module: str) -> bool:
    """Whether a test file is named as a module: tests/sim/test_bulk.py, tests/sim/hazards/test_bulk.py for bulk.py."""
    name = Path(module)
    stem = name.parent.name if name.stem == "__init__" else name.stem
    words = Path(test).stem.removeprefix("test_")
    return words == stem and (len(name.parts) < 3 or name.parts[1] in Path(test).parts or len(Path(test).parts) == 2)
