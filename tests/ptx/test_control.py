"""Structured control flow, scopes, pipelines, barriers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyptx import PtxError, Tile, kernel, ptx, reg, smem
from pyptx.types import f32, pred, s32, s64, u32, u64
from tests.dsl.tracing import assert_accepted, assert_rejected, code, make_kernel


def test_elif_evaluates_its_condition_only_where_the_others_failed() -> None:
    def body() -> None:
        x = reg.scalar(u32)
        with ptx.if_(x == 1):
            ptx.inst.bar.sync(1)
        with ptx.elif_(
            x + 1 == 2,
        ):
            ptx.inst.bar.sync(2)
        with ptx.elif_(lambda: x == 3):  # pyright: ignore[reportArgumentType]
            ptx.inst.bar.sync(3)
        with ptx.else_():
            ptx.inst.bar.sync(4)

    assert code(body) == [
        "setp.eq.u32 %p0, %r0, 1;", "@!%p0 bra $if1_else;", "bar.sync 1;", "bra $if1_end;",
        "$if1_else:", "add.u32 %r1, %r0, 1;", "setp.eq.u32 %p1, %r1, 2;", "@!%p1 bra $if1_else2;", "bar.sync 2;",
        "bra $if1_end;",
        "$if1_else2:", "setp.eq.u32 %p2, %r0, 3;", "@!%p2 bra $if1_else3;", "bar.sync 3;", "bra $if1_end;",
        "$if1_else3:", "bar.sync 4;", "$if1_end:",
    ]  # fmt: skip


def test_if_elif_without_else_ends_properly() -> None:
    def body() -> None:
        p, q = reg.scalar(pred), reg.scalar(pred)
        with ptx.if_(p):
            ptx.inst.bar.sync(1)
        with ptx.elif_(~q):
            ptx.inst.bar.sync(2)
        ptx.inst.bar.sync(3)

    assert code(body) == [
        "@!%p0 bra $if1_else;", "bar.sync 1;", "bra $if1_end;", "$if1_else:", "@%p1 bra $if1_else2;", "bar.sync 2;",
        "$if1_else2:", "$if1_end:", "bar.sync 3;",
    ]  # fmt: skip


def test_while_tests_before_each_round() -> None:
    def body() -> None:
        i = reg.scalar(u32, 0)
        with ptx.while_(lambda: i < 4):
            ptx.add(u32, i, i, 1)
            ptx.continue_(pred=i == 2)
            ptx.break_()

    assert code(body) == [
        "mov.u32 %r0, 0;", "$while:", "setp.lt.u32 %p0, %r0, 4;", "@!%p0 bra $while_end;", "add.u32 %r0, %r0, 1;",
        "setp.eq.u32 %p1, %r0, 2;", "@%p1 bra $while_next;", "bra $while_end;", "$while_next:", "bra $while;",
        "$while_end:",
    ]  # fmt: skip


def test_range_is_typed_by_its_operands() -> None:
    @kernel
    def body() -> None:
        a, b, c = reg.scalar(u32, 3), reg.scalar(s32, 3), reg.scalar(s64, 3)
        kinds = [next(iter([i.dtype for i in loop])) for loop in (
            ptx.range_(4), ptx.range_(0, a), ptx.range_(b, 10), ptx.range_(b, c), ptx.range_(0, 1 << 40),
        )]  # fmt: skip
        assert kinds == [s32, u32, s32, s64, s64]

    text = body.ptx()
    assert_accepted(text)
    assert "cvt.s64.s32" in text


def test_a_range_of_one_bound_starts_at_0() -> None:
    def count(*bounds: int) -> list[str]:
        def body() -> None:
            for i in ptx.range_(*bounds):
                ptx.add(s32, i, i, 0)

        return code(body)

    assert count(3) == count(0, 3, 1)


def test_a_register_step_and_nested_loops() -> None:
    def body() -> None:
        n, step = reg.scalar(u32, 8), reg.scalar(u32, 2)
        for i in ptx.range_(0, n, step):
            for _ in ptx.range_(i, n):
                ptx.continue_()
            ptx.break_()

    lines = code(body)
    assert "add.u32 %r2, %r2, %r1;" in lines
    assert [line for line in lines if line.endswith(":")] == [
        "$range:", "$range_1:", "$range_1_next:", "$range_1_end:", "$range_end:",
    ]  # fmt: skip


def test_kloop_unrolls_numbers_and_loops_over_registers() -> None:
    def body() -> None:
        ptx.kloop(3, unroll=2, body=lambda: ptx.inst.bar.sync(0))
        n = reg.scalar(u32, 7)
        ptx.kloop(n, unroll=4, body=lambda: ptx.inst.bar.sync(1), loop_label="k")

    assert code(body) == [
        "bar.sync 0;", "bar.sync 0;", "bar.sync 0;", "mov.u32 %r0, 7;", "mov.u32 %r1, %r0;",
        "k:", "setp.ge.u32 %p0, %r1, 4;", "@!%p0 bra k_end;", *["bar.sync 1;"] * 4, "sub.u32 %r1, %r1, 4;", "bra k;",
        "k_end:",
        "k_tail:", "setp.ge.u32 %p1, %r1, 1;", "@!%p1 bra k_tail_end;", "bar.sync 1;", "sub.u32 %r1, %r1, 1;",
        "bra k_tail;", "k_tail_end:",
    ]  # fmt: skip


def test_labels_of_loops_avoid_other_names() -> None:
    def body() -> None:
        smem.alloc(u32, 4, name="top")
        for _ in range(3):
            with ptx.loop("top"):
                ptx.inst.exit()

    statements = code(body)
    assert [line for line in statements if line.endswith(":")] == ["top_1:", "top_2:", "top_3:"]
    assert [line for line in statements if line.startswith("bra")] == ["bra top_1;", "bra top_2;", "bra top_3;"]


def test_a_predicate_set_in_the_body_repeats_the_loop() -> None:
    def body() -> None:
        i, repeats = reg.scalar(u32, 0), reg.scalar(pred)
        with ptx.loop("top", pred=repeats), ptx.scope():
            ptx.setp("lt", u32, repeats, i, 3)

    assert code(body)[-1] == "@%p0 bra top;"


def test_scopes_declare_their_own_registers() -> None:
    def body() -> None:
        with ptx.scope():
            reg.scalar(f32, 1.0)
            reg.array(u32, 2, name="mine")
            with ptx.scope():
                reg.scalar(u32, 1, name="inner")
        reg.scalar(u32, 2)

    text = make_kernel(body).ptx()
    assert_accepted(text)
    assert "\t\t.reg .f32 %s1_f<1>;\n\t\t.reg .b32 %mine<2>;\n" in text
    assert "\t\t\t.reg .b32 %inner;\n" in text


def test_expr_groups_and_reorders_nothing() -> None:
    def body() -> None:
        with ptx.expr():
            x = reg.scalar(u32, 1) + 2
        _ = x * 3

    text = make_kernel(body).ptx()
    assert text.index("BEGIN expr") < text.index("add.u32") < text.index("END expr") < text.index("mul.lo")


def test_control_flow_inside_an_expression_is_refused_however_it_came() -> None:
    def left() -> None:
        with ptx.expr():
            ptx.ret()  # here

    def in_a_block() -> None:
        with ptx.expr(), ptx.scope():
            ptx.inst.exit()  # here

    def as_text() -> None:
        with ptx.expr():
            reg.scalar(u32, 1)
            ptx.raw("bra after; after:")  # here

    for body in (left, in_a_block, as_text):
        assert_rejected(body, "PTX0810", "ptx.expr")

    def loop_in_expression() -> None:
        with ptx.expr(), ptx.loop("again"):  # here
            ptx.ret()

    assert_rejected(loop_in_expression, "PTX0810", "`ptx.loop` inside")


def test_a_pipeline_returns_where_it_stood_and_moves_on() -> None:
    def body() -> None:
        state = ptx.pipeline(3)
        stage, phase = state.advance()
        assert stage is not state.stage
        assert phase is not state.phase
        ptx.st(u32, ptx.addr(reg.scalar(u64)), stage + phase)

    assert code(body) == [
        "mov.u32 %r0, 0;", "mov.u32 %r1, 0;", "mov.u32 %r2, %r0;", "mov.u32 %r3, %r1;", "setp.eq.u32 %p0, %r0, 2;",
        "selp.b32 %r4, -1, %r0, %p0;", "xor.b32 %r5, %r1, 1;", "selp.b32 %r1, %r5, %r1, %p0;", "add.u32 %r0, %r4, 1;",
        "add.u32 %r6, %r2, %r3;", "st.global.u32 [%rd0], %r6;",
    ]  # fmt: skip


def test_a_ring_counts_its_stages_from_the_top_of_a_loop_and_at_its_end() -> None:
    @kernel(out_specs=[Tile(7, u32)], grid=(1,))
    def stages(y: Any, *, top: bool) -> None:
        (py,) = ptx.global_ptrs(y)
        ring = ptx.pipeline(3)
        for i in ptx.range_(0, 7):
            stage, phase = ring.advance() if top else (ring.stage, ring.phase)
            ptx.st(u32, ptx.addr(py, i * 4), phase * 10 + stage)
            if not top:
                ring.advance()

    for top in (True, False):
        assert list(stages(top=top)) == [0, 1, 2, 10, 11, 12, 0]


def test_small_statements() -> None:
    def body() -> None:
        ptx.file_(7, "a.cu")
        ptx.loc(7, 12, 3)
        ptx.pragma("nounroll")
        ptx.label("end")
        ptx.named_barrier(1, count=64).sync()
        ptx.named_barrier(2).sync(pred=reg.scalar(pred, 1))
        ptx.bra("end", pred=reg.scalar(pred, 1))
        ptx.ret()

    assert '.file 7 "a.cu"' in make_kernel(body).ptx()
    assert code(body) == [
        ".loc 7 12 3", '.pragma "nounroll";', "end:", "bar.sync 1, 64;", "mov.pred %p0, 1;", "@%p0 bar.sync 2;",
        "mov.pred %p1, 1;", "@%p1 bra end;",
    ]  # fmt: skip


def test_raw_text_has_blocks_labels_and_is_checked_for_its_target() -> None:
    def body() -> None:
        x = reg.scalar(u64, 8, name="x")
        ptx.raw(
            """
            { .reg .u32 %t; // a comment
              ld.global.u32 %t, [%x+4];
              bra.uni inside;
              inside:
            }
            again: setp.eq.u64 %p9, %x, 0;
            @%p9 bra again;
        """.replace("setp", ".reg .pred %p9; setp")
        )
        ptx.bra("again", pred=x == 0)

    assert code(body)[1:] == [
        "{", "ld.global.u32 %t, [%x+4];", "bra.uni inside;", "inside:", "}", "again:", "setp.eq.u64 %p9, %x, 0;",
        "@%p9 bra again;", "setp.eq.u64 %g_p0, %x, 0;", "@%g_p0 bra again;",
    ]  # fmt: skip


def test_labels_and_registers_of_a_raw_block_are_its_own() -> None:
    def body() -> None:
        for _ in range(2):
            ptx.raw(
                "{ .reg .u32 t; top: mov.u32 t, 1; { .reg .u32 t; bra below; below: mov.u32 t, 2; } bra end; end: }"
            )
        ptx.label("top")
        ptx.label("below")

    assert code(body).count("top:") == 3
    assert code(body).count("below:") == 3


def test_a_count_that_is_known_is_tested_at_the_end_only() -> None:
    def body() -> None:
        for i in ptx.range_(0, 8, 3):
            ptx.continue_(pred=i == 3)
        for _ in ptx.range_(8, 0, -1):
            pass

    assert code(body) == [
        "mov.s32 %r0, 0;", "$range:", "setp.eq.s32 %p0, %r0, 3;", "@%p0 bra $range_next;", "$range_next:",
        "add.s32 %r0, %r0, 3;", "setp.lt.s32 %p1, %r0, 8;", "@%p1 bra $range;", "mov.s32 %r1, 8;", "$range_1:",
        "add.s32 %r1, %r1, -1;", "setp.gt.s32 %p2, %r1, 0;", "@%p2 bra $range_1;",
    ]  # fmt: skip


def test_a_count_of_nothing_is_tested_first() -> None:
    def body() -> None:
        for _ in ptx.range_(4, 4):
            ptx.bar.sync(0)

    lines = code(body)
    assert lines.index("@!%p0 bra $range_end;") < lines.index("bar.sync 0;")


def test_a_counted_loop_is_no_list() -> None:
    def collect() -> None:
        list(ptx.range_(3))  # here

    def unpack() -> None:
        print(*ptx.range_(3))  # here  # noqa: T201

    def iterate() -> None:
        def yield_indices() -> Iterator[Any]:
            yield from ptx.range_(3)

        for index, i in enumerate(ptx.range_(3)):
            ptx.bar.sync(i + index)
        for i, _ in zip(ptx.range_(3), [0], strict=False):
            ptx.bar.sync(i)
        for i in yield_indices():
            ptx.bar.sync(i)

    def sum_range() -> None:
        sum(ptx.range_(3))  # here

    def empty() -> None:
        def yield_indices() -> Iterator[Any]:
            yield from ptx.range_(3)

        for _ in ptx.range_(3):
            pass
        for _ in zip(ptx.range_(3), range(9), strict=False):
            pass
        for _ in yield_indices():
            pass

    for wrong in (collect, unpack, sum_range):
        assert_rejected(wrong, "PTX0810", "for i in ptx.range_")
    assert sum(line.startswith("bra") for line in code(empty)) == 0
    assert sum(line.startswith("@%p") for line in code(empty)) == 3
    assert sum(line.startswith("bar.sync") for line in code(iterate)) == 3


def test_a_counted_loop_that_python_leaves_inside_a_block_is_what_is_reported() -> None:
    def body() -> None:
        with ptx.if_(reg.scalar(pred, 1)):
            for _ in ptx.range_(8):  # here
                break

    assert_rejected(body, "PTX0812", "`ptx.range_` ended tracing")


def test_a_counted_loop_that_failed_is_no_loop_to_break() -> None:
    def exception() -> None:
        with suppress(KeyError), ptx.if_(reg.scalar(pred, 1)):
            for _ in ptx.range_(8):
                raise KeyError
        ptx.break_()  # here

    def misuse() -> None:
        with suppress(PtxError):
            list(ptx.range_(8))
        ptx.break_()  # here

    for body in (exception, misuse):
        assert_rejected(body, "PTX0810", "`ptx.break_()` outside a loop")


def test_a_counted_loop_may_be_passed_to_a_function_that_writes_its_body() -> None:
    def body() -> None:
        list(map(lambda _: ptx.bar.sync(0), ptx.range_(3)))  # noqa: C417

    assert code(body) == [
        "mov.s32 %r0, 0;", "$range:", "bar.sync 0;", "add.s32 %r0, %r0, 1;", "setp.lt.s32 %p0, %r0, 3;",
        "@%p0 bra $range;",
    ]  # fmt: skip


def test_a_counted_loop_that_failed_leaves_only_its_counter() -> None:
    def body() -> None:
        with suppress(PtxError):
            list(ptx.range_(8))
        with ptx.if_(reg.scalar(pred)):
            ptx.bar.sync(0)

    assert code(body) == ["mov.s32 %r0, 0;", "@!%p0 bra $if1_else;", "bar.sync 0;", "$if1_else:"]


def test_a_pragma_brings_the_version_that_it_needs() -> None:
    def body() -> None:
        ptx.pragma("used_bytes_mask 0xff")

    text = make_kernel(body, arch="sm_80").ptx()
    assert text.startswith(".version 8.3\n")
    assert_accepted(text)


def test_a_counter_has_room_for_its_last_step() -> None:
    def body() -> None:
        for _ in ptx.range_(0, (1 << 31) - 1, 1 << 30):
            ptx.bar.sync(0)
        for _ in ptx.range_(0, (1 << 31) - 1, (1 << 31) - 1):
            ptx.bar.sync(0)

    kinds = [line.split()[0] for line in code(body) if line.startswith("mov")]
    assert kinds == ["mov.s64", "mov.s32"]
