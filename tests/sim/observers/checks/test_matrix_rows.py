"""`ldmatrix` whose addresses imply a different swizzle than the tensor copy or the `stmatrix` that wrote the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.isa.swizzle import xor_terms
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from pyptx.tensormap import ElementType, Swizzle, TensorMap
from tests.sim.kernels import HEAD

Array = np.ndarray[Any, Any]
MODES = [Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128]
ROWS = 32
KERNEL = """.visible .entry k(.param .align 128 .b8 a[128], .param .u64 out)
{
.reg .b32 %t, %r<12>, %v<8>, %at, %to, %x; .reg .b64 %s, %out; .reg .pred %p0, %p1;
.shared .align 1024 .b8 tile[8192]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %p0, %t, 0;
ld.param.u64 %out, [out]; mad.wide.u32 %out, %t, 16, %out;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
mov.b64 %s, a; cvta.param.u64 %s, %s;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], BYTES;
@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%s, {0, 0}], [bar];
w: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra w;
mad.lo.u32 %at, %t, PITCH, OFFSET;
mov.u32 %r1, tile; add.u32 %at, %at, %r1;
STORE
READ
mov.u32 %v1, 0; mov.u32 %v2, 0; mov.u32 %v3, 0;
ldmatrix.sync.aligned.LOAD, [%at];
st.global.v4.u32 [%out], {%v0, %v1, %v2, %v3};
ret;
}
"""
WRITTEN = """mad.lo.u32 %to, %t, PITCH, COLUMN; add.u32 %to, %to, %r1;
SWIZZLE
stmatrix.sync.aligned.m8n8.x4.shared.b16 [%to], {%t, %t, %t, %t};
"""
LOAD = "m8n8.x4.shared.b16 {%v0, %v1, %v2, %v3}"


def apply_mode(register: str, mode: Swizzle) -> str:
    """Return PTX that applies a swizzle to an address."""
    return "\n".join(f"and.b32 %x, {register}, {mask}; shr.u32 %x, %x, {shift}; xor.b32 {register}, {register}, %x;"
                     for mask, shift in xor_terms(mode))  # fmt: skip


def copy_and_read(
    copy_mode: Swizzle, read: Swizzle, *, store_mode: Swizzle | None = None, offset: int = 16, load: str = LOAD,
    **options: Any,
) -> tuple[list[Finding], Array, Array]:  # fmt: skip
    """Copy 32 rows with one mode, optionally overwrite them by `stmatrix`, and read them by `ldmatrix`; return the
    findings, the rows read and the rows copied."""
    pitch = copy_mode.span or 128
    source = np.arange(ROWS * pitch // 2, dtype="u2").reshape(ROWS, -1)
    output = np.zeros((ROWS, 4), "u4")
    tensor = TensorMap(ElementType.U16, 0, source.shape[::-1], (pitch,), (pitch // 2, ROWS), swizzle=copy_mode)
    store = "" if store_mode is None else WRITTEN.replace("SWIZZLE", apply_mode("%to", store_mode))
    stores = "".join(store.replace("COLUMN", str(column)) for column in range(0, pitch, 16))
    text = KERNEL.replace("STORE", stores + "bar.warp.sync 0xffffffff;").replace("READ", apply_mode("%at", read))
    text = text.replace("BYTES", str(source.nbytes)).replace("PITCH", str(pitch)).replace("OFFSET", str(offset))
    module = parse(HEAD.replace("sm_90a", "sm_100a" if "m16n16" in load else "sm_90a") + text.replace("LOAD", load))
    return sim.run(module, block=32, args=[sim.Tensor(source, tensor), output], **options).hazards, output, source


def line_of(finding: Finding) -> str:
    return finding.place.text.partition(".")[0] + " after " + (finding.other.text if finding.other else "")[:8]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_the_same_swizzle_is_fine(mode: Swizzle, schedule: str) -> None:
    hazards, output, source = copy_and_read(mode, mode, schedule=schedule)
    assert hazards == []
    chunk = source[:, 8:16].reshape(4, 8, 4, 2)
    np.testing.assert_array_equal(output.view("u2").reshape(8, 4, 4, 2), chunk.transpose(1, 2, 0, 3))


@pytest.mark.parametrize("copy_mode", MODES)
@pytest.mark.parametrize("read", MODES)
def test_another_swizzle_is_found_with_both_places(copy_mode: Swizzle, read: Swizzle) -> None:
    hazards, output, source = copy_and_read(copy_mode, read)
    right = (output.view("u2").reshape(8, 4, 4, 2) == source[:, 8:16].reshape(4, 8, 4, 2).transpose(1, 2, 0, 3)).all()
    assert [finding.rule.code for finding in hazards] == ([] if right else ["PTX0989"])
    assert bool(right) is (copy_mode is read)
    for finding in hazards:
        assert line_of(finding) == "ldmatrix after cp.async"
        assert finding.count >= 2
        mode_name = "no swizzle" if copy_mode is Swizzle.NONE else f"the {copy_mode.span}-byte swizzle"
        assert f"were written with {mode_name}, but these addresses use " in finding.what
        terms = "".join(f" ^ ((addr & {mask:#x}) >> {shift})" for mask, shift in xor_terms(copy_mode))
        assert (f"`addr{terms}`" if terms else "read without a swizzle") in finding.help


@pytest.mark.parametrize(
    ("load", "matrices"),
    [
        ("m8n8.x1.shared.b16 {%v0}", 1), ("m8n8.x2.shared.b16 {%v0, %v1}", 2), (LOAD, 4),
        ("m16n16.x1.trans.shared.b8 {%v0, %v1}", 2), ("m16n16.x2.trans.shared.b8 {%v0, %v1, %v2, %v3}", 4),
    ],
)  # fmt: skip
def test_each_eight_rows_that_are_read_count(load: str, matrices: int) -> None:
    (finding,) = copy_and_read(Swizzle.B128, Swizzle.NONE, load=load)[0]
    assert (finding.rule.code, finding.count) == ("PTX0989", matrices)
    assert finding.agent is not None
    assert finding.agent.lane == 0


def test_rows_that_stmatrix_wrote() -> None:
    assert copy_and_read(Swizzle.B128, Swizzle.B128, store_mode=Swizzle.B128)[0] == []
    assert copy_and_read(Swizzle.B128, Swizzle.NONE, store_mode=Swizzle.NONE)[0] == []
    (finding,) = copy_and_read(Swizzle.NONE, Swizzle.NONE, store_mode=Swizzle.B128)[0]
    assert (finding.rule.code, line_of(finding)) == ("PTX0989", "ldmatrix after stmatrix")
    (finding,) = copy_and_read(Swizzle.B128, Swizzle.B128, store_mode=Swizzle.NONE)[0]
    assert (finding.rule.code, line_of(finding)) == ("PTX0989", "ldmatrix after stmatrix")


def test_it_belongs_to_the_layouts() -> None:
    assert copy_and_read(Swizzle.B128, Swizzle.NONE, check="races,async")[0] == []
    assert len(copy_and_read(Swizzle.B128, Swizzle.NONE, check="layouts")[0]) == 1
