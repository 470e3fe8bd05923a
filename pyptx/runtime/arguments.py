"""Matches the arrays of a call to a kernel's tensors: dtype, rank, dimensions and memory order are all checked before
anything runs, with every problem in one message. Arrays are NumPy's, or views that `arrays` made of others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np

from pyptx.diagnostics import PtxError, counted
from pyptx.runtime.arrays import Array, Unusable, adopted, numpy_dtype
from pyptx.runtime.rules import ARRAYS, GRID
from pyptx.specs import Tile, array_dtype_names, unify_envs

Tensors = Sequence[tuple[str, Tile]]


def bind(inputs: Tensors, arrays: Sequence[Any], outputs: Tensors, given: Sequence[Any]) -> dict[str, int]:
    """Return the values of the named dimensions; PtxError with every mismatch. `given` are arrays for the outputs, or
    none to allocate them."""
    if len(arrays) != len(inputs):
        names = ", ".join(name for name, _ in inputs) or "none"
        raise PtxError(
            [ARRAYS.found(None, f"expected {counted('input array', len(inputs))} ({names}), found {len(arrays)}")]
        )
    if given and len(given) != len(outputs):
        raise PtxError([ARRAYS.found(None, f"expected {counted('array', len(outputs))} in `out=`, found {len(given)}")])
    pairs = [*zip(inputs, arrays, strict=True), *zip(outputs, given or (), strict=False)]
    problems = [f"`{name}`: {wrong}" for (name, tile), array in pairs for wrong in _find_problems(tile, array)]
    envs: list[dict[str, int]] = []
    for (name, tile), array in pairs if not problems else ():
        try:
            envs = [unify_envs([*envs, tile.extract_env(array.shape)])]
        except ValueError as error:
            problems.append(f"`{name}`: {error}")
    if problems:
        raise PtxError([ARRAYS.found(None, "; ".join(problems))])
    return envs[0] if envs else {}


def agreed(env: Mapping[str, int], said: Mapping[str, Any]) -> dict[str, int]:
    """Merge the dimensions of the arrays with those passed by keyword; PtxError if they differ."""
    wrong = [f"{n}={said[n]!r}, but the arrays have {env[n]}" for n in said if n in env and said[n] != env[n]]
    if wrong:
        raise PtxError([ARRAYS.found(None, "; ".join(wrong), help="remove it: the arrays determine it")])
    return {**env, **said}


def _find_problems(tile: Tile, array: Array | Unusable) -> list[str]:
    return [array.problem] if isinstance(array, Unusable) else _find_misfits(tile, array)


def _find_misfits(tile: Tile, array: Array) -> list[str]:
    problems: list[str] = []
    names = array_dtype_names(tile.dtype)
    if array.dtype.name not in names:
        problems.append(f"expected dtype {names[0]}, found {array.dtype.name}")
    if array.ndim != tile.rank:
        problems.append(f"expected {counted('dimension', tile.rank)}, found shape {array.shape}")
    if not array.flags.aligned:
        problems.append(f"expected elements aligned to {counted('byte', array.itemsize)}; use x.copy()")
    if not array.flags.c_contiguous:
        problems.append("expected a contiguous row-major array; use numpy.ascontiguousarray(x) or x.contiguous()")
    return problems


def scalars(
    params: Sequence[tuple[str, str]], listed: Sequence[Any] | None, named: Mapping[str, Any], options: Collection[str]
) -> dict[str, Any]:
    """Return the raw parameters by name, from a list of all or from the keywords; arrays stand for their addresses.
    `options` are keywords of the call that are never parameters."""
    names = [name for _, name in params]
    if listed is not None and len(listed) != len(names):
        text = f"expected {counted('value', len(names))} in `args=` ({', '.join(names) or 'none'}), found {len(listed)}"
        raise PtxError([ARRAYS.found(None, text)])
    values = dict(zip(names, listed or (), strict=False)) | {name: named[name] for name in names if name in named}
    hidden = [name for name in names if name not in values and name in options]
    if hidden:
        text = f"the raw parameter `{hidden[0]}` has no value: `{hidden[0]}=` is an option of the call"
        raise PtxError([ARRAYS.found(None, text, help=f"pass all raw parameters in order: args=[{', '.join(names)}]")])
    parameters: dict[str, Any] = {}
    for name, value in values.items():
        parameters[name] = adopted([value])[0] if hasattr(value, "shape") and getattr(value, "shape", ()) else value
        if isinstance(parameters[name], Unusable):
            raise PtxError([ARRAYS.found(None, f"`{name}`: {parameters[name].problem}")])
    return parameters


def allocated(outputs: Tensors, env: Mapping[str, int]) -> list[Array]:
    """Return arrays for the outputs, filled with values that a kernel should not use: `_allocate_uninitialized`."""
    arrays: list[Array] = []
    for name, tile in outputs:
        lost = [dim for dim in tile.shape if isinstance(dim, str) and dim not in env]
        if lost:
            text = f"`{name}`: its dimension {lost[0]} does not occur in any input"
            raise PtxError([ARRAYS.found(None, text, help=f"pass {lost[0]}= by keyword, or the array as out=")])
        shape = tile.resolve_shape(dict(env))
        arrays.append(_allocate_uninitialized(shape, numpy_dtype(array_dtype_names(tile.dtype)[0])))
    return arrays


def _allocate_uninitialized(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array of NaN, or of bytes 0xCC if the type has no NaN: unwritten elements stand out, and are the same
    in every run."""
    array = np.full((*shape, dtype.itemsize), 0xCC, np.uint8).view(dtype).reshape(shape)
    if "float" in dtype.name and np.isnan(np.array(np.nan).astype(dtype)):
        array.fill(np.nan)
    return array


def _call(grid: Callable[..., Any], env: Mapping[str, int]) -> Any:
    """Call a function of the dimensions, which must accept all of them by name."""
    try:
        inspect.signature(grid).bind(**env)
    except TypeError as why:
        text = f"the grid function does not accept the dimensions {', '.join(env) or '(none)'}: {why}"
        raise PtxError([GRID.found(None, text, help=f"write grid=lambda {', '.join(env)}: (…,)")]) from None
    return grid(**env)


def grid_of(grid: Any, env: Mapping[str, int]) -> tuple[int, ...]:
    """Return the grid for these dimensions: a tuple, or the result of a function of the dimensions."""
    if grid is None:
        raise PtxError([GRID.found(None, "the kernel has no grid", help="pass grid= to @kernel or to the call")])
    extents: Any = _call(grid, env) if callable(grid) else grid
    dims = tuple(cast("Sequence[Any]", extents)) if isinstance(extents, tuple | list) else (extents,)
    if not 1 <= len(dims) <= 3 or not all(isinstance(d, int | np.integer) and d > 0 for d in dims):
        where = f" for {', '.join(f'{name}={size}' for name, size in env.items())}" if callable(grid) else ""
        raise PtxError(
            [GRID.found(None, f"the grid{where}: expected one to three positive integers, found {extents!r}")]
        )
    return tuple(int(d) for d in dims)
