"""What the hazard engine is told of an instruction's access."""

from __future__ import annotations

import pytest

from pyptx.ir import Instruction, visit
from pyptx.parser import parse
from pyptx.sim.base.events import Access, Place, Scope, Sem, Space
from pyptx.sim.observers.checks.accesses import describe_access

WEAK, VOLATILE = (Sem.WEAK, Scope.GPU), (Sem.RELAXED, Scope.SYS)
READS, WRITES, UPDATES = "r", "w", "rw"
ACCESSES: dict[str, tuple[str, tuple[Sem, Scope], str]] = {
    "ld.global.u32 %r0, [%a];": (READS, WEAK, ""),
    "st.global.u32 [%a], %r0;": (WRITES, WEAK, ""),
    "ld.global.nc.u32 %r0, [%a];": (READS, WEAK, "readonly"),
    "ld.relaxed.cta.global.u32 %r0, [%a];": (READS, (Sem.RELAXED, Scope.CTA), ""),
    "ld.acquire.cluster.global.u32 %r0, [%a];": (READS, (Sem.ACQUIRE, Scope.CLUSTER), ""),
    "st.release.sys.global.u32 [%a], %r0;": (WRITES, (Sem.RELEASE, Scope.SYS), ""),
    "ld.volatile.global.u32 %r0, [%a];": (READS, VOLATILE, ""),
    "st.mmio.relaxed.sys.global.u32 [%a], %r0;": (WRITES, VOLATILE, ""),
    "atom.global.add.u32 %r0, [%a], 1;": (UPDATES, (Sem.RELAXED, Scope.GPU), ""),
    "atom.acq_rel.cta.global.add.u32 %r0, [%a], 1;": (UPDATES, (Sem.ACQ_REL, Scope.CTA), ""),
    "red.global.add.u32 [%a], 1;": (UPDATES, (Sem.RELAXED, Scope.GPU), "red"),
    "red.release.cluster.global.add.u32 [%a], 1;": (UPDATES, (Sem.RELEASE, Scope.CLUSTER), "red"),
}
HOOKS_REPORT = [
    ("mbarrier.init.shared.b64 [%a], 1;", "w"), ("prefetch.global.L2 [%a];", "r"),
    ("ld.global.u32 %r0, [%a];", "address"),
]  # fmt: skip


def parse_instruction(text: str) -> Instruction:
    source = (
        f".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() {{ .reg .b64 %a; .reg .b32 %r0; {text} }}"
    )
    (instruction,) = (node for node in visit(parse(source)) if isinstance(node, Instruction))
    return instruction


@pytest.mark.parametrize("text", ACCESSES)
@pytest.mark.parametrize("shared", [False, True])
def test_an_access_follows_from_the_modifiers(text: str, shared: bool) -> None:
    kind, (sem, scope), mark = ACCESSES[text]
    access = describe_access(parse_instruction(text), shared, 4, kind)
    assert access is not None
    opcode = text.split()[0]
    assert access.place.text == opcode
    place = Place(access.place.origin, opcode)
    assert access == Access(
        place, Space.SHARED if shared else Space.GLOBAL, 4, writes=kind != READS, reads=kind != WRITES, sem=sem,
        scope=scope, readonly=mark == "readonly", red=mark == "red",
    )  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), HOOKS_REPORT)
def test_other_accesses_are_left_to_their_hooks(text: str, kind: str) -> None:
    assert describe_access(parse_instruction(text), True, 8, kind) is None
