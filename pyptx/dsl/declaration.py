"""Checks the arguments of `@kernel` at the decorator's line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

from pyptx.diagnostics import format_count
from pyptx.dsl import rules
from pyptx.dsl.emit import describe
from pyptx.dsl.run import parse_raw_parameter
from pyptx.dsl.scopes import refuse_deferred
from pyptx.dsl.trace import fail
from pyptx.dsl.values import is_integer
from pyptx.ir.nodes import FunctionDirective
from pyptx.isa.directives import Place, list_header_directives
from pyptx.isa.limits import THREADS_PER_CTA
from pyptx.isa.targets import ASSEMBLED, FIRST_PTX, NEWEST_PTX, PTX_VERSIONS, Version, find_target
from pyptx.specs import Tile
from pyptx.types import PtxType

_LARGEST_CLUSTER = 16
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_DIRECTIVES = [name.removeprefix(".") for name in list_header_directives(Place.KERNEL)]
"""Without `.param`, which `raw_params` declares."""


def check_arch(arch: Any) -> str:
    """Return a target's name, or "auto"."""
    if not isinstance(arch, str) or (arch != "auto" and arch not in FIRST_PTX):
        fail(rules.DECLARATION, f"unknown arch {arch!r}", help=f"use one of {', '.join(list(FIRST_PTX)[18:])}, auto")
    return arch


def check_targets(names: Sequence[str] | None, own: str) -> list[str]:
    """Return the targets to assemble a kernel for, by default its own; each must run its instructions."""
    targets = [own] if names is None else list(names)
    unknown = [name for name in targets if name not in ASSEMBLED]
    if unknown:
        fail(rules.ARGUMENT, f"unknown target {', '.join(unknown)}", help=f"use one of {', '.join(ASSEMBLED)}")
    wrong = [name for name in targets if not find_target(name).provides(find_target(own))]
    if wrong or not targets:
        fail(rules.ARGUMENT, f"a kernel for {own} cannot be assembled for {', '.join(wrong) or 'no target'}",
             help="code for targets with suffix a or f runs only there; other code runs on newer ones")  # fmt: skip
    return targets


def check_version(version: Any, arch: str) -> Version | None:
    """Return the requested PTX version, or None for the lowest that works."""
    if version is None:
        return None
    pair = _to_tuple(version)
    if pair not in PTX_VERSIONS:
        fail(
            rules.DECLARATION, f"there is no PTX version {describe(version)}",
            help=f"write version=(8, 0), up to {NEWEST_PTX}, or omit it to use the lowest that works",
        )  # fmt: skip
    first = FIRST_PTX[find_target(arch).name] if arch != "auto" else (1, 0)
    if pair < first:
        fail(rules.DECLARATION, f"{arch} needs PTX {first[0]}.{first[1]}, found version={pair}",
             help="omit version to use the lowest that works")  # fmt: skip
    return pair[0], pair[1]


def parse_dimensions(dims: Any, name: str) -> tuple[int, int, int]:
    """Return the dimensions of a block or cluster; a single number is the first dimension."""
    values = _to_tuple(dims)
    sizes = (*values, 1, 1)[:3]
    if len(values) > 3 or not all(is_integer(d, 1) for d in sizes):
        fail(rules.DECLARATION, f"`{name}` must be up to three positive integers, found {describe(dims)}",
             help=f"write {name}=(128, 1, 1)")  # fmt: skip
    limit, unit = (_LARGEST_CLUSTER, "CTAs") if name == "cluster" else (THREADS_PER_CTA, "threads")
    # The checks judge what `reqntid` may be.
    if prod(sizes) > limit and name != "reqntid":
        fail(rules.DECLARATION, f"`{name}` has {prod(sizes):,} {unit}, but no GPU supports more than {limit:,}",
             help="make it smaller and the grid larger")  # fmt: skip
    return sizes[0], sizes[1], sizes[2]


def _to_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, tuple | list) else (value,)


def check_tiles(specs: Any, name: str) -> tuple[Tile, ...]:
    """Return the tensor descriptions."""
    items = () if specs is None else _to_tuple(specs)
    for item in items:
        if not isinstance(item, Tile):
            fail(rules.DECLARATION, f"`{name}` must be a sequence of Tile, found {describe(item)}",
                 help=f"write {name}=[Tile('M', 'N', f32)]")  # fmt: skip
    return items


def parse_raw_parameters(specs: Any) -> tuple[tuple[str, str], ...]:
    """Return the raw parameters, each (type, name)."""
    parameters: list[tuple[str, str]] = []
    for item in specs or ():
        pair = _to_tuple(item)
        pair = tuple([part.name if isinstance(part, PtxType) else part for part in pair])
        if len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            fail(rules.DECLARATION, f"a raw parameter must be (type, name), found {describe(item)}",
                 help="write raw_params=[('u32', 'n')]")  # fmt: skip
        parse_raw_parameter(*pair)
        parameters.append((pair[0], pair[1]))
    return tuple(parameters)


def build_directives(reqntid: Any, raw: Any) -> tuple[FunctionDirective, ...]:
    """Return the performance directives."""
    nodes: list[FunctionDirective] = []
    if reqntid is not None:
        parse_dimensions(reqntid, "reqntid")
        nodes.append(FunctionDirective("reqntid", _to_tuple(reqntid)))
    for name, values in raw or ():
        if name.removeprefix(".") not in _DIRECTIVES:
            fail(rules.DECLARATION, f"`{name}` is not a kernel directive",
                 help=f"use one of {', '.join(_DIRECTIVES)}")  # fmt: skip
        nodes.append(FunctionDirective(name.removeprefix("."), tuple(values)))
    return tuple(nodes)


def check_shared_bytes(size: Any) -> int:
    """Return the number of dynamic shared bytes."""
    if not is_integer(size, 0):
        fail(rules.DECLARATION, f"`smem` must be a number of bytes, found {describe(size)}", help="write smem=65536")
    return size


def read_signature(
    function: Callable[..., Any], tiles: Sequence[Tile], reserved: frozenset[str]
) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the tensors, and the template parameters with their defaults. `reserved` are the names of
    the options of calls."""
    if not _NAME.fullmatch(getattr(function, "__name__", "")):
        own_name = getattr(function, "__name__", function)
        fail(rules.DECLARATION, f"a kernel name must be valid in PTX, found {own_name!r}", help="define it with def")
    refuse_deferred(function, "kernel")
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        fail(rules.DECLARATION, f"`{function.__name__}` takes *args or **kwargs, but kernel parameters must be named")
    if len(positional) != len(tiles):
        fail(
            rules.DECLARATION,
            f"`{function.__name__}` takes {format_count('tensor', len(positional))} "
            f"({', '.join(positional) or 'none'}), but in_specs and out_specs describe {len(tiles)}",
            help="positional parameters are tensors; put template parameters after `*`",
        )
    template = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    dims = {name for tile in tiles for name in tile.symbolic_dims}
    conflicts = sorted((set(template) | dims) & reserved)
    if conflicts or set(template) & dims:
        overlaps = sorted(set(template) & dims)
        why = (
            f"which are reserved: {', '.join(conflicts)}"
            if conflicts
            else f"which are both dimensions and template parameters: {', '.join(overlaps)}"
        )
        fail(rules.DECLARATION, f"`{function.__name__}` cannot use these names, {why}", help="rename them")
    return positional, template
