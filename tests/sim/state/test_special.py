"""Special registers: every one has a value or a reason for having none, and runs are repeatable."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.isa.special import COMPONENTS, SPECIAL_REGISTERS, SpecialRegister
from pyptx.parser import parse
from tests.sim.kernels import assert_reported, kernel, results
from tools.isa.audit_spellings import list_first_places

LACKING = ("%pm", "%envreg", "%reserved_smem_offset_1", "%percta", "%locality_domain")
CTAS, THREADS = 8, 64


def _module(register: str, type_name: str, target: str, version: str, directive: str = "") -> str:
    value_type = "u64" if type_name == "u64" else "u32"
    read = f"mov.{type_name} %v, {register};"
    if type_name == "pred":
        read = f"mov.pred %p, {register}; selp.u32 %v, 1, 0, %p;"
    return f"""
.version {version}
.target {target}
.address_size 64
.extern .shared .align 16 .b8 tail[];
.visible .entry k(.param .u64 out) {directive}
{{
.reg .b64 %o, %a; .reg .{value_type} %v; .reg .pred %p; .reg .b32 %t, %c, %n; .shared .b32 own[25];
ld.param.u64 %o, [out];
mov.u32 %c, %ctaid.y; mov.u32 %n, %nctaid.x; mov.u32 %t, %ctaid.x; mad.lo.u32 %c, %c, %n, %t;
mov.u32 %t, %tid.x;
mad.lo.u32 %t, %c, {THREADS}, %t;
mad.wide.u32 %o, %t, 8, %o;
mov.u64 %a, own; mov.u64 %a, tail;
{read}
st.global.{value_type} [%o], %v;
ret;
}}
"""


def _values(register: str, type_name: str = "u32", target: str = "sm_90", version: str = "7.8") -> list[int]:
    out = np.zeros(CTAS * THREADS, np.uint64)
    cluster = (2, 2) if target >= "sm_90" else 1
    sim.run(
        parse(_module(register, type_name, target, version)), grid=(4, 2), block=THREADS, cluster=cluster, shared=300,
        args=[out],
    )  # fmt: skip
    return out.tolist()


@pytest.mark.parametrize("register", SPECIAL_REGISTERS, ids=lambda register: register.name)
def test_every_register_has_a_value_or_says_why_not(register: SpecialRegister) -> None:
    place = list_first_places([register.available])[0]
    names = [f"{register.name}.{part}" for part in COMPONENTS] if register.vector else [register.name]
    version = max((3, 1), place.version)
    target = max("sm_75", place.target.name, key=lambda name: int(name[3:]))
    directive = f"{register.requires} 16" if register.requires else ""
    lacks = register.name.startswith(LACKING) and register.name not in ("%envreg1", "%envreg2")
    for name in names:
        version = max(version, (6, 3) if target == "sm_75" else (0, 0))
        text = _module(name, register.type.name, target, f"{version[0]}.{version[1]}", directive)
        if lacks:
            assert_reported(text, "PTX1131", name, block=32, args=[np.zeros(32, np.uint64)])
        else:
            sim.run(parse(text), block=32, args=[np.zeros(32, np.uint64)])


def _each_cta(values: list[int]) -> list[int]:
    return [value for value in values for _ in range(THREADS)]


SHARED = 512
"""100 bytes declared, 300 dynamic, with padding between them: memory is allocated in units of 128 bytes."""
X, Y = [0, 1, 2, 3, 0, 1, 2, 3], [0, 0, 0, 0, 1, 1, 1, 1]
LANES = [thread % 32 for _ in range(CTAS) for thread in range(THREADS)]


@pytest.mark.parametrize(
    ("register", "values"),
    [
        ("%tid.x", list(range(THREADS)) * CTAS), ("%tid.w", [0] * CTAS * THREADS),
        ("%ntid.x", _each_cta([THREADS] * 8)),
        ("%laneid", LANES), ("%warpid", [t // 32 for _ in range(CTAS) for t in range(THREADS)]),
        ("%nwarpid", _each_cta([64] * 8)), ("%ctaid.y", _each_cta(Y)), ("%nctaid.x", _each_cta([4] * 8)),
        ("%nsmid", _each_cta([1] * 8)), ("%clusterid.x", _each_cta([x // 2 for x in X])),
        ("%nclusterid.x", _each_cta([2] * 8)), ("%nclusterid.y", _each_cta([1] * 8)),
        ("%cluster_ctaid.x", _each_cta([x % 2 for x in X])), ("%cluster_nctaid.y", _each_cta([2] * 8)),
        ("%cluster_ctarank", _each_cta([x % 2 + 2 * y for x, y in zip(X, Y, strict=True)])),
        ("%cluster_nctarank", _each_cta([4] * 8)), ("%lanemask_eq", [1 << lane for lane in LANES]),
        ("%lanemask_lt", [(1 << lane) - 1 for lane in LANES]), ("%lanemask_le", [(2 << lane) - 1 for lane in LANES]),
        ("%lanemask_ge", [(1 << 32) - (1 << lane) for lane in LANES]),
        ("%lanemask_gt", [(1 << 32) - (2 << lane) for lane in LANES]),
        ("%total_smem_size", _each_cta([SHARED] * 8)), ("%dynamic_smem_size", _each_cta([300] * 8)),
        ("%reserved_smem_offset_begin", _each_cta([0] * 8)), ("%reserved_smem_offset_end", _each_cta([1024] * 8)),
        ("%reserved_smem_offset_cap", _each_cta([1024] * 8)), ("%reserved_smem_offset_0", _each_cta([0] * 8)),
        ("%envreg1", _each_cta([0] * 8)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_value(register: str, values: list[int]) -> None:
    assert _values(register) == values


def test_shared_memory_with_the_reserved_part() -> None:
    assert set(_values("%aggr_smem_size", version="8.1")) == {SHARED + 1024}


@pytest.mark.parametrize(("name", "value"), [("begin", SHARED), ("end", SHARED + 1024), ("cap", SHARED + 1024)])
def test_reserved_memory_lies_behind_that_of_the_kernel_before_hopper(name: str, value: int) -> None:
    assert set(_values(f"%reserved_smem_offset_{name}", target="sm_86", version="7.6")) == {value}


def test_warps_of_an_sm() -> None:
    assert set(_values("%nwarpid", target="sm_89")) == {48}


def test_clusters_asked_for() -> None:
    assert set(_values("%is_explicit_cluster", "pred")) == {1}
    text = _module("%is_explicit_cluster", "pred", "sm_90", "7.8", ".reqnctapercluster 1")
    out, second = np.zeros(THREADS, np.uint64), np.zeros(THREADS, np.uint64)
    sim.run(parse(text), block=THREADS, args=[out])
    sim.run(parse(text.replace(".reqnctapercluster 1", "")), block=THREADS, args=[second])
    assert (set(out.tolist()), set(second.tolist())) == ({1}, {0})


def test_a_cooperative_grid_has_256_bytes_of_its_own() -> None:
    out = np.ones(2, np.uint16)
    inside, outside = (
        kernel(
            f"mov.b32 %r1, %envreg1; mov.b32 %r2, %envreg2; mov.b64 %rd1, {{%r2, %r1}}; add.u64 %rd1, %rd1, {place};\n"
            "ld.global.u8 %h1, [%rd1]; st.global.u16 [%o], %h1;"
        )
        for place in (255, 256)
    )
    sim.run(parse(inside), args=[out], cooperative=True)
    assert out.tolist() == [0, 1]
    assert_reported(outside, "PTX1110", "grid workspace", args=[out], cooperative=True)


def test_grids_of_a_stream_have_numbers_of_their_own() -> None:
    module, outs = parse(_module("%gridid", "u64", "sm_90", "7.8")), [np.ones(32, np.uint64) for _ in range(3)]
    sim.stream([sim.Launch(module, block=32, args=[out]) for out in outs])
    assert [set(out.tolist()) for out in outs] == [{0}, {1}, {2}]


@pytest.mark.parametrize("clock", ["%globaltimer", "%clock64"])
def test_a_run_repeats_its_clocks(clock: str) -> None:
    text = _module(clock, "u64", "sm_90", "7.8")
    runs: list[list[int]] = []
    for _ in range(2):
        out = np.zeros(CTAS * THREADS, np.uint64)
        sim.run(parse(text), grid=CTAS, block=THREADS, args=[out], schedule="random", seed=3)
        runs.append(out.tolist())
    assert runs[0] == runs[1]


@pytest.mark.parametrize("clock", ["%clock", "%globaltimer_lo"])
def test_a_clock_counts_the_instructions_between_two_reads(clock: str) -> None:
    body = (
        f"mov.u32 %r1, {clock}; add.u32 %r3, %r3, 1; add.u32 %r3, %r3, 1; mov.u32 %r2, {clock};"
        "sub.u32 %r1, %r2, %r1; st.global.u32 [%o], %r1;"
    )
    assert results(f"mov.u32 %r3, 0; {body}", 32) == [3] * 32


def test_the_timer_goes_on_from_grid_to_grid() -> None:
    module, outs = parse(_module("%globaltimer", "u64", "sm_90", "7.8")), [np.zeros(32, np.uint64) for _ in range(2)]
    sim.stream([sim.Launch(module, block=32, args=[out]) for out in outs])
    assert outs[0].max() < outs[1].min()


@pytest.mark.parametrize("register", ["%nwarpid", "%total_smem_size"])
def test_what_depends_on_a_machine_whose_limits_are_unknown_has_no_value(register: str) -> None:
    text = _module(register, "u32", "sm_70", "8.1")
    error = assert_reported(text, "PTX1131", args=[np.zeros(THREADS, np.uint64)], block=THREADS)
    assert error.diagnostics[0].message == f"`{register}` has no value: the limits of sm_70 are not known"
