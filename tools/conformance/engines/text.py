"""Pieces of PTX that the kernels share: the entry, copies between global and shared memory, waits with a bound."""

from __future__ import annotations

from tools.conformance.engines.cases import Entry

BOX = 16384
"""Bytes of shared memory that most kernels fill and return."""
FILL = 0xA5A5A5A5
TRIES = 20_000
"""Attempts to wait before a kernel reports that nothing arrived."""


def make_entry(name: str, body: str, *, size: int = BOX, threads: int = 128, ctas: int = 1) -> Entry:
    """Return a kernel whose shared memory is `box`, of `size` bytes, and `bar`."""
    cluster = f"\n.explicitcluster\n.reqnctapercluster {ctas}, 1, 1" if ctas > 1 else ""
    parameters = ".param .align 64 .b8 map[128], .param .u64 table, .param .u64 data, .param .u64 out"
    text = f""".visible .entry {name}({parameters})
.reqntid {threads}, 1, 1{cluster}
{{
.shared .align 1024 .b8 box[{size}];
.shared .align 8 .b64 bar;
.reg .pred %p, %q, %first; .reg .b16 %h<3>; .reg .b32 %t, %n, %m, %at, %box, %bar, %rank, %c<12>, %v<4>;
.reg .b64 %map, %table, %data, %out, %w, %x, %y, %far;
mov.b64 %map, map; cvta.param.u64 %map, %map;
ld.param.u64 %table, [table]; ld.param.u64 %data, [data]; ld.param.u64 %out, [out];
mov.u32 %t, %tid.x; mov.u32 %box, box; mov.u32 %bar, bar;
setp.eq.u32 %first, %t, 0;
{body.strip()}
ret;
}}
"""
    return Entry(name, text, threads, ctas)


def fill_box(label: str, size: int = BOX, threads: int = 128) -> str:
    """Return code that fills the box with a constant."""
    return f"""mov.u32 %n, %t; mov.u32 %v0, {FILL:#x};
{label}: shl.b32 %at, %n, 4; add.u32 %at, %at, %box;
st.shared.v4.b32 [%at], {{%v0, %v0, %v0, %v0}};
add.u32 %n, %n, {threads}; setp.lt.u32 %p, %n, {size // 16};
@%p bra {label};"""


def load_box(label: str, size: int = BOX, threads: int = 128) -> str:
    """Return code that copies the first bytes of the data to the box."""
    return f"""mov.u32 %n, %t;
{label}: mul.wide.u32 %w, %n, 16; add.u64 %w, %w, %data;
ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%w];
shl.b32 %at, %n, 4; add.u32 %at, %at, %box;
st.shared.v4.b32 [%at], {{%v0, %v1, %v2, %v3}};
add.u32 %n, %n, {threads}; setp.lt.u32 %p, %n, {size // 16};
@%p bra {label};"""


def dump_box(label: str, size: int = BOX, threads: int = 128) -> str:
    """Return code that copies the box to the output."""
    return f"""mov.u32 %n, %t;
{label}: shl.b32 %at, %n, 4; add.u32 %at, %at, %box;
ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%at];
mul.wide.u32 %w, %n, 16; add.u64 %w, %w, %out;
st.global.v4.b32 [%w], {{%v0, %v1, %v2, %v3}};
add.u32 %n, %n, {threads}; setp.lt.u32 %p, %n, {size // 16};
@%p bra {label};"""


def start_barrier(count: str) -> str:
    """Return code of the first thread that makes an mbarrier expect bytes."""
    return f"""@%first mbarrier.init.shared::cta.b64 [%bar], 1;
fence.proxy.async;
bar.sync 0;
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {count};"""


def wait(label: str, size: int = BOX) -> str:
    """Return code that waits for phase 0 and stores after the box in the output whether it ended."""
    return f"""mov.u32 %n, 0;
{label}: mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0, 1000;
@%p bra {label}_done;
add.u32 %n, %n, 1; setp.lt.u32 %q, %n, {TRIES};
@%q bra {label};
{label}_done: selp.b32 %v0, 1, 0, %p;
@%first st.global.b32 [%out+{size}], %v0;"""
