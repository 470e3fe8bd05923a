"""Scopes that are too narrow: strong accesses of several CTAs, and flags released or acquired with such a scope."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import by_schedule, codes, kernel

PATTERN = Path(__file__).parents[2] / "patterns/ptx/cluster_global.ptx"
PARTS = """mov.u32 %r9, %ctaid.x; setp.eq.u32 %p1, %r9, 0; setp.ne.u32 %p2, %t, 0;
ld.param.u64 %o, [out]; @%p2 ret;
"""
WRITER = PARTS + "@!%p1 bra reader;\nst.global.u32 [%o], 1;\n"
READER = "ret;\nreader: {}\nsetp.eq.u32 %p3, %r1, 0; @%p3 bra reader;\n{}ld.global.u32 %r2, [%o];"
ACQUIRE = "ld.acquire.gpu.global.u32 %r1, [%o+128];"
PEER = """mov.u32 %r3, word; mapa.shared::cluster.u32 %r4, %r3, 0; st.shared.u32 [word], 0;
barrier.cluster.arrive; barrier.cluster.wait;
{}
barrier.cluster.arrive; barrier.cluster.wait;"""


@pytest.mark.parametrize(
    "body",
    [
        "red.relaxed.cta.global.add.u32 [%o], 1;",
        "red.relaxed.cluster.global.add.u32 [%o], 1;",
        "atom.acq_rel.cta.global.exch.b32 %r1, [%o], 1;",
        "st.relaxed.cta.global.u32 [%o], %t;",
        "@%p1 st.relaxed.cta.global.u32 [%o], %t; @!%p1 ld.relaxed.gpu.global.u32 %r1, [%o];",
    ],
)
def test_strong_accesses_of_several_ctas_need_a_scope_of_the_whole_gpu(body: str) -> None:
    by_order = by_schedule(kernel(PARTS + body), block=32, grid=4)
    assert codes(by_order) == {("PTX0903",)}
    assert all("scope" in str(finding) for findings in by_order.values() for finding in findings)
    wide = body.replace(".cta", ".gpu").replace(".cluster", ".gpu")
    assert codes(by_schedule(kernel(PARTS + wide), block=32, grid=4)) == {()}


@pytest.mark.parametrize("access", ["atom.relaxed.{}.shared::cluster.add.u32 %r5, [%r4], 1;",
                                  "st.relaxed.{}.shared::cluster.u32 [%r4], 1;"])  # fmt: skip
def test_accesses_of_a_peers_shared_memory_need_the_scope_of_the_cluster(access: str) -> None:
    for scope, expected in (("cta", ("PTX0903",)), ("cluster", ())):
        text = kernel(PEER.format(access.format(scope)), module=".shared .b32 word;")
        assert codes(by_schedule(text, block=1, grid=2, cluster=2)) == {expected}


def test_atomics_of_one_cta_may_name_its_scope() -> None:
    assert codes(by_schedule(kernel("red.relaxed.cta.global.add.u32 [%o], 1;"), block=32)) == {()}


@pytest.mark.parametrize(
    ("release", "look", "fence"),
    [
        ("st.release.cta.global.u32 [%o+128], 1;", ACQUIRE, ""),
        ("red.release.cta.global.add.u32 [%o+128], 1;", ACQUIRE, ""),
        ("fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%o+128], 1;", ACQUIRE, ""),
        ("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%o+128], 1;", ACQUIRE.replace("acquire", "relaxed"),
         "fence.acq_rel.cta;\n"),
    ],
)  # fmt: skip
def test_data_behind_a_flag_of_too_narrow_a_scope_is_told_so(release: str, look: str, fence: str) -> None:
    text = kernel(WRITER + release + READER.format(look, fence))
    by_order = by_schedule(text, block=32, grid=2)
    data = text.splitlines().index("st.global.u32 [%o], 1;") + 1
    for findings in by_order.values():
        (finding,) = [
            finding
            for finding in findings
            if finding.other and finding.other.origin and finding.other.origin.line == data
        ]
        assert finding.rule.code == "PTX0903"
        assert "a release of scope `." in finding.notes[0]
    wide = text.replace(".cta", ".gpu")
    assert codes(by_schedule(wide, block=32, grid=2)) == {()}


@pytest.mark.parametrize(("name", "label"), [("arrive.release", "arrive"), ("try_wait.parity.acquire", "wait")])
def test_an_arrive_or_wait_of_too_narrow_a_scope_is_named_with_its_line(name: str, label: str) -> None:
    lines = PATTERN.read_text("utf-8").splitlines()
    (index,) = (number for number, line in enumerate(lines) if line.endswith(f"//@ {label}"))
    assert f"mbarrier.{name}.cluster" in lines[index]
    lines[index] = lines[index].replace(f"mbarrier.{name}.cluster", f"mbarrier.{name}.cta")
    words = np.arange(32, dtype=np.uint32)
    args = (words, np.zeros_like(words), np.zeros_like(words))
    (finding,) = sim.run(parse("\n".join(lines)), grid=2, block=32, cluster=2, args=args, on_hazard="report").hazards
    assert finding.rule.code == "PTX0903"
    assert re.fullmatch(
        rf"`mbarrier\.{name}\.cta\..*` at <ptx>:{index + 1}:\d+ has scope `\.cta`, .*", finding.notes[0]
    )


def test_a_barrier_behind_the_acquire_hands_the_reason_on() -> None:
    text = kernel("""mov.u32 %r9, %ctaid.x; setp.eq.u32 %p1, %r9, 0; setp.eq.u32 %p2, %t, 0; ld.param.u64 %o, [out];
@!%p1 bra reader;
@%p2 st.global.u32 [%o], 1;
@%p2 st.release.cta.global.u32 [%o+128], 1;
ret;
reader: @!%p2 bra.uni there;
look: ld.acquire.gpu.global.u32 %r1, [%o+128]; setp.eq.u32 %p3, %r1, 0; @%p3 bra look;
there: bar.sync 0;
setp.eq.u32 %p4, %t, 63;
@%p4 ld.global.u32 %r2, [%o];""")
    assert codes(by_schedule(text, block=64, grid=2)) == {("PTX0903",)}


@pytest.mark.parametrize("guard", ["", "@%p1 ", "@!%p2 "])
def test_waiting_at_a_peers_barrier_is_an_error_also_where_the_result_is_the_guard(guard: str) -> None:
    body = (
        "mbarrier.init.shared::cta.b64 [bar], 4; mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1;\n"
        "mov.u32 %r2, bar; cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r1;\n"
        "barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p1, %t, 0; setp.ne.u32 %p2, %t, 0;\n"
        f"{guard}mbarrier.test_wait.parity.b64 %p1, [%rd2], 0;\nbarrier.cluster.arrive; barrier.cluster.wait;"
    )
    assert codes(by_schedule(kernel(body, module=".shared .b64 bar;"), block=1, grid=2, cluster=2)) == {("PTX0958",)}


@pytest.mark.parametrize(("scope", "expected"), [("cta", ("PTX0903",)), ("cluster", ())])
def test_arrivals_of_two_ctas_at_one_barrier_have_scopes_of_their_own(scope: str, expected: tuple[str, ...]) -> None:
    """The first lane stores and arrives in its own CTA, the second one in the peer. Each CTA reads both words."""
    body = (
        "setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared::cta.b64 [bar], 2;\n"
        "mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, %t;\n"
        "mov.u32 %r2, bar; mapa.shared::cluster.u32 %r2, %r2, %r1;\n"
        "mov.u32 %r3, words; mad.lo.u32 %r3, %t, 4, %r3; mapa.shared::cluster.u32 %r3, %r3, %r1;\n"
        "barrier.cluster.arrive; barrier.cluster.wait;\n"
        f"st.shared::cluster.u32 [%r3], %t;\nmbarrier.arrive.release.{scope}.shared::cluster.b64 _, [%r2];\n"
        "look: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra look;\n"
        "ld.shared.v2.u32 {%r4, %r5}, [words];\nbarrier.cluster.arrive; barrier.cluster.wait;"
    )
    text = kernel(body, module=".shared .b64 bar; .shared .align 8 .b32 words[2];")
    assert codes(by_schedule(text, block=2, grid=2, cluster=2)) == {expected}


@pytest.mark.parametrize(("count", "clean"), [(4, True), (3, False)])
def test_a_phase_hands_on_no_arrivals_beyond_its_count(count: int, clean: bool) -> None:
    """Two lanes of each CTA store and arrive in the first CTA, where another thread waits and reads all words."""
    body = (
        f"setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared::cta.b64 [bar], {count};\n"
        "mov.u32 %r1, %cluster_ctarank; mad.lo.u32 %r3, %r1, 2, %t; shl.b32 %r3, %r3, 2;\n"
        "mov.u32 %r2, bar; mapa.shared::cluster.u32 %r2, %r2, 0;\n"
        "mov.u32 %r4, words; add.u32 %r3, %r3, %r4; mapa.shared::cluster.u32 %r3, %r3, 0;\n"
        "setp.lt.u32 %p1, %t, 2; setp.eq.u32 %p2, %t, 32; setp.eq.and.u32 %p3, %r1, 0, %p2;\n"
        "barrier.cluster.arrive; barrier.cluster.wait;\n"
        "@%p1 st.shared::cluster.u32 [%r3], %t;\n"
        "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];\n@!%p3 bra done;\n"
        "look: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra look;\n"
        "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [words];\ndone: barrier.cluster.arrive; barrier.cluster.wait;"
    )
    by_order = by_schedule(
        kernel(body, module=".shared .b64 bar; .shared .align 16 .b32 words[4];"), block=64, grid=2, cluster=2
    )
    races = [{finding.rule.code for finding in found} & {"PTX0901"} for found in by_order.values()]
    assert [not race for race in races] == [clean] * len(races)


@pytest.mark.parametrize(("guard", "expected"), [("@%p1 ", ()), ("@!%p1 ", ("PTX0958",)), ("", ("PTX0958",))])
def test_only_lanes_that_wait_need_a_barrier_of_their_own(guard: str, expected: tuple[str, ...]) -> None:
    """The first lane has the address of its own CTA's barrier, the second one that of the peer's."""
    body = (
        "setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared::cta.b64 [bar], 4;\n"
        "mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, %t;\n"
        "mov.u32 %r2, bar; cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r1;\n"
        "barrier.cluster.arrive; barrier.cluster.wait;\n"
        f"{guard}mbarrier.test_wait.parity.b64 %p2, [%rd2], 0;\nbarrier.cluster.arrive; barrier.cluster.wait;"
    )
    assert codes(by_schedule(kernel(body, module=".shared .b64 bar;"), block=2, grid=2, cluster=2)) == {expected}
