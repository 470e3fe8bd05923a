"""Directives of kernels that ptxas may ignore."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.parser import parse


@pytest.mark.parametrize(
    ("directives", "why"),
    [
        ("", "no directive fixes the kernel's register count at its start"),
        (".reqntid 384", "no directive fixes the kernel's register count at its start"),
        (".maxntid 384", "`.maxntid` alone fixes the register count only if the kernel needs many registers"),
        (".maxnreg 64", None),
        (".minnctapersm 1 .reqntid 384", None),
        (".minnctapersm 1 .maxntid 384", None),
    ],
)
def test_setmaxnreg_may_be_ignored_where_nothing_fixes_the_register_count(directives: str, why: str | None) -> None:
    findings = check(
        parse(
            f".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {directives}\n"
            "{ setmaxnreg.inc.sync.aligned.u32 232; ret; }\n"
        )
    )
    assert [(d.code, d.message) for d in findings] == (
        [("PTX0612", f"`setmaxnreg` may be ignored: {why}")] if why else []
    )
