"""What Python does with registers and shared memory: operators in place, builtins, NumPy, copies."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, Tile, kernel, ptx, reg, smem
from pyptx.types import f32, pred, s32, u16, u32, u64

from .tracing import code, refused, traced

HELD: dict[str, tuple[Callable[[], Any], str]] = {
    "counter": (lambda: next(ptx.range_(0, 8)), "counter of `ptx.range_`"),
    "stage": (lambda: ptx.pipeline(2).stage, "stage of a ring"),
    "phase": (lambda: ptx.pipeline(2).phase, "phase of a ring"),
    "view": (lambda: ptx.pipeline(2).phase.s32, "phase of a ring"),
    "barrier": (lambda: smem.mbarrier(2)[ptx.special.laneid()].addr_reg(), "address of a barrier"),
}


@pytest.mark.parametrize("name", HELD)
def test_an_operator_in_place_does_not_change_what_pyptx_reads_again(name: str) -> None:
    make, words = HELD[name]

    def body() -> None:
        x = make()
        x += 1  # here

    refused(body, "PTX0823", words, "reg.from_(x, ")


def test_an_operator_in_place_does_not_change_a_tensor_map() -> None:
    @kernel(in_specs=[Tile(64, 64, f32)])
    def body(a: Any) -> None:
        x = a.tma_desc()
        x ^= 1

    with pytest.raises(PtxError, match=r"PTX0823.*tensor map of `a`"):
        body.ptx()


IN_PLACE_TYPES: list[tuple[Any, Any, str]] = [
    (u32, u64, "ptx.cvt(u32, u64, dst, src)"), (u16, s32, "ptx.cvt(u16, s32, dst, src)"),
    (f32, u32, "ptx.cvt(f32, u32, dst, src"), (u32, pred, "predicate"),
]  # fmt: skip


@pytest.mark.parametrize(("have", "other", "words"), IN_PLACE_TYPES, ids=str)
def test_an_operator_in_place_keeps_the_type_of_its_register(have: Any, other: Any, words: str) -> None:
    def body() -> None:
        x, y = reg.scalar(have), reg.scalar(other)
        x += y  # here

    def bits() -> None:
        x, y = reg.scalar(have), reg.scalar(other)
        x |= y  # here

    refused(body, "PTX0804", words)
    if have.kind == "u":
        refused(bits, "PTX0804")


def test_a_view_is_no_variable() -> None:
    def body() -> None:
        x = reg.scalar(u32, 0)
        x.s32 = reg.scalar(s32, 1)  # here

    refused(body, "PTX0804", "ptx.mov(s32, x, value)")


class Seven:
    """An integer of another library."""

    def __index__(self) -> int:
        return 7

    __int__ = __index__


def test_integers_of_other_libraries_are_integers() -> None:
    def body() -> None:
        x = reg.scalar(u32)
        _ = x + Seven()
        ptx.inst.add.u32(x, x, Seven())

    assert code(body) == ["add.u32 %r1, %r0, 7;", "add.u32 %r0, %r0, 7;"]


NUMBERS: list[Callable[[Any, Any], Any]] = [
    lambda x, tile: x + tile[1],
    lambda x, tile: x.max(tile[1]),
    lambda x, tile: tile[1] * x,
    lambda x, tile: tile[1] < 2,
    lambda x, tile: tile[0] + tile[1],
    lambda x, tile: tile[1].max(x),
    lambda x, tile: reg.scalar(f32, tile[1]),
    lambda x, tile: ptx.mov(f32, x, tile[1]),
]
INDICES: list[Callable[[Any, Any], Any]] = [lambda x, i: x[i], lambda x, i: x.__setitem__(i, 1.0)]


@pytest.mark.parametrize("use", NUMBERS)
def test_an_element_of_shared_memory_as_a_number_names_the_load(use: Any) -> None:
    def body() -> None:
        x, tile = reg.scalar(f32, 0), smem.alloc(f32, 8, name="tile")
        use(x, tile)

    with pytest.raises(PtxError, match=r"help: smem\.load\(f32, tile\[[01]\]\) reads it"):
        traced(body).ptx()


@pytest.mark.parametrize("use", INDICES)
def test_an_index_into_a_tensor_names_the_pointer(use: Any) -> None:
    @kernel(in_specs=(Tile(64, f32),))
    def body(x: Any) -> None:
        use(x, ptx.special.tid.x())

    with pytest.raises(PtxError, match=r"tensor `x`[\s\S]*ptx\.global_ptrs\(x\)[\s\S]*ptx\.ld\(f32"):
        body.ptx()


AS_PYTHON: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "len": (len, "PTX0803", "reg.array"),
    "iter": (iter, "PTX0803", "reg.array"),
    "np.sin": (np.sin, "PTX0803", "ptx.sin(f32, x)"),
    "np.maximum": (lambda x: np.maximum(x, x), "PTX0803", "x.max(y)"),
    "np.add.reduce": (lambda x: np.add.reduce([x, x], axis=0, dtype=np.float32), "PTX0803", "no value"),
    "copy": (copy.copy, "PTX0824", "reg.from_(x, dtype)"),
    "deepcopy": (lambda x: copy.deepcopy([x]), "PTX0824", "reg.from_(x, dtype)"),
    "pickle": (pickle.dumps, "PTX0824", "k.ptx(…)"),
}


@pytest.mark.parametrize("name", AS_PYTHON)
def test_a_register_is_no_value_of_python(name: str) -> None:
    use, rule, words = AS_PYTHON[name]

    @kernel
    def body() -> None:
        use(reg.scalar(f32, 0.0))

    with pytest.raises(PtxError) as caught:
        body.ptx()
    assert caught.value.diagnostics[0].code == rule
    assert getattr(caught.value.diagnostics[0].origin, "file", "") == __file__
    assert words in str(caught.value)


def test_numbers_and_arrays_of_numpy_stand_left_of_an_operator() -> None:
    def body() -> None:
        x: Any = reg.scalar(u32)
        _ = np.uint32(2) + x, np.int64(1) == x, 3 - x
        rows = np.arange(2) * x
        assert rows.shape == (2,)
        assert np.array([x, rows[0]], dtype=object)[0] is x

    assert [line.split()[0] for line in code(body)] == [
        "add.u32", "setp.eq.u32", "sub.u32", "mul.lo.u32", "mul.lo.u32",
    ]  # fmt: skip


@kernel
def importable() -> None:
    """A kernel that another process can find."""


def test_a_kernel_is_copied_and_pickled_like_a_function() -> None:
    assert copy.deepcopy([importable])[0] is importable
    assert copy.copy(importable) is importable
    assert pickle.loads(pickle.dumps(importable)) is importable

    @kernel
    def inner() -> None: ...

    with pytest.raises(PtxError, match=r"PTX0824.*`inner`[\s\S]*top of a module"):
        pickle.dumps(inner)
