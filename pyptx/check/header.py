"""Checks `.version`, `.target` and `.address_size`, and determines the architecture and version to check for."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check.corrections import find_similar
from pyptx.diagnostics import Diagnostic, Rule
from pyptx.ir import Module, token_span, word_span
from pyptx.isa import targets

_FRAME = ".version {}\n.target {}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"

UNKNOWN_VERSION = Rule(
    "PTX0310",
    "unknown PTX version",
    "The PTX manual has no such version, or it is newer than the newest version that pyptx knows.",
    _FRAME.format("7.9", "sm_90"),
    _FRAME.format("7.8", "sm_90"),
)
UNKNOWN_TARGET = Rule(
    "PTX0311",
    "unknown target",
    "No PTX version defines an architecture or target option of this name. ptxas silently ignores an unknown suffix: "
    "it reads `sm_90A` as sm_90, then rejects instructions that only sm_90a has.",
    _FRAME.format("8.5", "sm_91"),
    _FRAME.format("8.5", "sm_90"),
)
TARGET_TOO_NEW = Rule(
    "PTX0312",
    "target needs a newer PTX version",
    "Each target was introduced in a PTX version; a module with an older `.version` cannot name it.",
    _FRAME.format("7.8", "sm_90a"),
    _FRAME.format("8.0", "sm_90a"),
)

RULES = (UNKNOWN_VERSION, UNKNOWN_TARGET, TARGET_TOO_NEW)

TARGET_OPTIONS = frozenset(("texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"))


def find_architecture(module: Module) -> targets.Target | None:
    """Return the module's architecture, or None if it names none that exists."""
    for name in module.target.targets:
        if _resolve_architecture(name) in targets.FIRST_PTX:
            return targets.find_target(_resolve_architecture(name))
    return None


def _resolve_architecture(name: str) -> str:
    """Return the architecture's name; ptxas accepts a virtual one (`compute_90a`) for it."""
    return "sm_" + name.removeprefix("compute_") if name.startswith("compute_") else name


def check_header(module: Module) -> Iterator[Diagnostic]:
    """Yield the findings about the module's header."""
    version = (int(module.version.major), int(module.version.minor))
    if version not in targets.PTX_VERSIONS:
        newest = ".".join(map(str, targets.NEWEST_PTX))
        yield UNKNOWN_VERSION.report(
            token_span(module.version, 1),
            f"there is no PTX version {version[0]}.{version[1]}",
            help=f"the newest version is {newest}",
        )
    for name in module.target.targets:
        if name in TARGET_OPTIONS:
            continue
        first = targets.FIRST_PTX.get(_resolve_architecture(name))
        place = word_span(module.target, name)
        if first is None:
            yield UNKNOWN_TARGET.report(place, f"there is no target `{name}`", help=_suggest(name))
        elif first > version:
            yield TARGET_TOO_NEW.report(
                place,
                f"{name} needs PTX {first[0]}.{first[1]}, but the module is `.version {version[0]}.{version[1]}`",
                help=f"write `.version {first[0]}.{first[1]}` or newer",
            )


def _suggest(name: str) -> str | None:
    near = find_similar(name, (*targets.FIRST_PTX, *TARGET_OPTIONS))
    return f"did you mean `{near}`?" if near else None
