"""Requirements of a kernel's directives on a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, parser, sim
from pyptx.isa.directives import Place, list_header_directives
from pyptx.sim.program.blocks import prepare
from pyptx.sim.program.shapes import (
    LARGE_BLOCK,
    LARGE_GRID,
    PART_OF_CLUSTER,
    check_integer,
    check_shape,
    parse_dim3,
)
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


def _check(directives: str, shape: tuple[Any, ...], target: str = "sm_90") -> Any:
    """Return the shape of a launch after the check: a grid, a block and a cluster."""
    text = f".version 8.7\n.target {target}\n.address_size 64\n\n.visible .entry k() {directives} {{ ret; }}\n"
    grid, block, cluster = (parse_dim3(size, "size") for size in shape)
    return check_shape(prepare(parser.parse(text), "k"), grid, block, cluster, 0)


_SIZES: list[tuple[str, tuple[Any, Any, Any], str | None, str | None]] = [
    ("", ((2**31 - 1, 65535, 65535), 1, 1), None, None),
    ("", (2**31, 1, 1), "grid is (2147483648, 1, 1), but the limit in x is 2147483647", LARGE_GRID),
    ("", ((1, 65536), 1, 1), "grid is (1, 65536, 1), but the limit in y is 65535", LARGE_GRID),
    ("", ((1, 1, 65536), 1, 1), "grid is (1, 1, 65536), but the limit in z is 65535", LARGE_GRID),
    ("", (1, 1024, 1), None, None),
    ("", (1, (1, 1024), 1), None, None),
    ("", (1, (4, 4, 64), 1), None, None),
    ("", (1, 1025, 1), "the block has 1025 threads, but the limit is 1024", LARGE_BLOCK),
    ("", (1, (32, 3, 11), 1), "the block has 1056 threads, but the limit is 1024", LARGE_BLOCK),
    ("", (1, (1, 1, 65), 1), "block is (1, 1, 65), but the limit in z is 64", LARGE_BLOCK),
    (".maxntid 8, 4, 2", (1, (64, 1, 1), 1), None, None),
    (".maxntid 8, 4, 2", (1, 65, 1), "the block has 65 threads, but the kernel's `.maxntid` allows 64", None),
    (".maxntid 8, 4", (1, 33, 1), "the block has 33 threads, but the kernel's `.maxntid` allows 32", None),
    (".reqntid 8, 4", (1, (8, 4), 1), None, None),
    (".reqntid 8, 4", (1, 32, 1), "block is (32, 1, 1), but the kernel requires (8, 4, 1)", None),
    ("", ((4, 2, 2), 1, (4, 2, 2)), None, None),
    ("", ((4, 2, 3), 1, (4, 2, 3)), "the cluster has 24 CTAs, but the limit is 16", None),
    ("", ((4, 3), 1, (2, 2)), "grid (4, 3, 1) is not a multiple of the cluster (2, 2, 1)", PART_OF_CLUSTER),
    (".maxclusterrank 4", (4, 1, 4), None, None),
    (".maxclusterrank 4", (8, 1, 8), "the cluster has 8 CTAs, but the kernel's `.maxclusterrank` allows 4", None),
    (".reqnctapercluster 2, 2", ((2, 2), 1, (2, 2)), None, None),
    (".reqnctapercluster 2, 2", ((2, 2), 1, (4,)), "cluster is (4, 1, 1), but the kernel requires (2, 2, 1)", None),
    (".reqnctapercluster 2, 2", (4, 1, 1), "grid (4, 1, 1) is not a multiple of the cluster (2, 2, 1)",
     PART_OF_CLUSTER),
    (".explicitcluster", (4, 1, 2), None, None),
    (".explicitcluster", (4, 1, 1), "the kernel is `.explicitcluster`, but the launch specifies no cluster", None),
]  # fmt: skip


@pytest.mark.parametrize(("directives", "shape", "text", "help"), _SIZES)
def test_shapes_up_to_their_limits(
    directives: str, shape: tuple[Any, Any, Any], text: str | None, help: str | None
) -> None:
    if text is None:
        expected = [parse_dim3(size, "size") for size in shape]
        assert _check(directives, shape) == tuple(expected)
        return
    with pytest.raises(PtxError) as caught:
        _check(directives, shape)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.help, found.line) == ("PTX1103", text, help, 5)


def test_the_kernels_cluster_is_the_launchs() -> None:
    assert _check(".reqnctapercluster 2, 2, 3", ((4, 2, 3), 5, 1)) == ((4, 2, 3), (5, 1, 1), (2, 2, 3))
    directives = ".reqntid 5 .reqnctapercluster 2, 2, 3 .blocksareclusters"
    assert _check(directives, ((4, 5, 6), 5, 1), "sm_100") == ((8, 10, 18), (5, 1, 1), (2, 2, 3))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, (3, 1, 1)), ((1,), (1, 1, 1)), ([4, 5], (4, 5, 1)), ((1, 2, 3), (1, 2, 3)), (np.uint8(7), (7, 1, 1)),
        (np.array([2, 3]), (2, 3, 1)), ((1 << 256) - 1, ((1 << 256) - 1, 1, 1)), (0, "0"), (-1, "-1"),
        ((1, 0), "(1, 0)"), ((), "()"), ((1, 2, 3, 4), "(1, 2, 3, 4)"), ((1, 2, 3, 4, 5), "(1, 2, 3, 4)"),
        (1.0, "1.0"), ((1, 2.5), "(1, 2.5)"), (1 << 256, "an integer of 257 bits"), ("12", "'12'"),
    ],
)  # fmt: skip
def test_one_to_three_positive_integers(value: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert parse_dim3(value, "grid") == expected
        return
    with pytest.raises(PtxError) as caught:
        parse_dim3(value, "grid")
    assert caught.value.diagnostics[0].message == f"grid: expected one to three positive integers, found {expected}"


@pytest.mark.parametrize("least", [0, 1, 5])
def test_an_option_that_is_an_integer(least: int) -> None:
    for value in (least, least + 1, np.int64(least), (1 << 256) - 1):
        assert check_integer(value, "steps", least) == value
    wrong: list[tuple[Any, str]] = [
        (least - 1, str(least - 1)), (1.0, "1.0"), (None, "None"), ("3", "'3'"), (1 << 256, "an integer of 257 bits"),
    ]  # fmt: skip
    for value, words in wrong:
        with pytest.raises(PtxError) as caught:
            check_integer(value, "steps", least)
        text = f"steps: expected an integer of at least {least}, found {words}"
        assert caught.value.diagnostics[0].message == text
