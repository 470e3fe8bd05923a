"""Accumulators of wgmma that remain matrices: reads of their registers see the results of products.

Every program runs twice: unchanged, and followed by a product with the registers in another order, which makes all
products write registers immediately. All bits must be equal.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.ir import Module
from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.parser import parse
from pyptx.tensormap import Swizzle

Array = np.ndarray[Any, Any]
WORDS, THREADS = 2048, 256
KINDS = {
    "f32": ("m64n8k16.f32.bf16.bf16", 4, "f32", ", 1, 1, 0, 0"),
    "f16": ("m64n8k16.f16.f16.f16", 2, "b32", ", 1, 1, 0, 0"),
    "s32": ("m64n8k32.s32.s8.s8", 4, "b32", ""),
}
"""The shape and types, the registers of D, their type, and the text after `scale-d`."""


def product(kind: str, registers: list[str], a: int = 0, scale: str = "1", guard: str = "") -> str:
    """Return a product with A at a shared address, which differs between warpgroups."""
    shape, _, _, tail = KINDS[kind]
    operands = f"{{{', '.join(registers)}}}, %da{a}, %db, {scale}{tail}"
    return (
        f"wgmma.fence.sync.aligned;\n{guard}wgmma.mma_async.sync.aligned.{shape} {operands};\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
    )


def steps_of(kind: str) -> dict[str, str]:
    """Return the steps of programs by name; `?` stands for a number unique to the step."""
    _, count, _, _ = KINDS[kind]
    d = [f"%d{n}" for n in range(count)]
    steps = {
        "product": product(kind, d),
        "fresh product": product(kind, d, scale="0"),
        "product that some warpgroups keep": product(kind, d, scale="%pgroup"),
        "product of one warpgroup": product(kind, d, guard="@%pgroup "),
        "other product": product(kind, [f"%e{n}" for n in range(count)]),
        "turned product": product(kind, d[::-1]),
        "half read": "xor.b32 %x, %x, %d1;\n",
        "other read": "xor.b32 %x, %x, %e0;\n",
        "whole written": "mov.b32 %d0, 0x3c003c00;\n",
        "written in odd lanes": "@%podd mov.b32 %d1, 0x3f800000;\n",
        "changed": "xor.b32 %d0, %d0, 0x00010001;\n",
        "compared": "setp.ne.b32 %pn, %d1, 0x42000000;\nselp.b32 %x, %x, 77, %pn;\n",
        "shuffled": "shfl.sync.bfly.b32 %y, %d0, 3, 31, -1;\nxor.b32 %x, %x, %y;\n",
        "shuffled into": "shfl.sync.idx.b32 %d1, %x, 5, 31, -1;\n",
        "stored": "st.shared.b32 [%own], %d1;\nld.shared.b32 %d0, [%own];\n",
        "as a vector": "st.shared.v2.b32 [%pair], {%d0, %d1};\nld.shared.v2.b32 {%e0, %y}, [%pair];\n",
        "passed to a function": "call (%d1), flipped, (%d0);\n",
        "odd lanes go another way": "@%podd bra $odd?;\nxor.b32 %d0, %d0, 0x00100010;\n$odd?:\n",
        "a warp goes another way": "@%pwarp bra $warp?;\nxor.b32 %x, %x, %d1;\nmov.b32 %d1, %x;\n$warp?:\n",
        "a warpgroup goes another way": "@%pgroup bra $group?;\nxor.b32 %d1, %d1, 0x00100010;\n$group?:\n",
    }
    if kind == "s32":
        steps["reduced into"] = "barrier.red.popc.u32 %d1, 1, %podd;\n"
        steps["product of registers"] = product(kind, d).replace("%da0", "{%e0, %e1, %e2, %e3}")
        steps["jumps by it"] = (
            "mov.b32 %d0, %one;\n" + product(kind, d, a=1, scale="0") + "$table?: .branchtargets $zero?, $one?;\n"
            "brx.idx %d0, $table?;\n$zero?: mov.b32 %x, 99;\n$one?:\n"
        )
    return steps


def program(kind: str, names: list[str], holds_accumulators: bool) -> Module:
    """Return a program of these steps that stores all registers; unless `holds_accumulators`, its products write
    registers immediately."""
    _, count, register_type, _ = KINDS[kind]
    steps = steps_of(kind)
    body = "".join(steps[name].replace("?", str(index)) for index, name in enumerate(names))
    registers = [*(f"%d{n}" for n in range(count)), *(f"%e{n}" for n in range(count)), "%x"]
    stores = "".join(f"st.global.b32 [%to+{4 * THREADS * index}], {name};\n" for index, name in enumerate(registers))
    reversal = "".join(product(kind, [f"%{letter}{n}" for n in reversed(range(count))]) for letter in "de")
    places = (1024, 5120, 1024 + 4 * WORDS - 2048)
    descriptors = [WgmmaDescriptor(place, 128, 256, Swizzle.NONE).encode() for place in places]
    return parse(f""".version 8.5
.target sm_90a
.address_size 64
.func (.reg .b32 %result) flipped(.reg .b32 %given)
{{
not.b32 %result, %given;
ret;
}}
.visible .entry k(.param .u64 data, .param .u64 out)
{{
.shared .align 1024 .b8 tiles[{4 * WORDS}];
.shared .align 16 .b8 cells[{8 * THREADS}];
.reg .{register_type} %d<{count}>, %e<{count}>;
.reg .b32 %r<8>, %x, %y, %own, %pair, %one; .reg .b64 %rd<8>, %to, %da<2>, %db;
.reg .pred %podd, %pwarp, %pgroup, %pn, %p;
ld.param.u64 %rd1, [data]; ld.param.u64 %to, [out];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r1, 2;
mad.wide.u32 %rd1, %r1, 4, %rd1; mad.wide.u32 %rd1, %r2, {4 * WORDS}, %rd1;
mad.wide.u32 %to, %r1, 4, %to; mad.wide.u32 %to, %r2, {4 * THREADS * len(registers)}, %to;
mov.u32 %r4, tiles; add.s32 %r4, %r4, %r3;
{"".join(f"ld.global.b32 %r5, [%rd1+{4 * n}]; st.shared.b32 [%r4+{4 * n}], %r5;" for n in range(0, WORDS, THREADS))}
mov.u32 %own, cells; shl.b32 %pair, %r1, 3; add.s32 %pair, %own, %pair; add.s32 %own, %own, %r3;
and.b32 %r5, %r1, 1; setp.ne.u32 %podd, %r5, 0; and.b32 %r5, %r1, 32; setp.ne.u32 %pwarp, %r5, 0;
setp.ge.u32 %pgroup, %r1, 128; mov.b32 %x, %r1; mov.u32 %one, 1;
mov.b64 %da0, {descriptors[0]:#x}; @%pgroup add.s64 %da0, %da0, 128; mov.b64 %da1, {descriptors[2]:#x};
mov.b64 %db, {descriptors[1]:#x};
{"".join(f"mov.b32 %d{n}, 0; mov.b32 %e{n}, 0;" for n in range(count))}
fence.proxy.async.shared::cta;
bar.sync 0;
{body}
{stores}
ret;
{"" if holds_accumulators else reversal}
ret;
}}""")


def result(kind: str, names: list[str], holds_accumulators: bool, **options: Any) -> Array:
    data = np.random.default_rng(7).standard_normal((2, 2 * WORDS)).astype(np.float32)
    numbers = data.astype("f2").view("u2") if kind == "f16" else (data.view("u4") >> 16).astype("u2")
    numbers[:, 2 * WORDS - 1024 :] = 0
    out = np.zeros((2, 2 * KINDS[kind][1] + 1, THREADS), np.uint32)
    sim.run(
        program(kind, names, holds_accumulators),
        "k",
        grid=2,
        block=THREADS,
        args=[numbers, out],
        check="none",
        **options,
    )
    return out


@pytest.mark.parametrize("kind", list(KINDS))
def test_after_any_step_registers_hold_what_products_have_written(kind: str) -> None:
    for name in steps_of(kind):
        for names in (["product", name], ["product", name, "product"], ["product", "other product", name, "product"]):
            with_accumulators, direct = result(kind, names, True), result(kind, names, False)
            assert with_accumulators.tobytes() == direct.tobytes(), names
            assert with_accumulators.any()


@pytest.mark.parametrize("seed", range(24))
def test_in_any_order_registers_hold_what_products_have_written(seed: int) -> None:
    chance = random.Random(seed)
    kind = chance.choice(list(KINDS))
    steps = list(steps_of(kind))
    names = [step for _ in range(5) for step in (chance.choice(steps[:5]), chance.choice(steps[6:]))]
    options: dict[str, Any] = chance.choice(
        [{}, {"poison": True}, {"precision": "hardware"}, {"schedule": "random", "seed": seed}, {"statistics": True}]
    )
    assert result(kind, names, True, **options).tobytes() == result(kind, names, False, **options).tobytes(), names


def test_products_may_name_the_same_registers_in_another_order() -> None:
    single, double = (result("s32", names, True)[:, :4] for names in (["product"], ["product", "turned product"]))
    assert (double == single + single[:, ::-1]).all()
    assert single.any()


def test_a_machine_that_is_stepped_and_watched_shows_accumulators() -> None:
    records: list[list[Any]] = []
    for holds_accumulators in (True, False):
        data, out = np.full((1, 2 * WORDS), 0x3F80, np.uint16), np.zeros((1, 9, THREADS), np.uint32)
        module = program("f32", ["product", "product"], holds_accumulators)
        machine = sim.Machine(module, "k", grid=1, block=THREADS, args=[data, out], watch=["%d2"])
        values: list[Any] = []
        while machine.step():
            values.append(machine.registers(0, 131)["%d1"])
        records.append([values, [(change.before[0], change.after[0]) for change in machine.finish().watched]])
    assert records[0] == records[1]
    assert [after for _, after in records[0][1]] == [16.0, 32.0]
