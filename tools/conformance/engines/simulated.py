"""Runs cases on the simulator."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.ir import Module
from pyptx.parser import parse
from pyptx.tensormap import ElementType, TensorMap, encode, needs_blackwell, problems
from tools.conformance.engines.answers import Answer
from tools.conformance.engines.cases import HEADER, Case, find_key


def run(case: Case, seed: int, address: int = 0) -> Answer:
    """Return the simulator's answer. `address` is where the driver had the buffer of the case's tensor."""
    inputs = case.make_inputs(seed)
    key, error, data = find_key(case, inputs), "", b""
    place = inputs.map and replace(inputs.map, address=inputs.map.address + address)
    encoding = encode(place) if place is not None and not needs_blackwell(place) and not problems(place) else b""
    if case.entry is None or (place is not None and not encoding):
        return Answer(case.name, key, "" if encoding else "refused", encoding, address, b"")
    buffers = [np.frombuffer(b or bytes(16), "u1").copy() for b in (inputs.table, inputs.data, inputs.out)]
    tensor = inputs.map or _NOTHING
    array = buffers[2] if inputs.map_is_of_output else buffers[1]
    try:
        sim.run(
            _parse(case.entry.text), case.entry.name, grid=case.entry.ctas, cluster=case.entry.ctas,
            block=case.entry.threads, args=[sim.Tensor(array, tensor), *buffers], check="none", precision="hardware",
        )  # fmt: skip
        data = buffers[2].tobytes()
    except (PtxError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as why:
        error = f"{type(why).__name__}: {str(why).splitlines()[0] if str(why) else ''}"
    return Answer(case.name, key, error, encoding, address, data)


_NOTHING = TensorMap(ElementType.U8, 0, (16,), (), (16,))


@lru_cache(maxsize=256)
def _parse(text: str) -> Module:
    return parse(HEADER + text)
