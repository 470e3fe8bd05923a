"""Checks that a kernel's static shared memory is within the limit of ptxas for the target."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pyptx.check.body import Body
from pyptx.diagnostics import Diagnostic, Rule
from pyptx.ir import AddressOperand, LabelOperand, LinkingDirective, RegisterOperand, VarDecl
from pyptx.isa.limits import static_shared_limit
from pyptx.isa.targets import Target

_FRAME = """\
.version 8.5
.target sm_90
.address_size 64
.visible .entry k()
{{
    .shared .align 16 .b8 tile[{}];
    .reg .b32 %r;
    st.shared.b32 [tile], 0;
    ret;
}}
"""

TOO_MUCH_STATIC = Rule(
    "PTX0620",
    "too much static shared memory",
    "Shared variables of fixed size are limited to 48 KiB; only targets with the suffix `a` allow more. Use dynamic "
    "shared memory for larger tiles: one `.extern .shared` array whose size is set at launch.",
    _FRAME.format(49153),
    _FRAME.format(49152),
)

RULES = (TOO_MUCH_STATIC,)


def check_shared_memory(body: Body, target: Target) -> Iterator[Diagnostic]:
    """Yield the finding of one kernel: the total size of the shared variables that it names."""
    declarations: dict[int, VarDecl] = {}
    for step in body.steps:
        for operand in step.instruction.operands:
            if isinstance(operand, AddressOperand):
                symbol = step.scope.cache.get(operand.base)
            elif isinstance(operand, RegisterOperand | LabelOperand):
                symbol = step.scope.cache.get(operand.name)
            else:
                continue
            if symbol is not None and symbol.space == "shared" and isinstance(symbol.declaration, VarDecl):
                declarations[id(symbol.declaration)] = symbol.declaration
    limit = static_shared_limit(target)
    size = sum(compute_size(declaration) for declaration in declarations.values())
    if size > limit:
        yield TOO_MUCH_STATIC.report(
            max(declarations.values(), key=compute_size).origin,
            f"kernel `{body.function.name}` uses {size:,} bytes of static shared memory, but {target} allows {limit:,}",
            help="declare one `.extern .shared` array and set its size at launch",
        )


def compute_size(declaration: VarDecl) -> int:
    """Return the size of a declaration in bytes; 0 if another module defines it."""
    if declaration.linking is LinkingDirective.EXTERN:
        return 0
    element = max(1, declaration.type.bits // 8) * (declaration.vector or 1)
    return sum(element * prod((item.array_size or 1, *item.dims)) for item in declaration.declarators)
