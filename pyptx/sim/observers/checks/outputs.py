"""Elements of outputs that nobody has written, when the grid has ended: of arrays that were uninitialized always, of
others if `check="outputs"` asks for it and a part of them was written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.hazards import Space
from pyptx.sim.hazards.outputs import written_bytes
from pyptx.sim.launch.arguments import Buffers
from pyptx.sim.observers.checks.session import Checks
from pyptx.sim.rules import faults

_COVER = "let the grid cover the whole output, tail included"


def report_unwritten(
    checks: Checks, buffers: Buffers, outputs: Sequence[Array] | None, fresh: Iterable[tuple[Checks, Array]]
) -> None:
    """Report elements of `outputs`, None for all arrays of the launch, and of uninitialized arrays, each with the
    checks of its grid."""
    wanted = [(owner, array, "") for owner, array in fresh]
    if "outputs" in checks.selected.optional:
        every = [array for array, _ in buffers.arrays] if outputs is None else outputs
        wanted += [(checks, array, _COVER) for array in every]
    if not all(isinstance(array, np.ndarray) for _, array, _ in wanted):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise faults.error(faults.ARGUMENTS, None, "`outputs` takes arrays that are among the arguments, as a list")
    places: dict[int | None, tuple[Checks, Array, str]] = {}
    for owner, array, help in wanted:
        places.setdefault(buffers.known(array), (owner, array, help))
    for address, (owner, array, help) in places.items():
        if address is None:
            raise faults.error(faults.ARGUMENTS, None, "one of `outputs` is no array among the arguments")
        if array.size:
            home = next(item for item in buffers.allocations if item.address <= address < item.address + item.size)
            _report_unwritten(owner, home.name, address, array, help)


def _report_unwritten(checks: Checks, name: str, address: int, array: Array, help: str) -> None:
    assert checks.grid is not None
    shadow_memory = checks.engine.state.shadow_of(Space.GLOBAL, checks.grid, address)
    if shadow_memory is None or not shadow_memory[0].written:
        return
    shadow, base = shadow_memory
    written = written_bytes(shadow)[address - base :][: array.nbytes].reshape(array.size, array.itemsize).all(1)
    missing = np.flatnonzero(~written)
    if len(missing):
        index = ", ".join(str(int(at)) for at in np.unravel_index(int(missing[0]), array.shape))
        checks.engine.numerics.unwritten(checks.grid.place, name, f"[{index}]", len(missing), array.size, help)
