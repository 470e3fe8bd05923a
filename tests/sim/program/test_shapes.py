"""Requirements of a kernel's directives on a launch."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import PtxError, parser, sim
from pyptx.isa.directives import Place, list_header_directives
from tests.messages import raises

REFUSED: dict[str, tuple[str, dict[str, int]]] = {
    ".maxntid": (".maxntid 32", {"block": 33}),
    ".reqntid": (".reqntid 32", {"block": 31}),
    ".reqnctapercluster": (".reqnctapercluster 2", {"grid": 4, "cluster": 4}),
    ".maxclusterrank": (".maxclusterrank 2", {"grid": 4, "cluster": 4}),
    ".explicitcluster": (".explicitcluster", {}),
}
"""For each directive that limits launches: an example, and a launch that it forbids."""
NO_EFFECT = {
    ".maxnreg": "registers are not allocated; setmaxnreg starts with them",
    ".local_maxnreg": "registers are not allocated",
    ".minnctapersm": "CTAs of one SM are not modeled; setmaxnreg starts with the registers that follow",
    ".maxnctapersm": "CTAs of one SM are not modeled",
    ".minperctamemory": "the driver places this memory, and its special registers have no value",
    ".pragma": "hints to ptxas",
    ".language": "information for tools",
}


def run(directive: str, grid: int = 1, block: int = 32, cluster: int = 1) -> None:
    source = f".version 9.4\n.target sm_90a\n.address_size 64\n.visible .entry k() {directive} {{ ret; }}\n"
    sim.run(parser.parse(source), grid=grid, block=block, cluster=cluster)


def test_blocks_are_clusters_when_the_directive_says_so() -> None:
    source = """
        .version 9.0
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 out) .reqntid 1 .reqnctapercluster 2, 1, 1 .blocksareclusters {
            .reg .u64 to;
            .reg .u32 count;
            ld.param.u64 to, [out];
            mov.u32 count, %nctaid.x;
            red.global.add.u32 [to], count;
            ret;
        }"""
    total = np.zeros(1, np.uint32)
    sim.run(parser.parse(source), grid=3, block=1, args=[total])
    assert total.tolist() == [6 * 6]


def test_every_directive_of_a_kernel_limits_launches_or_has_a_reason_not_to() -> None:
    directives = REFUSED.keys() | NO_EFFECT.keys() | {".blocksareclusters"}
    assert list_header_directives(Place.KERNEL).keys() == directives
    assert not REFUSED.keys() & NO_EFFECT.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_launches_that_a_directive_forbids_are_refused(name: str) -> None:
    directive, launch = REFUSED[name]
    run("", **launch)
    with raises(PtxError) as excinfo:
        run(directive, **launch)
    assert excinfo.value.diagnostics[0].code == "PTX1103"


def test_the_grid_limit_counts_the_ctas_of_clusters() -> None:
    directives = ".reqntid 1 .reqnctapercluster 2, 1, 1"
    with raises(PtxError, match=r"grid is \(4294967294, 1, 1\), but the limit in x is 2147483647"):
        run(f"{directives} .blocksareclusters", grid=2**31 - 1, block=1)


def test_messages_count_one_thread_in_the_singular() -> None:
    with raises(PtxError, match=r"the cluster has 2 CTAs, but the kernel's `\.maxclusterrank` allows 1"):
        run(".maxclusterrank 1", grid=2, cluster=2)
    with raises(PtxError, match=r"the block has 1 thread, but the kernel's `\.maxntid` allows 0"):
        run(".maxntid 0", block=1)
