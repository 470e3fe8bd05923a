"""What is reported for files of the corpus with an error each is the reviewed text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pyptx.check import check
from pyptx.diagnostics import Diagnostic
from pyptx.parser import parse
from tests.digests import assert_digest
from tools.audit_corruptions import STRATA, corrupt

_CORPUS = Path(__file__).parents[1] / "corpus"
_LARGEST = 40_000
_FILES = sorted(path for path in _CORPUS.glob("*/*.ptx") if path.stat().st_size < _LARGEST)


@pytest.mark.parametrize("path", _FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_findings_of_a_file_with_errors(path: Path) -> None:
    text = path.read_bytes().decode()
    draw = random.Random(path.name)
    edits = [corrupt(path, text, stratum, draw) for stratum in STRATA]
    texts = [text, *(edit.text for edit in edits if edit is not None)]
    assert_digest("findings", path.relative_to(_CORPUS).as_posix(), "\n".join(map(_describe, texts)))


def _describe(text: str) -> str:
    module, errors = parse(text, recover=True)
    return "\n".join(map(_format_finding, [*errors, *check(module)]))


def _format_finding(finding: Diagnostic) -> str:
    return " ".join(map(str, finding.as_json().values()))
