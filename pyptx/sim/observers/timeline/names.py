"""Names of barriers: the number of a CTA barrier, the variable and element of an mbarrier in shared memory.

A traced kernel with much shared memory keeps everything in one symbol; its scopes `barrier_address(x)` still name the
objects.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from pyptx.ir import BinaryOperand, ImmediateOperand, Instruction, IntrinsicScope, LabelOperand, Module, VarDecl, visit
from pyptx.ir.walk import parts_of
from pyptx.sim.program.blocks import Program

_OBJECT = 8
_INIT = re.compile(r"mbarrier\.init\((\w+)(\[)?")
_NEAR = 256
"""Beyond this offset, a variable holds more than mbarriers: show an offset, not an index."""


class Names:
    """The variables of shared memory by address."""

    def __init__(self, program: Program) -> None:
        arrays = {
            item.name: item.array_size is not None
            for node in visit(program.module)
            if isinstance(node, VarDecl) and node.state_space.ptx == ".shared"
            for item in node.declarators
        }
        addresses = {name: address for (name, _), address in program.variables.addresses.items() if name in arrays}
        starts = {address: name for name, address in addresses.items()}
        for symbol, offset, name in _iterate_barriers(program.module):
            if symbol in addresses:
                starts[addresses[symbol] + offset] = name
                arrays.setdefault(name, True)
        self._starts, self._declared = (
            sorted(starts.items()),
            sorted((address, name) for name, address in addresses.items()),
        )
        self._arrays = arrays

    def name_mbarrier(self, address: int, first: int, source_line: str = "") -> str:
        """Return the name of an address of shared memory: `full`, `full[2]`, `smem+0x400`. `first` is the address of
        the first object of its group, and `source_line` the line of Python that initializes them."""
        start, name = _find_start(self._starts, address)
        if start < first:
            match = _INIT.search(source_line)
            if match is not None:
                return f"{match[1]}[{(address - first) // _OBJECT}]" if match[2] else match[1]
            start, name = _find_start(self._declared, address)
        if not name:
            return f"{address:#x}"
        offset = address - start
        if offset == 0 and not self._arrays[name]:
            return name
        return f"{name}[{offset // _OBJECT}]" if offset % _OBJECT == 0 and offset < _NEAR else f"{name}+{offset:#x}"


def _find_start(starts: list[tuple[int, str]], address: int) -> tuple[int, str]:
    """Return the last start at or before an address, with an empty name if there is none."""
    index = bisect_right(starts, (address, "\U0010ffff")) - 1
    return starts[index] if index >= 0 else (0, "")


def _iterate_barriers(module: Module) -> Iterator[tuple[str, int, str]]:
    """Yield symbol, offset and name of the mbarriers whose address a traced kernel computes."""
    for scope in visit(module):
        if not isinstance(scope, IntrinsicScope) or scope.name != "barrier_address":
            continue
        for part in (p for s in scope.body[:1] if isinstance(s, Instruction) for p in parts_of(s)):
            if (
                isinstance(part, BinaryOperand)
                and isinstance(part.left, LabelOperand)
                and isinstance(part.right, ImmediateOperand)
            ):
                yield part.left.name, int(part.right.value), scope.args_repr
