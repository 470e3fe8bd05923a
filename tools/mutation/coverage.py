"""Maps statements to the tests that execute them: measured once per test file, kept until that file changes.

Statements are identified by their text, so the map survives edits of the package. For a statement that is newer than
the measurement of a test file, the tests that executed its function count, or its module if the function is newer too,
or its folder if the module is.
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
_MOST_ATTEMPTS = 2
"""A test that failed because the machine was busy may pass the second time. A test that compiles functions with PyTorch
passes only then, when statements are recorded in a way that PyTorch can compile. Other failures are permanent."""
_TURN_SECONDS = 0.5
_AHEAD = (0, 2)
"""How many turns the cases of a test are ahead of others if its file is named after the module, or is of its
package."""


@dataclass(frozen=True)
class Measurement:
    """One test: its file, its time in seconds during the measurement, and whether it passed."""

    file: str
    name: str
    seconds: float
    has_passed: bool


@dataclass
class FileRecord:
    """The statements that the tests of a file execute, as packed indices into `TestMap.points`; `version` says which
    statements existed, `attempts` how often these tests were measured."""

    digest: str
    version: int
    collected: bytes
    tests: dict[str, tuple[float, bytes, bool]]
    attempts: int

    def list_failures(self) -> list[str]:
        """Return the tests that failed or were skipped."""
        return [name for name, (*_, has_passed) in self.tests.items() if not has_passed]


@dataclass
class TestMap:
    """The records of all files; `points` and `versions` only grow."""

    points: list[Point] = field(default_factory=list[Point])
    versions: list[bytes] = field(default_factory=list[bytes])
    files: dict[str, FileRecord] = field(default_factory=dict[str, FileRecord])


def load(path: Path) -> TestMap:
    """Return the map stored in a file, or an empty one."""
    return pickle.loads(path.read_bytes()) if path.exists() else TestMap()


def save(test_map: TestMap, path: Path) -> None:
    """Store a map atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_bytes(pickle.dumps(test_map))
    beside.replace(path)


def test_files(root: Path) -> list[str]:
    """Return the test files by path."""
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))


def stale(test_map: TestMap, root: Path) -> list[str]:
    """Return the test files to measure, and forget deleted ones: those that changed since they were measured, and those
    with tests that did not pass, until the last attempt. A file without tests could not be imported."""
    present = test_files(root)
    test_map.files = {name: record for name, record in test_map.files.items() if name in set(present)}
    unfinished = {
        name
        for name, record in test_map.files.items()
        if record.attempts < _MOST_ATTEMPTS and (not record.tests or record.list_failures())
    }
    return [
        name
        for name in present
        if name not in test_map.files or name in unfinished or test_map.files[name].digest != _digest(root / name)
    ]


def measure(test_map: TestMap, files: Sequence[str], trees: Sequence[Tree], store: Path) -> None:
    """Run the files in the trees, one file per tree at a time, and record in the map what their tests execute."""
    waiting = queue.SimpleQueue[str]()
    for name in files:
        waiting.put(name)
    points: list[Point] = []
    for tree in trees:
        points = compile_counting(tree)
    test_map.points = list(dict.fromkeys([*test_map.points, *points]))
    place = {point: number for number, point in enumerate(test_map.points)}
    places = np.array([place[point] for point in points])
    test_map.versions.append(_pack_bits(places, len(test_map.points)))
    lock, errors = threading.Lock(), list[BaseException]()

    def drain(tree: Tree) -> None:
        try:
            while True:
                name = waiting.get_nowait()
                record = _record(tree, name, places, test_map)
                with lock:
                    test_map.files[name] = record
                    save(test_map, store)
                    print(f"measured {name}: {len(record.tests)} tests, {waiting.qsize()} files to go", file=sys.stderr)
                    for test in record.list_failures():
                        print(f"    did not pass: {test}", file=sys.stderr)
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


def _record(tree: Tree, name: str, places: Bits, test_map: TestMap) -> FileRecord:
    output = tree.folder / "record.pickle"
    output.unlink(missing_ok=True)
    (tree.root / "mutation_hits.bin").write_bytes(bytes(len(places)))
    digest, before = _digest(tree.root / name), test_map.files.get(name)
    is_repeated = before is not None and (before.digest, test_map.versions[before.version]) == (
        digest, test_map.versions[-1]
    )  # fmt: skip
    environment = {"MUTATION_RECORD": str(output)}
    if is_repeated and "torch" in (tree.root / name).read_text("utf-8"):
        environment["MUTATION_COMPILED"] = "1"
    status = tree.run([name], environment, FILE_SECONDS)
    if not output.exists():
        raise OSError(f"pytest {name} ended with {status} and no record:\n{(tree.folder / 'output.txt').read_text()}")
    records, tests = pickle.loads(output.read_bytes())

    def pack(hits: bytes) -> bytes:
        return _pack_bits(places[np.frombuffer(zlib.decompress(hits), np.uint8) != 0], len(test_map.points))

    measurements = {
        test: (seconds, pack(hits), outcome == "passed") for test, (seconds, hits, outcome) in tests.items()
    }
    attempts = 1
    if before is not None and is_repeated:
        attempts += before.attempts
        measurements |= {test: earlier for test, earlier in before.tests.items() if earlier[2]}
    collected = pack(records) if tests or before is None else before.collected
    return FileRecord(digest, len(test_map.versions) - 1, collected, measurements, attempts)


def _pack_bits(places: Bits, size: int) -> bytes:
    bits = np.zeros(size, np.uint8)
    bits[places] = 1
    return zlib.compress(np.packbits(bits).tobytes())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Coverage:
    """Finds the tests that execute a statement, without those that fail on the unmodified tree.

    A test that fails only while it is measured counts with what it executed until then.
    """

    def __init__(self, test_map: TestMap) -> None:
        self.place = {point: number for number, point in enumerate(test_map.points)}
        self.of_path: dict[str, list[tuple[Point, int]]] = {}
        for point, number in self.place.items():
            self.of_path.setdefault(point.path, []).append((point, number))
        width = (len(test_map.points) + 7) // 8
        self.tests = [
            Measurement(file, name, seconds, has_passed)
            for file, record in sorted(test_map.files.items())
            for name, (seconds, _, has_passed) in record.tests.items()
        ]
        self.all_names = [test.name for test in self.tests]
        self.failures = set[str]()
        """Tests that fail on the unmodified tree, and so detect nothing."""
        self.matrix = np.zeros((len(self.tests), width), np.uint8)
        rows = (hits for _, record in sorted(test_map.files.items()) for _, hits, _ in record.tests.values())
        for row, hits in enumerate(rows):
            self.matrix[row] = _expand(hits, width)
        self.import_bits = {file: _expand(record.collected, width) for file, record in test_map.files.items()}
        self.by_file: dict[str, list[int]] = {}
        for number, test in enumerate(self.tests):
            self.by_file.setdefault(test.file, []).append(number)
        versions = {record.version for record in test_map.files.values()}
        self.present = {version: _expand(test_map.versions[version], width) for version in versions}
        self.files = {
            version: [file for file, record in test_map.files.items() if record.version == version]
            for version in versions
        }

    def rank_tests(self, point: Point) -> list[Measurement]:
        """Return the tests that may detect a change to a statement, likeliest first: those that execute it, then the
        others of a file with such a test, because tests may share results, beginning with those that execute a function
        of the module. A statement of a module or class runs only in the first test of a process that needs it, so for
        such a statement, every test that executes a function of the module counts as executing it. The cases of a
        parametrized test take turns of a fraction of a second with other tests, because they resemble each other; those
        near the module in the tree are some turns ahead."""
        hit = np.zeros(len(self.tests), bool)
        importers = set[str]()
        for version, files in self.files.items():
            mask = self._mask(point, self.present[version])
            rows = [number for file in files for number in self.by_file.get(file, ())]
            hit[rows] = (self.matrix[rows] & mask).any(axis=1)
            importers |= {file for file in files if (self.import_bits[file] & mask).any()}
        near = {self.tests[number].file for number in np.flatnonzero(hit)} | importers
        affinity = self._affinity(point.path)
        distances = np.where(hit, 0, np.where(affinity, 0 if _runs_once(point) else 1, 2))
        ranks: list[tuple[tuple[int, float, bool, bool, bool, float], Measurement]] = []
        for file in near:
            mirrors, of_package = is_named_after(file, point.path), is_of_package(file, point.path)
            ahead = _AHEAD[mirrors] + _AHEAD[of_package]
            spent = dict[str, float]()
            for number in sorted(self.by_file.get(file, ()), key=lambda number: self.tests[number].seconds):
                test = self.tests[number]
                distance = 0 if file in importers else int(distances[number])
                if test.name not in self.failures:
                    function = file if distance == 2 else f"{distance} {test.name.partition('[')[0]}"
                    key = (
                        distance,
                        max(0, spent.get(function, 0.0) // _TURN_SECONDS - ahead),
                        not mirrors,
                        not of_package,
                        not affinity[number],
                    )
                    ranks.append(((*key, test.seconds), test))
                    spent[function] = spent.get(function, 0.0) + test.seconds
        return [test for _, test in sorted(ranks, key=lambda rank: rank[0])]

    def _mask(self, point: Point, present: Bits) -> Bits:
        """Return the measured statements that stand for a statement: itself, or those of its function, of its file,
        or of its folder."""
        presence = np.unpackbits(present)
        exact = self.place.get(point)
        file = [(known.function, number) for known, number in self.of_path.get(point.path, ()) if presence[number]]
        if not file:
            folder = str(Path(point.path).parent)
            near = [points for path, points in self.of_path.items() if str(Path(path).parent) == folder]
            file = [(known.function, number) for points in near for known, number in points if presence[number]]
        function = [number for name, number in file if name == point.function]
        numbers = (
            [exact] if exact is not None and presence[exact] else function or [number for name, number in file if name]
        )
        mask = np.zeros(len(presence), np.uint8)
        mask[numbers] = 1
        return np.packbits(mask)

    def _affinity(self, path: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return, for each test, whether it executes a function of a module."""
        mask = np.zeros(self.matrix.shape[1] * 8, np.uint8)
        mask[[number for point, number in self.of_path.get(path, ()) if point.function]] = 1
        return np.asarray((self.matrix & np.packbits(mask)).any(axis=1))


def _runs_once(point: Point) -> bool:
    """Return whether a statement is of a module or a class: by their names, functions begin with a small letter."""
    name = point.function.rpartition(".")[2].lstrip("_")
    return not name or name[0].isupper()


def _expand(data: bytes, width: int) -> Bits:
    bits = np.frombuffer(zlib.decompress(data), np.uint8)
    return np.concatenate([bits, np.zeros(width - len(bits), np.uint8)])


def is_named_after(test: str, module: str) -> bool:
    """Return whether a test file is named after a module, such as tests/sim/hazards/test_bulk.py after bulk.py, with or
    without the aspect that it tests."""
    name = Path(module)
    stem = name.parent.name if name.stem == "__init__" else name.stem
    words = Path(test).stem.removeprefix("test_")
    is_named = words == stem or words.startswith(f"{stem}_")
    return is_named and (len(name.parts) < 3 or name.parts[1] in Path(test).parts or len(Path(test).parts) == 2)


def is_of_package(test: str, module: str) -> bool:
    """Return whether a test file lies in the folder for tests of a module's package, or of an enclosing package."""
    module_folders, test_folders = Path(module).parts[1:-1], Path(test).parts[1:-1]
    return bool(test_folders) and module_folders[: len(test_folders)] == test_folders
