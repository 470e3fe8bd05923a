"""An edit of a tensor map in shared memory reads and writes all of its 128 bytes; a copy reads them all."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.tensormap import ElementType, TensorMap

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 128 .b8 map[128], .param .u64 there)
{{
.reg .b32 %t, %lane, %word, %at; .reg .b64 %map, %there, %array; .reg .pred %leads, %other, %behind;
.shared .align 128 .b8 memory[384];
mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; setp.eq.u32 %leads, %t, 0; setp.ge.u32 %behind, %t, 32;
setp.eq.u32 %other, %t, 32;
ld.param.u64 %there, [there]; mov.b64 %array, %there;
mov.b64 %map, map; cvta.param.u64 %map, %map; mad.wide.u32 %map, %lane, 4, %map; ld.b32 %word, [%map];
mov.u32 %at, memory; mad.lo.u32 %at, %t, 4, %at; st.shared.b32 [%at], %word;
bar.sync 0;
{first}
{between}
@%other {second}
ret;
}}
"""
REPLACE = "@%leads tensormap.replace.tile.global_address.shared::cta.b1024.b64 [memory+128], %array;"
COPY = """@%behind bra copied;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%there], [memory+128], 128;
copied:"""
INSIDE = range(128, 256, 4)
OUTSIDE = (0, 124, 256, 380)


def check_edit(edit: str, access: str, between: str = "") -> set[str]:
    """Return the codes for an edit or copy of the map at `memory+128` concurrent with an access by another warp."""
    text = KERNEL.format(first=edit, between=between, second=access)
    tensor = TensorMap(ElementType.U32, 0, (8, 4), (32,), (8, 4))
    args = [sim.Tensor(np.zeros((4, 8), "u4"), tensor), np.zeros(128, "u1")]
    result = sim.run(parse(text), block=96, args=args, on_hazard="report")
    return {finding.rule.code for finding in result.hazards}


@pytest.mark.parametrize("edit", [REPLACE, COPY], ids=["replace", "copy"])
def test_a_store_to_any_word_of_the_map_races_with_its_edit_and_its_copy(edit: str) -> None:
    stores = {offset: f"st.shared.b32 [memory+{offset}], %word;" for offset in (*INSIDE, *OUTSIDE)}
    assert {offset: check_edit(edit, store) for offset, store in stores.items()} == {
        offset: {"PTX0901"} if offset in INSIDE else set() for offset in stores
    }
    assert check_edit(edit, stores[128], "bar.sync 0;") == set()


def test_a_load_of_any_word_of_the_map_races_with_its_edit_only() -> None:
    loads = {offset: f"ld.shared.b32 %word, [memory+{offset}];" for offset in (*INSIDE, *OUTSIDE)}
    assert {offset: check_edit(REPLACE, load) for offset, load in loads.items()} == {
        offset: {"PTX0901"} if offset in INSIDE else set() for offset in loads
    }
    assert [check_edit(COPY, load) for load in loads.values()] == [set()] * len(loads)


def test_an_edit_that_no_lane_executes_races_with_nothing() -> None:
    edit = ".reg .pred %never; setp.ne.u32 %never, %t, %t;\n" + REPLACE.replace("%leads", "%never")
    assert check_edit(edit, "st.shared.b32 [memory+128], %word;") == set()


def test_every_lane_edits_its_own_map() -> None:
    """Lanes 0 to 2 edit a map each; a store into one races with the edit by its lane."""
    edit = """.reg .pred %three; .reg .b32 %own;
setp.lt.u32 %three, %t, 3; mov.u32 %own, memory; mad.lo.u32 %own, %t, 128, %own;
@%three tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%own], %array;"""
    tensor = TensorMap(ElementType.U32, 0, (8, 4), (32,), (8, 4))
    for lane in range(3):
        text = KERNEL.format(first=edit, between="", second=f"st.shared.b32 [memory+{128 * lane + 60}], %word;")
        args = [sim.Tensor(np.zeros((4, 8), "u4"), tensor), np.zeros(128, "u1")]
        (finding,) = sim.run(parse(text), block=96, args=args, on_hazard="report").hazards
        assert finding.other_agent is not None
        assert (finding.rule.code, finding.other_agent.warp, finding.other_agent.lane) == ("PTX0901", 0, lane)
