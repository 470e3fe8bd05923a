"""What a call is advised to pass in place of an array that does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, Tile
from pyptx.runtime.arguments import bind, check_undefined, collect_scalars, resolve_grid
from pyptx.runtime.arrays import Described
from pyptx.types import bf16, f32

COPY = "pass a contiguous copy"
FITS = Described((4,), "float32")


def find_problems(inputs: list[Described], outputs: list[Described], dtype: Any = f32, count: int = 1) -> str:
    """Return the message about arrays for a kernel with inputs x, y ... and `count` outputs z."""
    sources = [(name, Tile("n", dtype)) for name, _ in zip("xy", inputs, strict=False)]
    with pytest.raises(PtxError) as excinfo:
        bind("add", sources, inputs, [("z", Tile("n", dtype))] * count, outputs)
    return excinfo.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("library", "contiguous", "aligned"),
    [
        ("numpy", "use numpy.ascontiguousarray(x)", "use x.copy()"),
        ("cupy", "use cupy.ascontiguousarray(x)", "use x.copy()"),
        ("torch", "use x.contiguous()", "use x.clone()"),
        ("jax", COPY, "pass an aligned copy"),
        ("", COPY, "pass an aligned copy"),
    ],
)
def test_a_copy_is_made_with_the_library_of_the_array(library: str, contiguous: str, aligned: str) -> None:
    spread = FITS._replace(is_contiguous=False, library=library)
    odd = FITS._replace(misaligned=4, library=library)
    rows, words = "`x`: expected a contiguous row-major array; ", "`x`: expected elements aligned to 4 bytes; "
    assert find_problems([spread], []) == rows + contiguous
    assert find_problems([odd], []) == words + aligned
    both = odd._replace(is_contiguous=False)
    assert find_problems([both], []) == f"{words}{aligned}; {rows}{contiguous}"
    back = ", and copy back what the kernel writes"
    assert find_problems([spread], [], count=0) == rows + contiguous + back
    assert find_problems([odd], [], count=0) == words + aligned + back
    text = find_problems([FITS], [spread]).replace("`z`", "`x`")
    assert text == f"{rows}pass a contiguous one, and copy from it"
    text = find_problems([FITS], [odd]).replace("`z`", "`x`")
    assert text == f"{words}pass an aligned one, and copy from it"


@pytest.mark.parametrize(
    ("library", "dtype", "remedy"),
    [
        ("numpy", f32, "; use x.astype(numpy.float32)"), ("cupy", f32, "; use x.astype(numpy.float32)"),
        ("numpy", bf16, "; use x.astype(ml_dtypes.bfloat16)"), ("torch", bf16, "; use x.to(torch.bfloat16)"),
        ("jax", bf16, "; use x.astype('bfloat16')"), ("", f32, ""),
    ],
)  # fmt: skip
def test_elements_are_converted_with_the_library_of_the_array(library: str, dtype: Any, remedy: str) -> None:
    name = "bfloat16" if dtype is bf16 else "float32"
    array = Described((4,), "int64", library=library)
    assert find_problems([array], [], dtype) == f"`x`: expected dtype {name}, found int64{remedy}"
    fits = Described((4,), name)
    assert find_problems([fits], [array], dtype) == f"`z`: expected dtype {name}, found int64"


def test_all_problems_of_all_arrays_are_in_one_message() -> None:
    wrong = Described((4, 1), "float32", misplaced="expected an array elsewhere")
    assert find_problems([wrong, Described((), "int8")], [Described((5, 5), "float32")]) == (
        "`x`: expected 1 dimension, found shape (4, 1); `x`: expected an array elsewhere; "
        "`y`: expected dtype float32, found int8; `y`: expected 1 dimension, found shape (); "
        "`z`: expected 1 dimension, found shape (5, 5)"
    )
    outputs = [("z", Tile("n", f32))]
    assert bind("add", [("x", Tile("n", f32))], [FITS], outputs, [FITS]) == {"n": 4}
    assert bind("add", [("x", Tile("n", f32))], [FITS], outputs, []) == {"n": 4}
    assert bind("add", [], [], outputs, []) == {}


def test_a_grid_may_be_empty_only_with_an_empty_array() -> None:
    assert resolve_grid((0, 2), {}, {}, may_be_empty=True) == (0, 2)

    def count_whole_blocks(n: int) -> int:
        return n // 4

    assert resolve_grid(count_whole_blocks, {"n": 9}, {}) == (2,)
    for grid, env in (((0, 2), {}), (count_whole_blocks, {"n": 3})):
        with pytest.raises(PtxError, match="expected one to three positive integers") as excinfo:
            resolve_grid(grid, env, {})
        assert excinfo.value.diagnostics[0].help == "round up, as -(-n // 128) does; a grid may be empty if an array is"
    for grid in ((), (1, 1, 1, 1), (1, -1), (1.0,)):
        with pytest.raises(PtxError, match="expected one to three positive integers") as excinfo:
            resolve_grid(grid, {}, {}, may_be_empty=True)
        assert excinfo.value.diagnostics[0].help is None


def test_an_empty_grid_writes_only_empty_outputs() -> None:
    outputs = [(name, Tile("n", f32)) for name in "xyz"]
    arrays = [FITS._replace(shape=(size,)) for size in (4, 0, 1)]
    check_undefined(outputs[1:2], arrays[1:2], (0, 2))
    with pytest.raises(PtxError) as excinfo:
        check_undefined(outputs, arrays, (0, 2))
    (finding,) = excinfo.value.diagnostics
    assert finding.message == "the grid 0×2 is empty, so nothing would write `x`, `z`"
    assert finding.help == "pass arrays with the values as out="


@pytest.mark.parametrize(
    ("kind", "name", "expectation"),
    [
        ("u32", "n", "a number for .u32"),
        ("b8[16]", "n", "16 bytes of a structure"),
        ("b32", "n[3]", "12 bytes of a structure"),
    ],
)
def test_an_array_stands_only_for_an_address(kind: str, name: str, expectation: str) -> None:
    with pytest.raises(PtxError) as excinfo:
        collect_scalars([(kind, name)], [np.zeros(4, np.float32)], {}, ())
    assert excinfo.value.diagnostics[0].message == (
        f"`{name}`: expected {expectation}, found an array, which is passed by its address"
    )
