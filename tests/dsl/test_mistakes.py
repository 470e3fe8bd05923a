"""Mistakes of comparable tools, by their number in the interface's list; each is impossible here, or an error at its
line."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyptx
from pyptx import HazardWarning, PtxError, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.emitter import emit
from pyptx.ir.nodes import Function, Instruction
from pyptx.ir.operands import ImmediateOperand
from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.parser import parse
from pyptx.tensormap import Swizzle
from pyptx.types import PtxType, b32, e4m3, e5m2, f32, pred, s8, s32, tf32, u8, u32, u64
from tests.messages import raises

from .tracing import assert_accepted, assert_rejected, code, make_kernel


def test_01_python_if_on_a_register_is_refused() -> None:
    def body() -> None:
        x = reg.scalar(u32, 1)
        if x == 0:  # here  # pyright: ignore[reportGeneralTypeIssues]
            ptx.ret()

    assert_rejected(body, "PTX0803", "ptx.if_")


def test_01_python_while_and_not_on_registers_are_refused() -> None:
    def loop() -> None:
        x = reg.scalar(u32, 1)
        while x < 3:  # here  # pyright: ignore[reportGeneralTypeIssues]
            ptx.ret()

    def negate() -> None:
        p = reg.scalar(pred, 1)
        _ = not ~p  # here

    assert_rejected(loop, "PTX0803")
    assert_rejected(negate, "PTX0803")


def test_02_slices_of_an_allocation_have_addresses_of_their_own() -> None:
    def body() -> None:
        tile, x = smem.alloc(f32, (4, 8), name="tile"), reg.scalar(f32)
        ptx.ld(f32, x, tile[0], space="shared")
        ptx.ld(f32, x, tile[1], space="shared")
        ptx.ld(f32, x, tile[-1], space="shared")

    assert code(body) == [f"ld.shared.f32 %f0, [tile{offset}];" for offset in ("", "+32", "+96")]


def test_02_a_barrier_keeps_its_index_as_a_value_and_as_an_address() -> None:
    def body() -> None:
        bars = smem.mbarrier(4, name="bars")
        ptx.inst.mov.u32(reg.scalar(u32), bars[3])
        ptx.inst.mbarrier.init.shared__cta.b64(bars[2], 1)
        ptx.inst.mbarrier.init.shared__cta.b64(bars[reg.scalar(u32, 1)], 1)

    assert code(body) == [
        "mov.u32 %r0, bars+24;",
        "mbarrier.init.shared::cta.b64 [bars+16], 1;",
        "mov.u32 %r1, 1;",
        "mov.u32 %r2, bars;",
        "mad.lo.u32 %r3, %r1, 8, %r2;",
        "mbarrier.init.shared::cta.b64 [%r3], 1;",
    ]


def test_03_everything_moves_to_dynamic_shared_memory_alike() -> None:
    def body() -> None:
        first, big = smem.alloc(f32, (16,), name="first"), smem.alloc(f32, (128, 128), name="big")
        bars = smem.mbarrier(2, name="bars")
        row = reg.scalar(u32, 3)
        x = big[1, 2]
        big[row, 0] = x
        ptx.st(f32, first[4], x, space="shared")
        ptx.inst.mov.u32(reg.scalar(u32), bars[1])
        ptx.raw("ld.shared.f32 %f0, [big+8];")

    text = make_kernel(body).ptx()
    assert_accepted(text)
    assert ".extern .shared .align 128 .b8 smem[];" in text
    assert not {"first", "big", "bars"} & set(text.replace("[", " ").replace("+", " ").split())
    assert code(body) == [
        "mov.u32 %r0, 3;",
        "ld.shared.f32 %f0, [smem+648];",
        "mov.u32 %r1, smem+128;",
        "mad.lo.u32 %r2, %r0, 512, %r1;",
        "st.shared.f32 [%r2], %f0;",
        "st.shared.f32 [smem+16], %f0;",
        "mov.u32 %r3, smem+65672;",
        "ld.shared.f32 %f0, [smem+136];",
    ]
    assert make_kernel(body).dynamic_smem() == 65680


def test_04_a_tensor_map_is_loaded_in_the_prologue() -> None:
    @kernel(in_specs=(Tile(64, 64, f32),))
    def uses_map(a: TensorSpec) -> None:
        p = reg.scalar(u32, 0) == 0
        with ptx.if_(p):
            first = a.tma_desc()
        with ptx.scope():
            assert a.tma_desc() is first

    text = uses_map.ptx()
    assert_accepted(text)
    lines = [line.strip() for line in text.splitlines()]
    assert lines.index("cvta.param.u64 %rd1, %rd0;") < lines.index("mov.u32 %r0, 0;")
    assert text.count("mov.b64 %rd0, a_tma_desc;") == 1
    assert ".param .align 128 .b8 a_tma_desc[128]" in text


def test_05_raw_text_is_added_once() -> None:
    def body() -> None:
        ptx.raw(".reg .u32 %mine; mov.u32 %mine, 1; add.u32 %mine, %mine, 2;")

    assert code(body) == ["mov.u32 %mine, 1;", "add.u32 %mine, %mine, 2;"]


def test_06_a_condition_evaluated_before_its_loop_is_refused() -> None:
    def body() -> None:
        i = reg.scalar(u32, 0)
        with ptx.loop("top", pred=i < 4):  # here
            ptx.add(u32, i, i, 1)

    assert_rejected(body, "PTX0814", "lambda")


def test_06_a_condition_given_as_a_function_is_evaluated_at_the_end() -> None:
    def body() -> None:
        i = reg.scalar(u32, 0)
        with ptx.loop("top", pred=lambda: i < 4):
            ptx.add(u32, i, i, 1)

    assert code(body) == [
        "mov.u32 %r0, 0;", "top:", "add.u32 %r0, %r0, 1;", "setp.lt.u32 %p0, %r0, 4;", "@%p0 bra top;",
    ]  # fmt: skip


def test_07_counted_loops_count_down_and_to_registers() -> None:
    def body() -> None:
        n = reg.scalar(s32, 10)
        for i in ptx.range_(n, 0, -2):
            ptx.break_(pred=i == 4)
            ptx.continue_()

    assert code(body) == [
        "mov.s32 %r0, 10;", "mov.s32 %r1, %r0;", "$range:", "setp.gt.s32 %p0, %r1, 0;", "@!%p0 bra $range_end;",
        "setp.eq.s32 %p1, %r1, 4;", "@%p1 bra $range_end;", "bra $range_next;", "$range_next:",
        "add.s32 %r1, %r1, -2;", "bra $range;", "$range_end:",
    ]  # fmt: skip


def test_07_one_bound_counts_from_zero() -> None:
    def count(*bounds: int) -> list[str]:
        def body() -> None:
            for i in ptx.range_(*bounds):
                reg.from_(i, u32)

        return code(body)

    assert count(3) == count(0, 3)
    assert count(3) != count(1, 3)
    assert count(3)[0] == "mov.s32 %r0, 0;"


def test_07_python_break_in_a_counted_loop_is_refused() -> None:
    def body() -> None:
        for _ in ptx.range_(0, 8):  # here
            break
        ptx.ret()

    assert_rejected(body, "PTX0812", "ptx.break_()")


def test_08_a_guard_skips_a_whole_wait_loop() -> None:
    from pyptx.ptx.loops import emit_guarded_loop

    def body() -> None:
        p, x = reg.scalar(pred, 1), reg.scalar(u32, 0)
        emit_guarded_loop("wait", p, lambda: x == 0)

    lines = code(body)
    skip = lines.index("@!%p0 bra $wait_skip;")
    assert skip < lines.index("$wait:") < lines.index("@%p1 bra $wait;") < lines.index("$wait_skip:")


def test_09_operators_follow_the_sign_of_the_register() -> None:
    def body() -> None:
        a, b, wide = reg.scalar(s32), reg.scalar(u32), reg.scalar(u64)
        _ = a >> 1, b >> 1, a.max(2), a * 3, a < 0, b < 1, a // 2, a % 2, wide + a, wide + b

    assert [line.split()[0] for line in code(body)] == [
        "shr.s32", "shr.u32", "max.s32", "mul.lo.s32", "setp.lt.s32", "setp.lt.u32", "div.s32", "rem.s32",
        "cvt.s64.s32", "add.u64", "cvt.u64.u32", "add.u64",
    ]  # fmt: skip


def test_10_whether_products_are_added_is_what_was_said() -> None:
    def body() -> None:
        t, d, p = reg.scalar(u32, 0), reg.scalar(u64, 0), reg.scalar(pred, 1)
        for flag in (True, 1, None, False, 0, p, ~p):
            ptx.tcgen05.mma(t, d, d, 7, enable_input_d=flag)

    def repeat() -> None:
        t, d = reg.scalar(u32, 0), reg.scalar(u64, 0)
        ptx.tcgen05.mma(t, d, d, 7, enable_input_d=False, scale_d=1)  # here

    last = [line.split(", ")[-1] for line in code(body, arch="sm_100a") if "mma" in line]
    assert last == ["1;", "1;", "1;", "0;", "0;", "%p0;", "!%p0;"]
    assert_rejected(repeat, "PTX0818", "name the same operand", arch="sm_100a")


def test_11_scopes_keep_labels_and_branches_in_order() -> None:
    @intrinsic
    def count_down(x: Any) -> None:
        ptx.label("again")
        ptx.sub(u32, x, x, 1)
        ptx.bra("again", pred=x != 0)

    def body() -> None:
        count_down(reg.scalar(u32, 3))

    assert code(body) == [
        "mov.u32 %r0, 3;", "again:", "sub.u32 %r0, %r0, 1;", "setp.ne.u32 %p0, %r0, 0;", "@%p0 bra again;",
    ]  # fmt: skip


def test_12_edits_of_a_traced_or_parsed_module_are_in_its_text() -> None:
    def body() -> None:
        reg.scalar(u32, 1)

    for module in (make_kernel(body).module(), parse(make_kernel(body).ptx())):
        (function,) = (item for item in module.directives if isinstance(item, Function))
        (move,) = (s for s in function.body if isinstance(s, Instruction) and s.opcode == "mov")
        edit = replace(move, operands=(move.operands[0], ImmediateOperand("7")))
        edit_of_function = replace(function, body=tuple(edit if s is move else s for s in function.body))
        text = emit(replace(module, directives=(edit_of_function,)))
        assert text == make_kernel(body).ptx().replace("%r0, 1;", "%r0, 7;")


def test_13_text_without_its_semicolon_is_refused() -> None:
    def body() -> None:
        ptx.raw("bar.sync 0")  # here

    assert_rejected(body, "PTX0819", "`;`")


def test_14_a_changed_closure_variable_is_traced_again() -> None:
    step = 1

    @kernel
    def body() -> None:
        reg.scalar(u32, step)

    assert "mov.u32 %r0, 1;" in body.ptx()
    step = 2
    assert "mov.u32 %r0, 2;" in body.ptx()


@dataclass
class Config:
    """Return the constants of a kernel, and a helper that reads them."""

    step: int = 1


class Settings:
    """The same as attributes of a class."""

    STEP: int = 1


def test_14_a_changed_attribute_is_traced_again() -> None:
    table, free, config = np.array([1, 2]), SimpleNamespace(step=1), Config()

    @kernel
    def body(*, config: Config) -> None:
        for value in (config.step, Settings.STEP, free.step, int(table[0])):
            reg.scalar(u32, value)

    def read_constants() -> list[str]:
        return re.findall(r"mov\.u32 %r\d, (\d+);", body.ptx(config=config))

    assert read_constants() == ["1", "1", "1", "1"]
    config.step, Settings.STEP, free.step, table[0] = 2, 3, 4, 5
    assert read_constants() == ["2", "3", "4", "5"]
    assert body.ptx(config=Config(2)) is body.ptx(config=Config(2))
    Settings.STEP = 1


_TWICE = """
from pyptx import kernel, ptx, reg, smem, intrinsic
from pyptx.types import f32, u32
@intrinsic
def part(x, cfg): return x + cfg["step"]
@kernel
def k():
    tile = smem.alloc(f32, (64, 256))
    x = part(reg.scalar(u32, 1, name="x"), {"step": 3})
    acc = reg.array(f32, 4, name="acc")
    with ptx.if_((x == 1) | (x > 7)):
        acc[0] = tile[x, 3]
    with ptx.else_():
        ptx.kloop(x, unroll=2, body=lambda: ptx.add(u32, x, x, 1))
print(k.ptx())
"""


def test_14_two_processes_and_two_traces_write_the_same_bytes() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", _TWICE],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 500


@kernel(in_specs=(Tile("n", f32),), out_specs=(Tile("n", b32),), grid=(1,))
def do_nothing(x: TensorSpec, y: TensorSpec) -> None:
    """Write nothing."""


def test_15_wrong_arrays_are_named_before_anything_runs() -> None:
    good = np.zeros(4, np.float32)
    for wrong, words in (
        (np.zeros(4), "expected dtype float32"), (np.zeros((2, 2), np.float32), "expected 1 dimension"),
        (np.zeros(8, np.float32)[::2], "expected a contiguous row-major array"), ([0.0], "expected an array"),
    ):  # fmt: skip
        with raises(PtxError, match=f"PTX1001.*`x`: {words}"):
            do_nothing(wrong)
    with raises(PtxError, match=r"`y`: .*\bn\b"):
        do_nothing(good, out=np.zeros(5, np.uint32))


def test_16_outputs_of_bits_are_integers() -> None:
    with pytest.warns(HazardWarning, match="`y`: all 4"):
        assert do_nothing(np.zeros(4, np.float32)).dtype == np.uint32


def test_17_each_launch_has_tensor_maps_of_its_own() -> None:
    """The map is passed by value: the text contains no address, and nothing is patched between two launches."""

    @kernel(in_specs=(Tile("m", 64, f32, tma_box=(16, 16)),))
    def uses_map(a: TensorSpec) -> None:
        a.tma_desc()

    assert uses_map.ptx(m=64) == uses_map.ptx(m=128)
    assert ".param .align 128 .b8 a_tma_desc[128]" in uses_map.ptx(m=64)


def test_18_arrays_and_kernels_are_freed() -> None:
    @kernel(in_specs=(Tile("n", f32),), grid=(1,))
    def body(x: TensorSpec) -> None:
        reg.scalar(u32, x.shape[0])

    class CountingArray(np.ndarray[Any, Any]):
        """An array that supports weak references."""

    array = np.zeros(4, np.float32).view(CountingArray)
    body(array)
    references: list[weakref.ref[Any]] = [weakref.ref(array), weakref.ref(body)]
    del array, body
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_19_addresses_take_offsets_of_either_sign_and_registers() -> None:
    def body() -> None:
        base, i, x = reg.scalar(u64, 64), reg.scalar(s32, -1), reg.scalar(u32)
        ptx.ld(u32, x, ptx.addr(base, -4))
        ptx.ld(u32, x, ptx.addr(base, 8))
        ptx.ld(u32, x, ptx.addr(base, i))

    assert code(body)[2:] == [
        "ld.global.u32 %r1, [%rd0+-4];", "ld.global.u32 %r1, [%rd0+8];", "cvt.s64.s32 %rd1, %r0;",
        "add.u64 %rd2, %rd0, %rd1;", "ld.global.u32 %r1, [%rd2];",
    ]  # fmt: skip


def test_20_labels_never_meet() -> None:
    def body() -> None:
        n = reg.scalar(u32, 5)
        for _ in range(2):
            ptx.kloop(n, unroll=4, body=lambda: None)
        with ptx.if_(n == 0):
            with ptx.if_(n == 1):
                ptx.inst.bar.sync(0)
            with ptx.else_():
                ptx.inst.bar.sync(1)
        with ptx.else_(), ptx.if_(n == 2):
            ptx.inst.bar.sync(2)
        for _ in range(2):
            with ptx.loop("top", pred=lambda: n == 9):
                ptx.bra("top", pred=n == 3)

    labels = [line for line in code(body) if line.endswith(":")]
    assert len(labels) == len(set(labels)) == 15


DESCRIBED = [(tf32, 4, "sm_90a"), (e4m3, 1, "sm_90a"), (e5m2, 1, "sm_90a"), (s8, 1, "sm_90a"), (u8, 1, "sm_90a")]


@pytest.mark.parametrize(("dtype", "size", "arch"), DESCRIBED, ids=[str(row[0]) for row in DESCRIBED])
def test_21_descriptors_exist_for_every_type(dtype: PtxType, size: int, arch: str) -> None:
    """The strides of the descriptor are those of 128-byte rows, eight by eight."""

    def body() -> None:
        k, accumulator = 32 // size, s32 if dtype.kind in "us" else f32
        a, b = (smem.wgmma_tile(dtype, (64, 128 // size), name=name) for name in "ab")
        d = reg.array(accumulator, 32)
        ptx.wgmma.mma_async(shape=(64, 64, k), dtype_d=accumulator, dtype_a=dtype, dtype_b=dtype, d=d, a=a, b=b)
        fragment = reg.array(b32, 4)
        ptx.wgmma.mma_async(shape=(64, 64, k), dtype_d=accumulator, dtype_a=dtype, dtype_b=dtype, d=d, a=fragment, b=b)

    constants = {int(line.split()[-1].rstrip(";"), 0) for line in code(body, arch=arch) if line.startswith("or.b64")}
    (bits,) = constants
    descriptor = WgmmaDescriptor.decode(bits)
    assert (descriptor.stride_byte_offset, descriptor.swizzle) == (1024, Swizzle.B128)


def test_21_block_scaled_products_take_their_factors() -> None:
    def body() -> None:
        t, d = reg.scalar(u32, 0), reg.scalar(u64, 0)
        ptx.tcgen05.mma(t, d, d, 7, kind="mxf8f6f4", scale_a=t, scale_b=t, scale_vec=1)
        ptx.tcgen05.mma(t, d, d, 7, kind="mxf4nvf4", scale_a=t, scale_b=t, scale_vec=4)

    lines = [line for line in code(body, arch="sm_100a") if "mma" in line]
    assert [".scale_vec::1X" in lines[0], ".scale_vec::4X" in lines[1]] == [True, True]
    assert all("[%r0], [%r0], 1;" in line for line in lines)


def test_22_text_of_the_user_never_becomes_code() -> None:
    """Names, arguments and source paths of helpers appear in comments and strings of the PTX."""
    namespace: dict[str, Any] = {"ptx": ptx, "intrinsic": intrinsic, "reg": reg, "u32": u32}
    exec(compile("@intrinsic\ndef part(x, text):\n    ptx.add(u32, x, x, 1)\n", 'a"\n.evil\\ä.py', "exec"), namespace)

    def body() -> None:
        namespace["part"](reg.scalar(u32, 1), "*/\n.global .u32 evil;\r\u2028// \x00é")

    text = make_kernel(body).ptx(lineinfo=True, annotate=True)
    assert_accepted(text)
    assert not [line for line in text.splitlines() if line.strip().startswith((".global", ".evil"))]
    assert text.isascii()
    assert len(parse(text).directives) == len(parse(make_kernel(body).ptx()).directives) + 3


def test_24_tracing_is_linear() -> None:
    """Twenty times as many statements take less than forty times as long."""
    import time

    def seconds(count: int) -> float:
        def body() -> None:
            x = reg.scalar(u32, 0)
            for _ in range(count):
                ptx.inst.add.u32(x, x, 1)

        kernel_object = make_kernel(body)
        start = time.process_time()
        kernel_object.ptx()
        return time.process_time() - start

    seconds(1000)
    assert seconds(20_000) < 40 * max(seconds(1000), 0.002)


def test_25_nothing_is_written_into_the_package(tmp_path: Path) -> None:
    """A process without write access to the package traces, assembles and runs a kernel; it writes only its cache."""
    package = Path(pyptx.__file__).parent
    before = {path for path in package.rglob("*") if "__pycache__" not in path.parts}
    program = "from tests.dsl.test_mistakes import do_nothing; import numpy as np; " \
              "do_nothing(np.zeros(4, np.float32)); print(len(do_nothing.cubin(n=4).data) > 0)"  # fmt: skip
    environment = {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert process.stdout == "True\n", process.stderr
    assert {path for path in package.rglob("*") if "__pycache__" not in path.parts} == before
    assert {path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*") if path.is_file()} == {
        (".cache", "pyptx")
    }


def test_26_the_version_is_the_lowest_that_works() -> None:
    def plain() -> None:
        ptx.inst.bar.sync(0)

    def newer() -> None:
        ptx.elect_sync(reg.scalar(u32), reg.scalar(pred), -1)

    assert make_kernel(plain, arch="sm_75").ptx().startswith(".version 6.3\n")
    assert make_kernel(plain, arch="sm_90a").ptx().startswith(".version 8.0\n")
    assert make_kernel(plain, arch="sm_121f").ptx().startswith(".version 8.8\n")
    assert make_kernel(newer, arch="sm_90").ptx().startswith(".version 8.0\n")
    with raises(PtxError, match=r"sm_90a needs PTX 8\.0"):
        make_kernel(plain, version=(7, 8))


def test_26_a_version_too_low_names_the_instruction() -> None:
    def body() -> None:
        ptx.elect_sync(reg.scalar(u32), reg.scalar(pred), -1)  # here

    assert_rejected(body, "PTX0301", "elect.sync", "version=(7, 8)", arch="sm_90", version=(7, 8))
