"""Copies through a tensor map that the kernel has edited: each kind needs the acquire fence of its map."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.tensormap import ElementType, TensorMap

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 128 .b8 map[128], .param .u64 maps, .param .u64 array)
{{
.reg .b32 %t, %lane, %word, %at, %cta; .reg .b64 %map, %new, %array; .reg .pred %leads, %uses, %done;
.shared .align 128 .b8 staged[128]; .shared .align 128 .b8 box[128]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; mov.u32 %cta, %ctaid.x; and.b32 %lane, %t, 31; setp.eq.u32 %leads, %lane, 0;
setp.ge.u32 %uses, %t, 32;
ld.param.u64 %new, [maps]; mad.wide.u32 %new, %cta, 128, %new;
ld.param.u64 %array, [array]; mad.wide.u32 %array, %cta, 128, %array;
@%uses bra edited;
mov.b64 %map, map; cvta.param.u64 %map, %map; mad.wide.u32 %map, %lane, 4, %map; ld.b32 %word, [%map];
mov.u32 %at, staged; mad.lo.u32 %at, %lane, 4, %at; st.shared.b32 [%at], %word;
mov.u32 %at, box; mad.lo.u32 %at, %lane, 4, %at; st.shared.b32 [%at], %lane; fence.proxy.async.shared::cta;
@%leads mbarrier.init.shared::cta.b64 [bar], 1;
bar.warp.sync 0xffffffff;
@%leads tensormap.replace.tile.global_address.shared::cta.b1024.b64 [staged], %array;
bar.warp.sync 0xffffffff;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%new], [staged], 128;
edited:
bar.sync 0;
@!%uses ret;
@!%leads ret;
{fence}
{copy}
ret;
}}
"""
FENCE = "fence.proxy.tensormap::generic.acquire.gpu [%new], 128;"
STORE = """cp.{what}.global.shared::cta{operation}.tile.bulk_group [%new, {{0, 0}}], [box];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
COPIES = {
    "load": """mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [box], [%new, {0, 0}], [bar];
w: mbarrier.try_wait.parity.shared::cta.b64 %done, [bar], 0; @!%done bra w;""",
    "store": STORE.format(what="async.bulk.tensor.2d", operation=""),
    **{
        operation: STORE.format(what="reduce.async.bulk.tensor.2d", operation=f".{operation}")
        for operation in ("add", "min", "max", "inc", "dec", "and", "or", "xor")
    },
}


def run_copy(copy: str, fence: str, ctas: int, schedule: str = "eager") -> set[str]:
    """Return the codes reported for a copy through an edited map."""
    tensor = TensorMap(ElementType.U32, 0, (8, 4), (32,), (8, 4))
    array, maps = np.zeros((ctas, 4, 8), "u4"), np.zeros((ctas + 1, 128), "u1")
    text = KERNEL.format(fence=fence, copy=COPIES[copy])
    args = [sim.Tensor(np.zeros((4, 8), "u4"), tensor), maps, array]
    result = sim.run(parse(text), grid=ctas, block=64, args=args, on_hazard="report", schedule=schedule)
    if copy == "add":
        np.testing.assert_array_equal(array.reshape(ctas, 32), np.arange(32)[None].repeat(ctas, 0))
    return {finding.rule.code for finding in result.hazards}


@pytest.mark.parametrize("ctas", [1, 4])
@pytest.mark.parametrize("copy", COPIES)
def test_every_copy_through_an_edited_map_needs_the_fence(copy: str, ctas: int) -> None:
    for schedule in ("eager", "lazy"):
        assert run_copy(copy, FENCE, ctas, schedule) == set()
        assert run_copy(copy, "", ctas, schedule) == {"PTX0925"}


@pytest.mark.parametrize("copy", ["load", "store", "add"])
def test_the_fence_is_for_the_map_that_it_names(copy: str) -> None:
    other_fence = "add.u64 %map, %new, 128; " + FENCE.replace("%new", "%map")
    assert run_copy(copy, other_fence, 2) == {"PTX0925"}
