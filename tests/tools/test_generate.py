"""Generated files match the output of their generators, and an edited one is detected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import generate

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", list(generate.GENERATED))
def test_a_generated_file_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == generate.GENERATED[path]()


def test_an_edited_or_missing_file_is_out_of_date(tmp_path: Path) -> None:
    for path, render in generate.GENERATED.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(render(), "utf-8")
    assert generate.stale(tmp_path) == []
    first, *_ = generate.GENERATED
    (tmp_path / first).write_text("edited by hand", "utf-8")
    assert generate.stale(tmp_path) == [first]
    (tmp_path / first).unlink()
    assert generate.stale(tmp_path) == [first]
