"""Where the launcher finds Python's library."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyptx.driver.launcher import find_python_library


def test_the_library_of_a_python_that_has_moved_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = ["/absent", "libpython3.0.a", "3.0"]

    def get_config_vars(*names: str) -> list[str]:
        return built

    monkeypatch.setattr("sysconfig.get_config_vars", get_config_vars)
    monkeypatch.setattr("sys.base_prefix", str(tmp_path))
    assert find_python_library() is None
    library = tmp_path / "lib" / "libpython3.0.so.1.0"
    library.parent.mkdir()
    library.touch()
    assert find_python_library() == library
    built[1:] = ["libpython3.0m.so.1.0", "3.0m"]
    assert find_python_library() is None
    library.rename(library.with_name("libpython3.0m.so.1.0"))
    assert find_python_library() == library.with_name("libpython3.0m.so.1.0")
