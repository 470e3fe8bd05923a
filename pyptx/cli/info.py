"""`pyptx info FILE…`: the contents and requirements of a module, and its resources if NVIDIA's tools are installed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain, place_findings, print_findings, print_json
from pyptx.cli.sources import Source, Unreadable, add_files, read
from pyptx.cli.summary import summarize
from pyptx.diagnostics import PtxError, escape_unprintable
from pyptx.parser import parse
from pyptx.toolchain import AssemblyError, ToolMissing, resources

_SHOWN = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    parser.add_argument("--ptx-only", action="store_true", help="summarize only the text; do not assemble")
    parser.add_argument("--target", metavar="SM", help="assemble for this target instead of the one in .target")
    parser.add_argument(
        "--all", action="store_true", help=f"list all instructions, not just the {_SHOWN} most frequent"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    status, reports = OK, list[dict[str, Any]]()
    for name in args.files:
        try:
            source = read(name)
        except Unreadable as error:
            complain(str(error))
            status = UNUSABLE
            continue
        module, syntax = parse(source.text, recover=True)
        if syntax:
            print_findings(place_findings(syntax, source), source, sys.stderr)
            status = max(status, FINDINGS)
            continue
        report: dict[str, Any] = {"file": source.name, **summarize(module)}
        if not args.ptx_only:
            report |= _collect_resources(source, args.target)
        reports.append(report)
    if args.json:
        print_json(reports)
    elif reports:
        print(
            escape_unprintable(
                "\n\n".join("\n".join(_format_report(report, None if args.all else _SHOWN)) for report in reports)
            )
        )
    return status


def _collect_resources(source: Source, target: str | None) -> dict[str, Any]:
    """Return the resources per entry, or why there are none; a module that does not assemble is still summarized."""
    try:
        return {"resources": {name: asdict(cost) for name, cost in resources(source.text, target).items()}}
    except ToolMissing as error:
        return {"resources": {}, "no_resources": " ".join(str(d.message) for d in error.diagnostics)}
    except AssemblyError:
        return {"resources": {}, "no_resources": "the module does not assemble; `pyptx check` reports why"}
    except PtxError as error:
        return {"resources": {}, "no_resources": " ".join(str(d.message) for d in error.diagnostics)}


def _format_report(report: dict[str, Any], limit: int | None) -> Iterator[str]:
    needs = report["needs"]
    yield f"{report['file']}: PTX {report['version']} for {', '.join(report['target'])}, {report['address_size']} bit"
    yield f"  needs PTX {needs['version']} ({needs['because']}); its instructions exist on {' '.join(needs['targets'])}"
    for variable in report["variables"]:
        yield f"  {variable['space']} {variable['name']}: {_format_size(variable['bytes'])}"
    for function in report["functions"]:
        yield from _format_function(function, report.get("resources", {}).get(function["name"]), limit)
    if "no_resources" in report:
        yield f"  no resources: {report['no_resources']}"


def _format_function(function: dict[str, Any], cost: dict[str, Any] | None, limit: int | None) -> Iterator[str]:
    kind = "entry" if function["entry"] else "function"
    yield f"  {kind} {function['name']}{'' if function['defined'] else ' (declared only)'}"
    if function["parameters"]:
        parameters = (f"{p['name']} {p['type']} ({_format_size(p['bytes'])})" for p in function["parameters"])
        yield f"    parameters: {', '.join(parameters)}"
    for name, values in function["directives"].items():
        yield f"    .{name} {', '.join(map(str, values))}".rstrip()
    if function["registers"]:
        yield "    declares " + ", ".join(f"{count} {kind}" for kind, count in function["registers"].items())
    if function["shared_bytes"] or function["local_bytes"]:
        shared, local = _format_size(function["shared_bytes"]), _format_size(function["local_bytes"])
        yield f"    {shared} of shared and {local} of local variables"
    if cost is not None:
        yield f"    uses {cost['registers']} registers, {_format_size(cost['shared'])} of static shared memory,"
        yield f"      {_format_size(cost['stack'])} of stack, {cost['barriers']} barriers, {_format_spills(cost)}"
    yield from _format_histogram(function["instructions"], limit)


def _format_histogram(counts: dict[str, int], limit: int | None) -> Iterator[str]:
    if counts:
        yield f"    {sum(counts.values())} instructions, {len(counts)} distinct:"
        yield from (f"    {count:>7}  {name}" for name, count in list(counts.items())[:limit])
        if limit is not None and len(counts) > limit:
            yield f"             and {len(counts) - limit} more (--all)"


def _format_spills(cost: dict[str, Any]) -> str:
    stores, loads = cost["spill_stores"], cost["spill_loads"]
    return "spills unknown" if stores is None else f"{stores} bytes of spill stores, {loads} of loads"


def _format_size(count: int) -> str:
    return f"{count} byte{'' if count == 1 else 's'}"
