"""ptxas accepts every directive and pragma on its first target and version, and rejects it below and after removal."""

from __future__ import annotations

import pytest

from pyptx.isa.directives import DIRECTIVES, PRAGMAS, Directive, Place, find_directive, find_pragma
from pyptx.isa.targets import PTX_VERSIONS, Availability, Version
from tools.isa import audit_spellings
from tools.isa.audit_spellings import list_first_places, places_below
from tools.isa.ptxas import module_error

KERNEL = ".visible .entry k() { ret; }\n"
FUNCTION = ".func f() { ret; }\n"
CALLED = ".visible .entry k() { .reg .u64 r; %s mov.u64 r, f; call r, t; ret; }\n"

PROBES = {
    ".version": KERNEL,
    ".target": KERNEL,
    ".address_size": KERNEL,
    ".entry": KERNEL,
    ".func": FUNCTION,
    ".alias": ".visible .func f() { ret; }\n.visible .func g();\n.alias g, f;\n",
    ".branchtargets": ".visible .entry k() { .reg .u32 r; t: .branchtargets l; mov.u32 r, 0; l: ret; }\n",
    ".calltargets": FUNCTION + CALLED % "t: .calltargets f;",
    ".callprototype": FUNCTION + CALLED % "t: .callprototype _ ();",
    ".maxnreg": ".visible .entry k() .maxnreg 32 { ret; }\n",
    ".maxntid": ".visible .entry k() .maxntid 32, 1, 1 { ret; }\n",
    ".reqntid": ".visible .entry k() .reqntid 32 { ret; }\n",
    ".minnctapersm": ".visible .entry k() .maxntid 32 .minnctapersm 2 { ret; }\n",
    ".maxnctapersm": ".visible .entry k() .maxntid 32 .maxnctapersm 2 { ret; }\n",
    ".noreturn": ".func f() .noreturn { trap; }\n",
    ".pragma": '.pragma "nounroll";\n' + KERNEL,
    ".abi_preserve": ".func f() .abi_preserve 8 { ret; }\n",
    ".abi_preserve_control": ".func f() .abi_preserve_control 8 { ret; }\n",
    ".local_maxnreg": ".visible .entry k() .local_maxnreg 32 { ret; }\n",
    ".minperctamemory": ".visible .entry k() .minperctamemory 16 { ret; }\n",
    ".reqnctapercluster": ".visible .entry k() .reqnctapercluster 2 { ret; }\n",
    ".explicitcluster": ".visible .entry k() .explicitcluster { ret; }\n",
    ".maxclusterrank": ".visible .entry k() .maxclusterrank 8 { ret; }\n",
    ".blocksareclusters": ".visible .entry k() .reqntid 32 .reqnctapercluster 2 .blocksareclusters { ret; }\n",
    ".language": '.visible .entry k() .language "ptx", 5 { ret; }\n',
    "@@DWARF": '@@DWARF .section .debug_pubnames, "", @progbits\n' + KERNEL,
    ".section": KERNEL + ".section .debug_abbrev { .b8 1, 2 }\n",
    ".file": '.file 1 "a.cu"\n' + KERNEL,
    ".loc": '.file 1 "a.cu"\n.visible .entry k() { .loc 1 3 4\n ret; }\n',
    ".loc_intermediate": '.file 1 "a.cu"\n.visible .entry k() { .loc_intermediate 1 3 4\n ret; }\n',
    ".extern": ".extern .global .u32 x;\n",
    ".visible": ".visible .global .u32 x;\n",
    ".weak": ".weak .global .u32 x;\n",
    ".common": ".common .global .u32 x;\n",
    ".reg": ".visible .entry k() { .reg .u32 r; ret; }\n",
    ".const": ".const .u32 x;\n",
    ".global": ".global .u32 x;\n",
    ".local": ".visible .entry k() { .local .u32 x; ret; }\n",
    ".param": ".visible .entry k(.param .u32 x) { ret; }\n",
    ".shared": ".shared .u32 x;\n",
    ".tex": ".tex .u32 x;\n",
    ".align": ".global .align 16 .u32 x;\n",
    ".ptr": ".visible .entry k(.param .u64 .ptr .global .align 4 x) { ret; }\n",
    ".attribute": ".global .attribute(.managed) .u32 x;\n",
}

PRAGMA_ARGUMENTS = {"used_bytes_mask": " 1", "frequency": " 3", "mma_throughput": " 1"}


def error(probe: str, place: audit_spellings.Place) -> str | None:
    version = f"{place.version[0]}.{place.version[1]}"
    text = f".version {version}\n.target {place.target.name}\n.address_size 64\n{probe}"
    return module_error(text, place.target.name)


def assert_available(probe: str, available: Availability, removal: Version | None) -> None:
    """Assert that ptxas accepts the probe exactly where the row says."""
    for place in list_first_places([available]):
        if removal:
            assert place.version >= removal, "ptxas reads no module as old as this directive"
            assert error(probe, place) is not None
            continue
        assert error(probe, place) is None
        for below in places_below([available], place):
            assert error(probe, below) is not None, f"accepted at {below}"


@pytest.mark.parametrize("row", DIRECTIVES, ids=lambda row: row.name)
def test_directive_is_available_where_its_row_says(row: Directive) -> None:
    assert_available(PROBES[row.name], row.available, row.removed)


@pytest.mark.parametrize("name", [p.name for p in PRAGMAS])
def test_pragma_is_available_where_its_row_says(name: str) -> None:
    row = find_pragma(name)
    assert row is not None
    probe = f'.visible .entry k() {{ .pragma "{name}{PRAGMA_ARGUMENTS.get(name, "")}"; ret; }}\n'
    assert_available(probe, row.available, None)


def test_every_directive_has_one_row() -> None:
    assert len({row.name for row in DIRECTIVES}) == len(DIRECTIVES) == len(PROBES)


def test_lookup_by_name() -> None:
    maxntid = find_directive(".maxntid")
    assert maxntid is not None
    assert maxntid.places == (Place.KERNEL,)
    assert find_directive(".nosuch") is None
    assert find_pragma("used_bytes_mask 0xff") is not None
    assert find_pragma("nosuch") is None
    assert find_pragma("") is None


def test_versions_of_rows_exist() -> None:
    assert all(first in PTX_VERSIONS for row in DIRECTIVES for _, first in row.available.since)
