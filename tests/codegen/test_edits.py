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

_RARE = (
    "W:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, 99;\n@!%p1 bra.uni W;\nV:\n"
    "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], %r2;\n@!%p1 bra V;\n",
    "{\n.reg .pred P1;\nLAB:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 P1, [%r1], %r2;\n"
    "@!P1 bra.uni LAB;\n}\n",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r2, %r1, %r0}, [%r9];\nst.shared.v2.b32 [%r9], {%r1, %r0};\n"
    "L:\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r2, %r1, %r0}, [%r9];\nbra L;\n",
    "ld.shared.v4.b32 {%r1, _, %r2, %r3}, [%r9];\nst.shared.v4.b32 [%r9], {%r3, %r2, %r1, %r1};\n",
    "ld.shared.v4.f32 {%f4, %f5, %f6, %f7}, [%r9];\nld.shared.v4.f32 {%f4, %f5, %f6, %f7}, [%r8];\n"
    "st.shared.v4.f32 [%r9], {%f4, %f5, %f6, %f7};\n",
    "ld.shared.v3.f32 {%f1, %f2, %f3}, [%r9];\nld.shared.v3.f32 {%f1, %f2, %f3}, [%r8];\n",
    "elect.sync _|%p1, -1;\n@%p1 ret;\nelect.sync %r1|%p2, 15;\nst.shared.b32 [%r9], %r1;\n@%p2 ret;\n",
    "shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;\n@%p1 st.shared.b32 [%r9], %r2;\n",
    "setp.lt.s32 %p1|%p2, %r1, 0;\n@%p1 ret;\n@!%p2 ret;\nsetp.lt.and.s32 %p3, %r1, 0, !%p1;\n@%p3 trap;\n",
    "mov.b64 {%r1, %r2}, %rd1;\nmov.b64 %rd2, {%r2, %r1};\nmov.b64 {_, %r3}, %rd2;\nst.shared.b32 [%r3], %r1;\n",
    "and.b32 %r1, %r2, 255;\nor.b32 %r3, %r1, 256;\nxor.b32 %r4, %r3, 65535;\nmov.b32 %r5, 1048576;\n"
    "mov.b32 %r6, 1048575;\nst.shared.v4.b32 [%r9], {%r3, %r4, %r5, %r6};\n",
    "mad.lo.u32 %r1, %r8, 8, %r7;\nxor.b32 %r2, %r9, 1;\nadd.u32 %r8, %r8, 1;\nxor.b32 %r9, %r9, 1;\n"
    "setp.eq.u32 %p1, %r8, 3;\nselp.b32 %r8, 0, %r8, %p1;\n",
    "red.shared.add.u32 [%r1], %r2;\natom.shared.cas.b32 %r3, [%r1], %r2, %r4;\nbar.red.popc.u32 %r5, 0, 64, %p1;\n"
    "barrier.sync 1, 64;\nbar.warp.sync -1;\nvote.sync.ballot.b32 %r6, %p1, -1;\nst.shared.b32 [%r3], %r5;\n",
)

_PIECES = (*(ptx for ptx, _ in READS.values()), *_RARE)

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


def _make_uniform(lines: list[str], at: int, draw: random.Random) -> None:
    del draw
    lines[at] = lines[at].replace("bra ", "bra.uni ")


def _cite(lines: list[str], at: int, draw: random.Random) -> None:
    lines.insert(at, f".loc 1 {draw.randint(1, 9)} 0")


_EDITS: tuple[Edit, ...] = (
    _delete, _delete, _repeat, _repeat, _move, _move, _renumber, _replace_register, _enclose, _branch, _cite,
    _make_uniform,
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
            text = kernel(REGISTERS + "".join(draw.sample(_PIECES, 4)))
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


def _list_repeats() -> dict[str, list[str]]:
    """Return kernels around the limits of loops and folded expressions, by what they vary."""
    draw = random.Random(0)
    numbers = [draw.randrange(1_000, 10_000) for _ in range(2_000)]
    stores = [f"st.global.f32 [%rd1+{4 * i}], %f1;\n" for i in range(600)]
    chains = ["".join(f"xor.b32 %r{i + 1}, %r{i}, {i};\n" for i in range(1, count)) for count in range(2, 9)]
    return {
        "iterations": ["".join(stores[:count]) for count in (1, 2, 3, 4, 5, 255, 256, 257, 258, 511, 512, 513, 600)],
        "statements": [
            "".join(f"unknown.u32 {i}{', %r1' * k};\n" for i in range(count) for k in range(length))
            for length in range(1, 27) for count in (3, 4)
        ],
        "columns": [
            "".join(f"unknown.u32 {', '.join(map(str, numbers[i : i + count]))};\n" for i in range(0, 60, 10))
            for count in range(1, 8)
        ],
        "widths": [
            "".join(f"unknown.and.very.long.name.u32 %r1, %r2, %r3, {n};\n" for n in (first, *numbers[:count]))
            for first in (1, 100, 1_000, 10_000) for count in (3, 50, 78, 79, 80, 150, 200)
        ],
        "periods": [
            "".join(f"unknown.u32 {i}{', %r1' * k};\n" * (1 + k % 3) for i in range(5) for k in range(period))
            for period in range(1, 9)
        ],
        "depths": [f"{chain}st.shared.b32 [%r9], %r{i + 2};\nst.shared.b32 [%r9], %r{i + 2};\n"
                   for i, chain in enumerate(chains)],
        "lengths": [
            f".reg .b32 {'v' * size};\nxor.b32 %r1, {'v' * size}, {other};\nand.b32 %r2, %r1, {'v' * size};\n"
            "st.shared.b32 [%r9], %r2;\nst.shared.b32 [%r8], %r2;\n"
            for size in range(10, 40) for other in ("%r9", "%r10")
        ],
        "vectors": [
            f"ld.shared.v{size}.b32 {{{', '.join(f'%r{base + step * i}' for i in range(size))}}}, [%r9];\n" * 2
            for size in (2, 3, 4) for step in (1, -1, 2) for base in (4, 10, 12)
        ],
    }  # fmt: skip


@pytest.mark.parametrize("kind", sorted(_list_repeats()))
def test_the_python_around_a_limit(kind: str) -> None:
    sources = [kernel(REGISTERS + body) for body in _list_repeats()[kind]]
    assert_digest("limits", kind, "\n".join(ptx_to_python(source, sugar=True) for source in sources))


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
