"""Helpers that wrap a body in a short kernel, for the tests of control flow, memory and launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.base.formats import Value
from pyptx.sim.hazards import Finding
from tests.messages import raises

HEAD = """.version 8.7
.target sm_90a
.address_size 64
"""


def kernel(body: str, *, module: str = "", params: str = ".param .u64 out") -> str:
    """Return a module with one entry `k`; %tid is in %t, the address of `out[tid]` (32 bits each) in %o."""
    load = "ld.param.u64 %o, [out];\nmad.wide.u32 %o, %t, 4, %o;" if "u64 out" in params else ""
    return f"""{HEAD}{module}
.visible .entry k({params})
{{
.reg .b32 %r<20>, %t; .reg .b64 %rd<20>, %o; .reg .pred %p<8>; .reg .f32 %f<8>; .reg .b16 %h<8>;
mov.u32 %t, %tid.x;
{load}
{body}
ret;
}}
"""


def results(body: str, threads: int = 64, *, module: str = "", **options: Value) -> list[int]:
    """Run a kernel of one argument, an array of one 32-bit integer per thread, and return it."""
    out = np.zeros(threads, np.int32)
    sim.run(parse(kernel(body, module=module)), "k", block=threads, args=(out,), **options)
    return out.tolist()


def assert_reported(text: str, code: str, *words: str, **options: Value) -> PtxError:
    """Run a module that must raise an error with this code and these words."""
    with raises(PtxError) as excinfo:
        sim.run(parse(text), **options)
    assert [d.code for d in excinfo.value.diagnostics] == [code], str(excinfo.value)
    for word in words:
        assert word in str(excinfo.value)
    return excinfo.value


SCHEDULES = (("eager", 0), ("lazy", 0), *(("adversarial", n) for n in range(6)), ("random", 0))


def by_schedule(text: str, *, words: int = 64, **options: Value) -> dict[tuple[str, int], list[Finding]]:
    """Run a module with one argument, an array of zeros, under every schedule; return the findings of each."""
    module = parse(text)
    by_order: dict[tuple[str, int], list[Finding]] = {}
    for schedule, seed in SCHEDULES:
        settings: dict[str, Any] = {
            "schedule": schedule,
            "seed": seed,
            "on_hazard": "report",
            "max_steps": 200_000,
            **options,
        }
        by_order[schedule, seed] = sim.run(module, args=[np.zeros(words, np.uint32)], **settings).hazards
    return by_order


def codes(by_order: dict[tuple[str, int], list[Finding]]) -> set[tuple[str, ...]]:
    """Return the codes of the findings of each schedule, without duplicates."""
    return {tuple(sorted({finding.rule.code for finding in findings})) for findings in by_order.values()}
