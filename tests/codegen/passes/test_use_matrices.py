"""Products of matrices that write registers in use, with what is not the default."""

from __future__ import annotations

import ast

import pytest

from pyptx.codegen import ptx_to_python
from tests.codegen.sugared import find_module_difference

REGISTERS = (
    ".reg .pred %p<3>;\n.reg .b16 %h<9>;\n.reg .b32 %r<19>;\n.reg .f32 %f<19>;\n.reg .f64 %d<9>;\n.reg .b64 %rd<3>;\n"
)
USES = "".join(
    f"st.global.{kind} [%rd1], %{prefix}{i};\n"
    for prefix, kind, count in (("r", "b32", 19), ("f", "f32", 19), ("d", "f64", 9))
    for i in range(1, count)
)
WGMMA = "wgmma.mma_async.sync.aligned"
D, A = "{%f1,%f2,%f3,%f4}", "{%r5,%r6,%r7,%r8}"
MMA = "mma.sync.aligned"


def list_calls(ptx: str) -> list[str]:
    """Return the calls of a kernel that has used all registers before."""
    source = f".version 8.7\n.target sm_90a\n.address_size 64\n.entry k()\n{{\n{REGISTERS}{USES}{ptx}\nret;\n}}\n"
    assert find_module_difference(source) is None
    tree = ast.parse(ptx_to_python(source, sugar=True))
    return [ast.unparse(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)]


@pytest.mark.parametrize(
    ("types", "operands", "arguments"),
    [
        ("m64n8k16.f32.f16.f16", "%p1, 1, 1, 0, 0",
         "shape=(64, 8, 16), dtype_d=f32, dtype_a=f16, dtype_b=f16, A, scale_d=p[1]"),
        ("m64n8k16.f32.bf16.bf16", "0, -1, 1, 1, 0",
         "shape=(64, 8, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, A, scale_d=False, scale_a=-1, trans_a=1"),
        ("m64n8k16.f32.bf16.bf16", "1, 1, -1, 0, 1",
         "shape=(64, 8, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, A, scale_d=True, scale_b=-1, trans_b=1"),
        ("m64n8k8.f32.tf32.tf32", "%p1, -1, -1",
         "shape=(64, 8, 8), dtype_d=f32, dtype_a=tf32, dtype_b=tf32, A, scale_d=p[1], scale_a=-1, scale_b=-1"),
        ("m64n8k32.f32.e4m3.e5m2", "%p1, 1, 1",
         "shape=(64, 8, 32), dtype_d=f32, dtype_a=e4m3, dtype_b=e5m2, A, scale_d=p[1]"),
    ],
)  # fmt: skip
def test_wgmma_of_two_descriptors(types: str, operands: str, arguments: str) -> None:
    call = f"ptx.wgmma.mma_async({arguments.replace('A,', 'd=acc, a=desc_a, b=desc_b,')})"
    assert call in list_calls(f"{WGMMA}.{types} {D}, %rd1, %rd2, {operands};")


@pytest.mark.parametrize(
    ("operands", "keywords"),
    [
        ("1, 1, 1", ", trans_b=1"),
        ("1, 1, 0", ""),
        ("-1, 1, 0", ", scale_a=-1"),
        ("1, -1, 1", ", scale_b=-1, trans_b=1"),
    ],
)
def test_wgmma_of_registers_and_a_descriptor(operands: str, keywords: str) -> None:
    (call,) = [c for c in list_calls(f"{WGMMA}.m64n8k16.f32.f16.f16 {D}, {A}, %rd2, %p1, {operands};") if "wgmma" in c]
    assert call.startswith("ptx.wgmma.mma_async(shape=(64, 8, 16), dtype_d=f32, dtype_a=f16, dtype_b=f16, d=")
    assert call.endswith(f", scale_d=p[1]{keywords})")


@pytest.mark.parametrize(
    ("ptx", "arguments"),
    [
        (f"{WGMMA}.m64n8k32.satfinite.s32.s8.u8 {A}, %rd1, %rd2, %p1",
         ["shape=(64, 8, 32)", "dtype_d=s32", "dtype_a=s8", "dtype_b=u8", "satfinite=True"]),
        (f"{WGMMA}.m64n8k256.s32.b1.b1.and.popc {A}, %rd1, %rd2, %p1",
         ["shape=(64, 8, 256)", "dtype_d=s32", "dtype_a=b1", "dtype_b=b1"]),
        (f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32 {D}, {A}, {{%r1,%r2}}, {D}",
         ["shape=(16, 8, 16)", "dtype_d=f32", "dtype_a=f16", "dtype_b=f16", "dtype_c=f32"]),
        (f"{MMA}.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {A}, {A}, {{%r1,%r2}}, {A}",
         ["shape=(16, 8, 32)", "dtype_d=s32", "dtype_a=s8", "dtype_b=u8", "dtype_c=s32", "satfinite=True"]),
        (f"{MMA}.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {A}, {A}, {{%r1,%r2}}, {A}",
         ["shape=(16, 8, 256)", "dtype_d=s32", "dtype_a=b1", "dtype_b=b1", "dtype_c=s32", "bit_op='xor'"]),
        (f"{MMA}.m16n8k256.row.col.s32.b1.b1.s32.and.popc {A}, {A}, {{%r1,%r2}}, {A}",
         ["shape=(16, 8, 256)", "dtype_d=s32", "dtype_a=b1", "dtype_b=b1", "dtype_c=s32"]),
        (f"{MMA}.m8n8k4.col.row.f32.f16.f16.f32 {{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}}, {{%r1,%r2}}, {{%r3,%r4}}, "
         "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}",
         ["shape=(8, 8, 4)", "dtype_d=f32", "dtype_a=f16", "dtype_b=f16", "dtype_c=f32", "a_layout='col'",
          "b_layout='row'"]),
        (f"{MMA}.m8n8k4.row.col.rz.f64.f64.f64.f64 {{%d1,%d2}}, {{%d3}}, {{%d4}}, {{%d1,%d2}}",
         ["shape=(8, 8, 4)", "dtype_d=f64", "dtype_a=f64", "dtype_b=f64", "dtype_c=f64", "rounding='rz'"]),
    ],
)  # fmt: skip
def test_the_keywords_of_a_product(ptx: str, arguments: list[str]) -> None:
    operands = ("d=", "a=", "b=", "c=", "scale_d=")
    name = "ptx.wgmma.mma_async(" if ptx.startswith("w") else "ptx.mma.sync("
    (call,) = [c for c in list_calls(f"{ptx};") if c.startswith(name)]
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert not node.args
    keywords = [ast.unparse(keyword) for keyword in node.keywords]
    assert [keyword for keyword in keywords if not keyword.startswith(operands)] == arguments
