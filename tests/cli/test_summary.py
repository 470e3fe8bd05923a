"""What `pyptx info --json` says of each file of the corpus is the reviewed text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyptx.cli.summary import find_needs, summarize
from pyptx.isa.targets import ASSEMBLED
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


RARE = """.version 8.0
.target texmode_independent, sm_80
.extern .shared .align 16 .b8 pool[];
.visible .global .align 8 .v2 .f32 a[3][2], b;
.const .u16 c;
.func (.param .b32 out) f(.param .b32 in);
.visible .entry k(.param .u64 p, .param .align 8 .b8 s[24], .param .f64 d[3]) .maxntid 64, 2 .minnctapersm 3
{
.reg .v2 .f32 v, w<3>;
.reg .pred %p<4>;
.shared .u32 x<5>;
.local .align 8 .b64 y[2][3], z;
{
.reg .f32 u;
.shared .v4 .u8 t[2];
fma.rn.f32 u, u, u, u;
add.f32 u, u, u;
add.f32 u, u, u;
}
ret;
}
"""


def test_the_summary_of_declarations_that_compilers_do_not_write() -> None:
    summary: Any = summarize(parse(RARE))
    needs = summary.pop("needs")
    assert (needs["version"], needs["because"], needs["targets"][:2]) == ("7.0", ".target sm_80", ["sm_75", "sm_80"])
    nothing: dict[str, Any] = {key: {} for key in ("directives", "registers", "instructions")}
    nothing |= {"shared_bytes": 0, "local_bytes": 0}
    assert summary == {
        "version": "8.0", "target": ["texmode_independent", "sm_80"], "address_size": 32,
        "functions": [
            {"name": "f", "entry": False, "defined": False, "line": 6,
             "parameters": [{"name": "in", "type": ".b32", "bytes": 4}], **nothing},
            {"name": "k", "entry": True, "defined": True, "line": 7,
             "parameters": [
                 {"name": "p", "type": ".u64", "bytes": 8}, {"name": "s", "type": ".b8", "bytes": 24},
                 {"name": "d", "type": ".f64", "bytes": 24},
             ],
             "directives": {"maxntid": [64, 2], "minnctapersm": [3]}, "registers": {".f32": 9, ".pred": 4},
             "shared_bytes": 28, "local_bytes": 56, "instructions": {"add.f32": 2, "fma.rn.f32": 1, "ret": 1}},
        ],
        "variables": [
            {"name": "pool", "space": ".shared", "type": ".b8", "bytes": 0, "linking": ".extern"},
            {"name": "a", "space": ".global", "type": ".f32", "bytes": 48, "linking": ".visible"},
            {"name": "b", "space": ".global", "type": ".f32", "bytes": 8, "linking": ".visible"},
            {"name": "c", "space": ".const", "type": ".u16", "bytes": 2, "linking": None},
        ],
    }  # fmt: skip


def test_what_a_module_needs_is_said_of_the_first_target_that_exists_and_the_newest_instruction() -> None:
    def find(target: str, *instructions: str) -> tuple[object, object]:
        body = "\n".join(instructions)
        needs = find_needs(parse(f".version 8.6\n.target {target}\n.address_size 64\n.entry k() {{\n{body}\n}}\n"))
        return needs["version"], needs["because"]

    later, newest = "griddepcontrol.wait;", "barrier.cluster.arrive.relaxed;"
    assert find("sm_20") == ("2.0", ".target sm_20")
    assert find("texmode_unified") == find(ASSEMBLED[0])
    assert find("sm_90", "ret;") == ("7.8", ".target sm_90")
    assert find("sm_90", "barrier.cluster.arrive;") == ("7.8", ".target sm_90")
    assert find("sm_80", "bar.warp.sync -1;") == ("7.0", ".target sm_80")
    instructions = (later, newest, newest.replace("relaxed", "relaxed.aligned"), "unknown.u32;")
    assert find("sm_90", *instructions) == ("8.0", "barrier.cluster.arrive.relaxed")
