"""The main program of a generated file: print its PTX, compare it with the original, assemble it, simulate it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyptx.codegen.digest import hash_text, hash_tokens
from pyptx.diagnostics import PtxError, Severity, render
from pyptx.ir.nodes import Function

if TYPE_CHECKING:
    from pyptx.ptx.transcript import ExactModule

FINE, WRONG = 0, 1


def main(module: ExactModule, original: tuple[str, str], argv: Sequence[str] | None = None) -> int:
    """Print the PTX; report on standard error whether it equals the original (by the hashes of its bytes and tokens),
    and the results of ptxas and the simulator. Return the exit status."""
    args = _build_parser().parse_args(argv)
    try:
        text = module.ptx()
    except PtxError as error:
        return _report_error(error)
    if not args.quiet:
        sys.stdout.write(text)
        sys.stdout.flush()
    _say(f"the PTX is {_describe_likeness(module, text, original)}")
    status = FINE if args.no_assembly else _assemble(module)
    if args.run:
        status = max(status, _simulate(module, args))
    return status


def _describe_likeness(module: ExactModule, text: str, original: tuple[str, str]) -> str:
    if hash_text(text) == original[0]:
        return "identical to the original, byte for byte"
    if hash_tokens(module.module()) == original[1]:
        return "identical to the original except for spacing, comments and .loc"
    return "different from the original"


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Print the PTX of this file and report on it.")
    parser.add_argument("--quiet", action="store_true", help="do not print the PTX")
    parser.add_argument("--no-assembly", action="store_true", help="do not call ptxas")
    parser.add_argument("--run", action="store_true", help="simulate a kernel on generated arguments")
    parser.add_argument("--entry", metavar="NAME", help="the kernel to simulate, by its name in PTX")
    parser.add_argument("--grid", metavar="N", type=int, default=1, help="number of CTAs to simulate (1)")
    parser.add_argument("--block", metavar="N", type=int, help="threads per CTA")
    parser.add_argument("--bytes", metavar="N", type=int, default=1 << 20, help="size of every buffer (1 MiB)")
    parser.add_argument("--number", metavar="N", type=int, default=64, help="value of integer parameters (64)")
    return parser


def _report_error(error: PtxError) -> int:
    _say(render(error.diagnostics, error.source))
    return WRONG


def _assemble(module: ExactModule) -> int:
    """Assemble, and print the resources of each kernel."""
    from pyptx.toolchain import ToolMissing

    try:
        resources = module.resources()
    except ToolMissing as missing:
        _say("; ".join(f"not assembled: {d.message}" for d in missing.diagnostics))
        return FINE
    except PtxError as error:
        serious = [d for d in error.diagnostics if d.severity is Severity.ERROR] or list(error.diagnostics)
        _say(render(serious[:10]))
        return WRONG
    for name, used in resources.items():
        spills = f", {used.spill_stores} bytes spilled" if used.spill_stores else ""
        _say(f"{name}: {used.registers} registers, {used.shared} bytes of shared memory{spills}")
    return FINE


def _simulate(module: ExactModule, args: argparse.Namespace) -> int:
    from pyptx.codegen.trial import run_trial

    entries = [node for node in module.module().directives if isinstance(node, Function) and node.is_entry]
    kernels = [node for node in entries if node.definition and args.entry in (None, node.name)]
    if not kernels:
        _say(
            f"no kernel {args.entry or ''} to simulate; the kernels are "
            f"{', '.join(node.name for node in entries) or 'none'}"
        )
        return WRONG
    try:
        for line in run_trial(module.module(), kernels[0], args.grid, args.block, args.bytes, args.number):
            _say(line)
    except PtxError as error:
        return _report_error(error)
    return FINE


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
