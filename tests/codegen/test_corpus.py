"""The Python of every file of the corpus is the reviewed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyptx.codegen import ptx_to_python
from tests.digests import assert_digest

_CORPUS = Path(__file__).parents[1] / "corpus"
_NAMES = sorted(path.relative_to(_CORPUS).as_posix() for path in _CORPUS.glob("*/*.ptx"))


@pytest.mark.parametrize("sugar", [False, True])
@pytest.mark.parametrize("name", _NAMES)
def test_the_python_of_a_file(name: str, sugar: bool) -> None:
    python = ptx_to_python((_CORPUS / name).read_bytes().decode(), sugar=sugar)
    assert_digest("sugared" if sugar else "transcripts", name, python)
