"""Checks that a tensor map passed by value is used through its generic address.

`mov` gives the .param address of a parameter, but the copy instructions take a generic address, and ptxas does not
detect the difference. (With ptxas 13.5 the module assembles, and the copy reads from the wrong address.)
"""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check.body import Body, Step
from pyptx.check.symbols import Kind
from pyptx.diagnostics import Diagnostic, Rule
from pyptx.ir import AddressOperand, LabelOperand, RegisterOperand, operand_span
from pyptx.isa.model import Kind as OperandKind
from pyptx.isa.traits import Trait

_FRAME = """\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 128 .b8 map[128])
{{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    .shared .align 128 .b8 tile[4096];
    .shared .align 8 .b64 full;
    mov.b64 %rd0, map;
    {}
    mov.b32 %r0, tile;
    mov.b32 %r1, full;
    mov.b32 %r2, 0;
    cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r0], [{}, {{%r2}}], [%r1];
    ret;
}}
"""

NOT_GENERIC = Rule(
    "PTX0630",
    "tensor map without cvta",
    "The tensor map operand is a generic address, but `mov` gives the .param address of a kernel parameter. Without "
    "`cvta.param.u64`, ptxas accepts the instruction silently and it reads a tensor map from the wrong address.",
    _FRAME.format("", "%rd0"),
    _FRAME.format("cvta.param.u64 %rd1, %rd0;", "%rd1"),
)

RULES = (NOT_GENERIC,)


def check_tensor_maps(body: Body) -> Iterator[Diagnostic]:
    """Yield the findings of one kernel."""
    takes_map: dict[int, bool] = {}
    users: list[Step] = []
    for step in body.steps:
        key = id(step.signature)
        if key not in takes_map:
            takes_map[key] = bool(_find_map_operands(step))
        if takes_map[key] and _find_map_operands(step):
            users.append(step)
    if not users:
        return
    raw = _find_parameter_addresses(body)
    for step in users:
        for index in _find_map_operands(step):
            address = step.instruction.operands[index]
            assert isinstance(address, AddressOperand)
            if address.base in raw:
                yield NOT_GENERIC.report(
                    operand_span(step.instruction, index),
                    f"`{address.base}` is a .param address, but the instruction takes a generic address",
                    help=f"add `cvta.param.u64 %rd, {address.base};` and use %rd",
                )


def _find_map_operands(step: Step) -> list[int]:
    return [
        index
        for index, formal in enumerate(step.signature or ())
        if formal.kind is OperandKind.ADDRESS
        and formal.parts[0].name == TENSOR_MAP
        and isinstance(step.instruction.operands[index], AddressOperand)
    ]


TENSOR_MAP = "map"
"""The table's name for the operand."""


def _find_parameter_addresses(body: Body) -> set[str]:
    """Return the registers whose only write is a `mov` of a parameter's address."""
    raw: set[str] = set()
    write_counts: dict[str, int] = {}
    for step in body.steps:
        operands = step.instruction.operands
        if not operands or not isinstance(operands[0], RegisterOperand):
            continue
        name = operands[0].name
        write_counts[name] = write_counts.get(name, 0) + 1
        source = operands[-1]
        if step.traits.get(Trait.COMPUTES) == "copy" and isinstance(source, LabelOperand):
            symbol = step.scope.find(source.name)
            if symbol is not None and symbol.kind is Kind.VARIABLE and symbol.entry:
                raw.add(name)
    return {name for name in raw if write_counts[name] == 1}
