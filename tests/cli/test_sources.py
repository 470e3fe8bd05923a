"""Which files are read as PTX text, and why others are not."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from pyptx.cli.sources import Source, Unreadable, read

REFUSED: dict[str, tuple[bytes, str]] = {
    "ELF": (
        b"\x7fELF\x02", ": an ELF file (a cubin or an object file), not PTX text; `cuobjdump -ptx` extracts PTX from it"
    ),
    "fatbin": (b"\x50\xed\x55\xba\x01", ": a fatbin, not PTX text; `cuobjdump -ptx` extracts PTX from it"),
    "bitcode": (b"BC\xc0\xde5", ": LLVM bitcode, not PTX text; `llc -march=nvptx64` compiles it to PTX"),
    "NUL in the text": (b".version\0 8.0", ": a binary file, not PTX text"),
    "blank": (b" \t\r\n\0", ": the file is empty; a PTX module starts with .version, .target and .address_size"),
    "Latin": (b"\n// \xe9\n", ":2: byte 0xe9 is not UTF-8 text"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_ptx_text_is_refused(name: str, tmp_path: Path) -> None:
    data, message = REFUSED[name]
    path = tmp_path / "a.ptx"
    path.write_bytes(data)
    with pytest.raises(Unreadable) as error:
        read(str(path))
    assert str(error.value) == f"{path}{message}"


def test_a_place_without_a_file_is_refused(tmp_path: Path) -> None:
    for name, message in (
        (f"{tmp_path}/b.ptx", ": no such file"),
        (f"{tmp_path}/", f": is a directory; name PTX files, for example {tmp_path}/*.ptx"),
        ("a\0b", ": embedded null byte"),
        (f"{tmp_path}/{'n' * 300}", ": File name too long"),
    ):
        with pytest.raises(Unreadable) as error:
            read(name)
        assert str(error.value) == name + message


@pytest.mark.parametrize("data", [b"// a\r\nret;\n", "// \u00e9\n".encode(), b"ret;\0\0"])
def test_text_is_read_as_it_is(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ptx"
    path.write_bytes(data)
    assert read(str(path)) == Source(str(path), data.decode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read("-") == Source("<stdin>", data.decode())


def test_closed_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Unreadable, match=r"^<stdin>: standard input is closed; name a file instead of -$"):
        read("-")
