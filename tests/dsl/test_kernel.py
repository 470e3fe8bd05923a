"""`@kernel`: parameters, directives, memory, what is no kernel, the tools behind the methods."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest

from pyptx import PtxError, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.dsl.tensors import TmaDescriptorHandle
from pyptx.toolchain import occupancy
from pyptx.types import b32, bf16, f32, u32, u64
from tests.messages import raises

from .tracing import assert_accepted, assert_rejected, code, make_kernel


def test_a_shape_unpacks_compares_and_slices() -> None:
    @kernel(in_specs=(Tile("M", 4, f32),))
    def body(a: TensorSpec) -> None:
        m, n = a.shape
        assert (m, n) == (8, 4) == a.shape
        assert a.shape[-1:] == (4,)
        assert (a.name, a.rank, a.dtype) == ("a", 2, f32)

    body.ptx(M=8)


settings = ModuleType("settings")


def test_parameters_stand_in_order() -> None:
    @kernel(in_specs=(Tile(64, 64, bf16),), out_specs=(Tile(64, f32),), raw_params=[("u32", "n"), ("b8[64]", "config")])
    def body(a: TensorSpec, out: TensorSpec) -> None:
        desc = a.tma_desc()
        (pointer,) = ptx.global_ptrs(out)
        n, _ = ptx.param(u32, "n"), ptx.param(u64, "config")
        ptx.st(u32, ptx.addr(pointer, 4), n)
        ptx.inst.prefetch.tensormap(ptx.addr(desc))

    text = body.ptx()
    assert_accepted(text)
    params = re.findall(r"\.param .* (\S+?)(?:\[\d+\])?,?\n", text[: text.index("{")])
    assert params == ["a", "out", "n", "config", "a_tma_desc"]
    assert ".param .u64 .ptr .global .align 16 a," in text
    assert "mov.u64 %rd3, config;" in text


@pytest.mark.parametrize(
    ("declared", "code_or_text"),
    [("surfref", "suq.width.b32 %r0, [image];"), ("texref", "PTX0203"), ("u64", "PTX0205"), ("b8[64]", "PTX0205")],
)
def test_a_parameter_may_be_a_surface(declared: str, code_or_text: str) -> None:
    def body() -> None:
        ptx.inst.suq.width.b32(reg.scalar(b32), ptx.addr("image"))

    if declared == "surfref":
        assert code(body, raw_params=[(declared, "image")]) == [code_or_text]
    else:
        with raises(PtxError, match=code_or_text):
            make_kernel(body, raw_params=[(declared, "image")]).ptx()


def test_every_argument_that_is_a_type_takes_its_name() -> None:
    @kernel(out_specs=[Tile("n", "f32")], raw_params=[(u32, "count")])
    def body(y: TensorSpec) -> None:
        @ptx.func(params=("f32",), returns=("f32",))
        def double(x: Any) -> Any:
            return x + x

        tile = smem.alloc("f32", 4)
        smem.store("f32", tile, double(reg.scalar("f32", 1)))
        smem.store("s32", tile, ptx.param("u32", "count").view("s32") >> 1)
        ptx.st("f32", ptx.global_ptrs(y)[0], smem.load("f32", tile))

    assert_accepted(body.ptx(n=4))


def test_setmaxnreg_gets_the_register_count_that_it_needs() -> None:
    def body() -> None:
        ptx.setmaxnreg(240)

    assert ".maxntid 384, 1, 1\n.minnctapersm 1\n" in make_kernel(body, block=(384, 1, 1)).ptx()
    limit = make_kernel(body, block=(384, 1, 1), raw_directives=[("maxnreg", (168,))]).ptx()
    assert ".maxnreg 168" in limit
    assert "minnctapersm" not in limit
    requirement = make_kernel(body, reqntid=(384,)).ptx()
    assert ".reqntid 384\n.minnctapersm 1" in requirement
    with raises(PtxError, match="maxnreg"):
        make_kernel(body).ptx()
    cubin = make_kernel(body, block=(384, 1, 1)).cubin()
    assert not [d for d in cubin.diagnostics if "setmaxnreg" in d.message]


def test_a_cluster_and_dynamic_memory_of_ones_own() -> None:
    def body() -> None:
        tile = smem.alloc(f32, (8, 8))
        assert tile.byte_offset == 1024
        base = smem.base()
        ptx.st(f32, tile[1], reg.scalar(f32, 1), space="shared")
        ptx.st(u32, ptx.addr(base), reg.scalar(u32), space="shared")

    kernel_object = make_kernel(body, cluster=(2, 1, 1), smem=1000, extern_smem="dynamic")
    text = kernel_object.ptx()
    assert_accepted(text)
    assert ".reqnctapercluster 2, 1, 1" in text
    assert ".extern .shared .align 128 .b8 dynamic[];" in text
    assert "st.shared.f32 [dynamic+1056], %f0;" in text
    assert kernel_object.dynamic_smem() == 1024 + 256


def test_what_the_table_does_not_know_is_emitted_on_request_and_reported() -> None:
    def body() -> None:
        ptx.inst["fresh.op.u32"](reg.scalar(u32), [reg.scalar(u32), None], ptx.addr("x"), 1, 1.5, unchecked=True)

    kernel_object = make_kernel(body)
    assert "fresh.op.u32 %r0, {%r1, _}, [x], 1, 0f3FC00000;" in kernel_object.ptx()
    (finding,) = (d for d in kernel_object.check() if d.code == "PTX0101")
    assert finding.severity == "warning"


def test_check_is_clean_and_finds_what_only_a_whole_kernel_shows() -> None:
    def fine() -> None:
        x = reg.scalar(u32, 1)
        ptx.st(u32, ptx.addr(reg.scalar(u64, 64)), x)

    def unset() -> None:
        ptx.st(u32, ptx.addr(reg.scalar(u64, 64)), reg.scalar(u32))

    assert make_kernel(fine).check() == []
    findings = make_kernel(unset).check()
    assert [d.origin.file for d in findings if d.origin] == [__file__]


def test_resources_and_sass_come_from_the_cubin() -> None:
    def body() -> None:
        ptx.st(u32, ptx.addr(reg.scalar(u64, 64)), reg.scalar(u32, 7))

    kernel_object = make_kernel(body)
    assert kernel_object.resources().registers > 0
    assert "EXIT" in kernel_object.sass()


def test_intrinsics_nest_and_keep_their_values() -> None:
    @intrinsic
    def inner(x: reg.Reg, by: int) -> reg.Reg:
        return x + by

    @intrinsic
    def outer(x: reg.Reg, *, options: list[int]) -> reg.Reg:
        return inner(x, options[0])

    def body() -> None:
        assert outer(reg.scalar(u32, 1), options=[2]).name == "%r1"

    text = make_kernel(body).ptx()
    assert_accepted(text)
    marks = [line.strip() for line in text.splitlines() if "//" in line]
    assert marks == ["// BEGIN outer(%r0, options=[2])", "// BEGIN inner(%r0, 2)", "// END inner", "// END outer"]
    assert inner.__name__ == "inner"


def test_an_intrinsic_is_transparent_outside_a_kernel() -> None:
    @intrinsic
    def plus(a: int, b: int) -> int:
        return a + b

    assert plus(1, 2) == 3


def test_one_kernel_may_trace_another() -> None:
    @kernel
    def first() -> None:
        reg.scalar(u32, 1)

    def body() -> None:
        reg.scalar(u32, len(first.ptx()) and 2)

    assert code(body) == ["mov.u32 %r0, 2;"]


def test_the_text_is_ascii_whatever_the_python_is() -> None:
    @intrinsic
    def größe(x: reg.Reg, text: str) -> reg.Reg:
        return x + 1  # Straße

    def body() -> None:
        größe(reg.scalar(u32, 1), "naïve ∑ " * 9)

    for options in ({}, {"annotate": True}, {"lineinfo": True}):
        text = make_kernel(body).ptx(**options)
        assert text.isascii()
        assert_accepted(text)
    with raises(PtxError, match="PTX0815"):
        code(allocate)


def allocate() -> None:
    smem.alloc(f32, 4, name="größe")


def test_dynamic_memory_lies_behind_what_the_user_addresses() -> None:
    def body() -> None:
        base = smem.base()
        smem.store(u32, base, 1)
        tile = smem.alloc(f32, (128, 128))
        smem.store(f32, tile[1], 2.0)

    kernel_object = make_kernel(body, smem=100)
    assert "st.shared.f32 [smem+640], 0f40000000;" in code(body, smem=100)
    assert kernel_object.dynamic_smem() == 128 + 65536


def test_declared_bytes_hold_the_allocations_when_nobody_addresses_them() -> None:
    def body() -> None:
        smem.store(f32, smem.alloc(f32, (128, 128))[1], 2.0)

    assert "st.shared.f32 [smem+512], 0f40000000;" in code(body, smem=70000)
    assert make_kernel(body, smem=70000).dynamic_smem() == 70000
    assert make_kernel(body, smem=100).dynamic_smem() == 65536


def test_the_dynamic_symbol_gives_way_to_names_of_the_kernel() -> None:
    @kernel(in_specs=(Tile(4, f32),))
    def body(smem_1: TensorSpec) -> None:
        (pointer,) = ptx.global_ptrs(smem_1)
        tile = smem.alloc(f32, (128, 128), name="smem")
        ptx.st(f32, pointer, tile[1, 0])

    text = body.ptx()
    assert_accepted(text)
    assert ".extern .shared .align 128 .b8 smem_2[];" in text
    assert "[smem_2+512]" in text


def test_a_special_register_needs_its_version() -> None:
    def body() -> None:
        ptx.sreg("%aggr_smem_size")  # here

    found = assert_rejected(body, "PTX0301", arch="sm_90", version=(8, 0))
    assert found.message == "`%aggr_smem_size` needs PTX 8.1 on sm_90, but the kernel requests version=(8, 0)"
    assert found.help == "write version=(8, 1) or omit it"
    assert make_kernel(body, arch="sm_90").ptx().startswith(".version 8.1\n")
    assert make_kernel(body, arch="sm_90", version=(8, 1)).ptx().startswith(".version 8.1\n")


def test_a_map_outside_a_kernel_is_its_name() -> None:
    kept: list[Any] = []

    @kernel(in_specs=(Tile("N", 8, f32),))
    def body(x: Any) -> None:
        kept.append(x)
        assert len({x.shape, (4, 8)}) == 1
        ptx.inst.mov.u64(reg.scalar(u64), x)

    assert "mov.u64 %rd0, x;" in body.ptx(N=4)
    handle = kept[0].tma_desc()
    assert (repr(handle), handle.name) == ("TmaDescriptorHandle(TensorSpec('x', f32, (N, 8)))", "x_tma_desc")
    assert handle.tensor is kept[0]
    assert isinstance(handle, TmaDescriptorHandle)


def test_clusters_need_their_target() -> None:
    def body() -> None: ...

    with raises(PtxError, match="sm_90 or newer"):
        make_kernel(body, arch="sm_80", cluster=(2, 1, 1)).ptx()


def test_text_may_declare_the_names_that_registers_would_get() -> None:
    def first() -> None:
        ptx.raw(".reg .b32 %r<3>; .reg .pred %p<2>; mov.u32 %r1, 5;")
        _ = reg.scalar(u32, 1) == 2

    def late() -> None:
        reg.scalar(u32, 1)
        ptx.raw(".reg .b32 %r<3>; mov.u32 %r1, 5;")

    assert code(first) == ["mov.u32 %r1, 5;", "mov.u32 %g_r0, 1;", "setp.eq.u32 %g_p0, %g_r0, 2;"]
    with raises(PtxError, match="block"):
        make_kernel(late).ptx()


def test_the_same_function_for_another_target() -> None:
    @kernel(arch="sm_80", block=(64, 1, 1), in_specs=(Tile("N", f32),))
    def body(x: TensorSpec, *, scale: int = 3) -> None:
        ptx.bar.sync(0)
        reg.scalar(u32, scale * x.shape[0])

    newer = body.for_arch("sm_120a")
    assert (newer.arch, newer.block, newer.in_specs, newer.template_params) == (
        "sm_120a", body.block, body.in_specs, {"scale": 3},
    )  # fmt: skip
    assert ".target sm_120a\n" in newer.ptx(N=2)
    assert "mov.u32 %r0, 6;" in newer.ptx(N=2)
    assert ".target sm_80\n" in body.ptx(N=2)
    with raises(PtxError, match="unknown arch 'sm_81'"):
        body.for_arch("sm_81")


def test_findings_about_many_registers_of_a_line_are_one() -> None:
    def body() -> None:
        values, total = reg.array(f32, 4, name="v"), reg.scalar(f32, 0)
        for i in range(4):
            ptx.add(f32, total, total, values[i])
        ptx.st(f32, ptx.addr(reg.scalar(u64, 256)), total)

    (finding,) = make_kernel(body).check()
    assert "each of `%v0` … `%v3` (4 registers) is read here but never written" in str(finding)


def test_swizzled_memory_begins_where_its_pattern_does() -> None:
    def body() -> None:
        for swizzle in (None, "32B", "64B", "128B"):
            smem.alloc(bf16, (8, 64), swizzle=swizzle)
        smem.alloc(bf16, (8, 64), swizzle="128B", align=128)

    alignments = re.findall(r"\.shared \.align (\d+)", make_kernel(body).ptx())
    assert alignments == ["128", "256", "512", "1024", "128"]


def test_setmaxnreg_brings_what_fixes_the_registers_at_entry() -> None:
    def body() -> None:
        ptx.setmaxnreg_dec(40)

    entry = ".maxntid 384, 1, 1\n.minnctapersm 1\n"
    assert entry in make_kernel(body, block=(384, 1, 1)).ptx().replace("\t", "")
    assert ".maxntid" not in make_kernel(body, reqntid=(384, 1, 1)).ptx()
    assert ".minnctapersm 1" in make_kernel(body, reqntid=(384, 1, 1)).ptx()
    limit = make_kernel(body, raw_directives=[("maxnreg", (168,))]).ptx()
    assert ".maxnreg 168" in limit
    assert ".minnctapersm" not in limit
    line = body.__code__.co_firstlineno + 1
    with raises(PtxError, match=rf"py:{line}: .*register count at kernel entry[\s\S]*block=\(384, 1, 1\)"):
        make_kernel(body).ptx()


def _yields() -> Any:
    ptx.bar.sync(0)
    yield


async def _awaits() -> None:
    ptx.bar.sync(0)


async def _yields_later() -> Any:
    ptx.bar.sync(0)
    yield


@pytest.mark.parametrize("function", [_yields, _awaits, _yields_later], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "make", [kernel, kernel(arch="sm_80"), intrinsic, ptx.func, ptx.module((8, 0), "sm_80").entry("k")]
)
def test_a_function_that_runs_nothing_when_it_is_called_is_no_kernel(make: Any, function: Any) -> None:
    with raises(PtxError, match=rf"PTX0821.*`{function.__name__}`[\s\S]*help: "):
        make(function)


def test_a_decorated_generator_is_no_kernel() -> None:
    @kernel
    def body() -> Any:
        return _yields()

    with raises(PtxError, match=r"PTX0821.*`body` returned a generator"):
        body.ptx()


def test_resources_count_static_and_dynamic_shared_memory() -> None:
    @kernel(grid=(1,), block=(32, 1, 1), smem=100 << 10, extern_smem=True)
    def large() -> None:
        ptx.inst.st.shared.b32(ptx.addr("smem"), 0)

    needs = large.resources()
    assert (needs.shared, needs.dynamic_shared) == (100 << 10, 100 << 10)
    fits = occupancy("sm_90a", 32, registers=needs.registers, shared=needs.shared)
    assert (fits.ctas, fits.limited_by) == (2, ("shared",))
