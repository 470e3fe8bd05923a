"""What `assert_matches` is asked for, and what is wrong with a request: no mistake of a call is the kernel's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import product
from typing import Any

import numpy as np

from pyptx.decorator import RESERVED, Kernel
from pyptx.diagnostics import PtxError
from pyptx.dsl.trace import fail
from pyptx.sim.observers.checks.choice import parse_choice
from pyptx.sim.rules.faults import LAUNCH_SHAPE
from pyptx.sim.scheduling.schedules import SCHEDULES, SEEDED
from pyptx.testing.trials import Subject

Shapes = Sequence[Mapping[str, int]] | Mapping[str, Sequence[int]]
_OF_AN_ORDER = frozenset(("schedule", "seed"))


def check_choice(check: str) -> None:
    """Refuse unknown classes of hazards."""
    try:
        parse_choice(check, "raise")
    except PtxError as why:
        fail(LAUNCH_SHAPE, why.diagnostics[0].message, help="omit check= for all")


def check_keywords(kernel: Kernel, keywords: Mapping[str, Any], own: Sequence[str]) -> None:
    """Refuse keywords that neither a comparison nor the kernel takes. `own` are those of the comparison."""
    names = [*kernel.shape_variables, *kernel.template_params, *kernel.raw_parameters]
    for name in keywords:
        if name not in names and name not in RESERVED - _OF_AN_ORDER:
            close = get_close_matches(name, [*names, *own], 1, 0.75)
            help = f"did you mean `{close[0]}=`?" if close else f"the kernel takes {', '.join(names) or 'no keywords'}"
            fail(LAUNCH_SHAPE, f"neither assert_matches nor `{kernel.name}` takes `{name}=`", help=help)


def list_shapes(subject: Subject, shapes: Shapes) -> list[dict[str, int]]:
    """Return the shapes, each with the extents that the kernel needs."""
    if isinstance(shapes, Mapping):
        for name, extents in shapes.items():
            if not isinstance(extents, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
                text = f"shapes: expected the extents of {name}, found {extents!r}"
                fail(LAUNCH_SHAPE, text, help=f'write shapes={{"{name}": [{extents!r}]}}')
        cases = [dict(zip(shapes, extents, strict=True)) for extents in product(*shapes.values())]
    else:
        for shape in shapes:
            if not isinstance(shape, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
                text = f"shapes: expected mappings of variables to extents, found {shape!r}"
                fail(LAUNCH_SHAPE, text, help=_write_remedy(subject.kernel))
        cases = [dict(shape) for shape in shapes]
    for shape in cases:
        _check_shape(subject, shape)
    if not cases:
        fail(
            LAUNCH_SHAPE,
            "shapes: expected at least one shape, found none",
            help=_write_remedy(subject.kernel),
        )
    return cases


def _check_shape(subject: Subject, shape: Mapping[str, int]) -> None:
    """Refuse a shape without the variables that the kernel needs, or with others."""
    kernel, keywords = subject.kernel, subject.keywords
    bound = {name for tile in kernel.in_specs for name in tile.symbolic_dims} if subject.inputs is not None else ()
    missing = [name for name in kernel.shape_variables if name not in (*shape, *keywords, *bound)]
    known = (*kernel.shape_variables, *kernel.template_params, *kernel.raw_parameters)
    unknown = [name for name in shape if name not in known]
    if missing or unknown:
        parts = [
            f"{label} {', '.join(names)}" for label, names in (("missing", missing), ("unknown", unknown)) if names
        ]
        fail(
            LAUNCH_SHAPE,
            f"shapes: {shape!r} does not fit `{kernel.name}`: {'; '.join(parts)}",
            help=_write_remedy(kernel),
        )
    for name, extent in shape.items():
        if name in kernel.shape_variables and (not isinstance(extent, int | np.integer) or extent < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            fail(LAUNCH_SHAPE, f"shapes: expected a positive integer for {name}, found {extent!r}")


def _write_remedy(kernel: Kernel) -> str:
    example = ", ".join(f'"{name}": […]' for name in kernel.shape_variables)
    return f"write shapes={{{example}}}" if example else "omit shapes="


def list_orders(schedules: str | Sequence[str], seeds: int | Sequence[int]) -> list[tuple[str, int]]:
    """Return each schedule with the seeds that it takes."""
    names = [schedules] if isinstance(schedules, str) else schedules
    for name in names:
        if name not in SCHEDULES:
            fail(LAUNCH_SHAPE, f"no schedule {name!r}; the schedules are {', '.join(SCHEDULES)}")
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    if not isinstance(numbers, Sequence) or any(not isinstance(seed, int) or seed < 0 for seed in numbers):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = f"seeds: expected a number of seeds, or a list of integers of at least 0, found {seeds!r}"
        fail(LAUNCH_SHAPE, text, help="omit seeds= for the default")
    orders = [(name, number) for name in names for number in (numbers if name in SEEDED else numbers[:1])]
    if not orders:
        option = "schedules" if not names else "seeds"
        text = repr(seeds) if names else "none"
        fail(
            LAUNCH_SHAPE,
            f"{option}: expected at least one to compare, found {text}",
            help=f"omit {option}= for the default",
        )
    return orders


def check_steps(steps: Mapping[str, int], cases: Sequence[Mapping[str, int]]) -> None:
    """Refuse steps of other variables than those of all shapes, and other steps than positive integers."""
    for name, step in steps.items():
        if not all(name in shape for shape in cases):
            choices = ", ".join(dim for dim in cases[0] if all(dim in shape for shape in cases)) or "none"
            text = f"multiple_of: expected variables of the shapes, found {name!r}"
            fail(LAUNCH_SHAPE, text, help=f"the variables that all shapes have: {choices}")
        if not isinstance(step, int) or step < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"multiple_of: expected a positive integer for {name}, found {step!r}"
            fail(LAUNCH_SHAPE, text, help=f'write multiple_of={{"{name}": 1}} to allow any extent')
