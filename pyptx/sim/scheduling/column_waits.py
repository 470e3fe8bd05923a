"""Lanes that wait for columns of tensor memory (manual: tcgen05.alloc): an allocation without enough consecutive free
columns waits for a deallocation and tries again."""

from __future__ import annotations

import numpy as np

from pyptx.isa.traits import Trait
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiter


def resume_allocated(state: State, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
    """Return the lanes that continue after an allocation or deallocation; lanes without columns wait."""
    tensor = state.machine.memory.tensor
    if Trait.FREES in block.steps[0].traits:
        waiters, state.columns = state.columns, []
        for item in waiters:
            state.push(item.depth, item.pc, item.lanes)
        return lanes
    if not tensor.refused_lanes:
        return lanes
    lanes_without_columns, tensor.refused_lanes = np.sort(np.concatenate(tensor.refused_lanes)), []
    state.columns.append(Waiter(state.shape.select_index(lanes_without_columns), block.pc, depth, block.pc))
    return lanes.subset(~np.isin(lanes.index, lanes_without_columns))
