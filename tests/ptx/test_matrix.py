"""ldmatrix, stmatrix, movmatrix, and the epilogue that stores an accumulator transposed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import ptx, reg, smem
from pyptx.types import b32, b64, bf16, f32, u32
from tests.dsl.tracing import code
from tests.ptx.mistakes import assert_mistake


def _load(**options: Any) -> Callable[[], None]:
    count = options.pop("count", 4)
    return lambda: ptx.ldmatrix(dst=reg.array(b32, count, name="d"), src=reg.alloc(u32), **options)


def _store(**options: Any) -> Callable[[], None]:
    count = options.pop("count", 4)
    return lambda: ptx.stmatrix(smem=reg.alloc(u32), regs=reg.array(b32, count, name="d"), **options)


FOUR, TWO, ONE = "{%d0, %d1, %d2, %d3}", "{%d0, %d1}", "{%d0}"
CASES: list[tuple[Callable[[], None], str]] = [
    (_load(), f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {FOUR}, [%r0];"),
    (_load(layout="m8n8.x2", trans=True, count=2), f"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {TWO}, [%r0];"),
    (_load(layout="m16n16.x1", trans=True, dtype="b8", count=2),
     f"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {TWO}, [%r0];"),
    (_load(layout="m8n16.x1", dtype="b8x16.b4x16_p64", count=1),
     f"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {ONE}, [%r0];"),
    (_load(layout="x1", space="shared::cta", count=1), f"ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {ONE}, [%r0];"),
    (_store(), f"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r0], {FOUR};"),
    (_store(layout="x2", trans=True, count=2), f"stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r0], {TWO};"),
    (_store(layout="x1", shape="m16n8", trans=True, count=1),
     f"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r0], {ONE};"),
    (lambda: ptx.movmatrix(dst=reg.alloc(b32), src=reg.alloc(b32)),
     "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;"),
    (lambda: ptx.ldmatrix(dst=[reg.alloc(b32)], src=ptx.addr(smem.alloc(bf16, (8, 8), name="t"), 16), layout="x1"),
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [t+16];"),
    (lambda: ptx.stmatrix(smem=smem.alloc(bf16, (2, 8, 8), name="t")[1], regs=reg.alloc(b32), layout="x1"),
     "stmatrix.sync.aligned.m8n8.x1.shared.b16 [t+128], {%r0};"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), CASES, ids=[expected for _, expected in CASES])
def test_a_wrapper_emits_exactly_its_instruction(call: Callable[[], None], expected: str) -> None:
    def body() -> None:
        call()

    assert code(body, arch="sm_120a") == [expected]


class Warp:
    """Executes the epilogue for one lane; knows only the instructions that the epilogue uses."""

    def __init__(self, lane: int, lane_register: str) -> None:
        self.values: dict[str, Any] = {lane_register: lane, "tile": 0}
        self.stores: list[tuple[int, list[Any]]] = []

    def read(self, text: str) -> Any:
        return int(text) if text.lstrip("-").isdigit() else self.values.get(text, text)

    def run(self, statement: str) -> None:
        opcode, operands_text = statement.rstrip(";").split(" ", 1)
        words = re.findall(r"%\w+|\btile\b|-?\b\d+\b", operands_text)
        name = opcode.split(".")[0]
        if name == "stmatrix":
            base, *offsets = re.findall(r"%\w+|\d+", operands_text[: operands_text.index("]")])
            vector = re.findall(r"%\w+", operands_text[operands_text.index("{") :])
            self.stores.append((self.read(base) + sum(map(int, offsets)), [self.read(v) for v in vector]))
            return
        target, *sources = words
        a = [self.read(source) for source in sources]
        if name == "cvt":
            self.values[target] = tuple(reversed(a)) if "bf16x2" in opcode else a[0]
        elif name == "mov":
            self.values[target] = tuple(a) if "{" in operands_text else a[0]
        else:
            self.values[target] = {
                "and": lambda: a[0] & a[1], "or": lambda: a[0] | a[1], "shr": lambda: a[0] >> a[1],
                "shl": lambda: a[0] << a[1], "mad": lambda: a[0] * a[1] + a[2], "add": lambda: a[0] + a[1],
            }[name]()  # fmt: skip


@pytest.mark.parametrize("temporaries", [False, True])
def test_the_epilogue_puts_every_value_at_its_place_of_the_transposed_tile(temporaries: bool) -> None:
    """Element (row, column) of a warpgroup's 64 x 32 accumulator goes to element `column * row_stride + row`."""
    stride = 72

    def body() -> None:
        smem.alloc(bf16, (32, 72), name="tile")
        frag, lane = reg.array(f32, 16, name="acc"), reg.alloc(u32)
        options: dict[str, Any] = {"tmp_bf16": reg.array(bf16, 8), "tmp_pack": reg.array(b32, 4)} if temporaries else {}
        ptx.stmatrix_x4_trans_f32_bf16(frag=frag, smem_base="tile", lane=lane, row_stride=stride, **options)

    statements = code(body, block=(128, 1, 1))
    lanes = [Warp(lane, "%r0") for lane in range(128)]
    memory: dict[int, tuple[int, str]] = {}
    for warp in lanes:
        for statement in statements:
            warp.run(statement)
    for lane, warp in enumerate(lanes):
        for group in range(2):
            address = 2 * ((lane >> 5) * 16 + (lane & 7) * stride + ((lane & 31) >> 4) * 8 * stride + (lane & 8))
            assert warp.stores[group][0] == address + group * 32 * stride
    for store, first in itertools.product(range(2), range(0, 128, 32)):
        rows = [warp.stores[store][0] for warp in lanes[first : first + 32]]
        for number in range(4):
            for lane, warp in enumerate(lanes[first : first + 32]):
                for half, value in enumerate(warp.stores[store][1][number]):
                    # Transposed: the stored row is the column of the value; lane l holds columns from 2 * (l % 4) on.
                    position = rows[8 * number + 2 * (lane % 4) + half] + 2 * (lane // 4)
                    assert position not in memory
                    memory[position] = first + lane, value
    for thread in range(128):
        for index in range(16):
            row = thread // 32 * 16 + thread % 32 // 4 + 8 * (index // 2 % 2)
            column = index // 4 * 8 + 2 * (thread % 4) + index % 2
            assert memory[2 * (column * stride + row)] == (thread, f"%acc{index}")


def test_the_epilogue_takes_addresses_of_every_kind() -> None:
    def body() -> None:
        frag, lane = reg.array(f32, 8, name="acc"), ptx.special.laneid()
        tile = smem.alloc(bf16, (2, 16, 64), name="t")
        values: Any
        for base, values in ((tile[1], frag), (tile[0].address(), frag.regs()), (reg.alloc(b64), tuple(frag))):
            ptx.stmatrix_x4_trans_f32_bf16(frag=values, smem_base=base, lane=lane, row_stride=64)

    lines = code(body)
    packs = [re.sub(r"%r\d+", "%r", line) for line in lines if line.startswith("cvt.rn")]
    assert packs == [f"cvt.rn.bf16x2.f32 %r, %acc{i + 1}, %acc{i};" for i in (0, 2, 4, 6)] * 3
    assert [line.partition(" ")[0] for line in lines].count("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16") == 3


def _epilogue(**wrong: Any) -> Callable[[], None]:
    def call() -> None:
        right: dict[str, Any] = {"frag": reg.array(f32, 8), "smem_base": reg.alloc(u32), "lane": reg.alloc(u32)}
        changes = {name: value() if callable(value) else value for name, value in wrong.items()}
        arguments: dict[str, Any] = {**right, "row_stride": 64, **changes}
        ptx.stmatrix_x4_trans_f32_bf16(**arguments)

    return call


MISTAKES: list[tuple[str, Callable[[], None], str, str]] = [
    ("no trans", _load(layout="m16n16.x1", dtype="b8", count=2), "PTX0102", ".trans"),
    ("count", _load(layout="x3"), "PTX0102", "x3"),
    ("too few registers", _load(count=2), "PTX0201", "4 elements"),
    ("type of address", lambda: ptx.ldmatrix(dst=reg.array(b32, 4), src=reg.alloc(f32)), "PTX0203", "f32"),
    ("half a group", _epilogue(frag=lambda: reg.array(f32, 4)), "PTX0818", "8 f32 registers"),
    ("one register", _epilogue(frag=lambda: reg.alloc(f32)), "PTX0818", "for every 16 columns, found 1"),
    ("stride that no row starts on", _epilogue(row_stride=36), "PTX0818", "multiple of 8 elements"),
    ("stride in bytes", _epilogue(row_stride=144, smem_base=lambda: smem.alloc(bf16, (16, 72), name="t")), "PTX0818",
     "end at byte 4,352, but `t` has only 2,304"),
    ("lane a number", _epilogue(lane=3), "PTX0818", "tid.x() & 127"),
    ("too few temporaries", _epilogue(tmp_pack=lambda: reg.array(b32, 2)), "PTX0818", "multiple of 4"),
    ("temporaries of numbers", _epilogue(tmp_pack=[1, 2, 3, 4]), "PTX0818", "`tmp_pack` must be registers"),
    ("no address", _epilogue(smem_base=12), "PTX0818", "smem_base"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "rule", "words"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_an_error_at_its_line(call: Callable[[], None], rule: str, words: str) -> None:
    assert_mistake(call, rule, words, arch="sm_120a")
