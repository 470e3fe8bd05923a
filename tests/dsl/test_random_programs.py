"""Random kernels of nested control flow: ptxas and the checks accept each, also with line information, and two traces
agree."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pyptx import Kernel, intrinsic, kernel, ptx, reg, smem
from pyptx.diagnostics import Severity
from pyptx.types import u32

from .tracing import accepted

DEEPEST, PROGRAMS = 4, 30


class Writer:
    """Writes random statements over the registers that it is given."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.arrays = [reg.array(u32, 4), reg.array(u32, 4, name="named")]
        for array in self.arrays:
            for i in range(4):
                array[i] = i
        self.tile = smem.alloc(u32, (4, 4) if seed % 2 else (128, 128))
        self.plain = (self.sum, self.update, self.copy, self.element, self.barrier)
        self.nested = (
            self.branches,
            self.counted,
            self.loops,
            self.helper,
            self.unrolled,
            self.grouped,
            self.abandoned,
        )

    def block(self, depth: int, known: list[reg.Reg]) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            x = self.chance.choice(known)
            if depth < DEEPEST and self.chance.random() < 0.6:
                self.chance.choice(self.nested)(depth + 1, known, x)
            else:
                self.chance.choice(self.plain)(known, x)

    def condition(self, known: list[reg.Reg]) -> Any:
        x = self.chance.choice(known)
        makers: list[Callable[[], Any]] = [lambda: x < 5, lambda: x == 3, lambda: (x > 1) & (x < 9), lambda: ~(x != 2)]
        return self.chance.choice(makers)()

    def sum(self, known: list[reg.Reg], x: reg.Reg) -> None:
        known.append(x + self.chance.randrange(5))

    def update(self, known: list[reg.Reg], x: reg.Reg) -> None:
        ptx.add(u32, x, x, self.chance.choice(known))

    def copy(self, known: list[reg.Reg], x: reg.Reg) -> None:
        self.chance.choice(self.arrays)[self.chance.randrange(4)] = x * 3

    def element(self, known: list[reg.Reg], x: reg.Reg) -> None:
        self.tile[x & 3, self.chance.randrange(4)] = x
        known.append(self.tile[1, x & 1])

    def barrier(self, known: list[reg.Reg], x: reg.Reg) -> None:
        ptx.named_barrier(self.chance.randrange(8)).sync()

    def branches(self, depth: int, known: list[reg.Reg], x: reg.Reg) -> None:
        with ptx.if_(self.condition(known)):
            self.block(depth, list(known))
        if self.chance.random() < 0.5:
            with ptx.elif_(self.condition(known)):
                self.block(depth, list(known))
        if self.chance.random() < 0.5:
            with ptx.else_():
                self.block(depth, list(known))

    def counted(self, depth: int, known: list[reg.Reg], x: reg.Reg) -> None:
        for i in ptx.range_(0, x, self.chance.randrange(1, 4)):
            self.block(depth, [*known, i])
            ptx.break_(pred=self.condition(known))
            ptx.continue_()

    def loops(self, depth: int, known: list[reg.Reg], x: reg.Reg) -> None:
        test_first = self.chance.random() < 0.5
        again = (lambda: self.condition(known)) if test_first else None
        with ptx.loop("top", pred=lambda: self.condition(known)) if again is None else ptx.while_(again):
            self.block(depth, list(known))

    def helper(self, depth: int, known: list[reg.Reg], x: reg.Reg) -> None:
        intrinsic(self.block)(depth, list(known))

    def unrolled(self, depth: int, known: list[reg.Reg], x: reg.Reg) -> None:
        ptx.kloop(x, unroll=2, body=lambda: self.block(depth, list(known)))

    def grouped(self, depth: int, known: list[reg.Reg], x: reg.Reg) -> None:
        with ptx.scope():
            self.block(depth, list(known))
        with ptx.expr():
            ptx.mov(u32, x, (x + 1) * 2)

    def abandoned(self, depth: int, known: list[reg.Reg], x: reg.Reg) -> None:
        openers: list[Callable[[], AbstractContextManager[Any]]] = [
            lambda: ptx.if_(x == 1), ptx.scope, lambda: ptx.loop("lost"), lambda: ptx.while_(lambda: x == 2),
        ]  # fmt: skip
        try:
            with self.chance.choice(openers)():
                self.block(depth, list(known))
                raise KeyError
        except KeyError:
            pass


def program(seed: int) -> Kernel:
    @kernel
    def written() -> None:
        writer = Writer(seed)
        registers = [reg.scalar(u32, n) for n in range(3)]
        writer.block(0, registers)
        writer.block(0, registers)

    return written


def test_random_programs_assemble(seed: int) -> None:
    for number in range(seed, seed + PROGRAMS):
        made = program(number)
        text = made.ptx()
        accepted(text)
        accepted(made.ptx(lineinfo=True, annotate=True))
        assert program(number).ptx() == text
        assert [str(d) for d in made.check() if d.severity is Severity.ERROR] == []
