"""What the driver says when NVIDIA's runtime library asks for its private tables."""

from __future__ import annotations

import sys

import pytest

from pyptx.driver.codes import Code
from tests.driver.direct import Direct, make_room


def test_a_program_without_python_is_told_once_how_to_build_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    direct, table = Direct(), make_room(1, 7)

    def ask() -> str:
        assert direct.try_call("cuGetExportTable", table, bytes(16)) == Code.ERROR_NOT_FOUND
        assert table[0] == 0
        return capsys.readouterr().err

    assert ask() == ""
    direct = Direct()
    monkeypatch.setattr(sys, "orig_argv", [])
    assert ask().endswith("build the program with `nvcc -cudart shared`\n")
    assert ask() == ""
