"""Illegal instructions: the checker, the simulator and both transpilers report them or continue, without a crash."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from pyptx import sim
from pyptx.check import check
from pyptx.diagnostics import PtxError, Severity
from pyptx.emitter import emit
from pyptx.ir import Module
from pyptx.isa import lookup, table
from pyptx.parser import parse
from tests.codegen.sugared import find_module_difference
from tests.codegen.transcripts import problem
from tools.isa.mutants import split
from tools.isa.synthesize import declarations, function_labels, instruction, module_variables

TARGET, VERSION = "sm_100a", (9, 0)
_STRANGE = (
    "1", "1.5", "_", "q_b32_9", "[q_b64_9]", "{q_b32_9, q_b32_8}", "{q_b32_9}", "q_pred_9|q_pred_8", "q_label",
    "-q_b32_2", "!q_pred_2", "q_b32_1+4", "q_global", "q_global[4]", "[4]", "%tid.x", "(1+2)",
)  # fmt: skip


def _module(lines: list[str]) -> str:
    head = (f".version {VERSION[0]}.{VERSION[1]}", f".target {TARGET}", ".address_size 64")
    entry = (".visible .entry k(.param .align 128 .b8 q_param[256])", "{")
    divergence = ("mov.u32 q_b32_5, %tid.x; setp.eq.u32 q_pred_0, q_b32_5, 3;", "@q_pred_0 bra q_label;")
    inside = (
        *declarations(VERSION, 100),
        *function_labels(VERSION, 100),
        *divergence,
        "barrier.sync.aligned 0;",
        *lines,
    )
    return "\n".join([*head, *module_variables(sampler=False), *entry, *inside, "q_label: bar.sync 0; ret;", "}", ""])


def _generate_malformed(opcode: str, source: random.Random) -> Iterator[str]:
    rows = table.find_rows(opcode)
    for row in source.sample(rows, min(len(rows), 4)):
        binding = tuple((slot.name, source.choice(slot.choices)) for slot in source.choice(lookup.list_sequences(row)))
        match = lookup.match_of(row, binding)
        for signature in match.signatures:
            for change in range(5):
                text = split(instruction(match, signature))
                operands = text.operands
                if change == 0:
                    operands[:] = operands[: source.randrange(len(operands) + 1)]
                elif change == 1:
                    operands.insert(source.randrange(len(operands) + 1), source.choice((*operands, *_STRANGE)))
                elif change == 2:
                    source.shuffle(operands)
                elif change == 3 and operands:
                    operands[source.randrange(len(operands))] = source.choice(_STRANGE)
                elif len(text.head) > 1:
                    text.head.pop(source.randrange(1, len(text.head)))
                line = source.choice(("", "@q_pred_3 ", "@!q_pred_3 ")) + str(text)
                if not parse(_module([line]), recover=True)[1]:
                    yield line


def _survives(source: str) -> None:
    module: Module = parse(source)
    assert emit(module) == source
    check(module, unused=True)
    assert problem(source) is None
    assert find_module_difference(source) is None
    with suppress(PtxError):
        sim.run(module, "k", block=1, args=[np.zeros(256, "u1")])


def test_every_layer_survives_operands_that_are_wrong(seed: int) -> None:
    source = random.Random(seed)
    opcodes = source.sample(list(table.list_opcodes()), 8)
    _survives(_module([line for opcode in opcodes for line in _generate_malformed(opcode, source)]))


@pytest.mark.parametrize(
    "line",
    [
        "shfl.sync.idx.b32 %r1, %r2;", "shfl.up.b32 %r1|%p1;", "bar;", "mov.b32 %r1;", "mov;", "mbarrier;", "elect;",
        f"mov{'.b32' * 500} %r1, %r2;", f"ld.global{'.v2' * 500} %r1;", "call;", "bra;", "brx.idx;", "setp;",
        "@%p1 bra;",
    ],
)  # fmt: skip
def test_every_layer_survives(line: str) -> None:
    _survives(
        f".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .align 128 .b8 q[256])\n{{\n"
        f".reg .b32 %r<9>;\n.reg .pred %p<4>;\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p2, %r1, 3;\n@%p2 bra L;\n"
        f"{line}\nL: bar.sync 0;\nret;\n}}\n"
    )


def test_the_sample_holds_wrong_instructions(seed: int) -> None:
    lines = list(_generate_malformed("add", random.Random(seed)))
    assert len([d for d in check(parse(_module(lines))) if d.severity is Severity.ERROR]) > len(lines) / 4
