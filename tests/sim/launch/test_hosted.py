"""Kernels in the memory of a host: in place, with variables that live between launches."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from pyptx.diagnostics import PtxError
from pyptx.ir import Module
from pyptx.parser import parse
from pyptx.sim.base.formats import Array
from pyptx.sim.launch.hosted import LoadedModule, Member, Outcome, run_in_place, run_together
from pyptx.sim.launch.prepared import Options
from pyptx.sim.launch.streams import Start
from pyptx.sim.observers.checks import parse_choice
from pyptx.sim.state.address_space import AddressSpace

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
COUNTER = """\
.global .align 4 .u32 count = 5;
.global .align 8 .u64 table[2] = {first, second};
.func (.reg .u32 out) first() { mov.u32 out, 10; ret; }
.func (.reg .u32 out) second() { mov.u32 out, 20; ret; }
.visible .entry add(.param .u64 out, .param .u32 index)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [index];
    mul.wide.u32 %rd2, %r1, 8;
    mov.u64 %rd3, table;
    add.u64 %rd3, %rd3, %rd2;
    ld.global.u64 %rd3, [%rd3];
    prototype: .callprototype (.reg .u32 _) _ ();
    call (%r2), %rd3, prototype;
    ld.global.u32 %r3, [count];
    add.u32 %r3, %r3, %r2;
    st.global.u32 [count], %r3;
    st.global.u32 [%rd1], %r3;
    ret;
}
.visible .entry read(.param .u64 out)
{
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [count];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


class Host:
    """Memory, and modules loaded into it."""

    def __init__(self) -> None:
        self.space = AddressSpace()
        self.memory: list[Array] = []

    def allocate(self, size: int, alignment: int) -> tuple[int, Array]:
        buffer = np.zeros(size + alignment, np.uint8)
        start = -buffer.ctypes.data % alignment
        self.memory.append(buffer)
        return buffer.ctypes.data + start, buffer[start : start + size]

    def load(self, module: Module) -> LoadedModule:
        return LoadedModule.load(module, self.space, self.allocate)

    def place(self, array: Array) -> int:
        address = int(array.ctypes.data)
        self.space.register("out", address, array.view(np.uint8))
        return address


def launch(loaded: LoadedModule, entry: str, parameters: bytes, check: str = "all") -> Outcome:
    return run_in_place(loaded, entry, Options(parameters=parameters), parse_choice(check, "report"))


@pytest.mark.parametrize("check", ["all", "none"])
def test_variables_keep_their_values_between_entries(check: str) -> None:
    host = Host()
    loaded, out = host.load(parse(HEADER + COUNTER)), np.zeros(1, np.uint32)
    address = host.place(out)
    for index, value in ((0, 15), (1, 35), (0, 45)):
        outcome = launch(loaded, "add", struct.pack("<QI", address, index), check)
        assert (out[0], outcome.error, outcome.findings) == (value, None, [])
    launch(loaded, "read", struct.pack("<Q", address), check)
    assert out[0] == 45
    where, size = loaded.variables["count"]
    region = host.space.find_region(where)
    assert region is not None
    region.data.view(np.uint32)[0] = 7
    launch(loaded, "read", struct.pack("<Q", address), check)
    assert (out[0], size, host.memory[0].ctypes.data <= where) == (7, 4, True)


def test_two_loads_of_a_module_have_their_own_variables() -> None:
    host, module = Host(), parse(HEADER + COUNTER)
    first, second, out = host.load(module), host.load(module), np.zeros(1, np.uint32)
    address = host.place(out)
    launch(first, "add", struct.pack("<QI", address, 1))
    launch(second, "read", struct.pack("<Q", address))
    assert out[0] == 5


def test_unloading_frees_the_variables() -> None:
    host = Host()
    loaded = host.load(parse(HEADER + COUNTER))
    where, _ = loaded.variables["table"]
    loaded.unload()
    assert host.space.regions == []
    freed = host.space.find_freed(where)
    assert freed is not None
    assert freed.name == "table"


def test_a_fault_leaves_what_was_written() -> None:
    host, out = Host(), np.zeros(1, np.uint32)
    loaded, address = host.load(parse(HEADER + COUNTER)), host.place(out)
    outcome = launch(loaded, "add", struct.pack("<QI", address + 4, 0))
    assert outcome.error is not None
    assert [item.code for item in outcome.error.diagnostics] == ["PTX1110"]
    launch(loaded, "read", struct.pack("<Q", address))
    assert out[0] == 15


def test_a_launch_that_cannot_start_raises() -> None:
    loaded = Host().load(parse(HEADER + COUNTER))
    with pytest.raises(PtxError) as error:
        run_in_place(loaded, "read", Options(parameters=bytes(8), block=2048), None)
    assert error.value.diagnostics[0].code == "PTX1103"


@pytest.mark.parametrize(("check", "codes"), [("all", ["PTX0911"]), ("none", [])])
def test_launches_that_run_together_are_checked_like_others(check: str, codes: list[str]) -> None:
    """Registers are followed by a program of its own."""
    host = Host()
    text = ".visible .entry k(.param .u64 out) { .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out];"
    loaded = host.load(parse(f"{HEADER}{text} st.global.u32 [%rd1], %r1; ret; }}"))
    starts = [host.place(np.zeros(1, np.uint32)) for _ in range(2)]
    members = [Member(loaded, "k", Options(parameters=struct.pack("<Q", at)), Start.ANY_TIME) for at in starts]
    outcomes = run_together(members, parse_choice(check, "report"))
    assert [[item.rule.code for item in outcome.findings] for outcome in outcomes] == [codes] * 2


def test_the_memory_of_a_cooperative_grid_is_returned() -> None:
    host, out = Host(), np.zeros(1, np.uint32)
    loaded, address = host.load(parse(HEADER + COUNTER)), host.place(out)
    count = len(host.space.regions)
    options = Options(parameters=struct.pack("<Q", address), cooperative=True)
    assert run_in_place(loaded, "read", options, None).error is None
    assert len(host.space.regions) == count
