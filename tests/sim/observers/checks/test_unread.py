"""`check="unused"`: bytes from copies and accumulators from products that nobody reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.parts.example import find_example
from pyptx import sim
from pyptx.ir import Function
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from pyptx.tensormap import ElementType, Fill, Swizzle, TensorMap
from tests.sim.kernels import HEAD

TCGEN05_TILE = find_example("blackwell/tcgen05_tile")

GEMM = (Path(__file__).parents[4] / "examples" / "hopper_gemm.ptx").read_text("utf-8")
SCHEDULES = ["eager", "lazy", "random", "adversarial"]
FRAME = """.visible .entry k(.param .align 128 .b8 a[128], .param .u64 b, .param .u64 out)
{
.reg .b32 %t, %r<8>, %v<8>, %at, %one; .reg .b64 %a, %b, %mine, %out; .reg .pred %p0, %p1, %p2;
.shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %p0, %t, 0; mov.u32 %one, 1;
ld.param.u64 %out, [out]; ld.param.u64 %b, [b]; mad.wide.u32 %mine, %t, 16, %b;
mov.b64 %a, a; cvta.param.u64 %a, %a;
mov.u32 %at, tile; mad.lo.u32 %at, %t, 16, %at;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
BODY
ret;
}
"""
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {};"
WAIT = "w{0}: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], {0}; @!%p1 bra w{0};"
TENSOR = ("@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          " [tile], [%a, {{{}}}], [bar];")  # fmt: skip
BULK = "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%b], 512, [bar];"
READ = "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%at];"
LOADED = "\n".join([EXPECT.format(512), BULK, WAIT.format(0)])
BOXED = "\n".join([EXPECT.format(512), TENSOR.format("0, 0"), WAIT.format(0)])


def find_unread(
    body: str, *, size: tuple[int, int] = (16, 16), check: str = "all,unused", **options: Any
) -> list[Finding]:
    """Run 32 threads; boxes of the tensor have 16 by 16 elements of 16 bits, arrays 64 words."""
    array, words = np.zeros(size[::-1], "u2"), np.zeros(128, "u4")
    tensor = TensorMap(ElementType.U16, 0, size, (2 * size[0],), (16, 16))
    args = [sim.Tensor(array, tensor), words, np.zeros(128, "u4")]
    text = HEAD + FRAME.replace("BODY", body)
    return sim.run(parse(text), block=32, args=args, check=check, **options).hazards


RIGHT = {
    "lanes read all": f"{LOADED}\n{READ}",
    "single bytes": LOADED + "".join(f"\nld.shared.u8 %r0, [%at+{offset}];" for offset in range(16)),
    "atomics": LOADED + "".join(f"\nred.shared.add.u32 [%at+{offset}], %one;" for offset in range(0, 16, 4)),
    "a box": f"{BOXED}\n{READ}",
    "a bulk store": f"{LOADED}\n@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 512;\n"
                    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
    "matrices": f"{LOADED}\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%v0, %v1, %v2, %v3}}, [%at];",
    "cp.async": "cp.async.cg.shared.global [%at], [%mine], 16; cp.async.wait_all; bar.warp.sync -1;\n" + READ,
    "cp.async that fills": "cp.async.cg.shared.global [%at], [%mine], 16, 4; cp.async.wait_all; bar.warp.sync -1;\n"
                           "ld.shared.u32 %v0, [%at];",
    "cp.async of nothing": "cp.async.cg.shared.global [%at], [%mine], 16, 0; cp.async.wait_all;",
    "two rounds": f"{LOADED}\n{READ}\nbar.warp.sync -1; fence.proxy.async.shared::cta;\n"
                  + "\n".join([EXPECT.format(512), BULK, WAIT.format(1), READ]),
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("body", list(RIGHT.values()), ids=list(RIGHT))
def test_what_is_read_is_no_finding(body: str, schedule: str) -> None:
    assert [(f.rule.code, f.what) for f in find_unread(body, schedule=schedule)] == []


HALF = "setp.lt.u32 %p2, %t, 16; @%p2 "
WRONG: dict[str, tuple[str, str]] = {
    "nobody reads": (LOADED, "512 of 512 bytes, the first is byte 0 of the copy, at `tile`"),
    "half a box": (f"{BOXED}\n{HALF}{READ}", "256 of 512 bytes, the first is byte 256 of the copy, at `tile`+256"),
    "one byte of 16": (f"{LOADED}\n{READ.replace('v4', 'v2').replace(', %v2, %v3', '')}\nld.shared.u32 %r0, [%at+8];\n"
                       "ld.shared.u16 %r0, [%at+12]; ld.shared.u8 %r0, [%at+14];",
                       "32 of 512 bytes, the first is byte 15 of the copy"),
    "overwritten by a copy": ("\n".join([LOADED, EXPECT.format(512), BULK, WAIT.format(1), READ]),
                              "512 of 512 bytes, the first is byte 0 of the copy, at `tile` of CTA 0 before they are"),
    "overwritten by lanes": (f"{LOADED}\nst.shared.u32 [%at+4], %t;\n{READ}",
                             "128 of 512 bytes, the first is byte 4 of the copy"),
    "cp.async": ("cp.async.cg.shared.global [%at], [%mine], 16, 8; cp.async.wait_all; bar.warp.sync -1;\n"
                 "ld.shared.u32 %v0, [%at];", "128 of 256 bytes, the first is byte 4 of the copy"),
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("body", "messages"), list(WRONG.values()), ids=list(WRONG))
def test_what_nobody_reads_is_counted_with_the_first(body: str, messages: str, schedule: str) -> None:
    (finding,) = find_unread(body, schedule=schedule)
    assert finding.rule.code == "PTX0976"
    assert finding.place.text.startswith("cp.async")
    assert messages in finding.what


def test_fill_outside_of_a_tensor_is_nobodys() -> None:
    body = f"{BOXED}\n{HALF}{READ}"
    assert find_unread(body, size=(16, 8)) == []
    (finding,) = find_unread(BOXED, size=(16, 8))
    assert "256 of 512 bytes, the first is byte 0" in finding.what
    (finding,) = find_unread(BOXED, size=(8, 16))
    assert "256 of 512 bytes, the first is byte 0" in finding.what


def test_copies_that_are_recorded_one_by_one_count_the_same() -> None:
    for body in (BOXED, f"{BOXED}\n{READ}"):
        assert [f.what for f in find_unread(body)] == [f.what for f in find_unread(body, statistics=True)]


def test_every_batch_of_ctas_is_judged() -> None:
    assert [(f.rule.code, f.count) for f in find_unread(LOADED, grid=3, batch_lanes=32)] == [("PTX0976", 3)]


def test_only_who_asks_hears_of_it() -> None:
    assert (
        find_unread(LOADED, check="all")
        == find_unread(LOADED, check="strict")
        == find_unread(LOADED, check="async")
        == []
    )
    assert len(find_unread(LOADED, check="unused")) == 1


MULTICAST = """.visible .entry k(.param .u64 b, .param .u64 out)
{
.reg .b32 %t, %r<8>, %rank, %at; .reg .b64 %b; .reg .pred %p0, %p1, %p2;
.shared .align 128 .b8 tile[512]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %p0, %t, 0; mov.u32 %rank, %cluster_ctarank; ld.param.u64 %b, [b];
mov.u32 %at, tile; mad.lo.u32 %at, %t, 16, %at;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
barrier.cluster.arrive; barrier.cluster.wait;
setp.eq.and.u32 %p1, %rank, 0, %p0;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%b], 512, [bar], 3;
w: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra w;
setp.lt.u32 %p1, %rank, READERS;
@%p1 ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%at];
barrier.cluster.arrive; barrier.cluster.wait;
ret;
}
"""


@pytest.mark.parametrize("readers", [1, 2])
def test_every_cta_of_a_multicast_reads_its_copy(readers: int) -> None:
    text = HEAD + MULTICAST.replace("READERS", str(readers))
    hazards = sim.run(
        parse(text), grid=4, cluster=2, block=32, args=[np.zeros(128, "u4")] * 2, check="all,unused"
    ).hazards  # fmt: skip
    assert [(f.rule.code, f.count) for f in hazards] == ([] if readers == 2 else [("PTX0976", 2)])
    for finding in hazards:
        assert "512 of 512 bytes, the first is byte 0 of the copy, at `tile` of CTA 1" in finding.what


def multiply(text: str, **options: Any) -> list[Finding]:
    x, d = np.zeros((128, 128), "u2"), np.zeros((128, 128), "f4")
    tensor = TensorMap(ElementType.BF16, 0, (128, 128), (256,), (64, 128), swizzle=Swizzle.B128, fill=Fill.ZERO)
    args = [sim.Tensor(x, tensor), sim.Tensor(x.copy(), tensor), d, 128, 2]
    return sim.run(parse(text), block=384, shared=131072, args=args, check="all,unused", **options).hazards


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_products_of_warpgroups(schedule: str) -> None:
    assert multiply(GEMM, schedule=schedule) == []


def test_registers_that_no_epilogue_reads() -> None:
    store = next(line for line in GEMM.splitlines() if "st.global" in line)
    hazards = multiply(GEMM.replace(store, ""))
    assert {f.rule.code for f in hazards} == {"PTX0977"}
    assert all("registers, the first is %" in f.what for f in hazards)
    assert all(f.place.text.startswith("wgmma.mma_async") for f in hazards)


def tile(old: str = "", new: str = "", ctas: int = 1) -> list[Finding]:
    """Run the product in tensor memory, with the first occurrence of a word in its PTX replaced."""
    example = TCGEN05_TILE.make()
    text = example.ptx()
    assert old in text
    module = parse(text.replace(old, new, 1))
    random = np.random.default_rng(2)
    x, y = (random.integers(0, 9, (128, 64)).astype("u2") for _ in "xy")
    entry = next(f for f in module.directives if isinstance(f, Function) and f.is_entry)
    tensor = TensorMap(ElementType.BF16, 0, (64, 128), (128,), (64, 128), swizzle=Swizzle.B128)
    values: dict[str, Any] = {"a": x, "b": y, "c": np.zeros((128, 128), "f4")}
    args = {p.name: sim.Tensor(values[p.name[0]], tensor) if p.name.endswith("desc") else values[p.name[0]]
            for p in entry.params}  # fmt: skip
    return sim.run(
        module, example.name, grid=ctas, block=128, shared=example.dynamic_smem(), args=args, check="all,unused",
        on_hazard="report",
    ).hazards  # fmt: skip


def test_columns_of_tensor_memory() -> None:
    assert tile() == []
    (finding,) = tile("}, [%r31];", "}, [%r30];")
    assert finding.rule.code == "PTX0977"
    assert finding.place.text.startswith("tcgen05.mma")
    assert "32 of 128 columns, the first is column 96, lanes from 0 before they are freed" in finding.what
    (finding,) = tile("136316048, 1;", "136316048, 0;")
    assert "128 of 128 columns, the first is column 0, lanes from 0 before they are overwritten" in finding.what
    store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r5};\ntcgen05.wait::st.sync.aligned;\ntcgen05.ld"
    findings = [finding for finding in tile("tcgen05.ld", store) if finding.rule.code == "PTX0977"]
    text = "1 of 128 columns, the first is column 0, lanes from 0 before they are overwritten"
    assert [finding.what for finding in findings] == [text]


def test_each_cta_frees_its_own_columns() -> None:
    findings = [finding for finding in tile("}, [%r31];", "}, [%r30];", ctas=2) if finding.rule.code == "PTX0977"]
    text = "32 of 128 columns, the first is column 96, lanes from 0 before they are freed"
    assert [(finding.what, finding.count) for finding in findings] == [(text, 2)]
