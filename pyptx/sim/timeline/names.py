"""What barriers are called: the number of a CTA's, the variable and element of an mbarrier in shared memory."""

from __future__ import annotations

from bisect import bisect_right

from pyptx.ir import VarDecl, visit
from pyptx.sim.program import Program

_OBJECT = 8


class Names:
    """The variables of shared memory by address."""

    def __init__(self, program: Program) -> None:
        shared = {
            item.name
            for node in visit(program.module)
            if isinstance(node, VarDecl) and node.state_space.ptx == ".shared"
            for item in node.declarators
        }
        placed = program.variables.placed
        self._starts = sorted((address, name) for (name, _), address in placed.items() if name in shared)

    def mbarrier(self, address: int) -> str:
        """Return what stands at an address of shared memory: `full`, `full[2]`, `smem+0x400`."""
        at = bisect_right(self._starts, (address, "\U0010ffff")) - 1
        if at < 0:
            return f"{address:#x}"
        start, name = self._starts[at]
        offset = address - start
        if offset == 0:
            last = at + 1 == len(self._starts)
            return name if not last and self._starts[at + 1][0] - start <= _OBJECT else f"{name}[0]"
        return f"{name}[{offset // _OBJECT}]" if offset % _OBJECT == 0 and offset < 256 else f"{name}+{offset:#x}"
