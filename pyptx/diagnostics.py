"""Diagnostics, the single form of errors: where (Span or PythonFrame), what (Diagnostic), and how it is shown (render).

Knows nothing about PTX. Parsing and checking return diagnostics; only public entry points raise, and they raise
PtxError.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar


class Severity(StrEnum):
    """The severity of a finding. `error`: ptxas or the hardware rejects it; `warning`: accepted, but probably
    unintended."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Span(NamedTuple):
    """A place in PTX text: 1-based line and column of its first character, length in characters on that line."""

    line: int
    col: int
    length: int = 1
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.file or '<ptx>'}:{self.line}:{self.col}"


class PythonSpan(Span):
    """A place in a Python file, of a frame in another process."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class PythonFrame(NamedTuple):
    """A place in Python code, kept as (code, f_lasti): reading f_lineno at trace time takes time proportional to the
    function, so the line is resolved only on demand."""

    code: CodeType
    lasti: int
    caller: PythonFrame | None = None

    @classmethod
    def of_definition(cls, code: CodeType) -> PythonFrame:
        """Return the place of a function's `def`, which belongs to no instruction: `co_firstlineno` is the line of its
        decorator."""
        return cls(code, _DEFINITION)

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def line(self) -> int:
        return self._find_position()[0]

    @property
    def col(self) -> int:
        return self._find_position()[1]

    @property
    def length(self) -> int:
        return self._find_position()[2]

    def _find_position(self) -> tuple[int, int, int]:
        """Return line, column and length of the expression; of a multiline one, the part on its first line."""
        if self.lasti == _DEFINITION:
            return self._find_definition()
        for index, (line, end_line, col, end_col) in enumerate(self.code.co_positions()):
            if index == self.lasti // 2:
                length = (end_col or 0) - (col or 0) if line == end_line else _WIDEST_LINE
                return line or self.code.co_firstlineno, (col or 0) + 1, max(1, length)
        return self.code.co_firstlineno, 1, 1

    def _find_definition(self) -> tuple[int, int, int]:
        import linecache  # reads Python's tokenizer, and only errors of kernels in Python need it

        first, last = self.code.co_firstlineno, max(line or 0 for *_, line in self.code.co_lines())
        for number in range(first, last + 1):
            line, head = linecache.getline(self.file, number), f"def {self.code.co_name}"
            if line.lstrip().startswith((head, f"async {head}")):
                return number, line.index(head) + 1, len(head)
        return first, 1, 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def __reduce__(self) -> tuple[type[PythonSpan], tuple[int, int, int, str]]:
        """Send the place to another process as line and column: code objects stay where they are."""
        line, col, length = self._find_position()
        return PythonSpan, (line, col, length, self.file)


_DEFINITION = -1
Origin = Span | PythonFrame


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: `message` says what was expected and what was found, `help` how to fix it, in PTX spelling. `other`
    is a related place, which the first note names; `details` follow the help for readers who want more."""

    severity: Severity
    code: str
    origin: Origin | None
    message: str
    notes: tuple[str, ...] = ()
    help: str | None = None
    other: Origin | None = None
    details: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        return self.origin.line if self.origin else 0

    @property
    def col(self) -> int:
        return self.origin.col if self.origin else 0

    def __str__(self) -> str:
        place = f"{self.origin}: " if self.origin else ""
        return f"{place}{self.severity}[{self.code}]: {self.message}"

    def move_to(self, origin: Origin | None) -> Diagnostic:
        """Return the same finding at another place."""
        return replace(self, origin=origin)

    def as_json(self) -> dict[str, object]:
        """Return plain values for `--json`; lines and columns are 1-based, 0 if there is no place."""
        return {
            "severity": str(self.severity),
            "code": self.code,
            "file": self.origin.file if self.origin else None,
            "line": self.line,
            "col": self.col,
            "length": self.origin.length if self.origin else 0,
            "message": self.message,
            "notes": [*self.notes, *self.details],
            "help": self.help,
        }


@dataclass(frozen=True, slots=True)
class Rule:
    """The meaning of a stable code. `wrong` and `right` are whole PTX modules (or Python, for tracing rules) that a
    test runs: `wrong` must be reported with this code, `right` must be clean."""

    code: str
    title: str
    why: str
    wrong: str
    right: str
    severity: Severity = Severity.ERROR

    def report(
        self, origin: Origin | None, message: str, *, notes: Sequence[str] = (), help: str | None = None,
        other: Origin | None = None,
    ) -> Diagnostic:  # fmt: skip
        """Return a finding of this rule."""
        return Diagnostic(self.severity, self.code, origin, message, tuple(notes), help, other)


class HazardWarning(UserWarning):
    """Warns of a hazard in a kernel that was called with arrays."""


class UserTraceback(BaseException):
    """An exception for which IPython and Jupyter show only the user's frames; they always show the innermost one."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines of the traceback: IPython calls this, and otherwise formats them itself."""
        from traceback import format_exception  # costs more than this module, and only notebooks need it

        frames = _select_user_frames(self.__traceback__)
        shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if shell is None:
            return "".join(format_exception(type(self), self, frames)).splitlines()
        return shell.InteractiveTB.structured_traceback(type(self), self, frames)


class PtxError(UserTraceback, Exception):
    """Raised by public entry points; carries every diagnostic that led to it, and the output that a kernel had
    `printed`."""

    printed = ""

    def __init__(self, diagnostics: Iterable[Diagnostic], source: str | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(self.diagnostics, source)

    def __str__(self) -> str:
        return render(self.diagnostics, self.source)

    def __repr__(self) -> str:
        return f"PtxError({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the error to another process with all its fields, however its class is constructed."""
        return _rebuild_error, (type(self), self.args, self.__dict__)


def _rebuild_error(kind: type[PtxError], args: tuple[Any, ...], fields: dict[str, Any]) -> PtxError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


_P = ParamSpec("_P")
_R = TypeVar("_R")
_PACKAGE = os.path.dirname(__file__) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep


def hide_frames(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a public entry point whose errors, and Control-C, show the user's frames and none of the package's."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        __tracebackhide__ = True  # for pytest and IPython
        try:
            return function(*args, **kwargs)
        except (PtxError, KeyboardInterrupt) as why:
            raise why.with_traceback(_select_user_frames(why.__traceback__)) from why.__cause__

    return call


def count_stack_levels() -> int:
    """Return the `stacklevel` with which a warning refers to the user's line."""
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    level = 0
    while frame is not None and _is_internal(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def _select_user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package, its generated code and the standard library."""
    frames: list[TracebackType] = []
    while traceback is not None:
        if not _is_internal(traceback.tb_frame.f_code.co_filename):
            frames.append(traceback)
        traceback = traceback.tb_next
    user_traceback = None
    for frame in reversed(frames):
        user_traceback = TracebackType(user_traceback, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return user_traceback


def _is_internal(file: str) -> bool:
    library = file.startswith(_LIBRARY) and "site-packages" not in file
    return file.startswith((_PACKAGE, "<block ", "<frozen ")) or library


def escape_unprintable(text: str) -> str:
    """Return text that cannot control a terminal: unprintable characters except tabs and line breaks are shown as
    `\\x1b`. PTX, the names in it and kernel output are untrusted."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else repr(c)[1:-1] for c in text)


def format_count(noun: str, *numbers: int, plural: str = "") -> str:
    """Return a noun preceded by its number, or by its possible numbers: `1 operand`, `1 or 2 operands`."""
    amount = " or ".join(map(str, numbers))
    return f"{amount} {noun if numbers == (1,) else plural or noun + 's'}"


_COLOUR = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m", Severity.NOTE: "\x1b[1;36m"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_WIDEST_LINE = 160


def render(diagnostics: Iterable[Diagnostic], source: str | None = None, *, colour: bool = False) -> str:
    """Format findings for people: place, message, the source line with carets, notes and the help. `source` is the text
    of the PTX places; lines of Python come from its files."""
    # Only a line feed ends a line of PTX; `splitlines` also splits at other characters, which comments may contain.
    lines = [line.removesuffix("\r") for line in source.split("\n")] if source is not None else []
    return "\n".join(part for d in diagnostics for part in _render_one(d, lines, colour))


def _render_one(d: Diagnostic, lines: Sequence[str], colour: bool) -> Iterator[str]:
    paint, bold, dim, reset = (_COLOUR[d.severity], _BOLD, _DIM, _RESET) if colour else ("", "", "", "")
    place = escape_unprintable(f"{d.origin}: ") if d.origin else ""
    yield f"{bold}{place}{reset}{paint}{d.severity}[{d.code}]{reset}{bold}: {escape_unprintable(d.message)}{reset}"
    yield from _render_excerpt(d.origin, d, lines, paint, dim, reset)
    for index, note in enumerate(d.notes):
        yield f"  {dim}note:{reset} {escape_unprintable(note)}"
        if index == 0 and d.other is not None:
            yield from _render_excerpt(d.other, d, lines, paint, dim, reset)
    if d.help:
        yield f"  {dim}help:{reset} {escape_unprintable(d.help)}"
    for detail in d.details:
        yield f"  {escape_unprintable(detail)}"


def _read_source_line(origin: Origin | None, d: Diagnostic, lines: Sequence[str]) -> str:
    """Return the source line of a place, empty if unknown: `lines` are those of the finding's own file."""
    if isinstance(origin, PythonFrame | PythonSpan):
        import linecache  # reads Python's tokenizer, and only errors of kernels in Python need it

        return linecache.getline(origin.file or "", origin.line).rstrip()
    own = d.origin.file if isinstance(d.origin, Span) else None
    is_known = origin is not None and origin.file == own and 0 < origin.line <= len(lines)
    return lines[origin.line - 1] if origin is not None and is_known else ""


def _render_excerpt(
    origin: Origin | None, d: Diagnostic, lines: Sequence[str], paint: str, dim: str, reset: str
) -> Iterator[str]:
    """Yield the source line of a place, and carets."""
    line = _read_source_line(origin, d, lines)
    if origin is not None and line:
        yield from _render_marked(Span(origin.line, origin.col, origin.length), line, paint, dim, reset)


def _render_marked(span: Span, line: str, paint: str, dim: str, reset: str) -> Iterator[str]:
    """Yield the source line and a caret line; a very long line is cut around the place, and tabs count as one
    column."""
    first = max(0, span.col - 1 - _WIDEST_LINE // 2) if len(line) > _WIDEST_LINE else 0
    visible_part = "".join(c if c.isprintable() else " " for c in line[first : first + _WIDEST_LINE])
    margin = f"{span.line:>5} | "
    carets = "^" * max(1, min(span.length, len(visible_part) - (span.col - 1 - first)))
    yield f"{dim}{margin}{reset}{visible_part}"
    yield f"{dim}{' ' * (len(margin) - 2)}| {reset}{' ' * (span.col - 1 - first)}{paint}{carets}{reset}"
