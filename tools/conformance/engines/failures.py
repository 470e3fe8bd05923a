"""Kernels that fault and hang on purpose, between others: does a recording with `--family failure` survive them?"""

from __future__ import annotations

from collections.abc import Iterator

from tools.conformance.engines.cases import Case, Inputs
from tools.conformance.engines.text import make_entry

FAMILY = "failure"
_BODIES = {
    "before": "st.global.u32 [%out], %t;",
    "fault": "trap;",
    "between": "st.global.u32 [%out+4], %t;",
    "hang": "loop: ld.volatile.global.u32 %n, [%data]; setp.eq.u32 %p, %n, 0;\n@%p bra loop;",
    "after": "st.global.u32 [%out+8], %t;",
}


def list_cases() -> Iterator[Case]:
    """Yield the cases."""
    for name, body in _BODIES.items():
        entry = make_entry(f"failure_{name}", body, size=16, threads=32)
        yield Case(f"{FAMILY}/{name}", entry, lambda random: Inputs(bytes(16), bytes(16), bytes(16)))
