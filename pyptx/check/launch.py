"""Checks a kernel's performance directives: mutually exclusive ones, missing ones, and blocks too large to launch."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pyptx.check.body import Body
from pyptx.diagnostics import Diagnostic, Rule, Severity
from pyptx.ir import Function, opcode_span
from pyptx.isa.limits import THREADS_PER_CTA, entry_registers
from pyptx.isa.traits import Trait

_FRAME = """\
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k()
{}
{{
    {}
    ret;
}}
"""

EXCLUSIVE = Rule(
    "PTX0610",
    "mutually exclusive directives",
    (
        "`.reqntid` fixes what `.maxntid` bounds, and `.reqnctapercluster` fixes what `.maxclusterrank` bounds: use "
        "one of the two."
    ),
    _FRAME.format(".maxntid 128 .reqntid 128", ""),
    _FRAME.format(".reqntid 128", ""),
)
NEEDS_OTHER = Rule(
    "PTX0611",
    "directive without the one it requires",
    "`.blocksareclusters` requires directives for both the block size and the cluster size.",
    _FRAME.format(".blocksareclusters", ""),
    _FRAME.format(".blocksareclusters .reqntid 128 .reqnctapercluster 2", ""),
)
IGNORED = Rule(
    "PTX0612",
    "directive or instruction that ptxas may ignore",
    "`.minnctapersm` and `.maxnctapersm` need a block size. `setmaxnreg` takes effect only if the kernel's register "
    "count is fixed: by `.maxnreg`, by `.minnctapersm` with a block size, or by the ptxas option `--maxrregcount`. "
    "`.reqntid` alone does not fix it; `.maxntid` alone does only for kernels that need many registers.",
    _FRAME.format(".minnctapersm 2", ""),
    _FRAME.format(".minnctapersm 2 .maxntid 128", ""),
    Severity.WARNING,
)
TOO_MANY_THREADS = Rule(
    "PTX0613",
    "block too large",
    "A CTA has at most 1,024 threads on every architecture.",
    _FRAME.format(".reqntid 64, 32", ""),
    _FRAME.format(".reqntid 32, 32", ""),
    Severity.WARNING,
)
ENTRY_PARAMETER = Rule(
    "PTX0614",
    "kernel parameter outside .param",
    "A kernel's parameters are in the .param space; only functions take registers.",
    _FRAME.replace("k()", "k(.reg .u32 a)").format("", ""),
    _FRAME.replace("k()", "k(.param .u32 a)").format("", ""),
)

RULES = (EXCLUSIVE, NEEDS_OTHER, IGNORED, TOO_MANY_THREADS, ENTRY_PARAMETER)

_PAIRS = (("maxntid", "reqntid"), ("reqnctapercluster", "maxclusterrank"))


def check_launch(body: Body) -> Iterator[Diagnostic]:
    """Yield the findings of one function."""
    function = body.function
    directives = {d.name: d.values for d in function.directives}
    for first, second in _PAIRS:
        if first in directives and second in directives:
            yield EXCLUSIVE.report(
                function.origin, f"`.{first}` and `.{second}` cannot be combined", help=f"remove `.{first}`"
            )
    if "blocksareclusters" in directives and not {"reqntid", "reqnctapercluster"} <= directives.keys():
        yield NEEDS_OTHER.report(
            function.origin, "`.blocksareclusters` needs `.reqntid` and `.reqnctapercluster`", help="add both"
        )
    has_block_size = "maxntid" in directives or "reqntid" in directives
    for name in ("minnctapersm", "maxnctapersm"):
        if name in directives and not has_block_size:
            yield IGNORED.report(
                function.origin,
                f"`.{name}` is ignored without `.maxntid` or `.reqntid`",
                help="add `.maxntid` or `.reqntid`",
            )
    if entry_registers(directives) is None:
        yield from _check_setmaxnreg(body, "maxntid" in directives)
    for name in ("maxntid", "reqntid"):
        threads = prod(int(v) for v in directives.get(name, ()))
        if threads > THREADS_PER_CTA:
            yield TOO_MANY_THREADS.report(
                function.origin,
                f"`.{name}` requests {threads} threads per block",
                help="a block has at most 1024 threads",
            )
    yield from _check_parameters(function)


def _check_setmaxnreg(body: Body, has_maxntid: bool) -> Iterator[Diagnostic]:
    why = "no directive fixes the kernel's register count at its start"
    if has_maxntid:
        why = "`.maxntid` alone fixes the register count only if the kernel needs many registers"
    for step in body.steps:
        if step.traits.get(Trait.SUSPENDS) == "registers" and body.function.is_entry:
            yield IGNORED.report(
                opcode_span(step.instruction),
                f"`setmaxnreg` may be ignored: {why}",
                help="add `.maxnreg`, or `.minnctapersm` with a block size, or run ptxas with --maxrregcount",
            )
            return


def _check_parameters(function: Function) -> Iterator[Diagnostic]:
    for param in function.params:
        if function.is_entry and param.state_space.ptx != ".param":
            yield ENTRY_PARAMETER.report(
                function.origin, f"kernel parameter `{param.name}` must be in .param, not in {param.state_space.ptx}"
            )
