"""Shared variables are placed where ptxas places them: compared with its machine code, where addresses are
constants."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.toolchain import assemble
from tools.conformance.folding_sass import Instruction, functions, stores

TARGETS = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")


def _store_addresses(names: list[str], first: int = 0) -> str:
    """Return statements that store the address of each name."""
    return "\n".join(
        f"mov.u32 %r{index}, {name};\nst.global.u32 [%rd+{4 * index}], %r{index};"
        for index, name in enumerate(names, first)
    )


def _body(name: str, local: str, rest_of_body: str) -> str:
    kind = ".visible .entry" if name.startswith("k") else ".func"
    return f"""{kind} {name}(.param .b64 p)
{{
.reg .b64 %rd; .reg .b32 %r<64>;
{local}
ld.param.u64 %rd, [p];
{rest_of_body}
ret;
}}
"""


def _call(name: str) -> str:
    return f"{{ .param .b64 q; st.param.b64 [q], %rd; call.uni {name}, (q); }}\n"


def _module(target: str, *parts: str) -> str:
    return "\n".join((f".version 8.8\n.target {target}\n.address_size 64", *parts))


def _rank_is_zero(instruction: Instruction) -> Instruction:
    """Replace the read of the CTA's rank in its cluster, the high bits of a shared memory address."""
    if "SR_CgaCtaId" not in instruction.operands:
        return instruction
    return instruction._replace(opcode="MOV", modifiers=(), operands=(instruction.operands[0], "RZ"))


def _of_ptxas(text: str, entry: str) -> dict[int, int]:
    """Return the values that an entry and the functions in its code store, by number."""
    code = [_rank_is_zero(step) for step in functions(assemble(text))[entry]]
    values: dict[int, int] = {}
    ends = [index + 1 for index, step in enumerate(code) if step.opcode in ("CALL", "RET", "EXIT", "BRA")]
    for first, end in pairwise((0, *ends)):
        for store in stores(code[first:end]):
            for index, word in enumerate(store.words):
                assert word is not None, "an address that the machine code does not show"
                values[store.offset // 4 + index] = word.bits
    return values


def _simulate(text: str, entry: str) -> dict[int, int]:
    out = np.full(64, -1, np.int32)
    sim.run(parse(text), entry, args=[out], shared=64)
    return {index: value for index, value in enumerate(out.tolist()) if value >= 0}


def _declare_variables(names: str, rng: random.Random, linkings: tuple[str, ...] = ("",)) -> str:
    lines: list[str] = []
    for name in names:
        align, size = rng.choice((1, 2, 4, 8, 16, 64, 128, 256)), rng.choice((1, 3, 4, 12, 20, 33, 64, 100))
        lines.append(f"{rng.choice(linkings)} .shared .align {align} .b8 {name}[{size}];")
    return "\n".join(lines)


@pytest.mark.parametrize("target", TARGETS)
def test_variables_lie_where_ptxas_puts_them(target: str, seed: int) -> None:
    """Variables of an entry, of the module, unused ones and dynamic memory, named in any order."""
    rng = random.Random(f"{target} {seed}")
    dynamic = f".extern .shared .align {rng.choice((1, 4, 16, 128))} .b8 rest[];"
    module_variables = [dynamic, _declare_variables("mno", rng, ("", "", ".visible", ".weak", ".extern"))]
    rng.shuffle(module_variables)
    names = [*rng.sample("mnoabc", 4), "rest"]
    rng.shuffle(names)
    text = _module(target, *module_variables, _body("k", _declare_variables("abc", rng), _store_addresses(names)))
    expected = _of_ptxas(text, "k")
    assert len(expected) == len(names)
    assert _simulate(text, "k") == expected, text


ORDER = """\
.shared .align 4 .b8 m1[4];
.shared .align 4 .b8 m2[8];
.func h(.param .b64 p);
.shared .u64 m3[2], m4;
"""
F = _body("f", ".shared .align 4 .b8 x[20], y[4];", _store_addresses(["y", "x", "m2"], 8))
G = _body("g", ".shared .align 4 .b8 x[28];", _store_addresses(["x"], 12))
H = _body("h", ".shared .v4 .f32 x;", _store_addresses(["x"], 16))
K1 = _body(
    "k1",
    ".shared .align 4 .b8 a[12];",
    "{ .shared .b8 z[5];\n"
    + _store_addresses(["z"], 3)
    + "}\n"
    + _store_addresses(["m4", "a", "m1"])
    + _call("g")
    + _call("f"),
)
K2 = _body("k2", "", _call("h") + _call("f") + "{ .shared .b8 z[5];\n" + _store_addresses(["m3", "z"]) + "}")


@pytest.mark.parametrize(("entry", "store_count"), [("k1", 8), ("k2", 6)])
def test_functions_have_theirs_behind_those_of_the_module(entry: str, store_count: int) -> None:
    """In the order of their first declarations, and only functions that the entry can call."""
    text = _module("sm_80", ORDER, F, G, K1, K2, H)
    expected = _of_ptxas(text, entry)
    assert len(expected) == store_count
    assert _simulate(text, entry) == expected


def test_an_initializer_names_no_shared_memory() -> None:
    text = _module("sm_80", ".shared .b32 s; .global .u64 g = generic(s);", _body("k", "", _store_addresses(["g"])))
    with pytest.raises(
        PtxError, match="`s` is in shared memory; an initializer may name only global and constant memory"
    ) as excinfo:
        sim.run(parse(text), args=[np.zeros(4, np.int32)])
    assert excinfo.value.diagnostics[0].code == "PTX1106"
