"""Choose the arrays of a launch that are searched for elements that no thread has written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.launch.arguments import Buffers
from pyptx.sim.observers.checks import outputs as checked
from pyptx.sim.observers.checks.session import Session
from pyptx.sim.rules import faults

_COVER = "let the grid cover the whole output, tail included"


def report_unwritten(
    checks: Session, buffers: Buffers, outputs: Sequence[Array] | None, fresh: Iterable[tuple[Session, Array]]
) -> None:
    """Report unwritten elements of `outputs` (None: all arrays of the launch) and of `fresh` arrays, each paired with
    the checks of its grid."""
    requests = [(owner, array, "") for owner, array in fresh]
    if "outputs" in checks.selection.optional:
        every = [array for array, _ in buffers.arrays] if outputs is None else outputs
        requests += [(checks, array, _COVER) for array in every]
    if not all(isinstance(array, np.ndarray) for _, array, _ in requests):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise faults.error(faults.ARGUMENTS, None, "`outputs` takes a list of arrays that are among the arguments")
    places: dict[int | None, tuple[Session, Array, str]] = {}
    for owner, array, help in requests:
        places.setdefault(buffers.find(array), (owner, array, help))
    for address, (owner, array, help) in places.items():
        if address is None:
            raise faults.error(faults.ARGUMENTS, None, "`outputs` contains an array that is not among the arguments")
        if array.size:
            home = buffers.space.find_region(address)
            assert home is not None
            checked.report_unwritten(owner, home.name, address, array, help)
