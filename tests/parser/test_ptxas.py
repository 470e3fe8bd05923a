"""ptxas accepts every sample, and text printed without layout assembles to the same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyptx.toolchain.disassembly import sass_equal
from pyptx.toolchain.process import run
from pyptx.toolchain.tools import find_tool
from tests import lossless

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.ptx"))


def verdict(path: Path) -> str:
    """Return the messages of ptxas for a file, or nothing if it accepts it."""
    process = run([find_tool("ptxas").path, "-arch", "compute_90a", str(path), "-o", "/dev/null"])
    return process.output + process.messages if process.status else ""


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_ptxas_takes_samples_and_their_restyled_form(path: Path, tmp_path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    assert verdict(path) == ""
    canonical_path = tmp_path / "restyled.ptx"
    canonical_path.write_text(lossless.restyle(text), encoding="utf-8", errors="surrogateescape")
    assert verdict(canonical_path) == ""


@pytest.mark.parametrize("name", ["register_components", "predicates", "constant_expressions", "calls", "vectors"])
def test_restyled_text_is_the_same_machine_code(name: str) -> None:
    text = (SAMPLES[0].parent / f"{name}.ptx").read_text()
    assert lossless.compare_sass(text, lambda a, b: sass_equal(a, b, "sm_90a")) is None
