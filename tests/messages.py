"""Whole messages as users read them, in files of `tests/messages`: named ones per kind of error, and a list per folder
of tests.

`PYPTX_UPDATE_GOLDENS=1` with `-n 0` writes the named messages anew and adds to the lists; delete a list first to drop
messages that no test causes any longer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from pyptx.diagnostics import Diagnostic, Origin, PtxError

Error = TypeVar("Error", bound=PtxError)

FOLDER = Path(__file__).parent / "messages"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+>")
"""Of an object in its `repr`."""
_MEMORY = re.compile(r"this machine has \d+ GiB")
_PLACE = re.compile(rf"{re.escape(str(FOLDER.parents[1]))}/(\S+):\d+")
_HEAD = re.compile(r"^==== (.*)\n", re.MULTILINE)


def read_messages(kind: str) -> dict[str, str]:
    """Return the messages of a kind by name."""
    path = FOLDER / f"{kind}.txt"
    parts = _HEAD.split(path.read_text("utf-8"))[1:] if path.exists() else []
    return {name: text.rstrip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


def assert_message(kind: str, name: str, text: str) -> None:
    """Fail unless a message is the stored one."""
    messages = read_messages(kind)
    text = "\n".join(_ADDRESS.sub(" at 0x…>", line).rstrip() for line in text.splitlines())
    if os.environ.get("PYPTX_UPDATE_GOLDENS"):
        messages[name] = text
        FOLDER.mkdir(exist_ok=True)
        whole = "\n".join(f"==== {name}\n{messages[name]}\n" for name in sorted(messages))
        (FOLDER / f"{kind}.txt").write_text(whole, "utf-8")
    assert text == messages.get(name)


@cache
def read_list(folder: str) -> set[str]:
    """Return the messages that the tests of a folder may cause, each with its severity, code, notes and help."""
    path = FOLDER / f"{folder}.list"
    return set(path.read_text("utf-8").rstrip("\n").split("\n\n")) if path.exists() else set()


def assert_listed(findings: Sequence[Diagnostic], source: str | None = None) -> None:
    """Fail unless the text of each finding is in the list of the running test's folder: with what it underlines in the
    PTX, if that is passed, but without its line and column."""
    parts = os.environ["PYTEST_CURRENT_TEST"].split("/")
    folder = parts[1] if len(parts) > 2 else "tests"
    listed = read_list(folder)
    texts = {_describe(finding, source) for finding in findings}
    if os.environ.get("PYPTX_UPDATE_GOLDENS") and not texts <= listed:
        listed |= texts
        (FOLDER / f"{folder}.list").write_text("\n\n".join(sorted(listed)) + "\n", "utf-8")
    assert not texts - listed


def _describe(finding: Diagnostic, source: str | None) -> str:
    lines = [
        f"{finding.severity}[{finding.code}] {finding.message}",
        *(f"at: {_quote(place, source)}" for place in (finding.origin, finding.other) if source is not None and place),
        *(f"note: {note}" for note in finding.notes),
        *([f"help: {finding.help}"] if finding.help is not None else []),
        *(f"more: {detail}" for detail in finding.details),
    ]
    text = _PLACE.sub(r"\1:…", _ADDRESS.sub(" at 0x…>", "\n".join(map(str, lines))))
    text = _MEMORY.sub("this machine has … GiB", text)
    return re.sub(r"\n\s*\n", "\n", "\n".join(line.rstrip() for line in text.splitlines()))


def _quote(place: Origin, source: str) -> str:
    """Return the underlined text, and how many characters are beyond the end of its line."""
    line = source.split("\n")[place.line - 1]
    text = line[place.col - 1 : place.col - 1 + place.length]
    return f"`{text}`" if len(text) == place.length else f"`{text}` and {place.length - len(text)} more"


@contextmanager
def raises(
    kind: type[Error], match: str | None = None, file: str | None = None
) -> Generator[pytest.ExceptionInfo[Error]]:
    """Like `pytest.raises`, and fail unless the whole messages are listed, and their places are in `file`, if given."""
    with pytest.raises(kind, match=match) as excinfo:
        yield excinfo
    assert_listed(excinfo.value.diagnostics)
    assert not file or [finding.origin and finding.origin.file for finding in excinfo.value.diagnostics] == [file]
