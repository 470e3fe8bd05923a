"""Libraries in a wheel that need a newer glibc than they should."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from tools.wheel import find_newer_symbols


@pytest.mark.parametrize(
    ("data", "newer"),
    [(b"GLIBC_2.2.5\0GLIBC_2.17\0", []), (b"GLIBC_2.17\0GLIBC_2.34\0", ["GLIBC_2.17", "GLIBC_2.34"]), (b"", [])],
)
def test_only_symbols_of_a_newer_glibc_are_found(data: bytes, newer: list[str], tmp_path: Path) -> None:
    wheel = tmp_path / "package.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("package/library.so.1", data)
        archive.writestr("package/text.py", b"GLIBC_2.34")
    assert find_newer_symbols(wheel) == ({"package/library.so.1": newer} if newer else {})
