"""Matrix descriptors whose offsets map two elements of an operand to the same bytes, or that start inside a swizzle
pattern: the message and the remedy.

Knows descriptors and the places of their elements, not which instruction reads them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyptx.isa.swizzle import period
from pyptx.sim import rules
from pyptx.sim.hazards import Place
from pyptx.sim.observers.checks.session import Session
from pyptx.sim.state import warpgroups as wg
from pyptx.tensormap import Swizzle

_CORE, _GROUP, _SHORT_GROUP, _GRANULE = 128, 8, 4, 16


def report_overlap(checks: Session, place: Place, thread: int, matrix: wg.Matrix) -> None:
    """Report a matrix whose elements overlap."""
    message, help = _explain_overlap(matrix)
    checks.engine.state.report(rules.OVERLAPPING_OPERAND, place, message, thread=thread, help=help)


def report_start(checks: Session, place: Place, thread: int, matrix: wg.Matrix, low: int) -> None:
    """Report a matrix that starts after the first line of its swizzle pattern without a base offset; shared memory
    begins at the address `low`."""
    descriptor, mode = matrix.descriptor, matrix.descriptor.swizzle
    offset = descriptor.address % period(mode)
    if not mode.span or descriptor.base_offset or offset < mode.span:
        return
    grid = checks.engine.state.find_grid(thread)
    start = f"{grid.names(descriptor.address - low)} of CTA {grid.find_cta(grid.find_slot(thread))}"
    message = (
        f"{matrix.name} starts at {start} (0x{descriptor.address:x}), byte {offset} of a pattern of {period(mode)} "
        f"bytes ({mode.span}-byte swizzle), and the base offset of its descriptor is 0"
    )
    checks.engine.state.report(rules.PATTERN_START, place, message, thread=thread, where=start)


def _explain_overlap(matrix: wg.Matrix) -> tuple[str, str]:
    """Return the message and the remedy of an overlapping matrix."""
    descriptor, mode = matrix.descriptor, matrix.descriptor.swizzle
    lbo, sbo = descriptor.leading_byte_offset, descriptor.stride_byte_offset
    message = f"LBO {lbo} and SBO {sbo} map several elements of {matrix.name} to the same bytes"
    swap = replace(matrix, descriptor=replace(descriptor, leading_byte_offset=sbo, stride_byte_offset=lbo))
    if lbo != sbo and not swap.overlaps(_count_granules(swap)):
        return f"{message}: they look swapped", f"write LBO {sbo} in bits 16–29 and SBO {lbo} in bits 32–45"
    if mode is Swizzle.NONE:
        return message, (
            f"without a swizzle, 8 rows of 16 bytes take {_CORE}: LBO (bits 16–29) is the distance between two such "
            "core matrices along K, SBO (bits 32–45) along M or N"
        )
    lines = _SHORT_GROUP if matrix.across and mode is Swizzle.B128_ATOM_32B else _GROUP
    group = lines * mode.span
    pattern = f"{lines} lines of the {mode.span}-byte swizzle take {group} bytes"
    if not matrix.across:
        return f"{message}: {pattern}", f"write SBO {group} in bits 32–45 ({group} >> 4 = {group >> 4})"
    return f"{message}: {pattern}", (
        f"SBO (bits 32–45) is the distance between two groups of {lines} along K, LBO (bits 16–29) that between two "
        f"runs of {mode.span} bytes along M or N: neither is below {group}"
    )


def _count_granules(matrix: wg.Matrix) -> int:
    places = wg.compute_addresses(matrix.descriptor, matrix.rows, matrix.columns, matrix.size, matrix.across)
    return len(np.unique(places // _GRANULE))
