"""Random streams: a hazard is reported in every schedule exactly where the rules of dependent launch have one."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from pyptx import sim
from pyptx.ir import Module
from pyptx.parser import parse

_HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
_INDEX = """mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %c, %n, %i;
mov.u32 %s, %i;
"""
_CODE = {
    "read": "ld.global.u32 %v, [%a{0}]; add.u32 %s, %s, %v;",
    "write": "mad.lo.u32 %s, %s, 3, 1; st.global.u32 [%a{0}], %s;",
    "wait": "griddepcontrol.wait;", "launch": "griddepcontrol.launch_dependents;",
}  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """A grid of a random stream: the steps of each thread, and the array whose element each step accesses."""

    programmatic: bool
    steps: list[tuple[str, int]]


def draw_grids(chance: random.Random, arrays: int) -> list[Grid]:
    """Return two to four grids."""
    grids: list[Grid] = []
    for index in range(chance.randint(2, 4)):
        steps = [(chance.choice(["read", "write"]), chance.randrange(arrays)) for _ in range(chance.randint(1, 4))]
        for step, likely in (("wait", 0.65 if index else 0), ("launch", 0.8)):
            if chance.random() < likely:
                steps.insert(chance.randint(0, len(steps)), (step, 0))
        grids.append(Grid(index > 0 and chance.random() < 0.85, steps))
    return grids


def module(grids: list[Grid], arrays: int) -> Module:
    """Return an entry for each grid."""
    params = ", ".join(f".param .u64 a{n}" for n in range(arrays))
    loads = "".join(f"ld.param.u64 %a{n}, [a{n}]; mad.wide.u32 %a{n}, %i, 4, %a{n};\n" for n in range(arrays))
    return parse(_HEAD + "".join(
        f".visible .entry grid{index}({params})\n"
        f"{{ .reg .b32 %i, %v, %s, %c, %n; .reg .b64 %a<{arrays}>;\n{_INDEX}{loads}"
        + "\n".join(_CODE[step].format(array) for step, array in grid.steps) + "\nret; }\n"
        for index, grid in enumerate(grids)
    ))  # fmt: skip


def list_ended_grids(grids: list[Grid]) -> list[list[set[int]]]:
    """Return, per grid and step, the grids that have certainly ended: a wait adds the previous grid and those that it
    knew at its end; a launch that is not programmatic starts with all."""
    ended: list[list[set[int]]] = []
    begins: list[set[int]] = []
    for index, grid in enumerate(grids):
        over = set(begins[-1]) if grid.programmatic else set(range(index))
        begins.append(set(over))
        steps: list[set[int]] = []
        for step, _ in grid.steps:
            if step == "wait" and grid.programmatic:
                over = over | {index - 1} | ended[index - 1][-1]
            steps.append(over)
        ended.append(steps)
    return ended


def hazardous(grids: list[Grid]) -> bool:
    """Return whether two grids access an array without order and one of them writes."""
    ended = list_ended_grids(grids)
    return any(
        array == target
        and "write" in (step, does)
        and {step, does} <= {"read", "write"}
        and first not in ended[second][index]
        for first, second in combinations(range(len(grids)), 2)
        for step, array in grids[first].steps
        for index, (does, target) in enumerate(grids[second].steps)
    )


@pytest.mark.parametrize("seed", range(24))
def test_a_random_stream(seed: int) -> None:
    chance = random.Random(seed)
    arrays, count = chance.randint(1, 3), chance.choice([1, 2, 3])
    grids = draw_grids(chance, arrays)
    program, wrong = module(grids, arrays), hazardous(grids)

    def make_arrays() -> list[np.ndarray]:
        return [np.arange(32 * count, dtype=np.uint32) * (n + 1) for n in range(arrays)]

    expected = make_arrays()
    for index in range(len(grids)):
        sim.run(program, f"grid{index}", grid=count, block=32, args=expected)
    for schedule in ("eager", "lazy", "random", "adversarial"):
        data = make_arrays()
        results = sim.stream(
            [
                sim.Launch(program, f"grid{index}", grid=count, block=32, args=data, programmatic=grid.programmatic)
                for index, grid in enumerate(grids)
            ],
            schedule=schedule, seed=seed, on_hazard="report", batch_lanes=chance.choice([32, 8192]),
        )  # fmt: skip
        assert {finding.rule.code for result in results for finding in result.hazards} == (
            {"PTX0906"} if wrong else set[str]()
        )
        assert wrong or all(np.array_equal(got, right) for got, right in zip(data, expected, strict=True))


def test_random_streams_are_of_both_kinds() -> None:
    kinds = [hazardous(draw_grids(random.Random(seed), 2)) for seed in range(24)]
    assert 4 < sum(kinds) < 20
