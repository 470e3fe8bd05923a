"""Several grids on one memory: programmatic dependent launch, the effects of a missing wait, and hangs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pyptx import Tile, kernel, ptx, sim
from pyptx.diagnostics import PtxError
from pyptx.ir import Function, Module
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from pyptx.types import u32
from tests.messages import raises

HEAD = """.version 8.0
.target sm_90
.address_size 64
"""
ENTRY = """.visible .entry {name}(.param .u64 a, .param .u64 b)
{{
    .reg .b32 %t, %i, %v, %n; .reg .b64 %a, %b, %flag; .reg .pred %p, %first;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    mov.u64 %flag, %b;
    mov.u32 %t, %tid.x;
    mov.u32 %i, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %i, %n, %t;
    setp.eq.u32 %first, %t, 0;
    mad.wide.u32 %a, %i, 4, %a;
    mad.wide.u32 %b, %i, 4, %b;
    {body}
    ret;
}}
"""
LAUNCH, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"
LOAD, STORE = "ld.global.u32 %v, [%a];", "st.global.u32 [%b], %v;"
ADD, DOUBLE = "add.u32 %v, %v, 1;", "shl.b32 %v, %v, 1;"
STEP = f"{LOAD} {ADD} {STORE}"
SEVEN = "mov.u32 %v, 7; st.global.u32 [%a], %v;"
RUNS = [("eager", 0), ("lazy", 0), *(("random", s) for s in range(12)), *(("adversarial", s) for s in range(12))]
MISS = "PTX0906"
SIZE = 128


def module(**bodies: str) -> Module:
    """Return a module with an entry per body."""
    return parse(HEAD + "".join(ENTRY.format(name=name, body=body) for name, body in bodies.items()))


def arrays(count: int) -> list[Any]:
    """Return arrays, the first filled and the others zero."""
    return [np.arange(SIZE, dtype=np.uint32), *(np.zeros(SIZE, np.uint32) for _ in range(count - 1))]


def launch_stream(program: Module, *uses: tuple[Any, Any], grid: int = 2, **options: Any) -> list[sim.Result]:
    """Run the entries of a module in a stream, all but the first programmatic."""
    names = [item.name for item in program.directives if isinstance(item, Function)]
    launches = [
        sim.Launch(program, name, grid=grid, block=SIZE // grid, args=list(use), programmatic=index > 0)
        for index, (name, use) in enumerate(zip(names, uses, strict=True))
    ]
    return sim.stream(launches, **options)


def find_in_all_orders(
    program: Module, *array_pairs: tuple[int, int], count: int = 3, grid: int = 2
) -> Iterator[list[Finding]]:
    """Yield the findings of every schedule and seed; `array_pairs` numbers the arrays of each entry."""
    for schedule, seed in RUNS:
        buffers = arrays(count)
        uses = [(buffers[a], buffers[b]) for a, b in array_pairs]
        results = launch_stream(program, *uses, grid=grid, schedule=schedule, seed=seed, on_hazard="report")
        yield list({id(finding): finding for result in results for finding in result.hazards}.values())


PAIRS = {
    "wait before the read": (f"{LAUNCH} {STEP}", f"{WAIT} {LOAD} {DOUBLE} {STORE}", (0, 1), (1, 2), None),
    "no wait": (f"{LAUNCH} {STEP}", f"{LOAD} {DOUBLE} {STORE}", (0, 1), (1, 2), MISS),
    "wait after the read": (f"{LAUNCH} {STEP}", f"{LOAD} {WAIT} {DOUBLE} {STORE}", (0, 1), (1, 2), MISS),
    "overwrites what is read, no wait": (f"{LAUNCH} {STEP}", SEVEN, (0, 1), (0, 2), MISS),
    "overwrites what was read": (f"{LAUNCH} {STEP}", f"{WAIT} {SEVEN}", (0, 1), (0, 2), None),
    "overwrites what is written, no wait": (f"{LAUNCH} {STEP}", f"{LOAD} {STORE}", (0, 1), (2, 1), MISS),
    "never launches, no wait": (STEP, f"{LOAD} {DOUBLE} {STORE}", (0, 1), (1, 2), MISS),
    "never launches": (STEP, f"{WAIT} {LOAD} {DOUBLE} {STORE}", (0, 1), (1, 2), None),
    "needs nothing": (f"{LAUNCH} {STEP}", f"{LOAD} {DOUBLE} {STORE}", (0, 1), (0, 2), None),
    "wait under a guard that all pass": (
        f"{LAUNCH} {STEP}", f"setp.lt.u32 %p, %t, 999; @%p {WAIT} {LOAD} {STORE}", (0, 1), (1, 2), None,
    ),
    "half of the lanes wait": (
        f"{LAUNCH} {STEP}", f"setp.lt.u32 %p, %t, 8; @%p {WAIT} {LOAD} {STORE}", (0, 1), (1, 2), MISS,
    ),
    "one thread waits and a barrier hands it on": (
        f"{LAUNCH} {STEP}", f"@%first {WAIT} bar.sync 0; {LOAD} {STORE}", (0, 1), (1, 2), None,
    ),
    "what is released before the launch": (
        f"{STEP} bar.sync 0; @%first fence.acq_rel.gpu; @%first {LAUNCH}", f"{LOAD} {STORE}", (0, 1), (1, 2), None,
    ),
    "stores behind the launch": (
        f"fence.acq_rel.gpu; {LAUNCH} {STEP}", f"{LOAD} {STORE}", (0, 1), (1, 2), MISS,
    ),
    "the launch alone releases nothing": (
        f"{STEP} bar.sync 0; @%first {LAUNCH}", f"{LOAD} {STORE}", (0, 1), (1, 2), MISS,
    ),
    "launches again behind the stores": (
        f"{LAUNCH} {STEP} bar.sync 0; @%first fence.acq_rel.gpu; @%first {LAUNCH}", f"{LOAD} {STORE}", (0, 1), (1, 2),
        MISS,
    ),
    "another warp launches first": (
        f"{STEP} fence.acq_rel.gpu; {LAUNCH}", f"{LOAD} {STORE}", (0, 1), (1, 2), MISS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_two_grids(name: str) -> None:
    first, second, *array_pairs, code = PAIRS[name]
    program = module(producer=first, consumer=second)
    for findings in find_in_all_orders(program, *array_pairs):
        assert {finding.rule.code for finding in findings} == ({code} if code else set[str]())


def test_values_that_grids_hand_on() -> None:
    program = module(producer=f"{LAUNCH} {STEP}", consumer=f"{WAIT} {LOAD} {DOUBLE} {STORE}")
    for schedule, seed in RUNS:
        x, y, z = arrays(3)
        first, second = launch_stream(program, (x, y), (y, z), schedule=schedule, seed=seed)
        assert y.tolist() == list(range(1, SIZE + 1))
        assert z.tolist() == [2 * n for n in range(1, SIZE + 1)]
        assert first.outputs["b"] is y is second.outputs["a"]
        assert first.stats.lanes == second.stats.lanes == SIZE


def test_without_a_wait_values_are_wrong_in_some_schedule() -> None:
    program = module(producer=f"{LAUNCH} {STEP}", consumer=f"{LOAD} {DOUBLE} {STORE}")
    right = dict[tuple[str, int], bool]()
    for run in RUNS:
        x, y, z = arrays(3)
        launch_stream(program, (x, y), (y, z), schedule=run[0], seed=run[1], check="none")
        right[run] = z.tolist() == [2 * n for n in range(1, SIZE + 1)]
    assert right["lazy", 0]
    assert not right["eager", 0]
    assert len({right["random", seed] for seed in range(12)}) == 2
    assert len({right["adversarial", seed] for seed in range(12)}) == 2


def test_a_finding_says_which_grid() -> None:
    program = module(producer=f"{LAUNCH} {STEP}", consumer=f"{LOAD} {STORE}")
    x, y, z = arrays(3)
    with raises(PtxError, match=r"PTX0906[^$]*warp 0 lane 0 of `consumer`; the other place: .* of `producer`"):
        launch_stream(program, (x, y), (y, z), schedule="lazy")
    assert not y.any(), "arrays are written back when the whole stream succeeded"


def test_the_same_kernel_twice_has_a_number() -> None:
    program = module(k=f"{LAUNCH} {STEP}")
    x, y, z = arrays(3)
    launches = [
        sim.Launch(program, grid=2, block=64, args=[x, y]),
        sim.Launch(program, grid=2, block=64, args=[y, z], programmatic=True),
    ]
    first, second = sim.stream(launches, schedule="lazy", on_hazard="report")
    (finding,) = second.hazards
    assert finding in first.hazards
    assert str(finding.agent).endswith("of `k (launch 2)`")
    assert str(finding.other_agent).endswith("of `k (launch 1)`")


def test_the_same_mistake_of_other_grids_is_another_finding() -> None:
    program = module(k=f"{LAUNCH} {STEP}")
    w, x, y, z = arrays(4)
    launches = [
        sim.Launch(program, grid=2, block=64, args=[a, b], programmatic=True) for a, b in ((w, x), (x, y), (y, z))
    ]
    first, second, third = sim.stream(launches, schedule="lazy", on_hazard="report")
    assert [len(grid_result.hazards) for grid_result in (first, second, third)] == [1, 2, 1]
    assert second.hazards == [*first.hazards, *third.hazards]


FLAGS = {
    "release and acquire": ("st.release.gpu.global.u32 [%flag], 1;", "ld.acquire.gpu.global.u32", None),
    "relaxed on one side": ("st.relaxed.gpu.global.u32 [%flag], 1;", "ld.acquire.gpu.global.u32", MISS),
    "relaxed on the other": ("st.release.gpu.global.u32 [%flag], 1;", "ld.relaxed.gpu.global.u32", MISS),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_across_grids(name: str) -> None:
    """The consumer polls word 0 of `b`, which the producer sets, and reads word 1."""
    store, load, code = FLAGS[name]
    program = module(
        producer=f"{LAUNCH} add.u64 %b, %b, 4; mov.u32 %v, 5; @%first {STORE} @%first {store}",
        consumer=f"mov.u32 %v, 1; again: @%first {load} %v, [%a]; setp.eq.and.u32 %p, %v, 0, %first; @%p bra again;"
        f" @%first ld.global.u32 %v, [%a+4]; @%first {STORE}",
    )
    for schedule, seed in RUNS:
        x, y, z = arrays(3)
        results = launch_stream(program, (x, y), (y, z), grid=1, schedule=schedule, seed=seed, on_hazard="report")
        assert {finding.rule.code for finding in results[1].hazards} == ({code} if code else set[str]())
        assert code or z[0] == 5


def test_polling_for_a_grid_that_computes_for_long_is_no_hang() -> None:
    release, acquire, _ = FLAGS["release and acquire"]
    program = module(
        producer=f"{LAUNCH} mov.u32 %n, 0; more: add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 6000; @%p bra more;"
        f" @%first {release}",
        consumer=f"again: {acquire} %v, [%a]; setp.eq.u32 %p, %v, 0; @%p bra again; @%first {STORE}",
    )
    x, y, z = arrays(3)
    launches = [
        sim.Launch(program, name, block=1, args=use, programmatic=True)
        for name, use in (("producer", [x, y]), ("consumer", [y, z]))
    ]
    sim.stream(launches, schedule="random", check="none")
    assert z[0] == 1


CHAIN = {
    "all wait": (f"{WAIT} {LAUNCH}", f"{WAIT} {LOAD} {STORE}", None),
    "one thread of the second waits": (f"{LAUNCH} @%first {WAIT}", f"{WAIT} {LOAD} {STORE}", None),
    "the second does not wait": (LAUNCH, f"{WAIT} {LOAD} {STORE}", MISS),
    "the third does not wait": (f"{WAIT} {LAUNCH}", f"{LOAD} {STORE}", MISS),
}


@pytest.mark.parametrize("name", CHAIN)
def test_three_grids(name: str) -> None:
    """The third grid reads the results of the first: it waits for the second, which must wait itself."""
    second, third, code = CHAIN[name]
    program = module(first=f"{LAUNCH} {STEP}", second=second, third=third)
    for findings in find_in_all_orders(program, (0, 1), (2, 2), (1, 3), count=4):
        assert {finding.rule.code for finding in findings} == ({code} if code else set[str]())


def test_a_wait_orders_no_accesses_of_its_own_grid() -> None:
    """The second CTA waits for the first grid; both write one word."""
    program = module(
        producer=f"{LAUNCH} {STEP}",
        consumer=f"mov.u32 %i, %ctaid.x; setp.eq.u32 %p, %i, 1; @%p {WAIT} @%first st.global.u32 [%flag], %i;",
    )
    for findings in find_in_all_orders(program, (0, 1), (2, 2)):
        assert {finding.rule.code for finding in findings} == {"PTX0901"}


SIGNAL = "mov.u64 %flag, ready; bar.sync 0; @%first st.{0}.gpu.global.u32 [%flag], 1;"
SEEN = "mov.u64 %flag, ready; again: ld.{0}.gpu.global.u32 %v, [%flag]; setp.eq.u32 %p, %v, 0; @%p bra again;"
THROUGH = {
    "a fence": (f"{STEP} bar.sync 0; fence.acq_rel.gpu; {LAUNCH}", LAUNCH, None),
    "a fence of the CTA alone": (f"{STEP} bar.sync 0; fence.acq_rel.cta; {LAUNCH}", LAUNCH, MISS),
    "no fence": (f"{STEP} bar.sync 0; {LAUNCH}", LAUNCH, MISS),
    "a flag": (f"{LAUNCH} {STEP} {SIGNAL.format('release')}", f"{LAUNCH} {SEEN.format('acquire')}", None),
    "a relaxed flag": (f"{LAUNCH} {STEP} {SIGNAL.format('release')}", f"{LAUNCH} {SEEN.format('relaxed')}", MISS),
    "a flag too early": (f"{LAUNCH} {SIGNAL.format('release')} {STEP}", f"{LAUNCH} {SEEN.format('acquire')}", MISS),
}


@pytest.mark.parametrize("name", THROUGH)
def test_what_was_handed_on_to_the_second_of_three_grids(name: str) -> None:
    """The second grid does not wait but knows the first one's results; a grid that waits for the second knows them
    too."""
    first, second, code = THROUGH[name]
    bodies = {"first": first, "second": second, "third": f"{WAIT} {LOAD} {STORE}"}
    entries = (ENTRY.format(name=name, body=body) for name, body in bodies.items())
    program = parse(f"{HEAD}.global .u32 ready;\n{''.join(entries)}")
    for findings in find_in_all_orders(program, (0, 1), (2, 2), (1, 3), count=4, grid=1):
        assert {finding.rule.code for finding in findings} == ({code} if code else set[str]())


def test_a_launch_that_is_not_programmatic_starts_behind_all_others() -> None:
    program = module(first=f"{LAUNCH} {STEP}", second=LAUNCH, third=f"{LOAD} {STORE}")
    for schedule, seed in RUNS:
        w, x, y, z = arrays(4)
        launches = [
            sim.Launch(program, "first", grid=2, block=64, args=[w, x]),
            sim.Launch(program, "second", grid=2, block=64, args=[y, y], programmatic=True),
            sim.Launch(program, "third", grid=2, block=64, args=[x, z]),
        ]
        sim.stream(launches, schedule=schedule, seed=seed)
        assert z.tolist() == list(range(1, SIZE + 1))


def test_batches_of_a_dependent_wait_one_after_the_other() -> None:
    program = module(producer=f"{LAUNCH} {STEP}", consumer=f"{WAIT} {LOAD} {DOUBLE} {STORE}")
    x, y, z = arrays(3)
    first, second = launch_stream(program, (x, y), (y, z), grid=4, batch_lanes=32)
    assert z.tolist() == [2 * n for n in range(1, SIZE + 1)]
    assert (first.stats.batches, second.stats.batches) == (1, 4)


def test_variables_of_a_module_are_the_same_memory_for_all_its_entries() -> None:
    text = HEAD + ".global .u32 count = 3;\n" + "".join(
        f".visible .entry {name}(.param .u64 out)\n"
        f"{{ .reg .u32 %v; .reg .u64 %o; ld.param.u64 %o, [out]; {body} ret; }}\n"
        for name, body in (("add", "atom.global.add.u32 %v, [count], 4;"),
                           ("show", "ld.global.u32 %v, [count]; st.global.u32 [%o], %v;"))
    )  # fmt: skip
    program, twin, out = parse(text), parse(text), np.zeros(1, np.uint32)
    add, show = sim.Launch(program, "add", args=[out]), sim.Launch(program, "show", args=[out])
    for _ in range(2):
        sim.stream([add, add, show])
        assert out.tolist() == [11]
    sim.stream([add, sim.Launch(twin, "show", args=[out])])
    assert out.tolist() == [3], "another module has its own"


def test_views_of_the_same_bytes_are_the_same_memory() -> None:
    program = module(producer=STEP, consumer=f"{WAIT} {STEP}")
    x, y, z = arrays(3)
    launch_stream(program, (x, y), (y.reshape(2, -1), z))
    assert z.tolist() == list(range(2, SIZE + 2))


def test_a_hang_names_the_grid_that_is_waited_for() -> None:
    program = module(producer=f"{LAUNCH} @%first bra out; bar.sync 1, 128; out:", consumer=f"{WAIT} {STEP}")
    x, y, z = arrays(3)
    with raises(sim.Hang) as excinfo:
        launch_stream(program, (x, y), (y, z), grid=2)
    first, second = excinfo.value.diagnostics
    assert first.code == second.code == "PTX0990"
    assert "of `producer` wait for barrier 1" in first.message
    assert "of `consumer` wait for grid `producer`: 2 of its 2 CTAs have not completed" in second.message
    report = excinfo.value.report
    assert any("waiting at `bar.sync`" in line and "`producer` CTA" in line for line in report.format_lines())
    assert report.guilty is report.nodes[0]
    assert [node.waits_for for node in report.nodes] == [[], ["barrier 1 of CTA 0"]]


def test_a_hang_counts_one_cta_in_the_singular() -> None:
    program = module(producer=f"{LAUNCH} @%first bra out; bar.sync 1, 256; out:", consumer=f"{WAIT} {STEP}")
    x, y, z = arrays(3)
    with raises(sim.Hang, match="wait for grid `producer`: 1 of its 1 CTA has not completed"):
        launch_stream(program, (x, y), (y, z), grid=1)


def test_the_limit_of_instructions_is_for_each_launch() -> None:
    program, (x, y, z) = module(producer=STEP, consumer=f"{WAIT} {STEP}"), arrays(3)
    needed = max(result.stats.instructions for result in launch_stream(program, (x, y), (y, z)))
    launch_stream(program, (x, y), (y, z), max_steps=needed)
    with raises(PtxError, match=f"more than {needed - 1} instructions were executed"):
        launch_stream(program, (x, y), (y, z), max_steps=needed - 1)


def test_no_dependent_has_to_run_while_the_primary_does() -> None:
    program = module(
        producer=f"{LAUNCH} again: ld.acquire.gpu.global.u32 %v, [%flag]; setp.eq.u32 %p, %v, 0; @%p bra again;",
        consumer="@%first st.release.gpu.global.u32 [%flag], 1;",
    )
    x, y, _ = arrays(3)
    with raises(sim.Hang, match=r"PTX0991.*`producer` poll `b`(.|\n)*`consumer` has not started"):
        launch_stream(program, (x, y), (x, y), schedule="lazy")
    launch_stream(program, (x, y), (x, y), schedule="eager")


def test_overlapping_grids_have_shared_memory_of_their_own() -> None:
    exchange = "st.shared.u32 [{0}], %v; bar.sync 0; ld.shared.u32 %v, [{0}];"
    text = HEAD + "".join(
        f".shared .u32 {name}_cell[1];\n" + ENTRY.format(name=name, body=body)
        for name, body in (
            ("producer", f"mov.u32 %v, 3; {exchange.format('producer_cell')} {LAUNCH} {STORE}"),
            ("consumer", f"mov.u32 %v, 4; {exchange.format('consumer_cell')} {WAIT} {STORE}"),
        )
    )
    for schedule, seed in RUNS:
        x, y, z = arrays(3)
        launch_stream(parse(text), (x, y), (y, z), schedule=schedule, seed=seed)
        assert set(y.tolist()) == {3}
        assert set(z.tolist()) == {4}


def test_shared_memory_of_another_grid_hands_nothing_on() -> None:
    flag = ".shared .u32 cell; atom{0}.gpu.shared.exch.b32 %n, [cell], 1;"
    program = module(
        producer=f"{LAUNCH} {STEP} {flag.format('.release')}", consumer=f"{flag.format('.acquire')} {LOAD} {STORE}"
    )
    for findings in find_in_all_orders(program, (0, 1), (1, 2)):
        assert MISS in {finding.rule.code for finding in findings}


def test_what_a_stream_does_not_take() -> None:
    program = module(producer=STEP)
    assert sim.stream([]) == []
    x, y = arrays(2)
    with raises(PtxError, match=r"PTX1103.*sim\.stream has no option `timeline`"):
        launch_stream(program, (x, y), timeline=True)
    with raises(PtxError, match="schedule='random', seed=4 repeats this run"):
        launch_stream(module(producer="trap;"), (x, y), schedule="random", seed=4)


def test_a_fault_says_which_grid() -> None:
    program = module(producer="mov.u64 %a, 0; ld.global.u32 %v, [%a];")
    x, y = arrays(2)
    launches = [sim.Launch(program, args=[x, y], label="warm-up")]
    with raises(PtxError, match=r"in `producer` of `warm-up`, CTA 0,"):
        sim.stream(launches)


def test_outputs_that_a_stream_wrote_in_part() -> None:
    program = module(
        first=f"setp.lt.u32 %p, %i, 100; @!%p ret; {STEP}", second=f"setp.ge.u32 %p, %i, 90; @!%p ret; {STEP}"
    )
    x, y, z = arrays(3)
    (finding,) = launch_stream(program, (x, y), (x, z), check="outputs", outputs=[y], on_hazard="report")[0].hazards
    assert "28 of 128" in finding.what


def test_kernels_in_python_run_in_a_stream() -> None:
    @kernel(arch="sm_90", in_specs=[Tile("n", u32)], out_specs=[Tile("n", u32)], block=(32, 1, 1))
    def step(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        ptx.griddepcontrol.launch_dependents()
        address = ptx.special.tid.x() * 4
        ptx.griddepcontrol.wait()
        ptx.st(u32, ptx.addr(py, address), ptx.ld(u32, ptx.addr(px, address)) + 1)

    x, y, z = (array[:32] for array in arrays(3))
    program = step.module(n=32)
    launches = [sim.Launch(program, step.name, block=32, args=[x, y]),
                sim.Launch(program, step.name, block=32, args=[y, z], programmatic=True)]  # fmt: skip
    sim.stream(launches, schedule="random", seed=1)
    assert z.tolist() == list(range(2, 34))


def test_places_say_which_module() -> None:
    first, second = module(producer=f"{LAUNCH} {STEP}"), module(consumer=f"{LOAD} {STORE}")
    x, y, z = arrays(3)
    launches = [sim.Launch(first, grid=2, block=64, args=[x, y]),
                sim.Launch(second, grid=2, block=64, args=[y, z], programmatic=True)]  # fmt: skip
    for _ in range(2):
        with raises(PtxError, match=r"^<module 2>:17:5: (.|\n)* at <module 1>:17:"):
            sim.stream(launches, schedule="lazy")


def test_a_grid_of_several_batches_lets_nobody_start_before_its_last_ctas_have() -> None:
    program = parse(""".version 8.0
.target sm_90
.address_size 64
.visible .entry producer(.param .u64 count, .param .u64 seen)
{ .reg .b64 %c; ld.param.u64 %c, [count]; red.global.add.u32 [%c], 1; griddepcontrol.launch_dependents; ret; }
.visible .entry consumer(.param .u64 count, .param .u64 seen)
{ .reg .b64 %c; .reg .b32 %v; ld.param.u64 %c, [count]; ld.relaxed.gpu.global.u32 %v, [%c];
ld.param.u64 %c, [seen]; st.global.u32 [%c], %v; ret; }
""")
    count, flags = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    launches = [
        sim.Launch(program, "producer", grid=80, block=1024, args=[count, flags]),
        sim.Launch(program, "consumer", args=[count, flags], programmatic=True),
    ]
    sim.stream(launches, check="none")
    assert flags.tolist() == [80 * 1024]
