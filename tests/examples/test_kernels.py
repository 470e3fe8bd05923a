"""The example kernels have no findings and no spills, emit the golden PTX, and are correct at small sizes on the
simulator: each test run makes one launch of each, in one order, and `make audit` makes all of them in many orders.
`PYPTX_UPDATE_GOLDENS=1` rewrites the golden PTX."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from examples.parts.example import Example, find_example, list_paths, list_tiles, load_examples
from pyptx import Kernel
from tools.examples.runs import ORDERS, choose_checks, list_surprises

GOLDENS = Path(__file__).parent / "goldens"
EXAMPLES = load_examples()
REGISTERS_OF_AN_SM = 65536
LONGEST_FILE = 300


def find_golden(example: Example) -> Path:
    return GOLDENS / example.path.parent.name / f"{example.path.stem}.ptx"


each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


def test_every_golden_has_an_example_and_names_are_unique() -> None:
    assert {find_golden(example) for example in EXAMPLES} >= set(GOLDENS.glob("*/*.ptx"))
    assert len({example.name for example in EXAMPLES}) == len(EXAMPLES) == len(list_paths())


def test_an_unknown_example_is_an_error_that_lists_the_names() -> None:
    with pytest.raises(LookupError, match=r"0 examples are called 'any/add'; expected one of .*any/vector_add"):
        find_example("any/add")


@each_example
def test_a_file_is_short_and_says_what_it_computes(example: Example) -> None:
    assert len(example.path.read_text("utf-8").splitlines()) <= LONGEST_FILE
    assert example.summary.endswith(".")


@each_example
def test_a_kernel_is_clean_and_assembles_without_spills(example: Example, seed: int) -> None:
    """For its first target and another; `make audit` assembles it for all. Their machine code has the instructions that
    the kernel was written for, and the first one's PTX is the golden and does not grow with the problem."""
    first, *others = example.targets
    for target in (first, *random.Random(f"{seed} {example.name}").sample(others, min(1, len(others)))):
        kernel = example.make(target)
        assert [str(finding) for finding in kernel.check(**example.large)] == []
        assert kernel.cubin(**example.large).diagnostics == ()
        needs = kernel.resources(**example.large)
        assert (needs.spill_stores, needs.spill_loads) == (0, 0)
        x, y, z = kernel.block
        assert needs.registers * x * y * z <= REGISTERS_OF_AN_SM
        assert example.list_absent(kernel.sass(**example.large)) == []
        if target == first:
            assert_golden(example, kernel)


def assert_golden(example: Example, kernel: Kernel) -> None:
    text = kernel.ptx(**example.large)
    dims = {name for tile in list_tiles(kernel) for name in tile.symbolic_dims} - set(example.fixed)
    base = {name: 8 * value if name in example.kept else value for name, value in example.large.items()}
    twice = {name: 2 * value if name in dims else value for name, value in base.items()}
    assert len(kernel.ptx(**twice).splitlines()) == len(kernel.ptx(**base).splitlines())
    golden = find_golden(example)
    if os.environ.get("PYPTX_UPDATE_GOLDENS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


@each_example
def test_a_kernel_computes_its_reference(example: Example, seed: int) -> None:
    chance = random.Random(f"{seed} {example.name}")
    run, (schedule, order), target = chance.choice(example.runs), chance.choice(ORDERS), chance.choice(example.targets)
    checks = choose_checks(schedule)
    outcome = example.simulate(run, target, schedule=schedule, seed=order, check=checks, statistics=True)
    outcome.verify()
    assert list_surprises(run, schedule, outcome.report.hazards) == []
    statistics = outcome.report.stats.statistics
    assert statistics is not None
    if not example.conflicts:
        assert statistics.conflicts == ()


def test_a_wrong_result_is_noticed(seed: int) -> None:
    for example in random.Random(seed).sample(EXAMPLES, 3):
        outcome = example.simulate(example.runs[0], check="none")
        position = next(i for i, desired in enumerate(outcome.expected) if desired is not None)
        outcome.outputs[position].flat[-1] = 77
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            outcome.verify()


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("ampere/one_warp_gemm", (16, 12, 16), "M must be a multiple of 16, N of 8, K of 16; found 16, 12, 16"),
        ("ampere/two_stage_gemm", (64, 64, 96), "M, N and K must be multiples of 64; found 64, 64, 96"),
        ("ampere/pipelined_gemm", (128, 128, 100), "K must be a multiple of 8, 16 bytes of bf16; found 100"),
        ("ampere/pipelined_gemm", (128, 127, 64), "N must be even, because results are stored in pairs; found 127"),
        ("ampere/stream_k_gemm", (128, 192, 96, 4), "4 CTAs for 3 steps; pass at most 3 `ctas`"),
        ("ampere/fp8_gemm", (128, 128, 24), "K must be a multiple of 16, 16 bytes of e4m3; found 24"),
    ],
)
def test_a_product_refuses_shapes_that_it_does_not_cover(name: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_example(name).module.grid(*shape)
