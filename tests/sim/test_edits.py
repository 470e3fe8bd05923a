"""Kernels with small edits: what the simulator reports, measures and computes does not change unnoticed.

Nobody wrote these mistakes or reviewed every result, and no model judges them: a digest that differs may be right, so
compare both commits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from pyptx import sim
from pyptx.check import check
from pyptx.diagnostics import PtxError, Severity
from pyptx.parser import parse
from tests.digests import assert_digest
from tests.sim.describing import describe_error, describe_result
from tests.sim.patterns.cases import CASES
from tests.sim.patterns.planted import patterns
from tests.sim.test_corpus import CASES as ENTRIES
from tests.sim.test_corpus import SCHEDULES, Case, describe_run, name_of, read

_TEXTS = 30
_LIMIT = 10_000
_LARGEST = 30_000
"""The length of the largest module of the corpus to edit: each edited module is checked."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.%:$])\d+(?![\w.:])")
_REGISTER = re.compile(r"%[a-zA-Z_]\w*")
_MODIFIER = re.compile(r"(?<=\.)[a-z]\w*(?:::\w+)*")
_ALIKE = (
    "release acquire relaxed acq_rel volatile weak", "cta cluster gpu sys", "s32 u32 b32 f32", "s64 u64 b64 f64",
    "s16 u16 b16 s8 u8", "eq ne lt le gt ge lo hi ls hs", "add sub min max and or xor exch inc dec", "lo hi wide",
    "rn rz rm rp", "v2 v4", "x1 x2 x4 x8 x16", "ca cg cv", "16x64b 16x128b 16x256b 32x32b", "up down bfly idx",
    "shared shared::cta shared::cluster global", "sync arrive wait", "try_wait test_wait", "popc and or",
    "wait_group commit_group", "before_thread_sync after_thread_sync", "all any ballot uni", "x y z",
)  # fmt: skip
_FAMILIES = {word: family.split() for family in _ALIKE for word in family.split()}

Edit = Callable[[list[str], int, random.Random], None]


def _delete(statements: list[str], place: int, draw: random.Random) -> None:
    del draw, statements[place]


def _repeat(statements: list[str], place: int, draw: random.Random) -> None:
    statements.insert(place + draw.choice((0, 0, 2)), statements[place].rpartition(":")[2])


def _move(statements: list[str], place: int, draw: random.Random) -> None:
    statements.insert(max(0, place + draw.choice((-6, -3, -2, -1, 1, 2, 3, 6))), statements.pop(place))


def _replace(pattern: re.Pattern[str], choose: Callable[[str, Sequence[str], random.Random], str]) -> Edit:
    """Return the edit of one of a statement's words of a kind."""

    def edit(statements: list[str], place: int, draw: random.Random) -> None:
        matches = list(pattern.finditer(statements[place]))
        if matches:
            match, everywhere = draw.choice(matches), pattern.findall(" ".join(statements))
            start, end = match.span()
            text = statements[place]
            statements[place] = text[:start] + choose(match[0], everywhere, draw) + text[end:]

    return edit


def _choose_number(word: str, others: Sequence[str], draw: random.Random) -> str:
    number = int(word)
    return str(
        draw.choice((number + 1, max(0, number - 1), 2 * number, number // 2, number + 4, int(draw.choice(others))))
    )


def _choose_register(word: str, others: Sequence[str], draw: random.Random) -> str:
    del word
    return draw.choice(others)


def _choose_modifier(word: str, others: Sequence[str], draw: random.Random) -> str:
    del others
    return draw.choice(_FAMILIES.get(word, [word]))


def _guard(statements: list[str], place: int, draw: random.Random) -> None:
    """Negate, remove or add a guard."""
    label, colon, statement = (
        statements[place].rpartition(":") if "::" not in statements[place] else ("", "", statements[place])
    )
    words = statement.split(None, 1)
    if words[0].startswith("@"):
        guard = draw.choice(("", "@" + words[0][2:] if words[0][1] == "!" else "@!" + words[0][1:]))
        statements[place] = f"{label}{colon} {guard} {words[1]}"
    else:
        guards = re.findall(r"@!?%\w+", " ".join(statements)) or [""]
        statements[place] = f"{label}{colon} {draw.choice(guards)} {statement}"


_number, _register, _modifier = (
    _replace(_NUMBER, _choose_number), _replace(_REGISTER, _choose_register), _replace(_MODIFIER, _choose_modifier)
)  # fmt: skip
_EDITS: tuple[Edit, ...] = (
    _delete,
    _repeat,
    _move,
    _move,
    _number,
    _number,
    _number,
    _register,
    _register,
    _modifier,
    _modifier,
    _modifier,
    _guard,
)


def _edit(text: str, name: str, draw: random.Random) -> str:
    """Return a module with a few edits of the statements of a kernel."""
    start = re.compile(rf"\.entry\s+{re.escape(name)}(?![\w$])").search(text)
    assert start is not None
    opening = text.index("\n{\n", start.start()) + 3
    closing = text.index("\n}", opening)
    *statements, end = (statement.strip() for statement in text[opening:closing].split(";"))
    declared = sum(statement.startswith((".reg", ".shared", ".local")) for statement in statements)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        draw.choice(_EDITS)(statements, draw.randrange(declared, len(statements)), draw)
    return text[:opening] + ";\n".join([*statements, end]) + text[closing:]


def _list_edits(text: str, name: str, draw: random.Random) -> Iterator[str]:
    """Yield modules that differ from this one in a kernel and have no further errors."""
    plain = _COMMENT.sub("", text)
    known = _list_errors(plain)
    while True:
        edited = _edit(plain, name, draw)
        if _list_errors(edited) <= known:
            yield edited


def _list_errors(text: str) -> set[str]:
    module, errors = parse(text, recover=True)
    findings = [*errors, *check(module)]
    return {finding.code for finding in findings if finding.severity is Severity.ERROR}


def _describe_pattern(text: str, name: str, seed: int) -> str:
    case = CASES[name]
    launch = case.make(np.random.default_rng(seed))
    try:
        result = sim.run(
            parse(text), grid=case.grid, block=case.block, cluster=case.cluster, args=launch.args, check="all",
            on_hazard="report", statistics=True, timeline=True, schedule=SCHEDULES[seed % 4], seed=seed % 3,
            max_steps=_LIMIT,
        )  # fmt: skip
    except PtxError as error:
        return describe_error(error)
    return describe_result(result, [output for output, _ in launch.outputs])


@pytest.mark.parametrize("name", sorted(CASES))
def test_edited_patterns(name: str) -> None:
    edits = zip(range(_TEXTS), _list_edits(patterns()[name].text, "k", random.Random(name)), strict=False)
    assert_digest("mistakes", name, "\n".join(f"{text}\n{_describe_pattern(text, name, seed)}" for seed, text in edits))


_EDITED = [case for case in ENTRIES if (case[1] / case[2].path).stat().st_size <= _LARGEST]


@pytest.mark.parametrize("case", _EDITED, ids=name_of)
def test_an_edited_entry(case: Case) -> None:
    name, entry = name_of(case), case[3]
    text = next(_list_edits(read(case), entry.name, random.Random(name)))
    assert_digest("mistakes", name, f"{text}\n{describe_run(parse(text), entry, name, _LIMIT)}")
