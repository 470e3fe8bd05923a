"""The module's header: versions, targets, and how ptxas treats virtual architectures."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.parser import parse
from pyptx.toolchain import validate

CASES: list[tuple[str, str, tuple[str, int, str | None] | None]] = [
    ("8.0", "sm_90a", None),
    ("8.0", "compute_90a", None),
    ("8.0", "sm_80, texmode_independent", None),
    ("7.8", "sm_90a", ("PTX0312", 9, "write `.version 8.0` or newer")),
    ("7.8", "compute_90a", ("PTX0312", 9, "write `.version 8.0` or newer")),
    ("8.0", "sm90a", ("PTX0311", 9, "did you mean `sm_90a`?")),
    ("8.0", "sm_90, debg", ("PTX0311", 16, "did you mean `debug`?")),
    ("8.9", "sm_90", ("PTX0310", 10, "the newest version is 9.5")),
]


@pytest.mark.parametrize(("version", "target", "expected"), CASES)
def test_a_header(version: str, target: str, expected: tuple[str, int, str | None] | None) -> None:
    text = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
    assert [(d.code, d.col, d.help) for d in check(parse(text))] == ([expected] if expected else [])
    assert bool([d for d in validate(text) if d.severity is Severity.ERROR]) == bool(expected)


def test_a_suffix_that_ptxas_ignores_in_silence() -> None:
    text = ".version 8.0\n.target sm_90A\n.address_size 64\n.visible .entry k() { ret; }\n"
    assert [(d.code, d.help) for d in check(parse(text))] == [("PTX0311", "did you mean `sm_90a`?")]
    assert validate(text) == ()


def test_instructions_are_checked_for_the_virtual_architecture() -> None:
    text = ".version 8.0\n.target compute_{}\n.visible .entry k() {{ wgmma.fence.sync.aligned; ret; }}\n"
    assert check(parse(text.format("90a"))) == []
    assert [d.code for d in check(parse(text.format("90")))] == ["PTX0302"]
