"""Comments before long blocks: what each instruction adds, and from which length."""

from __future__ import annotations

import pytest

from tests.codegen.sugared import body

BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd1], 16, [%r11];"
LOAD = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd1, {%r12}], [%r11];"
FRAGMENTS = "{%f1, %f2, %f3, %f4}, {%r10, %r11}, {%r12}, {%f1, %f2, %f3, %f4};"
MULTIPLY = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;"
DESCRIPTIONS = {
    LOAD: "TMA loads",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r12}], [%r10];": "TMA stores",
    BULK: "bulk copies",
    "cp.async.bulk.commit_group;": "bulk copies",
    "cp.async.ca.shared.global [%r10], [%rd1], 16;": "cp.async",
    "cp.async.commit_group;": "",
    "mbarrier.try_wait.shared.b64 %p2, [%r10], %rd1;": "waits for barriers",
    "mbarrier.test_wait.shared.b64 %p2, [%r10], %rd1;": "",
    "mbarrier.arrive.shared.b64 _, [%r10];": "arrives at barriers",
    "mbarrier.init.shared.b64 [%r10], 1;": "sets up barriers",
    MULTIPLY: "wgmma",
    "wgmma.fence.sync.aligned;": "",
    f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {FRAGMENTS}": "mma",
    "tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd1, %rd2, %r11, %p2;": "tcgen05.mma",
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r11];": "reads tensor memory",
    "tcgen05.wait::ld.sync.aligned;": "",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r11];": "ldmatrix",
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r11], {%r10};": "stmatrix",
    "shfl.sync.idx.b32 %r10, %r11, 0, 31, -1;": "shuffles",
    "atom.global.add.u32 %r10, [%rd1], 1;": "atomics",
    "red.global.add.u32 [%rd1], 1;": "atomics",
    "red.async.relaxed.cluster.global.add.u32 [%rd1], 1;": "",
    "ld.global.u32 %r10, [%rd1];": "reads global memory",
    "ld.shared.u32 %r10, [%r11];": "",
    "st.global.u32 [%rd1], %r10;": "writes global memory",
    "st.shared.u32 [%r11], %r10;": "",
    f"{LOAD}\n{BULK}\n{BULK}": "TMA loads, bulk copies",
}


def find_comments(*instructions: str) -> list[str]:
    """Return the comments of a file with a block of these instructions."""
    python = body("@%p1 bra A;\n" + "\n".join(instructions) + "\nA:\nret;\n")
    return [line.strip() for line in python.splitlines() if line.strip().startswith("#")]


@pytest.mark.parametrize(("instruction", "description"), DESCRIPTIONS.items())
def test_a_block_says_what_its_instructions_do(instruction: str, description: str) -> None:
    others = [f"add.u32 %r{index}, %r{index}, 1;" for index in range(5)]
    assert find_comments(*others, instruction) == ([f"# {description}"] if description else [])


def test_a_block_with_a_comment_has_at_least_six_instructions() -> None:
    reads = [f"ld.global.u32 %r{index}, [%rd1];" for index in range(5)]
    assert find_comments(*reads[:4]) == []  # with the branch, five
    assert find_comments(*reads) == ["# reads global memory"]


def test_a_comment_is_not_repeated_inside_its_block() -> None:
    reads = [f"ld.global.u32 %r{index}, [%rd1];" for index in range(6)]
    inner = ["@%p2 bra B;", *reads, "B:"]
    assert find_comments(*reads, *inner) == ["# reads global memory"]
    assert find_comments(*reads, "bar.sync 0;", *inner, "st.global.u32 [%rd1], %r1;") == [
        "# reads global memory, writes global memory",
        "# reads global memory",
    ]
