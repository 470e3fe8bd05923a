"""Random kernels with nested control flow: ptxas and the checks accept each, also with line information, and two traces
are equal."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pyptx import Kernel, intrinsic, kernel, ptx, reg, smem
from pyptx.diagnostics import Severity
from pyptx.types import u32

from .tracing import assert_accepted

DEEPEST, PROGRAMS = 4, 30


class Writer:
    """Writes random statements over given registers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.arrays = [reg.array(u32, 4), reg.array(u32, 4, name="named")]
        for array in self.arrays:
            for i in range(4):
                array[i] = i
        self.tile = smem.alloc(u32, (4, 4) if seed % 2 else (128, 128))
        self.plain = (self.sum, self.update, self.copy, self.element, self.barrier)
        self.block_writers = (
            self.branches,
            self.write_counted_loop,
            self.loops,
            self.helper,
            self.write_unrolled_loop,
            self.write_scope,
            self.write_abandoned_blocks,
        )

    def block(self, depth: int, values: list[reg.Reg]) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            x = self.chance.choice(values)
            if depth < DEEPEST and self.chance.random() < 0.6:
                self.chance.choice(self.block_writers)(depth + 1, values, x)
            else:
                self.chance.choice(self.plain)(values, x)

    def condition(self, values: list[reg.Reg]) -> Any:
        x = self.chance.choice(values)
        makers: list[Callable[[], Any]] = [lambda: x < 5, lambda: x == 3, lambda: (x > 1) & (x < 9), lambda: ~(x != 2)]
        return self.chance.choice(makers)()

    def sum(self, values: list[reg.Reg], x: reg.Reg) -> None:
        values.append(x + self.chance.randrange(5))

    def update(self, values: list[reg.Reg], x: reg.Reg) -> None:
        ptx.add(u32, x, x, self.chance.choice(values))

    def copy(self, values: list[reg.Reg], x: reg.Reg) -> None:
        self.chance.choice(self.arrays)[self.chance.randrange(4)] = x * 3

    def element(self, values: list[reg.Reg], x: reg.Reg) -> None:
        self.tile[x & 3, self.chance.randrange(4)] = x
        values.append(self.tile[1, x & 1])

    def barrier(self, values: list[reg.Reg], x: reg.Reg) -> None:
        ptx.named_barrier(self.chance.randrange(8)).sync()

    def branches(self, depth: int, values: list[reg.Reg], x: reg.Reg) -> None:
        with ptx.if_(self.condition(values)):
            self.block(depth, list(values))
        if self.chance.random() < 0.5:
            with ptx.elif_(self.condition(values)):
                self.block(depth, list(values))
        if self.chance.random() < 0.5:
            with ptx.else_():
                self.block(depth, list(values))

    def write_counted_loop(self, depth: int, values: list[reg.Reg], x: reg.Reg) -> None:
        for i in ptx.range_(0, x, self.chance.randrange(1, 4)):
            self.block(depth, [*values, i])
            ptx.break_(pred=self.condition(values))
            ptx.continue_()

    def loops(self, depth: int, values: list[reg.Reg], x: reg.Reg) -> None:
        test_first = self.chance.random() < 0.5
        condition = (lambda: self.condition(values)) if test_first else None
        with ptx.loop("top", pred=lambda: self.condition(values)) if condition is None else ptx.while_(condition):
            self.block(depth, list(values))

    def helper(self, depth: int, values: list[reg.Reg], x: reg.Reg) -> None:
        intrinsic(self.block)(depth, list(values))

    def write_unrolled_loop(self, depth: int, values: list[reg.Reg], x: reg.Reg) -> None:
        ptx.kloop(x, unroll=2, body=lambda: self.block(depth, list(values)))

    def write_scope(self, depth: int, values: list[reg.Reg], x: reg.Reg) -> None:
        with ptx.scope():
            self.block(depth, list(values))
        with ptx.expr():
            ptx.mov(u32, x, (x + 1) * 2)

    def write_abandoned_blocks(self, depth: int, values: list[reg.Reg], x: reg.Reg) -> None:
        openers: list[Callable[[], AbstractContextManager[Any]]] = [
            lambda: ptx.if_(x == 1), ptx.scope, lambda: ptx.loop("lost"), lambda: ptx.while_(lambda: x == 2),
        ]  # fmt: skip
        try:
            with self.chance.choice(openers)():
                self.block(depth, list(values))
                raise KeyError
        except KeyError:
            pass


def program(seed: int) -> Kernel:
    @kernel
    def body() -> None:
        writer = Writer(seed)
        registers = [reg.scalar(u32, n) for n in range(3)]
        writer.block(0, registers)
        writer.block(0, registers)

    return body


def test_random_programs_assemble(seed: int) -> None:
    for number in range(seed, seed + PROGRAMS):
        kernel_object = program(number)
        text = kernel_object.ptx()
        assert_accepted(text)
        assert_accepted(kernel_object.ptx(lineinfo=True, annotate=True))
        assert program(number).ptx() == text
        assert [str(d) for d in kernel_object.check() if d.severity is Severity.ERROR] == []
