"""Short kernels around a body: what the tests of control flow, memory and launches share."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.formats import Value

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


def reported(text: str, code: str, *words: str, **options: Value) -> PtxError:
    """Run a module that must be reported with a code, in words that must be there."""
    with pytest.raises(PtxError) as caught:
        sim.run(parse(text), **options)
    assert [d.code for d in caught.value.diagnostics] == [code], str(caught.value)
    for word in words:
        assert word in str(caught.value)
    return caught.value
