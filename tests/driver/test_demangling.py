"""Names of C++ in what is printed and in reports."""

from __future__ import annotations

import ctypes
import json
import shutil
from pathlib import Path

import pytest

from pyptx.driver import demangling
from pyptx.driver.demangling import demangle, list_names, replace_names
from pyptx.driver.reports import Baseline, format_report, list_new, read_records
from tests.driver.conftest import Run

NAMES = {
    "_Z5scalePffi": "scale(float*, float, int)",
    "_ZN6cudapy8__main__4sumsB2v1B4cw51E5ArrayIfLi1EE": "cudapy::__main__::sums(Array<float, 1>)",
}


@pytest.mark.parametrize("source", ["library", "tool", "nothing"])
def test_names_are_read_by_what_there_is(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ctypes.CDLL("libstdc++.so.6")
    assert library is not None
    if source != "library":
        monkeypatch.setattr(demangling, "_LIBRARIES", ("libnone.so.1",))
    monkeypatch.setattr(demangling, "_TOOLS", ("c++filt",) if source == "tool" else ())
    if source == "tool" and shutil.which("c++filt") is None:
        source = "nothing"
    demangle.cache_clear()
    expected = {name: name for name in NAMES} if source == "nothing" else NAMES
    assert {name: demangle(name) for name in NAMES} == expected
    assert [demangle(name) for name in ("kernel", "_Z", "_Zwrong")] == ["kernel", "_Z", "_Zwrong"]
    demangle.cache_clear()


def test_only_quoted_names_are_replaced() -> None:
    ctypes.CDLL("libstdc++.so.6")
    text = "launch of `_Z5scalePffi` at a.cu:3\n  3 | .entry _Z5scalePffi()\n  | ^^^^^^ `_Zwrong`"
    names = list_names([text])
    assert names == {"_Z5scalePffi": NAMES["_Z5scalePffi"]}
    assert replace_names(text, names) == text.replace("`_Z5scalePffi`", "`scale(float*, float, int)`")


def test_reports_show_names_and_keep_the_mangled_ones(run_program: Run, tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    program = """\
import ctypes
ctypes.CDLL("libstdc++.so.6")
from calls import *
start()
kernel = load(VECTOR_ADD.replace(" add(", " _Z3addPfS_S_j("), "_Z3addPfS_S_j")
memory = ask("cuMemAlloc_v2", 64)
print(launch(kernel, 1, 64, memory, memory, memory, 64), launch(kernel, 1, 2048, memory, memory, memory, 64))
"""
    process = run_program(program, records=str(records))
    name = "add(float*, float*, float*, unsigned int)"
    assert process.stdout.startswith("700 "), process.stderr
    assert process.stderr.startswith(f"pyptx: launch of `{name}`, grid (1, 1, 1)")
    assert f"in `{name}`, CTA 0" in process.stderr
    assert "`_Z" not in process.stderr
    launches, _ = read_records(records)
    assert [(launch["kernel"], launch["names"]) for launch in launches] == [("_Z3addPfS_S_j", {"_Z3addPfS_S_j": name})]
    document = json.loads(format_report(".json", "h100", launches, None))
    assert not list_new(launches, Baseline(document))
    assert f"<td>{name}</td>" in format_report(".html", "h100", launches, None)
    (result,) = json.loads(format_report(".sarif", "h100", launches, None))["runs"][0]["results"]
    (function,) = result["locations"][0]["logicalLocations"]
    assert (function["name"], function["decoratedName"]) == (name, "_Z3addPfS_S_j")
    assert f"in `{name}`, CTA 0" in result["message"]["text"]
