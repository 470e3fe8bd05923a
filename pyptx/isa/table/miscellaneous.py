"""Manual: Miscellaneous Instructions."""

from __future__ import annotations

from pyptx.isa.notation import form

MEANING = {
    "brkpt": "Suspend execution for a debugger.",
    "nanosleep": "Suspend the thread for about this many nanoseconds.",
    "pmevent": "Trigger performance monitor events.",
    "trap": "Abort execution with an interrupt to the host.",
    "setmaxnreg": "Increase or decrease the number of registers of each thread in the warp.",
}
TRAITS = {
    "nanosleep": "pauses",
    "trap": "traps",
    "setmaxnreg": "suspends:registers",
}

_SEE = "miscellaneous-instructions-"
_WARPGROUP = "8.0,sm_90a|sm_100a:8.6|sm_100f:8.8|sm_101a:8.6|sm_101f:8.8|sm_120a:8.7|sm_120f:8.8"

FORMS = (
    form("brkpt", sm="sm_11", see=_SEE + "brkpt"),
    # The manual says PTX 6.3; ptxas accepts it since 6.2.
    form("nanosleep.u32   t", since="6.2,sm_70", see=_SEE + "nanosleep"),
    form("pmevent         a:imm[0..15]", ptx=(1, 4), see=_SEE + "pmevent"),
    form("pmevent.mask    a:imm[0..65535]", since="3.0,sm_20", see=_SEE + "pmevent"),
    form("trap", see=_SEE + "trap"),
    form("setmaxnreg.action.sync.aligned.u32  n:imm[24..256/8]",
         action="inc dec", since=_WARPGROUP, see=_SEE + "setmaxnreg"),
)  # fmt: skip
