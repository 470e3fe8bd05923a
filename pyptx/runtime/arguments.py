"""Matches the arrays of a call to a kernel's tensors: dtype, rank, dimensions and memory order are all checked before
anything runs, with every problem in one message. Knows arrays by their descriptions only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np

from pyptx.diagnostics import PtxError, format_count
from pyptx.runtime.arrays import Array, Described, DeviceView, Unusable, adopt
from pyptx.runtime.rules import ARRAYS, GRID
from pyptx.specs import Tile, list_array_dtype_names, unify_envs

Tensors = Sequence[tuple[str, Tile]]


def bind(
    inputs: Tensors,
    arrays: Sequence[Described | Unusable],
    outputs: Tensors,
    out_arrays: Sequence[Described | Unusable],
) -> dict[str, int]:
    """Return the values of the named dimensions; PtxError with every mismatch. `out_arrays` are arrays for the outputs,
    or none to allocate them."""
    if len(arrays) != len(inputs):
        names = ", ".join(name for name, _ in inputs) or "none"
        raise PtxError(
            [ARRAYS.report(None, f"expected {format_count('input array', len(inputs))} ({names}), found {len(arrays)}")]
        )
    if out_arrays and len(out_arrays) != len(outputs):
        raise PtxError(
            [ARRAYS.report(None, f"expected {format_count('array', len(outputs))} in `out=`, found {len(out_arrays)}")]
        )
    pairs = [*zip(inputs, arrays, strict=True), *zip(outputs, out_arrays or (), strict=False)]
    problems = [f"`{name}`: {wrong}" for (name, tile), array in pairs for wrong in _find_problems(tile, array)]
    shapes = [(name, tile, array.shape) for (name, tile), array in pairs if isinstance(array, Described)]
    envs: list[dict[str, int]] = []
    for name, tile, shape in shapes if not problems else ():
        try:
            envs = [unify_envs([*envs, tile.extract_env(shape)])]
        except ValueError as error:
            problems.append(f"`{name}`: {error}")
    if problems:
        raise PtxError([ARRAYS.report(None, "; ".join(problems))])
    return envs[0] if envs else {}


def merge_dimensions(env: Mapping[str, int], keywords: Mapping[str, Any]) -> dict[str, int]:
    """Merge the dimensions of the arrays with those passed by keyword; PtxError if they differ."""
    wrong = [
        f"{n}={keywords[n]!r}, but the arrays have {env[n]}" for n in keywords if n in env and keywords[n] != env[n]
    ]
    if wrong:
        raise PtxError([ARRAYS.report(None, "; ".join(wrong), help="remove it: the arrays determine it")])
    return {**env, **keywords}


def _find_problems(tile: Tile, array: Described | Unusable) -> list[str]:
    return [array.problem] if isinstance(array, Unusable) else _find_misfits(tile, array)


def _find_misfits(tile: Tile, array: Described) -> list[str]:
    problems: list[str] = []
    names = list_array_dtype_names(tile.dtype)
    if array.dtype not in names:
        problems.append(f"expected dtype {names[0]}, found {array.dtype}")
    if len(array.shape) != tile.rank:
        problems.append(f"expected {format_count('dimension', tile.rank)}, found shape {array.shape}")
    # Sizes may be symbols of a compiler, which comparisons would fix.
    elif any(isinstance(size, int) and not size for size in array.shape):  # pyright: ignore[reportUnnecessaryIsInstance]
        problems.append(f"expected at least one element, found shape {array.shape}")
    if array.misaligned:
        problems.append(f"expected elements aligned to {format_count('byte', array.misaligned)}; use x.copy()")
    if not array.is_contiguous:
        problems.append("expected a contiguous row-major array; use numpy.ascontiguousarray(x) or x.contiguous()")
    return problems


def collect_scalars(
    params: Sequence[tuple[str, str]],
    positional: Sequence[Any] | None,
    keywords: Mapping[str, Any],
    options: Collection[str],
) -> dict[str, Any]:
    """Return the raw parameters by name, from a list of all or from the keywords; arrays stand for their addresses.
    `options` are keywords of the call that are never parameters."""
    names = [name for _, name in params]
    if positional is not None and len(positional) != len(names):
        text = (
            f"expected {format_count('value', len(names))} in `args=` ({', '.join(names) or 'none'}), "
            f"found {len(positional)}"
        )
        raise PtxError([ARRAYS.report(None, text)])
    values = dict(zip(names, positional or (), strict=False)) | {
        name: keywords[name] for name in names if name in keywords
    }
    shadowed = [name for name in names if name not in values and name in options]
    if shadowed:
        text = f"the raw parameter `{shadowed[0]}` has no value: `{shadowed[0]}=` is an option of the call"
        raise PtxError([ARRAYS.report(None, text, help=f"pass all raw parameters in order: args=[{', '.join(names)}]")])
    parameters: dict[str, Any] = {}
    for name, value in values.items():
        parameters[name] = adopt([value])[0] if _is_array(value) else value
        if isinstance(parameters[name], Unusable):
            raise PtxError([ARRAYS.report(None, f"`{name}`: {parameters[name].problem}")])
    return parameters


def _is_array(value: Any) -> bool:
    """Return whether a raw parameter is passed by its address; an array without dimensions is a number."""
    return bool(getattr(value, "shape", hasattr(value, "__dlpack_device__")))


def list_arrays(scalars: Mapping[str, Any]) -> dict[str, Array | DeviceView]:
    """Return the raw parameters that are passed by their addresses."""
    return {name: value for name, value in scalars.items() if isinstance(value, np.ndarray | DeviceView)}


def describe_outputs(outputs: Tensors, env: Mapping[str, int]) -> tuple[Described, ...]:
    """Return the arrays to allocate for the outputs."""
    descriptions: list[Described] = []
    for name, tile in outputs:
        unbound = [dim for dim in tile.shape if isinstance(dim, str) and dim not in env]
        if unbound:
            text = f"`{name}`: its dimension {unbound[0]} does not occur in any input"
            raise PtxError([ARRAYS.report(None, text, help=f"pass {unbound[0]}= by keyword, or the array as out=")])
        descriptions.append(Described(tile.resolve_shape(dict(env)), list_array_dtype_names(tile.dtype)[0]))
    return tuple(descriptions)


def _call(grid: Callable[..., Any], env: Mapping[str, int], template: Mapping[str, Any]) -> Any:
    """Call a function of the dimensions, which must accept all of them by name, and of template parameters it names."""
    try:
        signature = inspect.signature(grid)
        env = {**env, **{name: value for name, value in template.items() if name in signature.parameters}}
        signature.bind(**env)
    except TypeError as why:
        text = f"the grid function does not accept the dimensions {', '.join(env) or '(none)'}: {why}"
        raise PtxError([GRID.report(None, text, help=f"write grid=lambda {', '.join(env)}: (…,)")]) from None
    return grid(**env)


def resolve_grid(grid: Any, env: Mapping[str, int], template: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the grid for these dimensions: a tuple, or the result of a function of the dimensions, and of those
    template parameters that it names."""
    if grid is None:
        raise PtxError([GRID.report(None, "the kernel has no grid", help="pass grid= to @kernel or to the call")])
    extents: Any = _call(grid, env, template) if callable(grid) else grid
    dims = tuple(cast("Sequence[Any]", extents)) if isinstance(extents, tuple | list) else (extents,)
    if not 1 <= len(dims) <= 3 or not all(isinstance(d, int | np.integer) and d > 0 for d in dims):
        context = f" for {', '.join(f'{name}={size}' for name, size in env.items())}" if callable(grid) else ""
        raise PtxError(
            [GRID.report(None, f"the grid{context}: expected one to three positive integers, found {extents!r}")]
        )
    return tuple(int(d) for d in dims)
