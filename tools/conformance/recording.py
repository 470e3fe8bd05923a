"""The answers of a GPU to cases, in a folder: a recording is made where the GPU is and compared anywhere."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from pyptx.types import from_name
from tools.conformance.device import Device
from tools.conformance.forms import Array, Case
from tools.conformance.modules import TUPLES, WIDTH
from tools.conformance.simulated import draw_operands, empty

FILE = "answers.xz"
"""The file of a recording."""
_WORD = 16
"""Bytes of a value in the arrays of results."""


class RecordingError(Exception):
    """A folder holds no recording, or cases cannot be distinguished in one."""


@dataclass(frozen=True)
class Answer:
    """Packed results of a case, and the digest of the operands that they are for."""

    operands: str
    data: bytes


@dataclass(frozen=True)
class Recording:
    """What a device answered to operands of a seed, by the identities of the cases."""

    device: Device
    seed: int
    answers: Mapping[str, Answer]

    def __contains__(self, case: Case) -> bool:
        return identify(case) in self.answers

    def find(self, case: Case, operands: Array) -> Array | None:
        """Return the results of a case for these operands, or None if it was not run on them."""
        answer = self.answers.get(identify(case))
        if answer is None or answer.operands != _digest(operands.tobytes()):
            return None
        return _unpack(case, answer.data)


def record(device: Device, seed: int, results: Mapping[Case, Array], earlier: Recording | None = None) -> Recording:
    """Return the recording of results, after those of an earlier one."""
    answers = {
        identify(case): Answer(_digest(draw_operands(case, seed).tobytes()), _pack(case, arrays))
        for case, arrays in results.items()
    }
    if len(answers) != len(results):
        raise RecordingError("two cases have the same identity")
    return Recording(device, seed, {**(earlier.answers if earlier else {}), **answers})


def exists(folder: Path) -> bool:
    """Return whether a folder has a recording."""
    return (folder / FILE).exists()


def save(recording: Recording, folder: Path) -> Path:
    """Write a recording to a folder; return its file."""
    answers = recording.answers
    header = {
        "device": recording.device.description, "target": recording.device.target, "seed": recording.seed,
        "answers": {identity: [len(answer.data), answer.operands] for identity, answer in answers.items()},
    }  # fmt: skip
    data = b"".join(answer.data for answer in answers.values())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    # A preset with a dictionary of megabytes: forms with the same operands have similar answers.
    path.write_bytes(lzma.compress(json.dumps(header).encode() + b"\n" + data, preset=2))
    return path


def load(folder: Path) -> Recording:
    """Return the recording of a folder."""
    try:
        text, data = lzma.decompress((folder / FILE).read_bytes()).split(b"\n", 1)
    except (OSError, lzma.LZMAError) as why:
        raise RecordingError(f"{folder} holds no recording: {why}") from why
    header, answers, start = json.loads(text), dict[str, Answer](), 0
    for identity, (size, operands) in header["answers"].items():
        answers[identity] = Answer(operands, data[start : start + size])
        start += size
    return Recording(Device(header["device"], header["target"]), header["seed"], answers)


def identify(case: Case) -> str:
    """Return the identity of a case: a digest of its instructions and registers."""
    registers = [column.register for column in (*case.inputs, *case.outputs)]
    return _digest("\n".join([*case.before, case.text, *case.after, *registers]).encode())


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def _list_widths(case: Case) -> list[int]:
    """Return how many bytes each result takes, the carry flag last."""
    widths = [from_name(WIDTH.get(column.kind, column.kind)).bits // 8 for column in case.outputs]
    return [*widths, *([4] * case.carries)]


def _pack(case: Case, results: Array) -> bytes:
    """Return results without the bytes that no store writes."""
    parts = results.view(np.uint8).reshape(len(results), TUPLES, _WORD)
    return b"".join(part[:, :width].tobytes() for part, width in zip(parts, _list_widths(case), strict=True))


def _unpack(case: Case, data: bytes) -> Array:
    results = empty(case)
    parts, start = results.view(np.uint8).reshape(len(results), TUPLES, _WORD), 0
    for part, width in zip(parts, _list_widths(case), strict=True):
        end = start + width * TUPLES
        part[:, :width] = np.frombuffer(data[start:end], np.uint8).reshape(TUPLES, width)
        start = end
    return results
