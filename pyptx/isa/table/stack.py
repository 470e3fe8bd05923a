"""Manual: Stack Manipulation Instructions."""

from __future__ import annotations

from pyptx.isa.notation import form

MEANING = {
    "stacksave": "Save the stack pointer.",
    "stackrestore": "Restore the stack pointer.",
    "alloca": "Allocate stack memory.",
}
TRAITS = {
    "alloca": "allocates:stack",
}

_SEE = "stack-manipulation-instructions-"
_52 = "7.3,sm_52"

FORMS = (
    form("stacksave.type     d", type="u32 u64", since=_52, see=_SEE + "stacksave"),
    form("stackrestore.type  a:reg", type="u32 u64", since=_52, see=_SEE + "stackrestore"),
    form("alloca.type        ptr:w, size{, immAlign:imm[1..8388608]}",
         type="u32 u64", since=_52, see=_SEE + "alloca", quirk="immAlign is a power of two"),
)  # fmt: skip  # fmt: skip
