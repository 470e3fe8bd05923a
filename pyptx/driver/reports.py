"""The launches of a program, as its processes recorded them: reports for people and tools, and what is new in them.

Every text of the program is data, never markup: kernels' names and messages are untrusted.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from pyptx import __version__
from pyptx.diagnostics import Severity, format_count
from pyptx.driver.demangling import replace_names

Key = tuple[str, str, str, str]
Record = dict[str, Any]
"""A launch: its kernel, shape and place in the program, and its diagnostics as JSON."""
_LEVELS = {str(Severity.ERROR): "error", str(Severity.WARNING): "warning", str(Severity.NOTE): "note"}
SUFFIXES = (".json", ".sarif", ".html")


def read_records(folder: Path) -> tuple[list[Record], int]:
    """Return the launches that the program's processes recorded, and how many processes ended while writing one."""
    texts = [file.read_text("utf-8", "replace") for file in sorted(folder.glob("*.jsonl"))]
    lines = [text.split("\n") for text in texts]
    launches = [launch for part in lines for launch in _pair([json.loads(line) for line in part[:-1]])]
    return launches, sum(part[-1] != "" for part in lines)


def _pair(lines: Sequence[Record]) -> list[Record]:
    """Return the launches of a process: those that it recorded, and those that began and did not end."""
    launches: list[Record] = []
    pending: list[Record] = []
    for line in lines:
        if "begins" not in line:
            launches.append(line)
            # Launches that began together end together.
            pending = pending if line["grid"] is None else []
            continue
        launches += pending
        pending = [{**record, "is_cut": True} for record in line["begins"]]
    return launches + pending


class Baseline:
    """Findings that are known: those of an earlier report, and those that a user accepts.

    The file is a JSON report. `accepted` lists codes with patterns of kernels and compilers, and a reason each:
    `{"code": "PTX0937", "kernel": "*_attn_*", "compiler": "LLVM*", "reason": "Triton orders tensor memory by
    barriers alone"}`."""

    def __init__(self, document: Record) -> None:
        accepted: object = document.get("accepted", [])
        if not isinstance(accepted, list):
            raise ValueError("`accepted` is not a list")
        self._accepted = [_read_accepted(entry) for entry in cast("list[object]", accepted)]
        try:
            self._known = {make_key(launch, item) for launch, item in iterate_findings(document.get("launches", []))}
        except (TypeError, KeyError, AttributeError):
            raise ValueError("`launches` does not come from `pyptx simulate --report`") from None

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Read a baseline. Raise ValueError for a file of another form."""
        try:
            document = json.loads(path.read_text("utf-8"))
        except json.JSONDecodeError as why:
            raise ValueError(f"not JSON: {why}") from None
        if not isinstance(document, dict) or not {"launches", "accepted"} & document.keys():
            raise ValueError("not a report: expected an object with `launches` or `accepted`")
        return cls(cast("Record", document))

    def knows(self, launch: Record, item: Record) -> bool:
        """Return whether a finding is known or accepted."""
        return make_key(launch, item) in self._known or any(
            entry["code"] == item["code"]
            and fnmatchcase(launch["kernel"], entry.get("kernel", "*"))
            and fnmatchcase(launch.get("compiler", ""), entry.get("compiler", "*"))
            for entry in self._accepted
        )


_REQUIRED, _OPTIONAL = {"code", "reason"}, {"kernel", "compiler"}


def _read_accepted(entry: object) -> dict[str, str]:
    """Return an entry of `accepted`. Raise ValueError for one that says something else, which might accept too much."""
    if not isinstance(entry, dict):
        raise ValueError(f"an accepted finding is an object, found {json.dumps(entry)}")
    fields = cast("dict[str, object]", entry)
    if not fields.keys() >= _REQUIRED:
        raise ValueError("every accepted finding needs a `code` and a `reason`")
    if unknown := sorted(fields.keys() - _REQUIRED - _OPTIONAL):
        known = ", ".join(sorted(_REQUIRED | _OPTIONAL))
        raise ValueError(f"an accepted finding has no `{unknown[0]}`; it has {known}")
    if wrong := [name for name, value in fields.items() if not isinstance(value, str)]:
        raise ValueError(f"`{wrong[0]}` of an accepted finding is a string, found {json.dumps(fields[wrong[0]])}")
    return cast("dict[str, str]", fields)


def make_key(launch: Record, item: Record) -> Key:
    """Return what identifies a finding: code, kernel and place, in the kernel's source if it is known; and the place of
    other work that it conflicts with."""
    return item["code"], launch["kernel"], item.get("source") or f"line {item['line']}", item.get("other_source", "")


def iterate_findings(launches: Sequence[Record]) -> Iterator[tuple[Record, Record]]:
    """Yield each finding with its launch."""
    for launch in launches:
        for item in launch["diagnostics"]:
            yield launch, item


def list_new(launches: Sequence[Record], baseline: Baseline | None) -> list[Record]:
    """Return each finding once that no baseline knows."""
    findings = {
        make_key(launch, item): item
        for launch, item in iterate_findings(launches)
        if baseline is None or not baseline.knows(launch, item)
    }
    return list(findings.values())


def format_report(suffix: str, device: str, launches: Sequence[Record], baseline: Baseline | None) -> str:
    """Return a report in the format of a file name's suffix."""
    if suffix == ".sarif":
        return json.dumps(_make_sarif(launches, baseline), indent=2) + "\n"
    if suffix == ".html":
        return _make_page(device, launches, baseline)
    return json.dumps({"device": device, "launches": launches}, indent=2) + "\n"


def _make_sarif(launches: Sequence[Record], baseline: Baseline | None) -> Record:
    """Return the findings in the Static Analysis Results Interchange Format 2.1.0, each once."""
    results: dict[Key, Record] = {}
    for launch, item in iterate_findings(launches):
        text = _format_finding(launch, item)
        results[make_key(launch, item)] = {
            "ruleId": item["code"],
            "level": _LEVELS[item["severity"]],
            "message": {"text": text},
            "locations": [_locate(launch, item)],
            "stacks": [_make_stack(launch)] if len(launch.get("stack", ())) > 1 else [],
            "baselineState": "unchanged" if baseline is not None and baseline.knows(launch, item) else "new",
        }
    codes = sorted({result["ruleId"] for result in results.values()})
    driver = {"name": "pyptx", "version": __version__, "rules": [{"id": code} for code in codes]}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return {
        "$schema": schema,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": list(results.values())}],
    }


def _format_finding(launch: Record, item: Record) -> str:
    """Return message, notes and help of a finding, with names as people write them."""
    lines = [item["message"], *item["notes"], *([f"help: {item['help']}"] if item["help"] else [])]
    return replace_names("\n".join(lines), launch.get("names", {}))


def _format_time(launch: Record) -> str:
    return "did not end" if launch.get("is_cut") else f"{launch['seconds']:.3f}"


def _name_kernel(launch: Record) -> str:
    """Return the name of a kernel as people write it."""
    return launch.get("names", {}).get(launch["kernel"], launch["kernel"])


def _locate(launch: Record, item: Record) -> Record:
    """Return the place of a finding: a line of the kernel's source, else of the program that launched it."""
    name, mangled = _name_kernel(launch), launch["kernel"]
    function = {"name": name, **({"decoratedName": mangled} if name != mangled else {}), "kind": "function"}
    location: Record = {"logicalLocations": [function]}
    return {**location, **_point((item.get("source") or launch["place"]).partition(", by ")[0])}


def _make_stack(launch: Record) -> Record:
    """Return the calls that led to a launch."""
    return {"message": {"text": "calls"}, "frames": [{"location": _point(place)} for place in launch["stack"]]}


def _point(place: str) -> Record:
    """Return a `physicalLocation`, if the place is a line of a file."""
    file, _, line = place.rpartition(":")
    if not file or not line.isdecimal():
        return {}
    artifact = {"uri": file.replace("\\", "/")}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": int(line)}}}


_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em;max-width:70em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}pre{white-space:pre-wrap;margin:.3em 0}"
    ".error{color:#b00020}.warning{color:#9a6700}.known{opacity:.5}"
)


def _make_page(device: str, launches: Sequence[Record], baseline: Baseline | None) -> str:
    """Return a self-contained page without scripts: the launches, and below each what was found."""
    rows: list[str] = []
    for number, launch in enumerate(launches, 1):
        place = ", by ".join(launch.get("stack", ())) or launch["place"]
        cells = [number, _name_kernel(launch), launch["grid"], launch["block"], place, _format_time(launch)]
        texts = ["" if cell is None else html.escape(str(cell)) for cell in cells]
        links = [(launch.get(key), key) for key in ("ptx", "timeline")]
        texts.append(" ".join(f'<a href="{html.escape(quote(path))}">{key}</a>' for path, key in links if path))
        rows.append("<tr>" + "".join(f"<td>{text}</td>" for text in texts) + "</tr>")
        for item in launch["diagnostics"]:
            known = " known" if baseline is not None and baseline.knows(launch, item) else ""
            text = html.escape(f"{item['severity']}[{item['code']}]: {_format_finding(launch, item)}")
            rows.append(f'<tr><td></td><td colspan="6"><pre class="{item["severity"]}{known}">{text}</pre></td></tr>')
    heads = "".join(f"<th>{head}</th>" for head in ("", "kernel", "grid", "block", "launched at", "seconds", "files"))
    count = sum(launch["grid"] is not None for launch in launches)
    title = f"{format_count('launch', count, plural='launches')} on a simulated {html.escape(device)}"
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{policy}<title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1><table><tr>{heads}</tr>{''.join(rows)}</table>"
        "</body></html>\n"
    )
