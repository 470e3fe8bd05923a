"""The corpus is what its manifests say: digests, entries, references, no doubled kernel, no machine's path."""

from __future__ import annotations

import importlib
import os
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools.corpus import inputs, stats
from tools.corpus.manifest import Array, Entry, File, Output, flat, load, problems, producers

FILES = list(stats.files())
RUNS = [(path, entry) for path, item in FILES for entry in item.entries if entry.run is not None]
SEED = int(os.environ.get("CORPUS_SEED", "7"))
ABSOLUTE = re.compile(rb'"(/[^"\n]+|[A-Za-z]:\\[^"\n]*)"|/(?:home|root|tmp|usr|work)/[\w./-]+')
# "/home/", "/root/", "/tmp/", "/usr/" as the bytes of `.b8` initializers and debug sections.
ENCODED = re.compile(
    rb"\b47,\s*(104,\s*111,\s*109,\s*101|114,\s*111,\s*111,\s*116|116,\s*109,\s*112|117,\s*115,\s*114),\s*47\b"
)


def test_at_least_the_promised_corpus() -> None:
    texts = [path.read_text(encoding="latin-1") for path, _ in FILES]
    entries = [entry for _, item in FILES for entry in item.entries]
    assert len(entries) >= 250
    assert len({entry.algorithm for entry in entries}) >= 40
    assert len({opcode for text in texts for opcode in stats.opcodes(text)}) >= 350
    assert len({path.parent.name for path, _ in FILES}) >= 7
    assert sum(map(len, texts)) <= 12_000_000
    assert 2 * len(RUNS) >= len(entries)


@pytest.mark.parametrize("directory", list(producers()), ids=lambda path: path.name)
def test_manifest_describes_its_files(directory: Path) -> None:
    assert problems(load(directory), directory) == []


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    directory = FILES[0][0].parent
    manifest = load(directory)
    for item in manifest.files:
        (tmp_path / item.path).write_bytes((directory / item.path).read_bytes())
    path = tmp_path / manifest.files[0].path
    path.write_bytes(path.read_bytes() + b"\n")
    assert problems(manifest, tmp_path) == [f"{path.name}: sha256 differs"]


def test_no_kernel_equals_another_after_renaming() -> None:
    assert stats.duplicates() == []


def test_renaming_hides_no_difference_but_names() -> None:
    body = "{ ld.param.u32 %r1, [k_param_0]; add.s32 %r2, %r1, 3; bra $L1; $L1: ret; }"
    copy = body.replace("%r1", "%a7").replace("%r2", "%b").replace("k_param", "other_param").replace("$L1", "$X")
    assert stats.fingerprint(body) == stats.fingerprint(copy)
    assert stats.fingerprint(body) != stats.fingerprint(body.replace(", 3", ", 4"))
    assert stats.fingerprint(body) != stats.fingerprint(body.replace("%r1, 3", "%tid.x, 3"))


@pytest.mark.parametrize(("path", "item"), FILES, ids=lambda value: getattr(value, "name", ""))
def test_no_path_of_a_machine(path: Path, item: File) -> None:
    assert ABSOLUTE.search(path.read_bytes()) is None
    assert ENCODED.search(path.read_bytes()) is None


@pytest.mark.parametrize(("path", "entry"), RUNS, ids=lambda value: getattr(value, "name", ""))
def test_reference_returns_every_output(path: Path, entry: Entry) -> None:
    assert entry.run is not None
    before = inputs.arguments(entry.run)
    module, _, name = entry.run.reference.rpartition(".")
    reference: Callable[[Mapping[str, Any]], dict[str, Any]] = getattr(
        importlib.import_module(f"tools.corpus.{module}"), name
    )
    with np.errstate(all="ignore"):
        results = reference({key: value.copy() for key, value in before.items()})
    arrays = {argument.name: argument for argument in flat(entry.run.arguments) if isinstance(argument, Array)}
    assert set(results) == {output.argument for output in entry.run.outputs}
    for name, value in results.items():
        assert (value.shape, value.dtype) == (arrays[name].shape, inputs.dtype(arrays[name].dtype)), name
        assert value.tobytes() != before[name].tobytes(), f"{name} is what it was before the launch"


def test_an_output_that_is_no_array_is_a_problem() -> None:
    path, entry = RUNS[0]
    assert entry.run is not None
    manifest = load(path.parent)
    item = next(item for item in manifest.files if item.path == path.name)
    wrong = replace(entry, run=replace(entry.run, outputs=(Output("nowhere"),)))
    entries = tuple(wrong if old == entry else old for old in item.entries)
    wrong_manifest = replace(
        manifest, files=tuple(replace(f, entries=entries) if f == item else f for f in manifest.files)
    )
    assert problems(wrong_manifest, path.parent) == [
        f"{path.name}: {entry.name}: output 'nowhere' is not an array argument"
    ]


def test_ptxas_takes_every_file_on_its_target() -> None:
    whole = bool(os.environ.get("CORPUS_WHOLE"))
    sample = FILES if whole else random.Random(SEED).sample(FILES, min(40, len(FILES)))
    faults = [fault for path, item in sample if (fault := stats.refusal(path, item))]
    assert faults == [], f"CORPUS_SEED={SEED}"
