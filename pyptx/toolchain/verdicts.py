"""Asks ptxas about many single instructions: many share a file, and each rejected one is retried alone.

ptxas stops a file at its first syntax error and hides errors of later stages behind earlier ones, but continues with
the next file of the same run. So a rejection counts only from a file with nothing else in it, and acceptance only from
a run without any error.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyptx.diagnostics import Diagnostic, PtxError, Span
from pyptx.toolchain import rules
from pyptx.toolchain.assembler import check_options, encode_text
from pyptx.toolchain.messages import is_error, parse_log
from pyptx.toolchain.process import DEFAULT_TIMEOUT, Completed, create_private_folder, run
from pyptx.toolchain.tools import find_tool

_SHARED = 128
"""Initial number of instructions per file."""

_BATCH = 20_000
"""Instructions per run of ptxas, which needs about 16 KiB of memory for each file."""

_ENTRY = "judged_"
_FAR_REACHING = re.compile(r"[#\"]|/\*|\*/")
"""Text that can swallow its neighbors: `#` lines, strings, comments."""

Group = tuple[int, ...]
Rejections = dict[int, tuple[Diagnostic, ...]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether ptxas accepts an instruction, and its errors if not, with lines relative to the instruction."""

    accepted: bool
    diagnostics: tuple[Diagnostic, ...] = ()


_ACCEPTED = Verdict(True)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The text around the instructions, before and after the entry's name, and the flags of ptxas."""

    ptxas: str
    flags: tuple[str, ...]
    before: str
    after: str
    timeout: float

    def write(self, folder: Path, number: int, texts: Sequence[str]) -> list[int]:
        """Write one file of these instructions; return the line on which each starts, and the one past the last."""
        head = f"{self.before}{_ENTRY}{number}{self.after}\n"
        parts, starts, line = [head], list[int](), head.count("\n") + 2
        for text in texts:
            parts.append(f"{{\n{text}\n}}\n")
            starts.append(line)
            line += text.count("\n") + 3
        parts.append("ret;\n}\n")
        (folder / f"{number}.ptx").write_bytes(encode_text("".join(parts)))
        return [*starts, line - 1]


def judge(
    instructions: Sequence[str],
    *,
    target: str,
    version: tuple[int, int],
    declarations: str = "",
    parameters: str = "()",
    registers: str = "",
    generate: bool = False,
    options: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
) -> list[Verdict]:
    """Return ptxas' verdict on every instruction, each in a block of its own: it may be several statements, with labels
    and declarations. `declarations` precede the entry, `registers` start its body; `parameters` is its parameter list
    with any directives. `generate=True` generates code for `sm_XX` (slower, but finds more errors); otherwise ptxas
    parses and checks for `compute_XX`. Raise PtxError if the surrounding text itself is rejected."""
    major, minor = version
    arch = target if generate else target.replace("sm_", "compute_")
    output = ("-o", "out.cubin") if generate else ()
    frame = _Frame(
        ptxas=find_tool("ptxas").path,
        flags=("-arch", arch, *output, *check_options(options)),
        before=f".version {major}.{minor}\n.target {target}\n.address_size 64\n{declarations}\n.visible .entry ",
        after=f" {parameters}\n{{\n{registers}",
        timeout=timeout,
    )
    rejections: Rejections = {}
    with create_private_folder() as folder:
        _check_surroundings(_Session(frame, folder, ["", ""]))
    for start in range(0, len(instructions), _BATCH):
        members = range(start, min(start + _BATCH, len(instructions)))
        with create_private_folder() as folder:
            rejections |= _find_rejections(
                _Session(frame, folder, instructions), _make_first_groups(instructions, members)
            )
    return [Verdict(False, rejections[i]) if i in rejections else _ACCEPTED for i in range(len(instructions))]


def _check_surroundings(session: _Session) -> None:
    """Check the surrounding text in two files, because names of one file may collide with those of the next."""
    run_result, _ = session.judge([(0,), (1,)])
    if run_result.status != 0:
        raise PtxError(parse_log(run_result.messages) or run_result.make_failure().diagnostics)


def _make_first_groups(instructions: Sequence[str], members: Sequence[int]) -> list[Group]:
    alone = [i for i in members if not _is_contained(instructions[i])]
    shared = sorted(set(members).difference(alone))
    return [*(tuple(shared[i : i + _SHARED]) for i in range(0, len(shared), _SHARED)), *((i,) for i in alone)]


def _is_contained(text: str) -> bool:
    """Tell whether an instruction does not affect its neighbors: it closes as many braces as it opens."""
    return not _FAR_REACHING.search(text) and text.count("{") == text.count("}")


def _find_rejections(session: _Session, groups: list[Group]) -> Rejections:
    """Run the groups until a run is clean, removing instructions rejected alone and splitting groups with an error."""
    rejections: Rejections = {}
    while groups:
        run_result, blame = session.judge(groups)
        if run_result.status == 0:
            break
        if not blame:
            return rejections | _search(session, groups, run_result)
        rejections |= {group[0]: accusation.list_errors() for group, accusation in blame.items() if len(group) == 1}
        groups = [part for group in groups for part in (_split(group, blame[group]) if group in blame else [group])]
    return rejections


def _search(session: _Session, groups: list[Group], run_result: Completed) -> Rejections:
    """Find the cause of a ptxas failure without a place, such as a crash, by bisection."""
    members = [i for group in groups for i in group]
    if len(members) == 1:
        return {members[0]: parse_log(run_result.messages) or run_result.make_failure().diagnostics}
    if len(groups) == 1:
        groups = [(i,) for i in members]
    half = len(groups) // 2
    return _find_rejections(session, groups[:half]) | _find_rejections(session, groups[half:])


@dataclass(slots=True)
class _Blame:
    """The errors in one file: for each instruction by its position in the file, and for none in particular (None)."""

    by_place: dict[int | None, list[Diagnostic]]

    def list_errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for errors in self.by_place.values() for d in errors)

    def find_unread(self, count: int) -> int:
        """Return the position from which ptxas may have read nothing."""
        stops = [p for p, errors in self.by_place.items() if any(d.code in _STOPPING for d in errors)]
        return min((0 if p is None else p for p in stops), default=count)


_STOPPING = (rules.SYNTAX.code, rules.STOPPED.code)


def _split(group: Group, blame: _Blame) -> list[Group]:
    """Return the rest of a file with errors: nothing for a single instruction; else each accused one alone, those that
    ptxas has read together, and the unread ones in smaller files."""
    if len(group) == 1:
        return []
    if None in blame.by_place:
        return [(i,) for i in group]
    unread = blame.find_unread(len(group))
    clean = [(place, i) for place, i in enumerate(group) if place not in blame.by_place]
    read, unread_members = (
        tuple(i for place, i in clean if place < unread),
        tuple(i for place, i in clean if place >= unread),
    )
    step = max(1, len(group) // 8)
    parts = [read] if read else []
    parts += [unread_members[start : start + step] for start in range(0, len(unread_members), step)]
    return parts + [(group[place],) for place in blame.by_place if place is not None]


@dataclass(slots=True)
class _Session:
    """A folder of files, one for each group that was ever run; `starts` holds the lines where instructions start."""

    frame: _Frame
    folder: Path
    texts: Sequence[str]
    numbers: dict[Group, int] = field(default_factory=dict[Group, int])
    starts: list[list[int]] = field(default_factory=list[list[int]])

    def judge(self, groups: list[Group]) -> tuple[Completed, dict[Group, _Blame]]:
        """Run ptxas on one file for each group; return how the run ended and the errors by group."""
        for group in groups:
            if group not in self.numbers:
                self.numbers[group] = len(self.starts)
                self.starts.append(self.frame.write(self.folder, len(self.starts), [self.texts[i] for i in group]))
        by_number = {self.numbers[group]: group for group in groups}
        (self.folder / "files").write_text(" ".join(f"{number}.ptx" for number in by_number))
        command = [self.frame.ptxas, *self.frame.flags, "-optf", "files"]
        run_result = run(command, cwd=self.folder, timeout=self.frame.timeout)
        blame: dict[Group, _Blame] = {}
        for finding in parse_log(run_result.messages) if run_result.status else ():
            number = _find_file_number(finding) if is_error(finding) else None
            if number in by_number:
                place, finding_there = _locate(finding, self.starts[number])
                blame.setdefault(by_number[number], _Blame({})).by_place.setdefault(place, []).append(finding_there)
        return run_result, blame


def _find_file_number(diagnostic: Diagnostic) -> int | None:
    """Return the file that an error is about: by its name, or by that of its entry, which code generation reports."""
    name = diagnostic.origin.file if isinstance(diagnostic.origin, Span) and diagnostic.origin.file else ""
    match = re.fullmatch(r"(\d+)\.ptx", name) or re.search(rf"'{_ENTRY}(\d+)'", diagnostic.message)
    return int(match[1]) if match else None


def _locate(diagnostic: Diagnostic, starts: list[int]) -> tuple[int | None, Diagnostic]:
    """Return the position in its file of the instruction that an error is about, and the error with the instruction's
    relative line; None for the surrounding text."""
    if not isinstance(diagnostic.origin, Span) or not starts[0] <= diagnostic.origin.line < starts[-1]:
        return None, diagnostic.move_to(None)
    place = bisect_right(starts, diagnostic.origin.line) - 1
    return place, diagnostic.move_to(Span(diagnostic.origin.line - starts[place] + 1, 1))
