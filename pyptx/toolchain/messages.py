"""Turns the messages of ptxas and nvJitLink into diagnostics with their original text and place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from pyptx.diagnostics import Diagnostic, Origin, Rule, Severity, Span
from pyptx.toolchain import rules
from pyptx.toolchain.process import make_printable

OriginOf = Callable[[int], Origin | None]
"""Maps a PTX line to its origin; None keeps the PTX line itself."""

INPUT_NAME = "input.ptx"
_OWN_NAMES = {INPUT_NAME, "application ptx input"}

_PLACED = re.compile(r"ptxas (?P<file>.*), line (?P<line>\d+); (?P<word>fatal|error|warning|info)\s*: (?P<text>.*)")
_PLAIN = re.compile(r"(?:(?:ptxas|nvlink) )?(?P<word>fatal|error|warning|info)\s*: (?P<text>.*)")
_NOISE = re.compile(
    r"Ptx assembly aborted due to errors$|\d+ bytes gmem|Compiling entry function |Function properties for "
    r"|[Uu]sed \d+ registers|Compile time = |Merged module "
)
_CONTINUED = re.compile(r"ptxas\s+\.\s+|\s*\d+ bytes (?:stack frame|cumulative)|ERROR (?:\d+:|NVJITLINK_|NVVM_)")
_LINE_IN_TEXT = re.compile(r"\b(?:on|around) line '?(\d+)\b")
_UNKNOWN_TARGET = re.compile(r"Value '[^']*' is not defined for option 'gpu-name'")


def parse_log(log: str, source: str | None = None, origin_of: OriginOf | None = None) -> tuple[Diagnostic, ...]:
    """Return the diagnostics in a log of ptxas or nvJitLink. With the PTX text, they get columns too; with `origin_of`,
    a line of generated PTX is reported at its origin. Statistics (`-v`) are omitted."""
    lines = source.split("\n") if source is not None else []
    return tuple(dict.fromkeys(_relocate(d, origin_of) for d in _parse(log, lines)))


def _parse(log: str, lines: list[str]) -> Iterator[Diagnostic]:
    pending: Diagnostic | None = None
    for text in log.replace("\0", "").split("\n"):
        match = _PLACED.fullmatch(text) or _PLAIN.fullmatch(text)
        if match:
            if pending:
                yield pending
            pending = None if _NOISE.match(match["text"]) else _make_diagnostic(match, lines)
        elif pending and text.strip() and not _CONTINUED.match(text):
            pending = replace(pending, notes=(*pending.notes, make_printable(text.strip())))
    if pending:
        yield pending


def _make_diagnostic(match: re.Match[str], lines: list[str]) -> Diagnostic:
    groups, text = match.groupdict(), make_printable(match["text"].rstrip())
    within = _LINE_IN_TEXT.search(text)
    line = int(groups["line"]) if groups.get("line") else int(within[1]) if within else 0
    file = groups.get("file")
    foreign = file if file is not None and file not in _OWN_NAMES else None
    span = _find_span(line, text, lines, make_printable(foreign) if foreign else None) if line else None
    return _choose_rule(match["word"], text).report(span, text)


def _choose_rule(word: str, text: str) -> Rule:
    if "syntax error" in text or text.startswith("Unexpected EOF"):
        return rules.SYNTAX
    if _UNKNOWN_TARGET.match(text):
        return rules.BAD_TARGET
    return {"fatal": rules.STOPPED, "error": rules.REJECTED, "warning": rules.WARNED, "info": rules.ADVISED}[word]


def _find_span(line: int, text: str, lines: list[str], file: str | None) -> Span:
    """Return the span of the word that the message quotes if it occurs once on the line, else of the whole statement
    line. A file named by a `# 1 "file"` line is not this text."""
    if file is not None or not 0 < line <= len(lines):
        return Span(line, 1, 1, file)
    source_line = lines[line - 1]
    for word in re.findall(r"'([^']+)'", text):
        before = "" if word.startswith(".") else r"(?<![\w$%])"
        places = [m.start() for m in re.finditer(rf"{before}{re.escape(word)}(?![\w$])", source_line)]
        if len(places) == 1:
            return Span(line, places[0] + 1, len(word))
    start = len(source_line) - len(source_line.lstrip())
    return Span(line, start + 1, max(1, len(source_line.strip())))


def _relocate(diagnostic: Diagnostic, origin_of: OriginOf | None) -> Diagnostic:
    if origin_of is None or not isinstance(diagnostic.origin, Span) or diagnostic.origin.file is not None:
        return diagnostic
    origin = origin_of(diagnostic.origin.line)
    if origin is None:
        return diagnostic
    return replace(diagnostic, origin=origin, notes=(*diagnostic.notes, f"line {diagnostic.origin.line} of the PTX"))


def is_error(diagnostic: Diagnostic) -> bool:
    """Tell whether a diagnostic means that nothing was assembled."""
    return diagnostic.severity is Severity.ERROR
