"""Answers of a device or of the simulator, and the files that hold them."""

from __future__ import annotations

import json
import lzma
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MOST_BYTES = 15_500_000
"""The size of a file."""


@dataclass(frozen=True)
class Answer:
    """What a case returned: the output, and the driver's encoding of its tensor map at the address of its buffer;
    `error` is why there is no output."""

    name: str
    key: str
    error: str
    map: bytes
    address: int
    data: bytes

    def to_json(self) -> str:
        """Return one line."""
        fields = asdict(self) | {"map": self.map.hex(), "data": b64encode(self.data).decode()}
        return json.dumps(fields)

    @staticmethod
    def from_json(line: str) -> Answer:
        """Return the answer in a line."""
        fields: dict[str, Any] = json.loads(line)
        return _make_answer(fields, b64decode(fields["data"]))


def _make_answer(fields: dict[str, Any], data: bytes) -> Answer:
    return Answer(
        fields["name"], fields["key"], fields["error"], bytes.fromhex(fields["map"]), fields["address"], data
    )  # fmt: skip


def write_answers(folder: Path, answers: Iterable[Answer], about: str) -> list[Path]:
    """Write answers to compressed files of at most `MOST_BYTES`: an index of lines, then the outputs."""
    files: list[Path] = []
    part: list[Answer] = []
    size = 0
    for answer in answers:
        part.append(answer)
        size += len(answer.data) + 400
        if size > 4 * MOST_BYTES:
            files.append(_write_file(folder, len(files), part, about))
            part, size = [], 0
    return [*files, _write_file(folder, len(files), part, about)]


def _write_file(folder: Path, number: int, answers: list[Answer], about: str) -> Path:
    index = [{**asdict(a), "map": a.map.hex(), "data": len(a.data)} for a in answers]
    head = json.dumps({"about": about, "answers": index}).encode()
    body = len(head).to_bytes(8, "little") + head + b"".join(a.data for a in answers)
    path = folder / f"engines-{number}.xz"
    path.write_bytes(lzma.compress(body, preset=0))
    return path


def read_answers(folder: Path) -> tuple[str, dict[str, Answer]]:
    """Return what was recorded where, and the answers by name."""
    answers: dict[str, Answer] = {}
    about = ""
    for path in sorted(folder.glob("engines-*.xz")):
        about, part = _read_file(path)
        answers |= {answer.name: answer for answer in part}
    return about, answers


def _read_file(path: Path) -> tuple[str, Iterator[Answer]]:
    body = lzma.decompress(path.read_bytes())
    size = int.from_bytes(body[:8], "little")
    head: dict[str, Any] = json.loads(body[8 : 8 + size])
    return head["about"], _split(head["answers"], body[8 + size :])


def _split(index: list[dict[str, Any]], data: bytes) -> Iterator[Answer]:
    start = 0
    for fields in index:
        end = start + fields["data"]
        yield _make_answer(fields, data[start:end])
        start = end
