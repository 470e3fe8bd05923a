"""A batch of CTAs starts in the initial state: nothing from previous CTAs is visible."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.messages import raises

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"
CTAS = 4
KERNEL = """
.visible .entry k(.param .u64 out)
{{
.reg .{type} %x; .reg .b32 %cta, %t, %r; .reg .b64 %o; .reg .pred %first;
mov.u32 %cta, %ctaid.x; mov.u32 %t, %tid.x; setp.eq.u32 %first, %cta, 0;
ld.param.u64 %o, [out]; mad.lo.u32 %r, %cta, 32, %t; mad.wide.u32 %o, %r, 4, %o;
@%first {write};
{read};
st.global.u32 [%o], %r;
ret;
}}
"""
REGISTERS = {
    "pred": ("setp.eq.u32 %x, %cta, 0", "selp.u32 %r, 1, 0, %x"),
    "b16": ("mov.b16 %x, 7", "cvt.u32.u16 %r, %x"),
    "b32": ("mov.b32 %x, 7", "mov.b32 %r, %x"),
    "f32": ("mov.f32 %x, 0f3F800000", "mov.b32 %r, %x"),
    "b64": ("mov.b64 %x, 7", "cvt.u32.u64 %r, %x"),
    "b128": ("mov.b128 %x, {%o, %o}", "mov.b128 {%o0, %o1}, %x; cvt.u32.u64 %r, %o1"),
}


def run(text: str, poison: bool = False) -> np.ndarray:
    """Run CTAs of one warp, each as a separate batch; return a word of each thread."""
    out = np.full((CTAS, 32), 99, "u4")
    result = sim.run(parse(HEAD + text), grid=CTAS, block=32, batch_lanes=32, args=[out], check="none", poison=poison)
    assert result.stats.batches == CTAS
    return out


@pytest.mark.parametrize("kind", REGISTERS)
def test_a_register_that_only_the_first_batch_writes_is_zero_in_the_others(kind: str) -> None:
    write, read = REGISTERS[kind]
    text = KERNEL.format(type=kind, write=write, read=read).replace(".reg .b64 %o;", ".reg .b64 %o, %o0, %o1;")
    result = run(text)
    assert result[0].any()
    assert not result[1:].any()


def test_what_the_first_batch_writes_is_not_written_in_the_others() -> None:
    write, read = REGISTERS["b32"]
    text = KERNEL.format(type="b32", write=write, read=read)
    with raises(PtxError, match="CTA 1"):
        run(text, poison=True)


def test_every_batch_has_its_stack_where_the_first_one_had_it() -> None:
    result = run("""
.func leave(.param .b64 o)
{
.local .align 8 .b8 frame[64];
.reg .b64 %a, %n, %o; .reg .b32 %r;
ld.param.u64 %o, [o];
mov.u64 %n, 256; alloca.u64 %n, %n; mov.u64 %a, frame; add.u64 %a, %a, %n; cvt.u32.u64 %r, %a;
st.global.u32 [%o], %r;
exit;
}
.visible .entry k(.param .u64 out)
{
.reg .b32 %r, %t; .reg .b64 %o, %n;
mov.u32 %r, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %r, %r, 32, %t;
ld.param.u64 %o, [out]; mad.wide.u32 %o, %r, 4, %o;
mov.u64 %n, 256; alloca.u64 %n, %n;
{ .param .b64 o; st.param.b64 [o], %o; call leave, (o); }
ret;
}
""")
    assert len(set(result.flat)) == 1


def test_a_run_counts_instructions_and_lanes() -> None:
    text = """.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[4] = {97, 98, 10};
.visible .entry k()
{
.reg .pred %p; .reg .b32 %t; .reg .b64 %text;
mov.u32 %t, %tid.x;
setp.ge.u32 %p, %t, 3;
@%p bra end;
mov.u64 %text, text;
cvta.global.u64 %text, %text;
{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %text; st.param.b64 [a], 0;
call (r), vprintf, (f, a); }
end: ret;
}
"""
    result = sim.run(parse(HEAD + text), grid=CTAS, block=32, batch_lanes=64, check="none")
    stats = result.stats
    assert (stats.instructions, stats.lane_instructions) == (2 * 9, CTAS * (32 * 4 + 3 * 5)), "three of a warp print"
    assert (stats.batches, stats.lanes, stats.printed) == (2, CTAS * 32, len(result.printed))
