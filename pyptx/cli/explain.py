"""`pyptx explain CODE`: explains diagnostic codes, from the rules of every layer."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from pyptx.cli import OK, UNUSABLE
from pyptx.cli.output import complain, needs_colour, print_json
from pyptx.diagnostics import Rule

RULE_TABLES = (
    "parser.rules", "check.rules", "toolchain.rules", "dsl.rules", "tensormap.rules", "runtime.rules",
    "sim.rules.faults", "sim.rules", "driver.rules",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("codes", nargs="*", metavar="CODE", help="a code such as PTX0101; without codes, list all")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    rules = {rule.code: rule for rule in collect_rules()}
    codes: list[str] = [_normalize_code(word) for word in args.codes]
    unknown = [word for word, code in zip(args.codes, codes, strict=True) if code not in rules]
    for word in unknown:
        complain(f"{word}: no such code; `pyptx explain` lists them")
    selection = [rules[code] for code in codes or rules if code in rules]
    if args.json:
        print_json([_convert_to_json(rule) for rule in selection])
    else:
        for rule in selection:
            print(_format_page(rule) if codes else f"{rule.code}  {rule.severity:<8} {rule.title}")
    return UNUSABLE if unknown else OK


def collect_rules() -> list[Rule]:
    """Return the rules of every layer, in the order of their codes."""
    modules = (import_module(f"pyptx.{table}") for table in RULE_TABLES)
    rules: list[Rule] = [rule for module in modules for rule in module.RULES]
    return sorted(rules, key=lambda rule: rule.code)


def _normalize_code(word: str) -> str:
    """Read `PTX0101`, `ptx0101`, `101` and `0101` alike."""
    return "PTX" + word.upper().removeprefix("PTX").zfill(4)


def _format_page(rule: Rule) -> str:
    bold, reset = ("\x1b[1m", "\x1b[0m") if needs_colour(sys.stdout) else ("", "")
    parts = [f"{bold}{rule.code}: {rule.title}{reset} ({rule.severity})", "", rule.why, ""]
    for heading, example in (("Reported:", rule.wrong), ("Clean:", rule.right)):
        if example.strip():
            parts += [heading, "", *(f"    {line}".rstrip() for line in example.strip("\n").splitlines()), ""]
    return "\n".join(parts)


def _convert_to_json(rule: Rule) -> dict[str, str]:
    return {
        "code": rule.code,
        "severity": str(rule.severity),
        "title": rule.title,
        "why": rule.why,
        "wrong": rule.wrong,
        "right": rule.right,
    }
