"""Adding a format to PTX takes a row, a name and an enumeration member, and a word in the row of an instruction that
accepts it. `ml_dtypes` has the format as well."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pyptx"
FORMAT = {
    "numbers.py": (
        '        Format("e5m2", ',
        '        Format("e3m4", Kind.FLOAT, 8, 4, Special.IEEE, arrays=("float8_e3m4",)),\n',
    ),
    "types.py": (
        "pred = PtxType(",
        'e3m4, e3m4x2 = (PtxType(name, compute_type_bits(name)) for name in ("e3m4", "e3m4x2"))\n',
    ),
    "ir/kinds.py": ("    PRED = types.pred\n", "    E3M4, E3M4X2 = types.e3m4, types.e3m4x2\n"),
}
"""For each file, a line and the text to insert before it."""
INSTRUCTION = {"isa/table/conversion.py": ("_F6X2, _F6X4 = ", '_F8X2 += " e3m4x2"\n')}

PROGRAM = """
import ml_dtypes
import numpy as np
from pyptx import kernel, reg, sim, tensormap
from pyptx.check import check
from pyptx.ir.kinds import ScalarType
from pyptx.numbers import FORMATS, ROUNDINGS, Overflow, encode, decode_number
from pyptx.parser import parse
from pyptx.runtime.arrays import get_numpy_dtype
from pyptx.sim.numerics import rounding
from pyptx.sim.numerics.formats import decode
from pyptx.specs import Tile, list_array_dtype_names
from pyptx.types import e3m4

E3M4 = np.dtype(ml_dtypes.float8_e3m4)
FORM = FORMATS["e3m4"]


def convert():
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(E3M4).astype(np.float32)
    np.testing.assert_array_equal([decode_number(code, FORM) for code in range(256)], values)
    np.testing.assert_array_equal(decode(codes, "e3m4"), values)
    points = np.random.default_rng(1).standard_normal(2000) * np.exp2(np.random.default_rng(2).integers(-8, 6, 2000))
    nearest = points.astype(E3M4).view(np.uint8)
    np.testing.assert_array_equal([encode(x, FORM, overflow=Overflow.SPECIAL) for x in points.tolist()], nearest)
    for mode in ROUNDINGS:
        for saturates in (False, True):
            overflow = Overflow.SATURATE if saturates else Overflow.SPECIAL
            expected = [encode(x, FORM, mode, overflow) for x in points.tolist()]
            np.testing.assert_array_equal(rounding.encode(points, "e3m4", mode, satfinite=saturates), expected)


def write_literals():
    @kernel()
    def literals():
        reg.scalar(e3m4, 1.5)
        reg.scalar("e3m4", -float("inf"))

    assert "mov.b16 %rs0, 56;" in literals.ptx() and "mov.b16 %rs1, 240;" in literals.ptx(), literals.ptx()
    assert ScalarType.from_ptx(".e3m4").bits == 8


def size_tensors():
    assert list_array_dtype_names(e3m4) == ("float8_e3m4", "e3m4") and get_numpy_dtype("float8_e3m4") == E3M4
    tile = Tile("m", 64, e3m4, tma_box=(8, 64))
    assert tile.matches((4, 64), "float8_e3m4") and not tile.matches((4, 64), "float8_e5m2")
    tensor = tensormap.tensor_map(tile, {"m": 16}, 4096)
    assert (tensor.dtype, tensor.strides, tensor.box_bytes) == (tensormap.ElementType.U8, (64,), 512)


def simulate():
    module = parse('''.version 8.1
.target sm_89
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 codes, .param .u64 back)
{
    .reg .b16 %h<2>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [codes]; ld.param.u64 %rd3, [back];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 8; add.u64 %rd1, %rd1, %rd4;
    mul.wide.u32 %rd4, %r1, 2; add.u64 %rd2, %rd2, %rd4;
    mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd3, %rd4;
    ld.global.v2.f32 {%f1, %f2}, [%rd1];
    cvt.rn.satfinite.e3m4x2.f32 %h1, %f2, %f1;
    st.global.b16 [%rd2], %h1;
    cvt.rn.f16x2.e3m4x2 %r2, %h1;
    st.global.b32 [%rd3], %r2;
    ret;
}''')
    assert not check(module), check(module)
    x = (np.random.default_rng(3).standard_normal(512) * 6).astype(np.float32)
    codes, back = np.zeros(512, np.uint8), np.zeros(512, np.float16)
    sim.run(module, args=[x, codes, back], block=256)
    expected = np.clip(x, -FORM.maximum, FORM.maximum).astype(E3M4)
    assert (np.abs(x) > FORM.maximum).any()
    np.testing.assert_array_equal(codes, expected.view(np.uint8))
    np.testing.assert_array_equal(back, expected.astype(np.float16))


for step in (convert, write_literals, size_tensors, simulate):
    step()
    print(step.__name__)
"""


def test_three_files_make_a_format(tmp_path: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__", "*.pyi")
    shutil.copytree(PACKAGE, tmp_path / "pyptx", ignore=ignore, copy_function=os.symlink)
    for name, (line, addition) in (FORMAT | INSTRUCTION).items():
        text = (PACKAGE / name).read_text("utf-8")
        assert text.count(line) == 1, name
        (tmp_path / "pyptx" / name).unlink()
        (tmp_path / "pyptx" / name).write_text(text.replace(line, addition + line), "utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (run.stdout.split(), run.stderr) == (["convert", "write_literals", "size_tensors", "simulate"], "")
