"""Manual: Control Flow Instructions."""

from __future__ import annotations

from pyptx.isa.notation import form

MEANING = {
    "bra": "Branch to a label.",
    "brx.idx": "Branch to one of a list of labels.",
    "call": "Call a function, by name or through a register.",
    "ret": "Return from a function; in a kernel, end the thread.",
    "exit": "End the thread.",
}
TRAITS = {
    "bra": "jumps",
    "brx.idx": "jumps:table",
    "call": "calls",
    "ret": "returns",
    "exit": "exits",
}

_BRX = "control-flow-instructions-brx-idx"
_CALL = "control-flow-instructions-call"

FORMS = (
    form("bra{.uni}  target:label", see="control-flow-instructions-bra"),
    # The manual says PTX 6.0; ptxas accepts it in 5.1 too.
    form("brx.idx{.uni}  index:.u32, targets:label", since="5.1,sm_30", see=_BRX),
    form("call{.uni}  function:func", see=_CALL),
    form("call{.uni}  function:func, arguments:list", see=_CALL),
    # The manual lets arguments go only where there are no results; ptxas does not require this.
    form("call{.uni}  result:wlist, function:func{, arguments:list}", see=_CALL),
    # Through a register: the last operand names a .callprototype, a .calltargets list or a table of functions.
    form("call{.uni}  pointer:reg.u64, prototype:label", ptx=(2, 1), sm="sm_20", see=_CALL),
    form("call{.uni}  pointer:reg.u64, arguments:list, prototype:label", ptx=(2, 1), sm="sm_20", see=_CALL),
    form(
        "call{.uni}  result:wlist, pointer:reg.u64{, arguments:list}, prototype:label",
        ptx=(2, 1),
        sm="sm_20",
        see=_CALL,
    ),
    form("ret{.uni}", see="control-flow-instructions-ret"),
    form("exit", see="control-flow-instructions-exit"),
)
