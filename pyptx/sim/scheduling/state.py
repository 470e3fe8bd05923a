"""The scheduling state of one batch: which lanes can run where, which wait, which are live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import ImmediateOperand, LabelOperand, RegisterOperand
from pyptx.ir.operands import Operand
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.codegen import make_unsupported_error
from pyptx.sim.execution.machine import Batch
from pyptx.sim.execution.operands import Operands, Unreadable
from pyptx.sim.program.blocks import Block
from pyptx.sim.scheduling.orders import Key, Order
from pyptx.sim.scheduling.reach import Reach
from pyptx.sim.state.barriers import ClusterBarriers, CtaBarriers, Waiter
from pyptx.sim.state.register_pool import RegisterPool


@dataclass(frozen=True, slots=True)
class MBarrierWait:
    """Lanes that each wait for an mbarrier, by its row."""

    waiter: Waiter
    rows: Array


class State:
    """Where every lane of a batch is. The modules beside this one change it."""

    def __init__(self, machine: Batch, order: Order | None) -> None:
        self.order = order
        self.machine, self.program, self.shape = machine, machine.program, machine.shape
        self.blocks = machine.program.blocks
        self.ready: dict[Key, list[Lanes]] = {}
        self.polling: list[tuple[Key, Lanes]] = []
        self.converging: dict[int, list[Waiter]] = {}
        self.alive = np.ones(self.shape.lanes, np.bool_)
        self.live = self.shape.lanes
        self.exit_blocks = np.zeros(self.shape.lanes, np.int32)
        """The block in which an exited lane left."""
        self.sink = machine.sink
        self.barriers = CtaBarriers(self.shape)
        self.clusters = ClusterBarriers(self.shape, machine.launch.cluster_size)
        self.warps_waiting: list[Waiter] = []
        self.plain_barriers: dict[int, int] = {}
        self.returns: list[Array] = []
        self.dynamics: list[Array] = []
        self.mbarrier_waits: list[MBarrierWait] = []
        self.registers: RegisterPool | None = None
        self.columns: list[Waiter] = []
        """Lanes that wait for columns of tensor memory."""
        self.depth = 0
        """The call depth of the group that runs."""
        self.reach: Reach | None = None
        """Reachability in the program, once needed."""
        self.running: tuple[Block, Lanes] | None = None
        """The group that ran last, and its block."""
        self.timeouts: tuple[int, int] = (0, 0)
        self.saved: dict[tuple[int, int], dict[str, Array]] = {}

    def push(self, depth: int, pc: int, lanes: Lanes) -> None:
        """Make lanes runnable at a block."""
        if self.order is None:
            self.ready.setdefault((0, -depth, pc), []).append(lanes)
            return
        for key, subset in self.order.split(depth, pc, lanes):
            self.ready.setdefault(key, []).append(subset)

    def park(self, depth: int, pc: int, lanes: Lanes) -> None:
        """Let lanes that poll continue at a block after the others have run."""
        self.polling += [((0, -depth, pc), lanes)] if self.order is None else self.order.split(depth, pc, lanes)

    def read_guard(self, step: Step, block: Block, lanes: Lanes) -> Array:
        predicate = step.instruction.predicate
        assert predicate is not None
        values = self.read_value(LabelOperand(predicate.register), step, block, lanes)
        return ~values if predicate.negated else values

    def read_value(self, operand: Operand, step: Step, block: Block, lanes: Lanes) -> Array:
        """Return an operand's value in every lane: a register's bits or a number."""
        operands = Operands(self.program, block)
        if isinstance(operand, ImmediateOperand):
            return np.full(lanes.n, int(operand.value))
        if isinstance(operand, RegisterOperand | LabelOperand):
            row = operands.find_row(operand.name, step.scope)
            assert row is not None
            return self.machine.read_row(row.letter, row.index)[lanes.sel]
        try:
            expression = operands.read(operand, "b64", step.scope)
        except Unreadable as why:
            raise make_unsupported_error(step, str(why)) from None
        return np.broadcast_to(self.evaluate(operands, expression, lanes), lanes.n)

    def evaluate(self, operands: Operands, expression: str, lanes: Lanes) -> Any:
        """Return the value of an expression over these operands."""
        scope: dict[str, Any] = dict(operands.constants)
        for name, (letter, suffix, index) in operands.views.items():
            scope[name] = self.machine.views[letter + suffix][index][lanes.sel]
        if operands.uses_stack:
            scope["sp"] = self.machine.sp[lanes.sel]
        return eval(expression, scope)
