"""Boxes of tensor copies entirely outside their tensor: swapped coordinates, coordinates in bytes, and correct
boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from pyptx.tensormap import ElementType, Im2col, TensorMap
from tests.sim.kernels import HEAD

KERNEL = """.visible .entry k(.param .align 128 .b8 a[128], .param .align 128 .b8 b[128])
{
.reg .b32 %t, %x, %y, %c, %r; .reg .b64 %a, %b; .reg .pred %p0, %p1;
.shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %p0, %t, 0;
mov.u32 %x, %ctaid.x; mul.lo.u32 %x, %x, XSTEP;
mov.u32 %y, %ctaid.y; mul.lo.u32 %y, %y, YSTEP;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
mov.b64 %a, a; cvta.param.u64 %a, %a; mov.b64 %b, b; cvta.param.u64 %b, %b;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4096;
@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%a, {LOAD}], [bar];
w: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra w;
@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%b, {STORE}], [tile];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
ret;
}
"""
BOX = (32, 64)


def find_in_copy(
    size: tuple[int, int], grid: tuple[int, int], *, load: str = "%x, %y", store: str = "%x, %y",
    steps: tuple[int, int] = BOX, check: str = "all", kind: ElementType = ElementType.U16, box: tuple[int, int] = BOX,
    **options: Any,
) -> list[Finding]:  # fmt: skip
    """Copy a tensor of this size, fastest dimension first, in boxes of 4096 bytes, one per CTA."""
    source, output = (np.zeros(size[::-1], f"V{kind.bits // 8}") for _ in range(2))
    tensor = TensorMap(kind, 0, size, (kind.bits // 8 * size[0],), box)
    text = KERNEL.replace("LOAD", load).replace("STORE", store)
    text = text.replace("XSTEP", str(steps[0])).replace("YSTEP", str(steps[1]))
    args = [sim.Tensor(source, tensor), sim.Tensor(output, tensor)]
    hazards = sim.run(
        parse(HEAD + text), grid=grid, block=32, args=args, check=check, on_hazard="report", **options
    ).hazards  # fmt: skip
    # Boxes stored at wrong positions overlap, which other findings report.
    return [finding for finding in hazards if finding.rule.code not in ("PTX0901", "PTX0932")]


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random", "adversarial"])
@pytest.mark.parametrize("options", [{}, {"statistics": True}, {"batch_lanes": 32}])
def test_boxes_of_the_whole_tensor_are_fine(schedule: str, options: dict[str, Any]) -> None:
    assert find_in_copy((64, 256), (2, 4), schedule=schedule, check="all,unused", **options) == []


@pytest.mark.parametrize("options", [{}, {"statistics": True}, {"batch_lanes": 32}])
@pytest.mark.parametrize("copy", ["load", "store"])
def test_exchanged_coordinates(copy: str, options: dict[str, Any]) -> None:
    (finding,) = find_in_copy((64, 256), (2, 4), **{copy: "%y, %x"}, **options)
    assert finding.rule.code == "PTX0986"
    assert ("global.shared::cta" in finding.place.text) == (copy == "store")
    assert finding.count == 2 * 3
    assert "the box of 32 x 64 elements at (64, 0) of the 64 x 256 tensor is outside" in finding.what
    assert "all boxes would be inside with coordinates 0 and 1 swapped" in finding.what
    assert "swap coordinates 0 and 1" in finding.help


def test_coordinates_in_bytes() -> None:
    for finding in find_in_copy((128, 128), (4, 2), steps=(64, 64)):
        assert (finding.rule.code, finding.count) == ("PTX0986", 2 * 2)
        assert "with coordinate 0 divided by 2" in finding.what
        assert "divide coordinate 0 by 2" in finding.help
    assert len(find_in_copy((128, 128), (4, 2), steps=(64, 64))) == 2


@pytest.mark.parametrize(
    ("kind", "size", "box"),
    [(ElementType.F32, 4, (32, 32)), (ElementType.S64, 8, (16, 32)), (ElementType.F64, 8, (32, 16))],
)
def test_coordinates_in_bytes_of_wider_elements(kind: ElementType, size: int, box: tuple[int, int]) -> None:
    steps = box[0] * size, box[1]
    for finding in find_in_copy((64, 128), (2, 2), steps=steps, kind=kind, box=box):
        assert f"with coordinate 0 divided by {size}" in finding.what
    assert len(find_in_copy((64, 128), (2, 2), steps=steps, kind=kind, box=box)) == 2


@pytest.mark.parametrize("size", [(64, 256), (32, 64), (32, 128), (64, 64)])
@pytest.mark.parametrize("extra", [(1, 0), (0, 1), (2, 3)])
@pytest.mark.parametrize("options", [{}, {"statistics": True}, {"batch_lanes": 32}])
def test_a_grid_that_is_rounded_up_is_reported_only_to_who_asks(
    size: tuple[int, int], extra: tuple[int, int], options: dict[str, Any]
) -> None:
    whole = size[0] // BOX[0], size[1] // BOX[1]
    grid = whole[0] + extra[0], whole[1] + extra[1]
    assert find_in_copy(size, grid, **options) == []
    outside = grid[0] * grid[1] - whole[0] * whole[1]
    hazards = find_in_copy(size, grid, check="all,unused", **options)
    assert {(finding.rule.code, finding.count) for finding in hazards} == {("PTX0978", outside)}
    assert len(hazards) == 2


def test_who_asks_for_other_classes_hears_nothing() -> None:
    assert find_in_copy((64, 256), (2, 4), load="%y, %x", check="races") == []
    assert [finding.rule.code for finding in find_in_copy((64, 256), (2, 5), check="unused")] == ["PTX0978"] * 2


PIXELS = """.visible .entry k(.param .align 128 .b8 a[128])
{
.reg .b32 %t, %x; .reg .b64 %a; .reg .b16 %h; .reg .pred %p0, %p1;
.shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %p0, %t, 0;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
mov.b64 %a, a; cvta.param.u64 %a, %a; mov.u16 %h, 0;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
@%p0 cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
    [tile], [%a, {0, 0, IMAGE}], [bar], {%h};
w: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra w;
mov.u32 %x, tile; mad.lo.u32 %x, %t, 4, %x; ld.shared.b32 %x, [%x];
ret;
}
"""


@pytest.mark.parametrize("image", [2, 3])
def test_pixels_beyond_the_last_image_are_padding(image: int) -> None:
    tensor = TensorMap(ElementType.F32, 0, (8, 6, 3), (32, 192), (), im2col=Im2col((-1,), (0,), 8, 4))
    source = sim.Tensor(np.ones((3, 6, 8), np.float32), tensor)
    text = HEAD + PIXELS.replace("IMAGE", str(image))
    hazards = sim.run(parse(text), block=32, args=[source], check="all,unused", on_hazard="report").hazards
    assert [str(finding) for finding in hazards] == []
