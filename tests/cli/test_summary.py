"""What `pyptx info --json` says of each file of the corpus is the reviewed text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyptx.cli.summary import summarize
from pyptx.parser import parse
from tests.digests import assert_digest

_CORPUS = Path(__file__).parents[1] / "corpus"


@pytest.mark.parametrize("folder", sorted(path.name for path in _CORPUS.iterdir() if any(path.glob("*.ptx"))))
def test_the_summary_of_every_file(folder: str) -> None:
    for path in sorted((_CORPUS / folder).glob("*.ptx")):
        summary = summarize(parse(path.read_bytes().decode()))
        assert_digest("summaries", f"{folder}/{path.name}", json.dumps(summary))


def test_a_function_made_of_nodes_has_no_line() -> None:
    module = parse(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { ret; }\n")
    (function,) = module.directives
    summary: Any = summarize(module.replace(directives=(function.replace(origin=None),)))
    assert [function["line"] for function in summary["functions"]] == [0]
