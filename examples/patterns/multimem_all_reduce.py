"""All-reduce in the switch: every device's x becomes the sum of all of them, bf16 pairs with f32 sums.

    python examples/patterns/multimem_all_reduce.py            on a machine with several GPUs that NVLink connects
    pyptx simulate --devices 3 --order deferred examples/patterns/multimem_all_reduce.py

The idea: a multicast address stands for the same bytes of every device. `multimem.ld_reduce` reads them all and the
switch adds them, so one device receives a sum for the price of one load; `multimem.st` writes the sum to all. Each
device does that for its share of the vector: n / devices in and n / devices out per link and device, where a ring of
copies sends 2 n (devices - 1) / devices.

The protocol: no device may read the others' vectors before they are written, nor end before its own holds all sums. So
the CTAs of one number meet twice, across devices. In `meet`, `bar.sync` gathers the CTA, then thread 0 adds 1 to the
CTA's counter on all devices with release at system scope, reads its own device's counter with acquire until all devices
have arrived, and a second `bar.sync` hands that to the other threads. Counters start at 0 and only grow: launch number
`round`, from 0, waits for (2 round + 1) and (2 round + 2) arrivals from each device, so nobody resets them.
`fence.proxy.alias` stands between accesses to the same bytes by multicast addresses and by the devices' own. All CTAs
of a launch must be resident, since they wait.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg
from pyptx.types import b32, bf16x2, u32, u64

THREADS, CTAS = 128, 8
WIDTH = 4
"""Words of a pair of bf16 that a thread reduces at a time: 16 bytes."""
Handle = Any
"""An object of the driver, or the module of its functions."""


@intrinsic
def meet(counter: reg.Reg, team_counter: reg.Reg, thread: reg.Reg, arrivals: reg.Reg) -> None:
    """Wait until the counter has so many arrivals; this CTA's is one of them."""
    ptx.bar.sync(0)
    with ptx.if_(thread == 0):
        ptx.multimem.red("add", u32, ptx.addr(team_counter), 1, sem="release", scope="sys")
        count = reg.scalar(u32, 0, name="count")
        with ptx.while_(lambda: count < arrivals):
            ptx.inst.ld.acquire.sys.global_.u32(count, ptx.addr(counter))
    ptx.bar.sync(0)
    ptx.inst.fence.proxy.alias()


def make(arch: str = "sm_90") -> Kernel:
    """Return the kernel for a target."""
    # Of `x` and `counters`: the multicast addresses.
    parameters = [("u64", "team"), ("u64", "team_counters"), ("u32", "rank"), ("u32", "ranks"), ("u32", "round")]

    @kernel(
        arch=arch, in_specs=(Tile("words", u32), Tile(CTAS, u32)), raw_params=parameters, grid=(CTAS, 1, 1),
        block=(THREADS, 1, 1),
    )  # fmt: skip
    def multimem_all_reduce(x: TensorSpec, counters: TensorSpec) -> None:
        thread, cta = ptx.special.tid.x(), ptx.special.ctaid.x()
        counter = ptx.global_ptrs(counters)[0] + cta * 4
        team, team_counter = ptx.param(u64, "team"), ptx.param(u64, "team_counters") + cta * 4
        ranks = ptx.param(u32, "ranks")
        before = ptx.param(u32, "round") * 2 * ranks

        # Phase 1: all devices' vectors are complete.
        meet(counter, team_counter, thread, before + ranks)

        # Phase 2: this device's share of the sums, to all devices.
        worker = (ptx.param(u32, "rank") * CTAS + cta) * THREADS + thread
        for word in ptx.range_(worker * WIDTH, x.shape[0], ranks * (CTAS * THREADS * WIDTH)):
            sums = [reg.alloc(b32) for _ in range(WIDTH)]
            where = ptx.addr(team, word * 4)
            ptx.multimem.ld_reduce("add", bf16x2, sums, where, sem="relaxed", scope="sys", acc="f32")
            ptx.multimem.st(bf16x2, where, sums, sem="relaxed", scope="sys")

        # Phase 3: all devices' sums have arrived here.
        ptx.inst.fence.proxy.alias()
        meet(counter, team_counter, thread, before + ranks * 2)

    return multimem_all_reduce


class Words:
    """Memory of a device as an array of `u32`."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "<u4", "data": (address, False), "version": 3, "stream": None,
        }  # fmt: skip


class Team:
    """Memory of all devices, and one address for all of it."""

    def __init__(self, driver: Handle, contexts: list[Handle], size: int) -> None:
        self.driver = driver
        team = driver.CUmulticastObjectProp()
        team.numDevices = len(contexts)
        kind = driver.CUmulticastGranularity_flags.CU_MULTICAST_GRANULARITY_RECOMMENDED
        unit = int(self.ask("cuMulticastGetGranularity", team, kind))
        self.size = team.size = -(-size // unit) * unit
        self.handle = self.ask("cuMulticastCreate", team)
        for device in range(len(contexts)):
            self.ask("cuMulticastAddDevice", self.handle, device)
        self.own = list[int]()
        for device, context in enumerate(contexts):
            self.ask("cuCtxSetCurrent", context)
            memory = driver.CUmemAllocationProp()
            memory.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
            memory.location = self._locate(device)
            part = self.ask("cuMemCreate", self.size, memory, 0)
            self.own.append(self._map(part, [device]))
            self.ask("cuMulticastBindMem", self.handle, 0, part, 0, self.size, 0)
            self.ask("cuMemsetD8", self.own[-1], 0, self.size)
        self.address = self._map(self.handle, list(range(len(contexts))))

    def ask(self, function: str, *args: Handle | int) -> Handle:
        """Call a function of the driver and return its result."""
        status, *results = getattr(self.driver, function)(*args)
        if status:
            raise RuntimeError(f"{function} returned {status!r}")
        return results[0] if results else None

    def _map(self, handle: Handle, devices: list[int]) -> int:
        address = self.ask("cuMemAddressReserve", self.size, 0, 0, 0)
        self.ask("cuMemMap", address, self.size, 0, handle, 0)
        accesses = list[Handle]()
        for device in devices:
            access = self.driver.CUmemAccessDesc()
            access.location = self._locate(device)
            access.flags = self.driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            accesses.append(access)
        self.ask("cuMemSetAccess", address, self.size, accesses, len(accesses))
        return int(address)

    def _locate(self, device: int) -> Handle:
        location = self.driver.CUmemLocation()
        location.type = self.driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        location.id = device
        return location


def count_devices(driver: Handle) -> int:
    """Return the number of GPUs; 0 without a driver."""
    try:
        driver.cuInit(0)
    except RuntimeError:  # there is no libcuda
        return 0
    return driver.cuDeviceGetCount()[1] or 0


def main(elements: int = 20_000, rounds: int = 2) -> None:
    """Add vectors of all devices, twice, and compare the sums with NumPy's."""
    driver: Handle = import_module("cuda.bindings.driver")
    count = count_devices(driver)
    if count < 2:
        sys.exit(f"needs several GPUs, found {count}; try `pyptx simulate --devices 3 --order deferred FILE`")
    contexts = [driver.cuDevicePrimaryCtxRetain(device)[1] for device in range(count)]
    offset = -(-elements * 2 // 16) * 16
    team, reduce_ = Team(driver, contexts, offset + CTAS * 4), make()
    vectors = np.random.default_rng(0).standard_normal((count, elements)).astype(ml_dtypes.bfloat16)
    expected = vectors.astype(np.float64)
    for own, context, vector in zip(team.own, contexts, vectors, strict=True):
        team.ask("cuCtxSetCurrent", context)
        team.ask("cuMemcpyHtoD", own, vector.ctypes.data, vector.nbytes)
    for number in range(rounds):
        expected[:] = expected.sum(axis=0).astype(ml_dtypes.bfloat16)
        for rank, (own, context) in enumerate(zip(team.own, contexts, strict=True)):
            team.ask("cuCtxSetCurrent", context)
            reduce_(
                Words(own, offset // 4), Words(own + offset, CTAS), team=team.address,
                team_counters=team.address + offset, rank=rank, ranks=count, round=number,
            )  # fmt: skip
    for rank, (own, context) in enumerate(zip(team.own, contexts, strict=True)):
        team.ask("cuCtxSetCurrent", context)
        team.ask("cuCtxSynchronize")
        result = np.empty(elements, ml_dtypes.bfloat16)
        team.ask("cuMemcpyDtoH", result.ctypes.data, own, result.nbytes)
        wrong = np.count_nonzero(result.astype(np.float64) != expected[rank])
        print(f"device {rank}: {elements} sums of {count} vectors, {rounds} rounds, {wrong} wrong")


if __name__ == "__main__":
    main()
