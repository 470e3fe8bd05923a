"""Manual: Parallel Synchronization and Communication Instructions: atom, red and their asynchronous forms."""

from __future__ import annotations

from pyptx.isa.choices import HINT
from pyptx.isa.model import Form
from pyptx.isa.notation import form

MEANING = {
    "atom": "Update memory atomically and return the old value.",
    "red": "Update memory atomically.",
    "red.async": "Update memory atomically and asynchronously, optionally signaling an mbarrier.",
    "multimem.red.async": "Add to a multimem address asynchronously.",
}
TRAITS = {
    "atom": "loads updates yields:varying",
    "red": "updates",
    "red.async": "updates issues:store",
    "multimem.red.async": "updates issues:store",
}

_SEE = "parallel-synchronization-and-communication-instructions-"
_SCOPE = "cta@5.0,sm_60 gpu@5.0,sm_60 sys@5.0,sm_60 cluster@7.8,sm_90"
_SHARED = "shared shared::cta@7.8 shared::cluster@7.8,sm_90"
_RELAXED = "relaxed@6.0,sm_70 release@6.0,sm_70"
_ORDERS = {"atom": f"{_RELAXED} acquire@6.0,sm_70 acq_rel@6.0,sm_70", "red": _RELAXED}
_FIRST = {"atom": "1.1,sm_11", "red": "1.2,sm_11"}
_FIRST_SHARED = "1.2,sm_12"
_64 = "@1.2,sm_12"
_64_SHARED = "@2.0,sm_20"
_BITS = "b32 b64@3.1,sm_32"
_ADD = f"u32 s32 u64{_64} f32@2.0,sm_20 f64@5.0,sm_60"
_ORDERED = "u32 s32 u64@3.1,sm_32 s64@3.1,sm_32"
_NOFTZ = "f16@6.3,sm_70 f16x2@6.2,sm_60 bf16@7.8,sm_90 bf16x2@7.8,sm_90"
_POLICY = "{?hint, policy:.b64}"


def _scalar(name: str, op: str, type: str, b: str = "b", since: str = "") -> tuple[Form, ...]:
    """Return the rows of some operations: on global or generic memory, with a cache hint, and on shared memory."""
    d = "d:w_, " if name == "atom" else ""
    sem, see = _ORDERS[name], _SEE + name
    return (
        form(f"{name}{{.sem}}{{.scope}}{{.global}}.op{{.hint}}.type  {d}[a:rw], {b}{_POLICY}",
             sem=sem, scope=_SCOPE, op=op, hint=HINT, type=type, since=since or _FIRST[name], see=see),
        form(f"{name}{{.sem}}{{.scope}}.ss.op.type  {d}[a:rw], {b}",
             sem=sem, scope=_SCOPE, ss=_SHARED, op=op, type=type.replace(_64, _64_SHARED),
             since=since or _FIRST_SHARED, see=see),
    )  # fmt: skip


def _vector(name: str) -> tuple[Form, ...]:
    """Return the rows of the operations on vectors, which only global memory has."""
    d = "d:w_.type*vec, " if name == "atom" else ""
    sem, see, since = _ORDERS[name], _SEE + name, "8.1,sm_90"
    head = f"{name}{{.sem}}{{.scope}}{{.global}}"
    operands = f"{d}[a:rw], b:.type*vec{_POLICY}"
    any_of = "add min max"
    return (
        form(f"{head}.add{{.noftz}}{{.hint}}.vec.type  {operands}",
             sem=sem, scope=_SCOPE, noftz="noftz@9.4", hint=HINT, vec="v2 v4", type="f32", since=since, see=see),
        form(f"{head}.op.noftz{{.hint}}.vec.type  {operands}",
             sem=sem, scope=_SCOPE, op=any_of, hint=HINT, vec="v2 v4 v8", type="f16 bf16", since=since, see=see),
        form(f"{head}.op.noftz{{.hint}}.vec.type  {operands}",
             sem=sem, scope=_SCOPE, op=any_of, hint=HINT, vec="v2 v4", type="f16x2 bf16x2", since=since, see=see),
    )  # fmt: skip


def _both(name: str) -> tuple[Form, ...]:
    """Return the rows that atom and red share; ptxas accepts no immediate for the halves."""
    return (
        *_scalar(name, "and or xor", _BITS),
        *_scalar(name, "add", _ADD),
        *_scalar(name, "inc dec", "u32"),
        *_scalar(name, "min max", _ORDERED),
        *_scalar(name, "add.noftz", _NOFTZ, "b:reg"),
        *_scalar(name, "add.noftz", "f32", since="9.4,sm_90"),
        *_vector(name),
    )


_WIDE_SCOPE = "cta gpu sys@8.4 cluster"
_CLUSTER = "red.async.relaxed.cluster{.ss}.mbarrier::complete_tx::bytes.op.type  [a:rw], b, [mbar:rw]"
_GLOBAL = "red.async.release.scope{.global}.op.type  [a:rw], b"
_MMIO = "red.async.mmio.release.sys{.global}.op.type  [a:rw], b"
_SS = "shared::cluster"

FORMS = (
    *_both("atom"),
    *_scalar("atom", "exch", f"b32 b64{_64}"),
    form("atom{.sem}{.scope}{.space}.cas.type  d:w_, [a:rw], b, c",
         sem=_ORDERS["atom"], scope=_SCOPE, space=f"global {_SHARED}".replace("shared ", f"shared@{_FIRST_SHARED} "),
         type=f"b32 b64{_64} b16@6.3,sm_70", since=_FIRST["atom"], see=_SEE + "atom",
         quirk="64 bits in shared memory need PTX 2.0 and sm_20"),
    form("atom{.sem}{.scope}{.space}.cas.b128  d:w_, [a:rw], b, c",
         sem=_ORDERS["atom"], scope=_WIDE_SCOPE, space=f"global {_SHARED}", since="8.3,sm_90", see=_SEE + "atom"),
    form(f"atom{{.sem}}{{.scope}}{{.global}}.exch{{.hint}}.b128  d:w_, [a:rw], b{_POLICY}",
         sem=_ORDERS["atom"], scope=_WIDE_SCOPE, hint=HINT, since="8.3,sm_90", see=_SEE + "atom"),
    form("atom{.sem}{.scope}.ss.exch.b128  d:w_, [a:rw], b",
         sem=_ORDERS["atom"], scope=_WIDE_SCOPE, ss=_SHARED, since="8.3,sm_90", see=_SEE + "atom"),
    *_both("red"),
    # The manual has no .add.s64. ptxas also accepts these without the barrier, which then signals nothing: not a row.
    form(_CLUSTER, ss=_SS, op="inc dec", type="u32", since="8.1,sm_90", see=_SEE + "red-async"),
    form(_CLUSTER, ss=_SS, op="min max", type="u32 s32", since="8.1,sm_90", see=_SEE + "red-async"),
    form(_CLUSTER, ss=_SS, op="and or xor", type="b32", since="8.1,sm_90", see=_SEE + "red-async"),
    form(_CLUSTER, ss=_SS, op="add", type="u32 s32 u64 s64", since="8.1,sm_90", see=_SEE + "red-async"),
    # The manual has .add alone for .release; ptxas accepts and compiles the others.
    form(_GLOBAL, scope="gpu sys", op="inc dec", type="u32", since="8.7,sm_100", see=_SEE + "red-async"),
    form(_GLOBAL, scope="gpu sys", op="min max", type="u32 s32", since="8.7,sm_100", see=_SEE + "red-async"),
    form(_GLOBAL, scope="gpu sys", op="and or xor", type="b32", since="8.7,sm_100", see=_SEE + "red-async"),
    form(_GLOBAL, scope="gpu sys", op="add", type="u32 s32 u64 s64", since="8.7,sm_100", see=_SEE + "red-async"),
    form(_MMIO, op="inc dec", type="u32", since="8.7,sm_100", see=_SEE + "red-async"),
    form(_MMIO, op="min max", type="u32 s32", since="8.7,sm_100", see=_SEE + "red-async"),
    form(_MMIO, op="and or xor", type="b32", since="8.7,sm_100", see=_SEE + "red-async"),
    form(_MMIO, op="add", type="u32 s32 u64 s64", since="8.7,sm_100", see=_SEE + "red-async"),
    form("multimem.red.async.release.scope{.global}.add.type  [a:rw], b",
         scope="gpu sys", type="u32 s32 u64", since="9.3,sm_100", see=_SEE + "multimem-red-async"),
)  # fmt: skip
