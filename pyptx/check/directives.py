"""Checks that a function's directives exist on the module's target and PTX version and may stand where they stand."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check.spelling import NEWER_VERSION, OTHER_TARGET
from pyptx.diagnostics import Diagnostic, Rule
from pyptx.ir import Function
from pyptx.isa import directives as known
from pyptx.isa.targets import Target, Version

_FRAME = """\
.version 9.0
.target sm_90a
.address_size 64
{} { ret; }
"""

MISPLACED = Rule(
    "PTX0615",
    "directive in the wrong place",
    "The directive does not exist, or stands between a function's parameters and its body where it means nothing.",
    _FRAME.replace("{}", ".func f() .maxntid 128"),
    _FRAME.replace("{}", ".entry k() .maxntid 128"),
)

RULES = (MISPLACED,)


def directives(function: Function, where: Target, version: Version) -> Iterator[Diagnostic]:
    """Yield the findings of one function, declared or defined."""
    place = known.Place.KERNEL if function.is_entry else known.Place.FUNCTION
    for given in function.directives:
        found = known.directive(f".{given.name}")
        if found is None or place not in found.places:
            what = "a kernel" if function.is_entry else "a function"
            yield MISPLACED.found(function.origin, f"`.{given.name}` is no directive of {what}")
        elif not found.available.on(where, version):
            rule = OTHER_TARGET if found.available.first_version(where) is None else NEWER_VERSION
            yield rule.found(function.origin, f"`.{given.name}` needs {found.available}")
