"""`pyptx sim FILE …`: runs a kernel on the CPU, reports hazards and hangs, compares and saves results."""

from __future__ import annotations

import argparse
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pyptx import sim, tensormap
from pyptx.cli import FINDINGS, OK, UNUSABLE, sim_kernels
from pyptx.cli import sim_arguments as arguments
from pyptx.cli.output import complain, has_errors, place_findings, print_findings, print_foreign, print_json
from pyptx.cli.sim_outputs import Expectation, Saving, describe_differences, parse_expectation, parse_saving, save
from pyptx.cli.sources import STDIN, Source, Unreadable, read
from pyptx.diagnostics import Diagnostic, Origin, PtxError, Span, escape_unprintable
from pyptx.ir import Function, Module
from pyptx.parser import parse
from pyptx.runtime.rules import ARRAYS, GRID
from pyptx.sim.launch.prepared import MAX_STEPS
from pyptx.sim.launch.room import find_free_memory
from pyptx.sim.reports.findings import group_by_cause
from pyptx.sim.reports.graph import HangReport
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.schedules import SEEDS, list_orders

_USAGE = {
    rule.code
    for rule in (
        faults.MISSING_ENTRY,
        faults.ARGUMENTS,
        faults.LAUNCH_SHAPE,
        faults.OUT_OF_MEMORY,
        ARRAYS,
        GRID,
        *tensormap.RULES,
    )
}
"""Codes that a launch reports for wrong usage."""
_DEFAULTS = {
    "grid": "1", "block": "1", "cluster": "1", "schedule": "eager", "check": "all", "precision": "float32",
}  # fmt: skip
_ALL = "all"
_COUNT, _POSITIVE = partial(arguments.parse_whole_number, 0), partial(arguments.parse_whole_number, 1)
_NOT_GIVEN = (None, False, 0, "1")
_EPILOG = """\
arguments: TYPE=VALUE for a scalar, TYPE[SHAPE]=VALUE for an array, in the order of the kernel's parameters.
  values: zeros, ones, arange, randn, uniform(0,1), randint(0,10), a number, a file.npy
  a Python kernel takes its inputs, then optionally its outputs, which are otherwise uninitialized
  a tensor map instead of an address: 'bf16[256,512]=randn map(box=128x64, swizzle=128B)'

exit status: 0 without errors; 1 on errors, hangs, differences from --expect, and on warnings with --check strict;
  2 on wrong usage or a launch that does not match the kernel

examples:
  pyptx sim scale.ptx --grid 8 --block 128 --arg f32[1024]=randn --arg f32=2 --save 0=scaled.npy
  pyptx sim main.ptx library.ptx --entry main --block 32 --arg f32[32]=zeros
  pyptx sim add.py:add --arg f32[1000]=randn --arg f32[1000]=randn --save c=sum.npy
  pyptx sim hangs.ptx --block 64 --arg u32[64]=zeros --schedule all
"""


class Misused(ValueError):
    """The command line is wrong; the message is for the user."""


@dataclass(slots=True)
class Request:
    """One parsed command line. Several `sources` are linked."""

    sources: list[Source]
    name: str
    launch: Callable[[list[arguments.Value], dict[str, Any]], tuple[sim.Result, list[arguments.Value]]]
    """Runs the kernel on arguments, with options; returns the result and the arguments after the run."""
    specs: list[arguments.Spec]
    options: dict[str, Any]
    saves: list[Saving]
    expects: list[Expectation]


@dataclass(slots=True)
class Outcome:
    """The outcome of one run."""

    schedule: str
    seed: int
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    wrong: list[str] = field(default_factory=list[str])
    usage: bool = False
    result: sim.Result | None = None
    timeline: Any = None
    output: str = ""
    hang: HangReport | None = None

    @property
    def failed(self) -> bool:
        return bool(self.wrong) or has_errors(self.findings)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    _add_launch_arguments(parser)
    _add_run_arguments(parser)
    _add_result_arguments(parser)


def _add_launch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+",
        help="a PTX file, several to link, - for standard input, or FILE.py:NAME for a Python kernel",
    )  # fmt: skip
    parser.add_argument("--entry", metavar="NAME", help="the kernel; may be omitted if there is only one")
    for name, unit in (("grid", "CTAs"), ("block", "threads per CTA"), ("cluster", "CTAs per cluster")):
        parser.add_argument(f"--{name}", metavar="X[,Y[,Z]]", default=_DEFAULTS[name], help=f"{unit} (default: 1)")
    parser.add_argument(
        "--shared", metavar="BYTES", type=_COUNT, default=0, help="size of dynamic shared memory (default: 0)"
    )
    parser.add_argument("--arg", metavar="SPEC", action="append", default=[], help="a kernel argument; see below")
    parser.add_argument(
        "--data-seed", metavar="N", type=_COUNT, default=0, help="seed for the random arguments (default: 0)"
    )


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schedule", default="eager", metavar="NAME", help="eager (the default), lazy, random, adversarial, or all"
    )
    parser.add_argument("--seed", metavar="N", type=_COUNT, default=0, help="seed for the schedule (default: 0)")
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=_POSITIVE,
        help="run with N seeds, starting at --seed (default: 1; with --schedule all: 5)",
    )
    checks = "all (the default), none, strict, or classes of hazards; all,numerics also checks values"
    parser.add_argument("--check", default="all", metavar="WHAT", help=checks)
    parser.add_argument(
        "--precision",
        default="float32",
        metavar="HOW",
        help="precision of matrix products: float32 (the default) or hardware",
    )
    parser.add_argument(
        "--max-steps",
        metavar="N",
        type=_POSITIVE,
        help=f"stop with an error after N instructions (default: {MAX_STEPS:,})",
    )
    parser.add_argument("--cooperative", action="store_true", help="keep all CTAs resident, as grid barriers require")


def _add_result_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--expect", metavar="ARG=FILE", action="append", default=[], help="compare an array with a .npy file"
    )
    parser.add_argument(
        "--tolerance", metavar="X", type=float, default=0.0, help="relative tolerance of --expect (default: 0, exact)"
    )
    parser.add_argument("--save", metavar="ARG=FILE", action="append", default=[], help="write an array to a .npy file")
    parser.add_argument(
        "--timeline", metavar="FILE", help="write a timeline of warps and engines: .html, or .json (Perfetto)"
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="for a hang, list the past events and the threads that could still arrive",
    )
    parser.add_argument(
        "--stats", action="store_true", help="print counts of bank conflicts, sectors, instructions and bytes"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    try:
        request = _build_request(args)
    except (Unreadable, arguments.Unusable, Misused) as why:
        complain(str(why))
        return UNUSABLE
    except PtxError as why:
        sources = [Source("<stdin>", "") if name == STDIN else read(_strip_kernel_name(name)) for name in args.files]
        _print_findings(_name_files(why.diagnostics, sources), sources)
        return FINDINGS
    outcomes: list[Outcome] = []
    for schedule, seed in _list_orders(args):
        outcomes.append(_run_once(request, args, schedule, seed))
        if outcomes[-1].usage or (outcomes[-1].failed and args.schedule != _ALL):
            break
    return _report(request, args, outcomes)


def _list_orders(args: argparse.Namespace) -> list[tuple[str, int]]:
    """Return the schedules and seeds to run."""
    if args.schedule == _ALL:
        return list(list_orders(args.repeat or SEEDS, args.seed))
    return [(args.schedule, seed) for seed in range(args.seed, args.seed + (args.repeat or 1))]


def _build_request(args: argparse.Namespace) -> Request:
    """Parse the command line and its files; raise Unreadable, Unusable, Misused or PtxError (for syntax)."""
    if not 0 <= args.tolerance < math.inf:
        raise Misused(f"--tolerance {args.tolerance:g}: expected a number of at least 0")
    if args.timeline and Path(args.timeline).suffix not in (".html", ".htm", ".json"):
        raise Misused(f"--timeline {args.timeline}: the name must end in .html or .json")
    if args.timeline and "\0" in args.timeline:
        raise Misused("--timeline: a file name cannot contain NUL")
    if args.timeline and not Path(args.timeline).absolute().parent.is_dir():
        raise Misused(f"--timeline {args.timeline}: there is no directory {Path(args.timeline).parent}")
    dims = {name: _parse_dims(name, getattr(args, name)) for name in ("grid", "block", "cluster")}
    specs = [arguments.parse_argument(text) for text in args.arg]
    arguments.require_room(specs, find_free_memory())
    sources, kernel, launch, names = _load_kernel(args.files, args.entry, specs)
    if _strip_kernel_name(args.files[0]).endswith(".py"):
        own = [name for name in (*sim_kernels.OF_THE_KERNEL, "entry") if getattr(args, name) not in _NOT_GIVEN]
        if own:
            raise Misused(
                f"--{own[0]} is not for a Python kernel: except for --grid, `{kernel}` defines its own launch"
            )
    arrays = [index >= len(specs) or specs[index].shape is not None for index in range(len(names))]
    options = {
        **dims, "shared": args.shared, "cooperative": args.cooperative,
        "precision": args.precision, "check": args.check, "on_hazard": "report", "timeline": bool(args.timeline),
        "statistics": args.stats,
        **({"max_steps": args.max_steps} if args.max_steps is not None else {}),
    }  # fmt: skip
    saves = [parse_saving(text, names, arrays) for text in args.save]
    expects = [parse_expectation(text, names, arrays) for text in args.expect]
    return Request(sources, kernel, launch, specs, options, saves, expects)


def _strip_kernel_name(name: str) -> str:
    """Return the file of an operand, which is a file or a kernel in one."""
    return re.sub(r"(\.py):\w+$", r"\1", name)


def _load_kernel(
    files: Sequence[str], name: str | None, specs: list[arguments.Spec]
) -> tuple[list[Source], str, Any, list[str]]:
    """Return the texts, the kernel's name, a function that runs it, and the names of its arguments (and of a Python
    kernel's outputs)."""
    if len(files) > 1 and any(_strip_kernel_name(file).endswith(".py") for file in files):
        raise Misused("only PTX files can be linked: a Python kernel runs alone")
    kernel, _ = sim_kernels.load_kernel(files[0])
    if kernel is not None:
        source, names = read(files[0].rpartition(":")[0]), sim_kernels.list_names(kernel)
        _check_count(kernel.name, names[: len(kernel.in_specs)] if len(specs) < len(names) else names, specs)
        return [source], kernel.name, partial(sim_kernels.launch, kernel), names
    sources = [read(file) for file in files]
    if files[0].endswith(".py"):
        raise Misused(f"{files[0]}: also name the kernel: {files[0]}:NAME")
    module = sim.link([_parse(source) for source in sources], [source.name for source in sources])
    entry = _find_entry(module, name)
    parameters = [f"{p.name} ({p.type.ptx}{f'[{p.array_size}]' if p.array_size else ''})" for p in entry.params]
    _check_count(entry.name, parameters, specs)
    return sources, entry.name, partial(_launch, module, entry.name), [param.name for param in entry.params]


def _parse(source: Source) -> Module:
    """Parse a text; a PtxError names the file."""
    try:
        return parse(source.text)
    except PtxError as why:
        raise PtxError(place_findings(why.diagnostics, source), source.text) from None


def _launch(
    module: Module, entry: str, values: list[arguments.Value], options: dict[str, Any]
) -> tuple[sim.Result, list[arguments.Value]]:
    return sim.run(module, entry, args=values, **options), values


def _parse_dims(name: str, text: str) -> tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(arguments.is_number(part) and int(part) > 0 for part in parts):
        raise Misused(
            f"--{name} {arguments.shorten(text)}: expected one to three positive integers, for example 4 or 16,16"
        )
    return tuple(int(part) for part in parts)


def _find_entry(module: Module, name: str | None) -> Function:
    entries = [s for s in module.directives if isinstance(s, Function) and s.is_entry and s.definition]
    for entry in entries:
        if name == entry.name or (name is None and len(entries) == 1):
            return entry
    names = ", ".join(entry.name for entry in entries) or "none"
    if name is None and entries:
        raise Misused(f"the file has several kernels; name one with --entry: {names}")
    raise Misused(
        f"no kernel `{name}` in the file; its kernels: {names}" if name is not None else "the file has no kernel"
    )


def _check_count(name: str, parameters: Sequence[str], specs: Sequence[arguments.Spec]) -> None:
    """Reject a wrong number of arguments; the simulator checks their sizes."""
    if len(parameters) == len(specs):
        return
    count = f"{len(parameters)} parameter{'' if len(parameters) == 1 else 's'}"
    raise Misused(
        f"`{name}` has {count}, found {len(specs)} --arg; the parameters are: {', '.join(parameters) or 'none'}"
    )


def _run_once(request: Request, args: argparse.Namespace, schedule: str, seed: int) -> Outcome:
    """Run the kernel on new arguments and compare the results."""
    outcome = Outcome(schedule, seed)
    # Of several runs, only the reported one shows its output.
    silent = redirect_stdout(None) if args.json or len(_list_orders(args)) > 1 else nullcontext()
    try:
        values = [arguments.make_value(spec, (args.data_seed, index)) for index, spec in enumerate(request.specs)]
        with silent:
            result, values = request.launch(values, {**request.options, "schedule": schedule, "seed": seed})
    except arguments.Unusable as why:
        outcome.wrong, outcome.usage = [str(why)], True
        return outcome
    except PtxError as why:
        outcome.hang = why.report if isinstance(why, sim.Hang) else None
        diagnostics = [_add_hang_details(d, outcome.hang) if args.verbose else d for d in why.diagnostics]
        outcome.findings = _name_files(diagnostics, request.sources)
        outcome.usage = any(d.code in _USAGE for d in why.diagnostics)
        outcome.timeline, outcome.output = getattr(why, "timeline", None), why.printed
        return outcome
    outcome.result, outcome.timeline, outcome.output = result, result.timeline, result.printed
    outcome.findings = _name_files(
        [finding.diagnostic() for finding in group_by_cause(result.hazards)], request.sources
    )
    if "strict" in args.check.split(","):
        count = len(outcome.findings)
        outcome.wrong = [f"{count} finding{'s' * (count != 1)}, --check strict"] if count else []
    try:
        for item in request.expects:
            outcome.wrong += describe_differences(item, arguments.get_array(values[item.index]), args.tolerance)
        for item in request.saves:
            save(item, arguments.get_array(values[item.index]))
    except arguments.Unusable as why:
        outcome.wrong, outcome.usage = [str(why)], True
    return outcome


def _add_hang_details(diagnostic: Diagnostic, hang: HangReport | None) -> Diagnostic:
    """Return a finding with the full report of a hang."""
    return (
        replace(diagnostic, details=tuple(hang.format_lines()))
        if hang is not None and diagnostic.details
        else diagnostic
    )


def _name_files(diagnostics: Iterable[Diagnostic], sources: Sequence[Source]) -> list[Diagnostic]:
    """Return findings that name their files, also in their notes, in order of occurrence."""
    names, first = {source.name for source in sources}, sources[0].name

    def name_file(origin: Origin | None) -> Origin | None:
        return origin._replace(file=first) if isinstance(origin, Span) and origin.file not in names else origin

    return [
        replace(
            d, origin=name_file(d.origin), other=name_file(d.other),
            notes=tuple(note.replace("<ptx>:", f"{first}:") for note in d.notes),
            details=tuple(line.replace("<ptx>:", f"{first}:") for line in d.details),
        )
        for d in diagnostics
    ]  # fmt: skip


def _print_findings(diagnostics: Iterable[Diagnostic], sources: Sequence[Source]) -> None:
    """Print findings on standard error, with source lines."""
    texts = {source.name: source for source in sources}
    for name, of_file in groupby(diagnostics, _find_file):
        print_findings(list(of_file), texts.get(name, sources[0]), sys.stderr)


def _find_file(diagnostic: Diagnostic) -> str:
    return (diagnostic.origin.file if diagnostic.origin else None) or ""


def _choose_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the run to report: the first that failed, or the last."""
    return next((outcome for outcome in outcomes if outcome.failed or outcome.usage), outcomes[-1])


def _report(request: Request, args: argparse.Namespace, outcomes: list[Outcome]) -> int:
    last = _choose_outcome(outcomes)
    if args.timeline and last.timeline is not None:
        try:
            last.timeline.save(args.timeline)
        except OSError as why:
            complain(f"{args.timeline}: {why.strerror or why}")
            return UNUSABLE
    if args.json:
        print_json(_build_document(request, args, outcomes))
    else:
        _print_outcomes(request, args, outcomes)
    return UNUSABLE if last.usage else FINDINGS if last.failed else OK


def _print_outcomes(request: Request, args: argparse.Namespace, outcomes: list[Outcome]) -> None:
    outcome = _choose_outcome(outcomes)
    if outcome.usage and outcome.wrong:
        complain(outcome.wrong[0])
        return
    if len(_list_orders(args)) > 1:
        print_foreign(outcome.output)
    _print_findings(outcome.findings, request.sources)
    for text in outcome.wrong:
        print(escape_unprintable(f"{request.sources[0].name}: {text}"), file=sys.stderr)
    if outcome.usage:
        return
    if outcome.result is not None:
        print(escape_unprintable(_format_summary(request, args, outcomes)))
        if outcome.result.coverage is not None:
            print(outcome.result.coverage.describe(_describe_orders(args, outcomes)))
        if args.stats:
            print(outcome.result.stats.statistics)
    if args.schedule == _ALL:
        _print_failed(args, outcomes)
    elif outcome.failed and (len(_list_orders(args)) > 1 or args.schedule in ("random", "adversarial")):
        print(
            escape_unprintable(f"seed {outcome.seed} failed; to repeat it: {_format_command(args, outcome)}"),
            file=sys.stderr,
        )


def _print_failed(args: argparse.Namespace, outcomes: Sequence[Outcome]) -> None:
    """Print a line for each failed order, with the command that repeats it."""
    failures = [outcome for outcome in outcomes if outcome.failed]
    for outcome in failures:
        codes = ", ".join(dict.fromkeys([d.code for d in outcome.findings if has_errors([d])]))
        order = f"{outcome.schedule}, seed {outcome.seed}"
        failure = f"{order} failed ({codes or 'wrong results'}); to repeat it: {_format_command(args, outcome)}"
        print(escape_unprintable(failure), file=sys.stderr)
    if failures:
        print(f"{len(failures)} of {len(outcomes)} orders failed; the findings of the first are above", file=sys.stderr)


def _format_summary(request: Request, args: argparse.Namespace, outcomes: Sequence[Outcome]) -> str:
    result = _choose_outcome(outcomes).result
    assert result is not None
    stats = result.stats
    order = f"schedule {_choose_outcome(outcomes).schedule}"
    if args.schedule == _ALL:
        order = f"{len(outcomes)} orders"
    elif len(outcomes) > 1:
        order += f", {len(outcomes)} seeds"
    return f"{request.name}: {stats.lanes} threads, {stats.lane_instructions} instructions, {order}"


def _describe_orders(args: argparse.Namespace, outcomes: Sequence[Outcome]) -> str:
    """Describe the orders of several runs; empty for one run."""
    if args.schedule == _ALL:
        return f"{len(outcomes)} orders (every schedule)"
    return f"{len(outcomes)} orders (schedule {args.schedule})" if len(outcomes) > 1 else ""


def _format_command(args: argparse.Namespace, outcome: Outcome) -> str:
    """Return the command that repeats one order."""
    words = ["pyptx", "sim", *args.files]
    for name in ("entry", "grid", "block", "cluster", "shared", "data_seed", "schedule", "check", "precision",
                 "max_steps", "tolerance"):  # fmt: skip
        value = outcome.schedule if name == "schedule" else getattr(args, name)
        if value not in (None, 0, _DEFAULTS.get(name)):
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name in ("arg", "expect"):
        for text in getattr(args, name):
            words += [f"--{name}", text]
    words += ["--cooperative"] if args.cooperative else []
    return shlex.join([*words, "--seed", str(outcome.seed)])


def _build_document(request: Request, args: argparse.Namespace, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcomes as plain values."""
    last = _choose_outcome(outcomes)
    return {
        "file": request.sources[0].name, "entry": request.name,
        **({"linked": [source.name for source in request.sources[1:]]} if len(request.sources) > 1 else {}),
        **{name: request.options[name] for name in ("grid", "block", "cluster", "shared")},
        "schedule": args.schedule,
        "runs": [_convert_to_json(args, outcome) for outcome in outcomes],
        "failed_seed": last.seed if last.failed else None,
        "repeat": _format_command(args, last) if last.failed else None,
        "printed": last.output,
    }  # fmt: skip


def _convert_to_json(args: argparse.Namespace, outcome: Outcome) -> dict[str, Any]:
    stats = outcome.result.stats if outcome.result is not None else None
    hazards = outcome.result.hazards if outcome.result is not None else []
    return {
        "schedule": outcome.schedule,
        "seed": outcome.seed,
        "ok": not outcome.failed and not outcome.usage,
        "diagnostics": [d.as_json() for d in outcome.findings],
        "hazards": [finding.as_json() for finding in hazards],
        "hang": None if outcome.hang is None else outcome.hang.as_json(),
        "mismatches": outcome.wrong,
        "repeat": _format_command(args, outcome) if outcome.failed else None,
        "stats": None if stats is None else stats.as_json(),
        "coverage": None if outcome.result is None else str(outcome.result.coverage),
    }
