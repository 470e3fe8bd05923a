"""Python operations on registers and shared memory: in-place operators, builtins, NumPy, copies."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, Tile, kernel, ptx, reg, smem
from pyptx.types import f32, from_name, pred, s32, u16, u32, u64
from tests.messages import raises

from .tracing import assert_rejected, code, make_kernel, text_of

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

    assert_rejected(body, "PTX0823", words, "reg.from_(x, ")


def test_an_operator_in_place_does_not_change_a_tensor_map() -> None:
    @kernel(in_specs=[Tile(64, 64, f32)])
    def body(a: Any) -> None:
        x = a.tma_desc()
        x ^= 1

    with raises(PtxError, match=r"PTX0823.*tensor map of `a`"):
        body.ptx()


IN_PLACE_TYPES: list[tuple[Any, Any, str]] = [
    (u32, u64, "ptx.cvt(u32, u64, dst, src)"), (u16, s32, "ptx.cvt(u16, s32, dst, src)"),
    (f32, u32, "ptx.cvt(f32, u32, dst, src"), (u32, pred, "predicate"),
]  # fmt: skip


@pytest.mark.parametrize(("have", "operand_type", "words"), IN_PLACE_TYPES, ids=str)
def test_an_operator_in_place_keeps_the_type_of_its_register(have: Any, operand_type: Any, words: str) -> None:
    def body() -> None:
        x, y = reg.scalar(have), reg.scalar(operand_type)
        x += y  # here

    def bits() -> None:
        x, y = reg.scalar(have), reg.scalar(operand_type)
        x |= y  # here

    assert_rejected(body, "PTX0804", words)
    if have.kind == "u":
        assert_rejected(bits, "PTX0804")


_NUMERIC = ("u16", "s16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64")


@pytest.mark.parametrize("right", _NUMERIC)
def test_the_conversion_that_a_message_names_is_legal(right: str) -> None:
    """For every pair of types that `+` refuses."""
    conversions: list[str] = []
    for left in _NUMERIC:

        def add(*, left: str = left) -> None:
            _ = reg.scalar(left) + reg.scalar(right)

        try:
            make_kernel(add, arch="sm_100a").ptx()
        except PtxError as error:
            (finding,) = error.diagnostics
            advice, _, conversion = (finding.help or "").partition(": ")
            assert advice == "convert one operand first"
            conversions.append(conversion)

    def convert() -> None:
        names: dict[str, Any] = {name: from_name(name) for name in _NUMERIC}
        for text in conversions:
            to, source = (from_name(name.strip()) for name in text.removeprefix("ptx.cvt(").split(",")[:2])
            eval(text, {"ptx": ptx, "dst": reg.scalar(to), "src": reg.scalar(source), **names})

    assert len(code(convert, arch="sm_100a")) >= len(conversions) > 0


def test_a_view_is_no_variable() -> None:
    def body() -> None:
        x = reg.scalar(u32, 0)
        x.s32 = reg.scalar(s32, 1)  # here

    assert_rejected(body, "PTX0804", "ptx.mov(s32, x, value)")


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
    lambda x, tile: tile[1].min(x),
    lambda x, tile: reg.scalar(f32, tile[1]),
    lambda x, tile: ptx.mov(f32, x, tile[1]),
]
INDICES: list[Callable[[Any, Any], Any]] = [lambda x, i: x[i], lambda x, i: x.__setitem__(i, 1.0)]


@pytest.mark.parametrize("use", NUMBERS)
def test_an_element_of_shared_memory_as_a_number_names_the_load(use: Any) -> None:
    def body() -> None:
        x, tile = reg.scalar(f32, 0), smem.alloc(f32, 8, name="tile")
        use(x, tile)

    with raises(PtxError, match=r"help: smem\.load\(f32, tile\[[01]\]\) reads it"):
        make_kernel(body).ptx()


@pytest.mark.parametrize("use", INDICES)
def test_an_index_into_a_tensor_names_the_pointer(use: Any) -> None:
    @kernel(in_specs=(Tile(64, f32),))
    def body(x: Any) -> None:
        use(x, ptx.special.tid.x())

    with raises(PtxError, match=r"tensor `x`[\s\S]*ptx\.global_ptrs\(x\)[\s\S]*ptx\.ld\(f32"):
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

    with raises(PtxError) as excinfo:
        body.ptx()
    assert excinfo.value.diagnostics[0].code == rule
    assert getattr(excinfo.value.diagnostics[0].origin, "file", "") == __file__
    assert words in text_of(excinfo.value)


_OPERATOR: Any = operator
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "round": round, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "math.sqrt": math.sqrt, "int": int,
    "float": float, "complex": complex, "bytes": bytes, "range": range, "hex": hex, "format": lambda x: f"{x:.2f}",
    "index": lambda x: _OPERATOR.getitem([1, 2], x), "slice": lambda x: [1, 2][x:], "with": lambda x: x.__enter__(),
    "divmod": lambda x: divmod(x, 2), "divmod right": lambda x: divmod(2, x), "@": lambda x: x @ x,
    "@ right": lambda x: 1 @ x, "@=": lambda x: _OPERATOR.imatmul(x, x), "**": lambda x: x**2,
    "** right": lambda x: 2**x,
    "pow": lambda x: pow(x, 2, 3), "+x": operator.pos, "next": next, "in": lambda x: 1 in x,
    "del": lambda x: x.__delitem__(0),
}  # fmt: skip
OF_ONE: dict[str, Callable[[Any], Any]] = {
    "len": len, "iter": iter, "list": list, "unpack": lambda x: [*x], "reversed": reversed, "[0]": lambda x: x[0],
    "[0:1]": lambda x: x[0:1], "[0] =": lambda x: x.__setitem__(0, 1),
}  # fmt: skip
COMPUTED: dict[str, Callable[[Any], Any]] = {
    "-x": operator.neg, "abs": abs, "-": lambda x: x - 1, "*": lambda x: 1.5 * x, "/": lambda x: x / 2,
    "//": lambda x: 2 // x, "% 2": lambda x: x % 2, "<<": lambda x: 1 << x, ">>": lambda x: x >> 1,
    "<": lambda x: x < 1,
    ">=": lambda x: x <= 1, "==": lambda x: x == 1, "!=": lambda x: x != 1.0, "+=": lambda x: _OPERATOR.isub(x, 1),
    "&": lambda x: x & 1,
}  # fmt: skip
KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "predicate": (lambda a: ~reg.scalar(pred, 1), "ptx.selp"),
    "array": (lambda a: reg.array(f32, 4), "operate on each"),
    "pair": (lambda a: reg.PipeRef(reg.scalar(u32), reg.scalar(pred)), "d, p = pair"),
    "allocation": (lambda a: smem.alloc(f32, 4), "smem.load(f32, smem_1[0])"),
    "element": (lambda a: smem.alloc(f32, 4).swizzled(1), "smem.load(f32, smem_1 + 4)"),
    "barriers": (lambda a: smem.mbarrier(2), "mbar_1[0].wait(phase)"), "tensor": (lambda a: a, "ptx.global_ptrs(a)"),
    "barrier": (lambda a: smem.mbarrier(2)[1], "wait(phase)"),
}  # fmt: skip
DEFINED = {
    ("array", name) for name in ("[0]", "[0:1]", "[0] =", "len", "iter", "list", "unpack", "reversed", "in")
} | {("allocation", name) for name in ("len", "iter", "list", "unpack", "reversed", "[0]", "[0] =")} | {
    ("barriers", name) for name in ("len", "iter", "list", "unpack", "reversed", "[0]", "bytes")
} | {("pair", name) for name in ("len", "iter", "list", "unpack")}  # fmt: skip
"""Operations that are valid, or have messages of their own."""


@pytest.mark.parametrize("name", {**OPERATIONS, **OF_ONE})
def test_an_operation_of_python_on_a_register_names_a_remedy(name: str) -> None:
    for dtype in (u32, f32, pred):

        def body() -> None:
            {**OPERATIONS, **OF_ONE}[name](reg.scalar(dtype, 1))  # noqa: B023

        with raises(PtxError) as excinfo:
            make_kernel(body).ptx()
        (finding,) = excinfo.value.diagnostics
        assert finding.code in ("PTX0803", "PTX0804"), finding
        assert getattr(finding.origin, "file", "") == __file__
        assert finding.help


@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_of_python_on_no_number_names_a_remedy(kind: str) -> None:
    make, remedy = KINDS[kind]
    for name, use in {**OPERATIONS, **OF_ONE, **COMPUTED}.items():
        if (kind, name) in DEFINED or (kind == "predicate" and name == "&"):
            continue

        @kernel(in_specs=[Tile(64, f32)])
        def body(a: Any) -> None:
            use(make(a))  # noqa: B023

        with raises(PtxError) as excinfo:
            body.ptx()
        (finding,) = excinfo.value.diagnostics
        assert finding.code in ("PTX0803", "PTX0804", "PTX0806", "PTX0816"), (name, finding)
        assert finding.help, name
        assert remedy in finding.help or name in ("[0]", "[0:1]", "[0] =", "in", "len", "format"), (name, finding.help)


MESSAGES = {
    "predicate": (
        "`~%p0` is a predicate and does not support `round()`",
        "predicates support & | ^ ~; ptx.if_ branches on one, ptx.selp converts one to a number",
    ),
    "array": (
        "`%v_1_` is a vector of 4 registers and does not support `round()`",
        "operate on each element: [r + 1 for r in x]; `x[i] = value` writes one",
    ),
    "pair": (
        "`PipeRef(Reg('%r0', u32), Reg('%p0', pred))` is a pair of destinations and does not support `round()`",
        "unpack the registers: d, p = pair",
    ),
    "allocation": (
        "`smem_1` is shared memory and does not support `round()`",
        "smem.load(f32, smem_1[0]) reads an element; `+` moves the address by a number of bytes",
    ),
    "element": (
        "`smem_1 + 4` is an address in shared memory and does not support `round()`",
        "smem.load(f32, smem_1 + 4) reads it into a register; `+` moves the address by a number of bytes",
    ),
    "barriers": (
        "`mbar_1` is an array of barriers and does not support `round()`",
        "select one: mbar_1[0].wait(phase)",
    ),
    "tensor": (
        "the tensor `a` is in global memory and does not support `round()`",
        "the parameter `a` holds the tensor's address: read it with (p,) = ptx.global_ptrs(a) and use p; "
        "tensor copies take a.tma_desc()",
    ),
    "barrier": (
        "`MbarrierRef('mbar_1', 1)` is a barrier and does not support `round()`",
        "its methods use it: arrive(), wait(phase), try_wait(phase)",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_says_what_the_value_is(kind: str) -> None:
    @kernel(in_specs=[Tile(64, f32)])
    def body(a: Any) -> None:
        round(KINDS[kind][0](a))

    with raises(PtxError) as caught:
        body.ptx()
    (found,) = caught.value.diagnostics
    assert (found.message, found.help) == MESSAGES[kind]


def test_a_pair_is_taken_apart() -> None:
    def body() -> None:
        pair = reg.PipeRef(reg.scalar(u32), reg.scalar(pred))
        assert list(pair) == [pair.left, pair.right]

    make_kernel(body).ptx()


def test_barriers_and_tiles_are_iterated() -> None:
    def body() -> None:
        for barrier in smem.mbarrier(2):
            barrier.init(1)
        for barrier in ptx.mbarrier.array("mbar_1", 0, 2):
            barrier.init(2)
        first, second = smem.alloc(f32, (2, 8))
        smem.store(f32, first[1], 1.0)
        smem.store(f32, second[1], 1.0)
        assert len(second) == 8

    assert [line.split("[")[1] for line in code(body)] == [
        "mbar_1], 1;", "mbar_1+8], 1;", "mbar_1], 2;", "mbar_1+8], 2;",
        "smem_1+4], 0f3F800000;", "smem_1+36], 0f3F800000;",
    ]  # fmt: skip


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
    """A kernel that another process can import."""


def test_a_kernel_is_copied_and_pickled_like_a_function() -> None:
    assert copy.deepcopy([importable])[0] is importable
    assert copy.copy(importable) is importable
    assert pickle.loads(pickle.dumps(importable)) is importable

    @kernel
    def inner() -> None: ...

    with raises(PtxError, match=r"PTX0824.*`inner`[\s\S]*define it at module level"):
        pickle.dumps(inner)
