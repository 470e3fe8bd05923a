"""Which instructions end a run of straight-line code. Facts that no syntax line says (manual: Control Flow
Instructions)."""

from __future__ import annotations

JUMPS = frozenset(("bra", "brx"))
"""They go to a label; guarded `bra` may fall through, `brx` never does."""

ENDS = frozenset(("ret", "exit"))
"""The thread leaves the function or the kernel."""

TRAP = "trap"
"""The kernel stops with an error."""

CALLS = frozenset(("call",))
