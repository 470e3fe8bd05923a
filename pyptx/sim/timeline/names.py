"""What barriers are called: the number of a CTA's, the variable and element of an mbarrier in shared memory."""

from __future__ import annotations

from bisect import bisect_right

from pyptx.ir import VarDecl, visit
from pyptx.sim.program import Program

_OBJECT = 8
_NEAR = 256
"""Further in, a variable holds more than barriers: the offset says more than an index."""


class Names:
    """The variables of shared memory by address."""

    def __init__(self, program: Program) -> None:
        arrays = {
            item.name: item.array_size is not None
            for node in visit(program.module)
            if isinstance(node, VarDecl) and node.state_space.ptx == ".shared"
            for item in node.declarators
        }
        placed = program.variables.placed
        self._starts = sorted((address, name) for (name, _), address in placed.items() if name in arrays)
        self._arrays = arrays

    def mbarrier(self, address: int) -> str:
        """Return what stands at an address of shared memory: `full`, `full[2]`, `smem+0x400`."""
        at = bisect_right(self._starts, (address, "\U0010ffff")) - 1
        if at < 0:
            return f"{address:#x}"
        start, name = self._starts[at]
        offset = address - start
        if offset == 0 and not self._arrays[name]:
            return name
        return f"{name}[{offset // _OBJECT}]" if offset % _OBJECT == 0 and offset < _NEAR else f"{name}+{offset:#x}"
