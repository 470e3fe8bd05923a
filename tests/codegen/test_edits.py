"""The Python of kernels with small edits, of strange modules, and of oddly spaced ones, is the reviewed one.

The corpus holds what compilers write; edits reach the conditions of passes that no compiler's output reaches.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pyptx.check import check
from pyptx.codegen import ptx_to_python
from pyptx.parser import parse, tokenize
from tests.codegen.hostile import texts
from tests.codegen.passes.test_passes import READS
from tests.codegen.sugared import REGISTERS, find_module_difference
from tests.codegen.transcripts import kernel
from tests.digests import assert_digest

_TESTS = Path(__file__).parents[1]
_SMALL = sorted(path for path in (_TESTS / "corpus").glob("*/*.ptx") if path.stat().st_size < 8_000)
_SAMPLES = {path.stem: path.read_bytes().decode() for path in sorted((_TESTS / "parser" / "samples").glob("*.ptx"))}
_WHOLE = {name: text for name, text in (*texts(), *_SAMPLES.items()) if not parse(text, recover=True)[1]}
_PARTS, _TEXTS = 32, 20
_NUMBER = re.compile(r"(?<=\W)\d+(?=[;,\]])")
_REGISTER = re.compile(r"(?<=%)([a-z]+)(\d+)\b(?!>)")
_GAPS = ("", "  ", "\t", "\n", "\n\n\t", " // x\n", "/* y */", "\t// begin inline asm\n", "\t// end inline asm\n")

Edit = Callable[[list[str], int, random.Random], None]


def _delete(lines: list[str], at: int, draw: random.Random) -> None:
    del draw, lines[at]


def _repeat(lines: list[str], at: int, draw: random.Random) -> None:
    lines[at:at] = [lines[at]] * draw.randint(1, 4)


def _move(lines: list[str], at: int, draw: random.Random) -> None:
    lines.insert(min(len(lines), at + draw.randint(1, 3)), lines.pop(at))


def _renumber(lines: list[str], at: int, draw: random.Random) -> None:
    lines[at] = _NUMBER.sub(lambda _: str(draw.choice((0, 1, 4, 31, 255, 256, 8064, 1 << 20, 0xFFFF0000))), lines[at])


def _replace_register(lines: list[str], at: int, draw: random.Random) -> None:
    lines[at] = _REGISTER.sub(
        lambda match: match[1] + str(max(1, int(match[2]) + draw.choice((0, 0, -1, 1)))), lines[at]
    )


def _enclose(lines: list[str], at: int, draw: random.Random) -> None:
    lines[at : at + 1] = ["{", *lines[at : at + draw.randint(1, 4)], "}"]


def _branch(lines: list[str], at: int, draw: random.Random) -> None:
    label = f"L{draw.randint(0, 99)}x{at}"
    lines.insert(min(len(lines), at + draw.randint(1, 6)), f"{label}:")
    lines.insert(max(0, at - draw.choice((0, 0, 3))), f"{draw.choice(('', '@%flag ', '@!%flag '))}bra {label};")


def _cite(lines: list[str], at: int, draw: random.Random) -> None:
    lines.insert(at, f".loc 1 {draw.randint(1, 9)} 0")


_EDITS: tuple[Edit, ...] = (
    _delete, _delete, _repeat, _repeat, _move, _move, _renumber, _replace_register, _enclose, _branch, _cite,
)  # fmt: skip


def _edit(text: str, draw: random.Random) -> str:
    """Return a module with some edits of the statements of its functions."""
    head, brace, inside = text.partition("\n{\n")
    declarations, lines = [".reg .pred %flag;"], inside.rpartition("}")[0].split("\n")
    while lines[0].lstrip().startswith(".reg"):
        declarations.append(lines.pop(0))
    for _ in range(draw.randint(1, 12)):
        draw.choice(_EDITS)(lines, draw.randrange(len(lines)), draw)
    return f"{head}{brace}" + "\n".join([*declarations, *lines]) + "\n}\n"


def _draw_edited(draw: random.Random) -> str:
    """Return an edited module whose registers are all declared."""
    while True:
        if draw.random() < 0.6:
            text = draw.choice(_SMALL).read_bytes().decode()
        else:
            text = kernel(REGISTERS + "".join(ptx for ptx, _ in draw.sample(list(READS.values()), 4)))
        text = _edit(text, draw)
        module, errors = parse(text, recover=True)
        if not errors and not any(finding.code == "PTX0401" for finding in check(module)):
            return text


def _space(text: str, draw: random.Random) -> str:
    strange = draw.choice((0.02, 0.3, 1.0))
    tokens = [token.text for token in tokenize(text)][:-1]
    return "".join([word + (draw.choice(_GAPS) if draw.random() < strange else " ") for word in tokens])


@pytest.mark.parametrize("part", range(_PARTS))
def test_the_python_of_edited_kernels(part: int) -> None:
    draw = random.Random(part)
    edits = [_draw_edited(draw) for _ in range(_TEXTS)]
    assert_digest("edits", str(part), "\n".join(ptx_to_python(text, sugar=True) for text in edits))


@pytest.mark.parametrize("name", sorted(_WHOLE))
def test_the_python_of_a_strange_module(name: str) -> None:
    assert_digest("strange", name, "\n".join(ptx_to_python(_WHOLE[name], sugar=sugar) for sugar in (False, True)))


@pytest.mark.parametrize("name", sorted(_SAMPLES))
def test_the_python_of_oddly_spaced_modules(name: str) -> None:
    draw = random.Random(name)
    texts = [_space(_SAMPLES[name], draw) for _ in range(6)]
    texts = [text for text in texts if not parse(text, recover=True)[1]]
    assert_digest("spaced", name, "\n".join(map(ptx_to_python, texts)))


def test_edited_kernels_keep_every_token(seed: int) -> None:
    draw = random.Random(seed)
    edits = [_draw_edited(draw) for _ in range(20)]
    assert {text: why for text in edits if (why := find_module_difference(text))} == {}
