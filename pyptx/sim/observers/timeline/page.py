"""The record as one self-contained page, without network. Every text of the run is data, never markup: PTX and the
names in it are untrusted."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from json import dumps
from typing import Any

from pyptx.diagnostics import Diagnostic
from pyptx.sim.hazards import Finding
from pyptx.sim.observers.timeline.findings import Spot, locate_findings, locate_stop
from pyptx.sim.observers.timeline.packing import pack_rows
from pyptx.sim.observers.timeline.records import UNIT, RunRecord

_CONTEXT = 12
"""Lines of Python shown around recorded ones."""


def write_page(
    record: RunRecord, findings: Sequence[Finding] = (), lines: dict[int, dict[str, str]] | None = None,
    errors: Sequence[Diagnostic] = (),
) -> str:  # fmt: skip
    """Return the page. `lines` adds statistics to PTX lines, as names and values; `errors` are those that ended the
    run."""
    assets = files("pyptx.sim.observers.timeline").joinpath("assets")
    style, script, body = (
        assets.joinpath(name).read_text("utf-8") for name in ("timeline.css", "timeline.js", "timeline.html")
    )
    policy = (
        f"default-src 'none'; style-src '{_hash_source(style)}'; script-src '{_hash_source(script)}'; base-uri 'none'"
    )
    document = body.replace("{{policy}}", policy).replace("{{style}}", style).replace("{{script}}", script)
    return document.replace("{{data}}", _encode_json(make_payload(record, findings, lines or {}, errors)))


def _hash_source(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _encode_json(value: object) -> str:
    """Return JSON for a script element: no `<` that could end it or begin a comment."""
    text = dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class _Strings:
    """A table of unique texts."""

    def __init__(self) -> None:
        self.all: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.all.setdefault(text, len(self.all))


def make_payload(
    record: RunRecord, findings: Sequence[Finding], lines: dict[int, dict[str, str]], errors: Sequence[Diagnostic]
) -> dict[str, Any]:
    """Return the data that the page's script draws. Records are rows of numbers; `strings` has each text once."""
    string = _Strings()
    rows, heights = pack_rows(record.transfers)
    return {
        "kernel": record.kernel, "grid": record.grid, "block": record.block, "cluster": record.cluster,
        "schedule": record.schedule, "unit": UNIT, "end": record.end, "leftOut": record.ctas_left_out,
        "truncated": record.is_truncated, "ctas": record.names,
        "tracks": [[t.cta, t.name, int(t.engine), heights.get(index, 1)] for index, t in enumerate(record.tracks)],
        "runs": [[r.track, r.start, r.end, string(r.label), *r.lines, r.lanes, r.steps] for r in record.runs],
        "waits": [
            [w.track, w.start, w.end, string(w.barrier), w.phase, w.line,
             *((w.cause.track, w.cause.time) if w.cause else (-1, 0)), int(w.is_over)]
            for w in record.waits
        ],
        "transfers": [
            [t.track, t.start, t.end, string(t.label), row, t.line, t.issuer, t.bytes, t.flops, string(t.barrier),
             t.count, int(t.has_wait)]
            for t, row in zip(record.transfers, rows, strict=True)
        ],
        "source": record.source.removesuffix("\n").split("\n"),
        "lines": [
            [n.number, n.warps, n.lanes, n.wait_steps, *((string(n.python[0]), n.python[1]) if n.python else (-1, 0))]
            for n in record.lines
        ],
        "extra": {str(number): notes for number, notes in lines.items()},
        "python": _collect_python(record),
        "hazards": [
            *(_describe_error(record, error) for error in errors),
            *(_describe_hazard(finding, *places)
            for finding, places in zip(findings, locate_findings(record, findings), strict=True)),
        ],
        "strings": list(string.all),
    }  # fmt: skip


def _collect_python(record: RunRecord) -> dict[str, Any]:
    """Return the recorded parts of Python files by name: the first line's number, and the lines."""
    excerpts: dict[str, Any] = {}
    for name, text in record.texts.items():
        used = [line.python[1] for line in record.lines if line.python and line.python[0] == name]
        if used and text:
            first, last = max(1, min(used) - _CONTEXT), min(len(text), max(used) + _CONTEXT)
            excerpts[name] = {"first": first, "lines": [line.rstrip("\n") for line in text[first - 1 : last]]}
    return excerpts


def _describe_error(record: RunRecord, diagnostic: Diagnostic) -> dict[str, Any]:
    """Return the error that ended the run, at the warp that is stuck there."""
    spot = locate_stop(record, diagnostic)
    return {
        "severity": str(diagnostic.severity), "code": diagnostic.code, "title": diagnostic.message,
        "what": "", "count": 1,
        "notes": list(diagnostic.notes), "help": diagnostic.help or "",
        "line": spot.line, "instruction": "", "other": None,
        "track": spot.track, "time": spot.time,
    }  # fmt: skip


def _describe_hazard(finding: Finding, spot: Spot, second: Spot | None) -> dict[str, Any]:
    about = finding.diagnostic()
    return {
        "severity": str(finding.severity), "code": finding.rule.code, "title": finding.rule.title,
        "what": finding.what, "count": finding.count, "notes": list(about.notes), "help": about.help or "",
        "line": spot.line, "track": spot.track, "time": spot.time, "instruction": finding.place.text,
        "other": None if second is None else {"line": second.line, "track": second.track, "time": second.time},
    }  # fmt: skip
