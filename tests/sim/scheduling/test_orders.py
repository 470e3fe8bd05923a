"""Schedules: correct kernels compute the same in every order, wrong ones do not, and a seed repeats its run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import product as product_of
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from examples.parts.example import Example, load_examples
from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.base.lanes import Shape
from pyptx.sim.scheduling.orders import make_order
from pyptx.sim.scheduling.turns import make_turns
from pyptx.tensormap import ElementType, Swizzle, TensorMap
from tests.digests import assert_digest
from tests.messages import raises
from tests.sim.kernels import kernel
from tests.sim.test_corpus import CASES
from tools import sim_corpus

SEEDS = [("random", seed) for seed in range(5)] + [("adversarial", seed) for seed in range(9)]
ORDERS = [("eager", 0), ("lazy", 0), *SEEDS]
GEMM = parse((Path(__file__).parents[3] / "examples" / "hopper_gemm.ptx").read_text())


def product(schedule: str, seed: int, size: int = 256, **options: Any) -> tuple[np.ndarray[Any, Any], sim.Result]:
    """Multiply with the warp-specialized kernel: a producer, two consumers, a ring of slots filled by TMA."""
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((size, size)).astype(ml_dtypes.bfloat16) for _ in range(2))
    tiles = TensorMap(ElementType.BF16, 0, (size, size), (2 * size,), (64, 128), swizzle=Swizzle.B128)
    d = np.full((size, size), np.nan, np.float32)
    args = [sim.Tensor(a, tiles), sim.Tensor(b, tiles), d, size, size // 64]
    grid = (size // 128, size // 128)
    result = sim.run(GEMM, grid=grid, block=384, shared=131_072, args=args, schedule=schedule, seed=seed, **options)
    np.testing.assert_allclose(d, a.astype(np.float64) @ b.astype(np.float64).T, atol=1e-3)
    return d, result


def test_a_warp_specialized_kernel_computes_the_same_in_every_order() -> None:
    outputs = {product(*order)[0].tobytes() for order in ORDERS}
    assert len(outputs) == 1


@pytest.mark.parametrize("schedule", ["random", "adversarial"])
def test_the_same_seed_is_the_same_run(schedule: str) -> None:
    first, repetition, variation = (product(schedule, seed)[1].stats for seed in (3, 3, 4))
    assert first == repetition
    assert first.instructions != variation.instructions


@pytest.mark.parametrize("case", CASES[::45], ids=lambda case: f"{case[0]}-{case[2].path}-{case[3].name[:40]}")
def test_kernels_of_the_corpus_equal_their_references_in_every_order(
    case: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sim.run
    for schedule, seed in SEEDS:
        monkeypatch.setattr(sim, "run", partial(run, schedule=schedule, seed=seed))
        result = sim_corpus.outcome(*case)
        assert result.verdict in ("pass", "unsupported"), f"{schedule} {seed}: {result.why}"


def test_example_kernels_compute_the_same_bits_in_every_order(seed: int) -> None:
    """A few of the examples; `make audit` runs them all."""
    examples = [example for example in load_examples() if not example.varies]
    for example in random.Random(seed).sample(examples, 3):
        assert len(set(compute_in_orders(example))) == 1, example.name


def compute_in_orders(example: Example) -> Iterator[bytes]:
    for schedule, seed in [("eager", 0), *SEEDS[:10]]:
        run = example.runs[0]
        outcome = example.simulate(run, schedule=schedule, seed=seed, check="all" if seed < 2 else "none")
        outcome.verify()
        compared = zip(outcome.outputs, outcome.expected, strict=True)
        yield b"".join(output.tobytes() for output, desired in compared if desired is not None)


NEIGHBOR = """mov.u32 %r1, cells;
shl.b32 %r2, %t, 2;
add.u32 %r2, %r1, %r2;
st.shared.u32 [%r2], %t;
{barrier}
xor.b32 %r3, %t, 32;
shl.b32 %r3, %r3, 2;
add.u32 %r3, %r1, %r3;
ld.shared.u32 %r0, [%r3];
st.global.u32 [%o], %r0;"""


def exchange_values(barrier: str, schedule: str, seed: int) -> list[int]:
    out = np.zeros(64, np.int32)
    text = kernel(NEIGHBOR.format(barrier=barrier), module=".shared .u32 cells[64];")
    sim.run(parse(text), block=64, args=(out,), schedule=schedule, seed=seed, check="none")
    return out.tolist()


def test_a_missing_barrier_shows_in_the_results_of_some_orders() -> None:
    right = [thread ^ 32 for thread in range(64)]
    assert all(exchange_values("bar.sync 0;", *order) == right for order in ORDERS)
    assert exchange_values("", "eager", 0) == right
    assert any(exchange_values("", "random", seed) != right for seed in range(5))
    assert any(exchange_values("", "adversarial", seed) != right for seed in range(9))


def test_a_wait_whose_answer_nobody_looks_at_shows_in_the_random_schedule() -> None:
    text = kernel(
        """setp.eq.u32 %p0, %t, 0;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
@%p0 mbarrier.arrive.shared::cta.b64 _, [bar];
bar.sync 0;
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
selp.u32 %r0, 1, 0, %p1;
st.global.u32 [%o], %r0;""",
        module=".shared .align 8 .b64 bar;",
    )
    answers: set[int] = set()
    for seed in range(20):
        out = np.zeros(64, np.int32)
        sim.run(parse(text), block=64, args=(out,), schedule="random", seed=seed)
        answers |= set(out.tolist())
    assert answers == {0, 1}


def test_copies_land_early_late_and_in_another_order() -> None:
    """Without a wait, whether a copy's bytes are visible depends only on the schedule."""
    text = kernel(
        """ld.param.u64 %rd1, [source];
cp.async.ca.shared.global [cells], [%rd1], 16;
mov.u32 %r5, 0;
spin: add.u32 %r5, %r5, 1;
setp.lt.u32 %p0, %r5, 300;
@%p0 bra spin;
ld.shared.u32 %r0, [cells];
st.global.u32 [%o], %r0;
cp.async.wait_all;""",
        module=".shared .align 16 .u32 cells[64];", params=".param .u64 out, .param .u64 source",
    )  # fmt: skip
    values: set[int] = set()
    for seed in range(12):
        out = np.zeros(1, np.int32)
        sim.run(parse(text), args=(out, np.full(4, 7, np.int32)), schedule="random", seed=seed, check="none")
        values.add(int(out[0]))
    assert values == {0, 7}


def test_an_error_names_the_schedule_and_the_seed_that_repeat_it() -> None:
    text = kernel("setp.eq.u32 %p0, %t, 5;\n@%p0 trap;")
    with raises(PtxError, match=r"schedule='random', seed=11 repeats this run"):
        sim.run(parse(text), block=32, args=(np.zeros(32, np.int32),), schedule="random", seed=11)
    with raises(PtxError) as excinfo:
        sim.run(parse(text), block=32, args=(np.zeros(32, np.int32),))
    assert "repeats" not in str(excinfo.value)


def test_an_unknown_schedule_is_an_error_that_lists_them() -> None:
    with raises(PtxError, match="no schedule 'fast'; the schedules are eager, lazy, random, adversarial"):
        sim.run(parse(kernel("")), args=(np.zeros(1, np.int32),), schedule="fast")


def test_adversarial_seeds_are_different_orders() -> None:
    shape = Shape((384, 1, 1), 4)
    orders = [order for seed in range(9) if (order := make_order("adversarial", seed, 0, shape)) is not None]
    assert len({order.name for order in orders}) == 9
    assert len({(order.ranks.tobytes(), order.down) for order in orders}) == 9


def describe_order(schedule: str, seed: int, shape: Shape) -> str:
    """Return an order and what it draws next."""
    order = make_order(schedule, seed, seed % 3, shape)
    assert order is not None
    lanes = shape.select_index(np.arange(shape.lanes))
    parts = [(pc, *part) for pc in (2, 5) for part in order.split(0, pc, lanes)]
    ready = {key: [part] for _, key, part in parts}
    return " ".join(map(str, (
        order.name, order.ranks.tolist(), order.down, order.fair, sorted(order.hasty),
        [(key, part.index.tolist()) for _, key, part in parts], [order.pick(ready) for _ in range(5)],
        [part.index.tolist() for part in order.split_warps(lanes)], [order.draw_turn() for _ in range(5)],
        [order.should_yield(key, ready) for key in ready], [order.should_land() for _ in range(9)],
        [None if refused is None else refused.tolist() for _ in range(20) for refused in [order.draw_refusals(lanes)]],
    )))  # fmt: skip


@pytest.mark.parametrize(("schedule", "seed"), [("random", 0), ("adversarial", 0), ("adversarial", 1)])
def test_a_group_goes_on_until_it_meets_or_passes_another(schedule: str, seed: int) -> None:
    """Groups of other ranks matter only if the lowest rank always runs first."""
    order = make_order(schedule, seed, 0, Shape((96, 1, 1), 1))
    assert order is not None
    waiting = [(1, 0, 5), (1, 0, 9)]
    yields = [order.should_yield((1, 0, block), waiting) for block in (4, 5, 6, 9, 10)]
    assert yields == [False, True, True, True, True]
    assert not order.should_yield((1, -1, 7), waiting)
    assert order.should_yield((2, 0, 4), waiting) is (schedule == "adversarial")
    assert not order.should_yield((0, 0, 6), waiting)


@pytest.mark.parametrize("schedule", ["random", "adversarial"])
def test_a_seed_is_always_the_same_order(schedule: str) -> None:
    shapes = [Shape((32, 1, 1), 1), Shape((96, 2, 1), 3), Shape((512, 1, 1), 1), Shape((64, 1, 1), 40)]
    orders = [describe_order(schedule, seed, shape) for seed in range(24) for shape in shapes]
    assert_digest("orders", schedule, "\n".join(orders))


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random", "adversarial"])
def test_a_seed_is_always_the_same_turns(schedule: str) -> None:
    lines: list[str] = []
    for seed in range(12):
        turns = make_turns(schedule, seed)
        starts = [turns.starts_next(busy, runs) for _ in range(9) for busy in (False, True) for runs in (False, True)]
        flags = list(product_of((False, True), repeat=3))
        picks = [turns.pick(able, polling) for _ in range(3) for able in flags[1:] for polling in flags]
        lines.append(f"{turns.kind} {turns.short} {starts} {picks}")
    assert_digest("orders", f"turns {schedule}", "\n".join(lines))


def test_spinning_on_a_flag_ends_in_every_order() -> None:
    text = kernel(
        """mov.u32 %r1, %ctaid.x;
ld.param.u64 %rd1, [out];
setp.eq.u32 %p0, %r1, 0;
@%p0 bra set;
poll: ld.acquire.gpu.global.u32 %r2, [%rd1];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra poll;
bra end;
set: st.release.gpu.global.u32 [%rd1], 7;
end:"""
    )
    for schedule, seed in ORDERS:
        out = np.zeros(64, np.int32)
        sim.run(parse(text), grid=3, block=64, args=(out,), schedule=schedule, seed=seed)
        assert out[0] == 7
