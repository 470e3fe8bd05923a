"""Hostile modules raise no exception and take time in proportion to their length."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from pyptx.check import check
from pyptx.parser import parse
from tools.audit_fuzz import CORPUS, mutate, pieces

REGISTERS = ".reg .b32 %r<64>;\n.reg .pred %p<4>;\n.reg .b64 %rd<8>;\n"
ROUNDS = 1000


def kernel(body: str) -> str:
    """Return a module with one kernel that has this body."""
    return f".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{{\n{REGISTERS}{body}\nret;\n}}\n"


def lines(n: int, line: Callable[[int], str]) -> str:
    """Return n lines."""
    return "".join(line(i) + "\n" for i in range(n))


SHAPES: dict[str, Callable[[int], str]] = {
    "names of many letters": lambda n: kernel(f".reg .b32 {'x' * n};\nmov.b32 {'x' * n}, 1;\nmov.b32 {'y' * n}, 1;"),
    "names of many digits": lambda n: kernel(f"mov.b32 %r{'1' * n}, 1;\nmov.b32 %r{'0' * n}1, 1;"),
    "numbers of many digits": lambda n: kernel(
        f"mov.b32 %r1, {'1' * n};\nbar.sync {'1' * n};\n.shared .b8 s[{'1' * n}];"
    ),
    "opcodes of many letters": lambda n: kernel(f"{'a' * n}.b32 %r1, %r2;\nadd.{'a' * n} %r1, %r2;"),
    "many modifiers": lambda n: kernel(f"add{'.sat' * n}.s32 %r1, %r2, 1;"),
    "many operands": lambda n: kernel(
        f"add.s32 {', '.join(['%r1'] * n)};\nmov.b64 {{{', '.join(['%r1'] * n)}}}, %rd1;"
    ),
    "nested parentheses": lambda n: kernel(f"mov.b32 %r1, {'(' * n}1{')' * n};"),
    "nested signs": lambda n: kernel(f"mov.b32 %r1, {'- ' * n}1;"),
    "nested blocks": lambda n: kernel("{" * n + "mov.b32 %r1, 1;\nbra X;\n" + "}" * n),
    "nested blocks with labels": lambda n: kernel(
        lines(n, lambda i: f"{{ L{i}: mov.b32 %r1, 1;") + "bra L0;" + "}" * n
    ),
    "undeclared names": lambda n: kernel(lines(n, lambda i: f".reg .b32 q{i};\nmov.b32 z{i}, y{i};")),
    "unknown labels": lambda n: kernel(lines(n, lambda i: f"@%p1 bra M{i};\nL{i}:")),
    "unknown instructions": lambda n: kernel(
        lines(n // 8, lambda i: f"ad{i}.s32 %r1, %r2;\nmul.lo.s32.x{i} %r1, %r2;")
    ),
    "duplicates": lambda n: kernel(".reg .b32 d, d;\n.shared .b8 d;\nd:\n" * n),
    "branches forward": lambda n: kernel(lines(n, lambda i: f"@%p1 bra L{n - 1 - i};") + lines(n, lambda i: f"L{i}:")),
    "branches backward": lambda n: kernel(lines(n, lambda i: f"L{i}: add.s32 %r1, %r1, 1;\n@%p1 bra L{i // 2};")),
    "irreducible loops": lambda n: kernel(lines(n, lambda i: f"L{i}: @%p1 bra L{i * 7919 % n};\nbar.sync 0;")),
    "divided warps": lambda n: kernel(
        f".reg .b32 q<{n + 1}>;\nmov.u32 q0, %tid.x;\n"
        + lines(
            n, lambda i: f"add.s32 q{i + 1}, q{i}, 1;\nsetp.eq.s32 %p1, q{i}, 3;\n@%p1 bra L{i};\nbar.sync 0;\nL{i}:"
        )
    ),
    "branch targets": lambda n: kernel(f"T: .branchtargets L<{n}>;\nbrx.idx %r1, T;\n" + lines(n, lambda i: f"L{i}:")),
    "straight lines": lambda n: kernel(lines(n, lambda i: f"add.s32 %r{i % 64}, %r{i * 7 % 64}, {i};")),
}


def seconds(text: str) -> float:
    """Return the processor time to check a text, the minimum of two runs."""
    module = parse(text, recover=True)[0]
    times: list[float] = []
    for _ in range(2):
        start = time.process_time()
        check(module, unused=True)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_no_faster_than_the_text(shape: str) -> None:
    small, large = SHAPES[shape](300), SHAPES[shape](2400)
    assert seconds(large) < 4 * (len(large) / len(small)) * max(seconds(small), 0.004)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_places_of_findings_exist(shape: str) -> None:
    text = SHAPES[shape](5000 if "digits" in shape else 50)
    count = text.count("\n") + 1
    assert all(0 < finding.line <= count for finding in check(parse(text, recover=True)[0]))


def test_a_range_of_more_labels_than_there_are() -> None:
    text = kernel("T: .branchtargets L<99999999999>;\nmov.b32 %r1, 1;\nbrx.idx %r1, T;\nL0:\nL1: mov.b32 %r2, 1;")
    assert check(parse(text)) == []


def test_mutated_pieces_of_the_corpus_raise_nothing(seed: int) -> None:
    draw = random.Random(seed)
    source = pieces(draw.sample(sorted(CORPUS.rglob("*.ptx")), 20), draw)
    for _ in range(ROUNDS):
        check(parse(mutate(next(source), draw), recover=True)[0], unused=True)
