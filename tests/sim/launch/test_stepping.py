"""Stepping: positions of threads, contents of registers, memory and barriers, and watched registers."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.launch import stepping
from tests.messages import raises
from tests.sim.kernels import kernel

BODY = """setp.eq.u32 %p0, %t, 0;
@%p0 mbarrier.init.shared::cta.b64 [bar], 2;
bar.sync 0;
mov.f32 %f1, 0f3FC00000;
mov.s32 %r2, -3;
mov.u32 %r1, 0;
loop: add.u32 %r1, %r1, 2;
@%p0 st.shared.u32 [cells+4], %r1;
setp.lt.u32 %p1, %r1, 6;
@%p1 bra loop;
add.u32 %r3, %r1, %t;
st.global.u32 [%o], %r3;"""
MODULE = ".shared .align 8 .b64 bar;\n.shared .u32 cells[4];"
TEXT = kernel(BODY, module=MODULE)
LINE = {word: TEXT[: TEXT.index(word)].count("\n") + 1 for word in ("loop:", "@%p0 st.shared", "bar.sync", "st.global")}


def machine(text: str = TEXT, threads: int = 64, **options: Any) -> tuple[sim.Machine, Any]:
    out = np.zeros(threads, np.int32)
    return sim.Machine(parse(text), block=threads, args=(out,), **options), out


def test_a_label_and_a_line_stop_before_their_instruction() -> None:
    m, _ = machine()
    assert m.run(until="loop")
    assert {stand.line for stand in m.where()} == {LINE["loop:"]}
    assert m.registers(thread=7)["%r1"] == 0
    assert m.run(until=LINE["@%p0 st.shared"])
    assert m.registers(thread=7)["%r1"] == 2
    assert m.run(until="loop")
    assert m.shared(0, "cells", "u32", 4).tolist() == [0, 2, 0, 0]
    assert m.shared(0, "cells+4", "u32", 1).tolist() == [2]


def test_registers_have_their_declared_types() -> None:
    m, _ = machine()
    m.run(until="loop")
    values = m.registers(cta=0, thread=(33, 0, 0))
    assert (values["%f1"], values["%t"], bool(values["%p0"])) == (1.5, 33, False)
    assert values["%f1"].dtype == np.float32
    assert values["%r2"] == 2**32 - 3  # declared .b32


@pytest.mark.parametrize(
    ("kind", "dtype", "value"),
    [("u8", "u2", 253), ("s8", "i2", -3), ("u16", "u2", 2**16 - 3), ("s16", "i2", -3), ("u32", "u4", 2**32 - 3),
     ("s32", "i4", -3), ("u64", "u8", 2**64 - 3), ("s64", "i8", -3)],
)  # fmt: skip
def test_integer_registers_have_their_sign(kind: str, dtype: str, value: int) -> None:
    m, _ = machine(kernel(f".reg .{kind} %x;\nmov.s32 %r2, -3;\ncvt.{kind}.s32 %x, %r2;\nhere:"))
    m.run(until="here")
    shown = m.registers(thread=1)["%x"]
    assert (shown.dtype, shown) == (np.dtype(dtype), value)


def test_a_condition_stops_the_run() -> None:
    m, _ = machine()
    assert m.run(until=lambda m: m.registers(thread=5)["%r1"] == 4)
    assert {stand.line for stand in m.where()} == {LINE["@%p0 st.shared"]}


def test_one_step_is_one_instruction_of_a_group() -> None:
    m, _ = machine()
    first = m.where()[0].line
    assert m.step()
    assert m.where()[0].line == first + 1
    assert m.step(2)
    assert m.where()[0].line == first + 3


def test_each_step_runs_the_shown_instruction() -> None:
    """A label right after a call begins another block, which leaves an empty one for those who return."""
    text = kernel(
        "call work, (%t);\nafter: add.u32 %r1, %t, 1;\nst.global.u32 [%o], %r1;",
        module=".func work(.reg .u32 x)\n{\nadd.u32 x, x, 1;\nret;\n}",
    )
    m, _ = machine(text, threads=32)
    lines: list[str] = []
    while not m.done:
        (stand,) = m.where()
        lines.append(text.splitlines()[stand.line - 1])
        assert stand.doing == "runs"
        m.step()
    own = ["call work, (%t);", "add.u32 x, x, 1;", "ret;", "after: add.u32 %r1, %t, 1;", "st.global.u32 [%o], %r1;"]
    assert [line for line, _ in groupby(lines)][-len(own) - 1 :] == [*own, "ret;"]


def test_every_thread_of_every_cta_shows_its_own_state() -> None:
    text = kernel(
        "mov.u32 %r2, %tid.y; mad.lo.u32 %r1, %r2, 100, %t; mov.u32 %r2, %tid.z; mad.lo.u32 %r1, %r2, 10000, %r1;\n"
        "mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r3, 1000000, %r1; st.shared.u32 [cells+8], %r3;\n"
        "or.b32 %r4, %t, %r2; mov.u32 %r2, %tid.y; or.b32 %r4, %r4, %r2; setp.eq.u32 %p0, %r4, 0;\n"
        "add.u32 %r3, %r3, 2; @%p0 mbarrier.init.shared::cta.b64 [bar], %r3;\nthere: bar.sync 0;",
        module=MODULE,
    )
    m = sim.Machine(parse(text), grid=3, block=(4, 3, 2), args=(np.zeros(24, np.int32),))
    m.run(until="there")
    for cta, z, y, x in np.ndindex(3, 2, 3, 4):
        thread = x + 4 * y + 12 * z
        for name in (thread, (x, y, z)):
            assert m.registers(cta, name)["%r1"] == x + 100 * y + 10000 * z + 1000000 * cta
        assert m.registers(cta)["%r1"] == 1000000 * cta
        assert m.registers(thread=thread)["%r1"] == x + 100 * y + 10000 * z
    assert m.registers()["%r1"] == 0
    for cta in range(3):
        assert m.shared(cta, "cells", "u32", 4).tolist() == [0, 0, cta, 0]
        assert m.shared(cta).tobytes() == bytes(8) + m.shared(cta, "cells").tobytes()
        (bar,) = m.barriers(cta)
        assert isinstance(bar, stepping.MBarrier)
        assert (bar.name, bar.pending) == ("bar", cta + 2)
    assert m.shared(at="cells", dtype="u32", count=3).tolist() == [0, 0, 0]
    assert m.shared().tobytes() == m.shared(0).tobytes()
    assert m.barriers() == m.barriers(0)


def test_nothing_is_written_before_the_end() -> None:
    m, out = machine()
    m.run()
    assert m.done
    assert not out.any()
    result = m.finish()
    assert out.tolist() == [6 + t for t in range(64)]
    assert result.stats.lanes == 64
    assert not m.step()
    with raises(PtxError, match="the kernel has ended: there is nothing to show"):
        m.registers(0)


def test_memory_shows_what_the_kernel_has_written_so_far() -> None:
    text = kernel("mov.u32 %r0, 4;\nst.global.u32 [%o], %r0;\nthere: add.u32 %r0, %r0, 1;")
    m, out = machine(text)
    m.run(until="there")
    assert m.memory("out").tolist() == [4] * 64
    assert not out.any()


def test_barriers_show_phases_and_arrivals() -> None:
    m, _ = machine()
    m.run(until="loop")
    (bar,) = m.barriers()
    assert isinstance(bar, stepping.MBarrier)
    assert (bar.name, bar.phase, bar.pending, bar.count, bar.bytes) == ("bar", 0, 2, 2, 0)
    text = kernel("setp.ge.u32 %p0, %t, 32;\n@%p0 bra late;\nbar.sync 3;\nbra end;\nlate: bar.sync 3;\nend:")
    m, _ = machine(text)
    m.run(until=lambda m: bool(m.barriers()))
    (bar,) = m.barriers()
    assert bar == stepping.Barrier(3, 32, 64)
    assert {(s.warp, s.doing) for s in m.where()} == {(0, "waits"), (1, "runs")}


def test_exited_and_parted_warps_are_told_apart() -> None:
    m, _ = machine(kernel("setp.lt.u32 %p0, %t, 40;\n@%p0 exit;\nthere: mov.u32 %r1, 1;"))
    m.run(until="there")
    assert [(s.warp, s.lanes, s.doing) for s in m.where()] == [(0, 32, "exited"), (1, 8, "exited"), (1, 24, "runs")]
    assert str(m.where()[1]).startswith("CTA 0 warp 1 (8 lanes) exited at `exit` at <ptx>:")


def test_batches_follow_each_other_and_ctas_keep_their_numbers() -> None:
    text = kernel("mov.u32 %r1, %ctaid.x;\nthere: mov.u32 %r2, %r1;")
    out = np.zeros(64, np.int32)
    m = sim.Machine(parse(text), grid=3, block=64, args=(out,), batch_lanes=64)
    records: list[int] = []
    while m.run(until="there"):
        records.append(m.where()[0].cta)
        assert m.registers(cta=records[-1])["%r1"] == records[-1]
    assert records == [0, 1, 2]


def nowhere(m: sim.Machine) -> None:
    m.run(until="nowhere")


def first_line(m: sim.Machine) -> None:
    m.run(until=1)


def ninth_cta(m: sim.Machine) -> None:
    m.registers(cta=9)


def no_variable(m: sim.Machine) -> None:
    m.shared(0, "nothing")


def read_too_much(m: sim.Machine) -> None:
    m.shared(0, "cells", "u32", 5000)


def no_array(m: sim.Machine) -> None:
    m.memory("nothing")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (nowhere, "no label `nowhere`; the labels are loop"),
        (first_line, "no instruction at line 1; instructions are at lines"),
        (ninth_cta, "CTA 9, thread 0: CTAs 0 … 0 are running, with threads 0 … 63"),
        (no_variable, "no shared variable `nothing`; expected one of bar, cells"),
        (read_too_much, "5000 × uint32 at "),
        (no_array, "no array or global variable `nothing`; expected one of out"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said(ask: Any, words: str) -> None:
    m, _ = machine()
    with raises(PtxError, match=words):
        ask(m)


def test_a_hang_leaves_the_machine_to_look_at() -> None:
    text = kernel("setp.ge.u32 %p0, %t, 32;\n@%p0 exit;\nbar.sync 1, 64;")
    m, _ = machine(text)
    with raises(PtxError, match="PTX0990"):
        m.run()
    assert [(s.warp, s.doing) for s in m.where()] == [(0, "waits"), (1, "exited")]


def test_watched_registers_tell_every_change() -> None:
    out = np.zeros(64, np.int32)
    result = sim.run(parse(TEXT), block=64, args=(out,), watch=["%r1", "%p1"])
    changes = [change for change in result.watched if change.register == "%r1"]
    assert [(c.line, int(c.before[0]), int(c.after[0])) for c in changes] == [
        (LINE["loop:"], n, n + 2) for n in (0, 2, 4)
    ]
    assert changes[0].threads.tolist() == list(range(64))
    assert str(changes[0]).endswith("%r1 of CTA 0 thread 0 from 0 to 2 and 63 more")
    assert [bool(c.after[0]) for c in result.watched if c.register == "%p1"] == [True, False]
    assert out.tolist() == [6 + t for t in range(64)]
    assert sim.run(parse(TEXT), block=64, args=(out,)).watched == []
    assert len(sim.Machine(parse(TEXT), block=64, args=(out,), watch=["%r1"]).finish().watched) == 3
    assert len(sim.run(parse(TEXT), block=64, args=(out,), watch="%r1").watched) == 3


def test_a_watched_register_has_to_exist() -> None:
    with raises(PtxError, match="no register `%r19` is used; expected one of %f1"):
        sim.run(parse(TEXT), block=64, args=(np.zeros(64, np.int32),), watch=["%r19"])


@pytest.mark.parametrize("schedule", ["random", "adversarial"])
def test_steps_follow_the_schedule_of_a_seed(schedule: str) -> None:
    def trace() -> list[int]:
        m, _ = machine(schedule=schedule, seed=5)
        lines: list[int] = []
        while m.step():
            lines.append(m.where()[0].line)
        return lines

    assert trace() == trace()


RACE = """mov.u32 %r3, box; shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %r3; xor.b32 %r2, %r1, 128;
st.shared.u32 [%r1], %t;
//
ld.shared.u32 %r4, [%r2];
st.global.u32 [%o], %r4;
add.u32 %r5, %r6, 1;"""
BOX = ".shared .align 16 .b8 box[512];"


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_an_error_is_raised_at_the_step_at_which_it_comes_to_light(schedule: str) -> None:
    text = kernel(RACE, module=BOX)
    load = text[: text.index("ld.shared.u32 %r4")].count("\n") + 1
    m, out = machine(text, check="all", schedule=schedule)
    assert m.run(until=load)
    assert m.hazards == []
    with raises(PtxError) as excinfo:
        m.step()
    assert [finding.code for finding in excinfo.value.diagnostics] == ["PTX0901"]
    assert [finding.rule.code for finding in m.hazards] == ["PTX0901"]
    assert m.registers(thread=40)["%r4"] == 8
    assert m.step()  # Errors already raised are not raised again.
    with raises(PtxError) as excinfo:
        m.run()
    assert [finding.code for finding in excinfo.value.diagnostics] == ["PTX0911"]
    with raises(PtxError) as excinfo:
        m.finish()
    assert [finding.code for finding in excinfo.value.diagnostics] == ["PTX0901", "PTX0911"]
    assert not out.any()


def test_reported_findings_are_there_as_they_come() -> None:
    m, out = machine(kernel(RACE, module=BOX), check="races", on_hazard="report")
    records = [len(m.hazards)]
    while m.step():
        records.append(len(m.hazards))
    assert records == sorted(records)
    assert set(records) == {0, 1}
    assert [finding.rule.code for finding in m.finish().hazards] == ["PTX0901"]
    assert out.any()


def test_a_right_kernel_steps_through_its_checks() -> None:
    right = RACE.replace("\n//\n", "\nbar.sync 0;\n").replace("%r6", "%r4")
    m, out = machine(kernel(right, module=BOX), check="strict")
    assert m.finish().hazards == []
    assert out.tolist() == [thread ^ 32 for thread in range(64)]


def test_machine_errors_stand_behind_what_may_have_caused_them() -> None:
    m, _ = machine(kernel(RACE + "\nld.global.u32 %r5, [%o+4096];", module=BOX), check="all", on_hazard="report")
    with raises(PtxError) as excinfo:
        m.run()
    assert [finding.code for finding in excinfo.value.diagnostics] == ["PTX0901", "PTX0911", "PTX1110"]


def test_a_machine_says_how_far_it_is() -> None:
    m, _ = machine()
    m.run(until="loop")
    assert repr(m) == "<machine of k: 9 instructions, 2 warps or parts of warps>"
    m.run()
    assert repr(m) == "<machine of k: 24 instructions, done>"


def test_every_lane_has_a_place_from_the_start_to_the_end() -> None:
    m, _ = machine()
    first = TEXT[: TEXT.index("mov.u32 %t")].count("\n") + 1
    assert [(s.warp, s.lanes, s.doing, s.line) for s in m.where()] == [(0, 32, "runs", first), (1, 32, "runs", first)]
    m.finish()
    assert m.where() == []


def test_registers_of_128_bits_are_integers() -> None:
    text = kernel(
        ".reg .b128 %q; cvt.u64.u32 %rd1, %t; mov.b64 %rd2, -1; mov.b128 %q, {%rd1, %rd2};\n"
        "mov.b64 %rd2, 7; mov.b128 %q, {%rd1, %rd2};\nhere: ret;"
    )
    m, _ = machine(text)
    m.run(until="here")
    assert m.registers(thread=33)["%q"] == 33 | 7 << 64
    watched = sim.run(parse(text), block=64, args=[np.zeros(64, np.int32)], watch=["%q"]).watched
    ones = [thread | (2**64 - 1) << 64 for thread in range(64)]
    sevens = [thread | 7 << 64 for thread in range(64)]
    assert [(change.before.tolist(), change.after.tolist()) for change in watched] == [([0] * 64, ones), (ones, sevens)]


def test_a_place_has_the_origin_of_its_instruction() -> None:
    m, _ = machine()
    m.run(until="loop")
    origins = {str(stand.origin) for stand in m.where()}
    assert origins == {f"<ptx>:{LINE['loop:']}:7"}


def test_lanes_that_poll_and_those_at_the_end_have_their_places() -> None:
    body = """setp.ge.u32 %p0, %t, 32;
@%p0 bra there;
poll: ld.relaxed.gpu.global.u32 %r2, [%o];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra poll;
bra done;
there: st.relaxed.gpu.global.u32 [%o+-128], 1;
done:"""
    m, _ = machine(kernel(body).replace("ret;\n}", "}"))
    assert m.step(8)
    polls, end = "CTA 0 warp 0 polls, now at `ld.relaxed.gpu.global.u32` at <ptx>:13:7", "`the end of k` at <ptx>:5:1"
    assert [str(stand) for stand in m.where()] == [
        polls, "CTA 0 warp 1 is at `st.relaxed.gpu.global.u32` at <ptx>:17:8",
    ]  # fmt: skip
    assert m.step()
    assert [str(stand) for stand in m.where()] == [polls, f"CTA 0 warp 1 is at {end}"]
    assert m.step(5)
    assert [str(stand) for stand in m.where()] == [f"CTA 0 warp 0 is at {end}", f"CTA 0 warp 1 exited at {end}"]
