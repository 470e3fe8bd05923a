"""Whole messages as users read them, one file of `tests/messages` per kind of error.

`PYPTX_UPDATE_GOLDENS=1` with `-n 0` writes them anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "messages"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+>")
"""Of an object in its `repr`."""
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
