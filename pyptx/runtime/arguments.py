"""Matches the arrays of a call to a kernel's tensors: dtype, rank, dimensions and memory order are all checked before
anything runs, with every problem in one message. Knows arrays by their descriptions only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any, NoReturn, cast

import numpy as np

from pyptx.diagnostics import PtxError, format_count
from pyptx.dsl.rules import SPECIALISATION
from pyptx.dsl.run import parse_raw_parameter
from pyptx.ir import Param
from pyptx.runtime.arrays import Array, Described, DeviceView, Unusable, adopt, describe, find_library
from pyptx.runtime.rules import ARRAYS, GRID
from pyptx.specs import Tile, list_array_dtype_names, unify_envs

Tensors = Sequence[tuple[str, Tile]]


class Role(Enum):
    """What a kernel does with an array: it reads an input, writes an output, and either or both with memory, such as
    that of raw parameters."""

    INPUT = 1
    OUTPUT = 2
    MEMORY = 3


def bind(
    kernel: str,
    inputs: Tensors,
    arrays: Sequence[Described | Unusable],
    outputs: Tensors,
    out_arrays: Sequence[Described | Unusable],
) -> dict[str, int]:
    """Return the values of the named dimensions; PtxError with every mismatch. `kernel` is its name; `out_arrays` are
    arrays for the outputs, or none to allocate them."""
    check_counts(kernel, inputs, len(arrays), outputs, len(out_arrays))
    role = Role.INPUT if outputs else Role.MEMORY
    pairs = [
        *((*pair, role) for pair in zip(inputs, arrays, strict=True)),
        *((*pair, Role.OUTPUT) for pair in zip(outputs, out_arrays or (), strict=False)),
    ]
    problems = [
        f"`{name}`: {wrong}" for (name, tile), array, role in pairs for wrong in _find_problems(name, tile, array, role)
    ]
    shapes = [(name, tile, array.shape) for (name, tile), array, _ in pairs if isinstance(array, Described)]
    envs: list[dict[str, int]] = []
    for name, tile, shape in shapes if not problems else ():
        try:
            envs = [unify_envs([*envs, tile.extract_env(shape)])]
        except ValueError as error:
            problems.append(f"`{name}`: {error}")
    if problems:
        raise PtxError([ARRAYS.report(None, "; ".join(problems))])
    return envs[0] if envs else {}


def check_counts(kernel: str, inputs: Tensors, count: int, outputs: Tensors, targets: int) -> None:
    """Refuse a wrong number of arrays: `count` for the inputs, and `targets` for the outputs, or 0 to allocate them."""
    if count != len(inputs):
        names = ", ".join(name for name, _ in inputs)
        text = f"expected {format_count('input array', len(inputs))} ({names or 'none'}), found {count}"
        has_outputs = bool(outputs) and count == len(inputs) + len(outputs)
        output_names = ", ".join(name for name, _ in outputs)
        into = f"({output_names})" if len(outputs) > 1 else output_names
        call = f"{kernel}({names + ', ' if names else ''}out={into})" if has_outputs else f"{kernel}({names})"
        help = f"pass outputs as out=: {call}" if has_outputs else f"call {call}"
        raise PtxError([ARRAYS.report(None, text, help=help)])
    if targets and targets != len(outputs):
        text = f"expected {format_count('array', len(outputs))} in `out=`, found {targets}"
        raise PtxError([ARRAYS.report(None, text)])


def merge_dimensions(env: Mapping[str, int], keywords: Mapping[str, Any]) -> dict[str, int]:
    """Merge the dimensions of the arrays with those passed by keyword; PtxError if they differ."""
    wrong = [
        f"{n}={keywords[n]!r}, but the arrays have {env[n]}" for n in keywords if n in env and keywords[n] != env[n]
    ]
    if wrong:
        raise PtxError([ARRAYS.report(None, "; ".join(wrong), help="remove it: the arrays determine it")])
    return {**env, **keywords}


def _find_problems(name: str, tile: Tile, array: Described | Unusable, role: Role) -> list[str]:
    return [array.describe(name)] if isinstance(array, Unusable) else _find_misfits(name, tile, array, role)


def _find_misfits(name: str, tile: Tile, array: Described, role: Role) -> list[str]:
    problems: list[str] = []
    dtypes = list_array_dtype_names(tile.dtype)
    if array.dtype not in dtypes:
        remedy = "" if role is Role.OUTPUT else _suggest_conversion(name, dtypes[0], array.library)
        problems.append(f"expected dtype {dtypes[0]}, found {array.dtype}{remedy}")
    if len(array.shape) != tile.rank:
        problems.append(f"expected {format_count('dimension', tile.rank)}, found shape {array.shape}")
    problems += _find_misplaced_elements(name, array, role)
    return [*problems, array.misplaced] if array.misplaced else problems


def _find_misplaced_elements(name: str, array: Described, role: Role) -> list[str]:
    problems: list[str] = []
    if array.misaligned:
        remedy = _suggest_copy(name, array.library, role, "aligned")
        problems.append(f"expected elements aligned to {format_count('byte', array.misaligned)}; {remedy}")
    if not array.is_contiguous:
        remedy = _suggest_copy(name, array.library, role, "contiguous")
        problems.append(f"expected a contiguous row-major array; {remedy}")
    return problems


def _suggest_conversion(name: str, dtype: str, library: str) -> str:
    if library == "torch":
        return f"; use {name}.to(torch.{dtype})"
    if library == "jax":
        return f"; use {name}.astype('{dtype}')"
    module = "numpy" if hasattr(np, dtype) else "ml_dtypes"
    return f"; use {name}.astype({module}.{dtype})" if library in ("numpy", "cupy") else ""


def _suggest_copy(name: str, library: str, role: Role, quality: str) -> str:
    """Return where to get an array that is contiguous or aligned from. What a kernel writes to a copy is lost."""
    if role is Role.OUTPUT:
        return f"pass {_ARTICLES[quality]} {quality} one, and copy from it"
    copy = _COPIES.get((library, quality))
    remedy = f"pass {_ARTICLES[quality]} {quality} copy" if copy is None else f"use {copy.format(name)}"
    return remedy if role is Role.INPUT else f"{remedy}, and copy back what the kernel writes"


_ARTICLES = {"aligned": "an", "contiguous": "a"}
_COPIES = {
    ("numpy", "aligned"): "{}.copy()", ("numpy", "contiguous"): "numpy.ascontiguousarray({})",
    ("cupy", "aligned"): "{}.copy()", ("cupy", "contiguous"): "cupy.ascontiguousarray({})",
    ("torch", "aligned"): "{}.clone()", ("torch", "contiguous"): "{}.contiguous()",
}  # fmt: skip
"""Expressions for a copy, by library."""


def collect_scalars(
    params: Sequence[tuple[str, str]],
    positional: Sequence[Any] | None,
    keywords: Mapping[str, Any],
    options: Collection[str],
) -> dict[str, Any]:
    """Return the raw parameters by name, from a list of all or from the keywords; arrays stand for their addresses.
    `options` are keywords of the call that are never parameters."""
    names = [name for _, name in params]
    if positional is not None:
        check_positional(names, len(positional))
    values = dict(zip(names, positional or (), strict=False)) | {
        name: keywords[name] for name in names if name in keywords
    }
    shadowed = [name for name in names if name not in values and name in options]
    if shadowed:
        text = f"the raw parameter `{shadowed[0]}` has no value: `{shadowed[0]}=` is an option of the call"
        raise PtxError([ARRAYS.report(None, text, help=f"pass all raw parameters in order: args=[{', '.join(names)}]")])
    kinds = {name: kind for kind, name in params}
    return {name: _read_parameter(kinds[name], name, value) for name, value in values.items()}


def check_positional(names: Sequence[str], count: int) -> None:
    """Refuse a wrong number of values for the raw parameters."""
    if count != len(names):
        text = f"expected {format_count('value', len(names))} in `args=` ({', '.join(names) or 'none'}), found {count}"
        help = f"pass all of them in order: args=[{', '.join(names)}]" if names else "omit args="
        raise PtxError([ARRAYS.report(None, text, help=help)])


def _read_parameter(kind: str, name: str, value: Any) -> Any:
    """Return the value of a raw parameter, a view for an array; PtxError for one that cannot be passed."""
    if _is_scalar_tensor(value):
        refuse_scalar(name, type(value).__name__)
    if not _is_array(value):
        return value
    view = adopt([value])[0]
    array = describe(view, find_library([value]))
    if isinstance(array, Unusable):
        raise PtxError([ARRAYS.report(None, f"`{name}`: {array.describe(name)}")])
    parameter = parse_raw_parameter(kind, name)
    if parameter.type.bits * (parameter.array_size or 1) != _ADDRESS_BITS:
        text = f"`{name}`: expected {_describe_parameter(parameter)}, found an array, which is passed by its address"
        raise PtxError([ARRAYS.report(None, text, help="for an address, declare the parameter as u64")])
    problems = _find_misplaced_elements(name, array, Role.MEMORY)
    if problems:
        raise PtxError([ARRAYS.report(None, f"`{name}`: {'; '.join(problems)}")])
    return view


def refuse_scalar(name: str, kind: str) -> NoReturn:
    """Raise the error of a raw parameter that is a tensor of this type without dimensions."""
    text = f"`{name}`: expected a number, found a {kind} without dimensions"
    raise PtxError([ARRAYS.report(None, text, help=f"pass {name}.item()")])


_ADDRESS_BITS = 64


def _describe_parameter(parameter: Param) -> str:
    if parameter.array_size is None:
        return f"a number for {parameter.type.ptx}"
    return f"{format_count('byte', parameter.type.bits * parameter.array_size // 8)} of a structure"


def _is_scalar_tensor(value: Any) -> bool:
    """Return whether a value is an array without dimensions of another library than NumPy."""
    return getattr(value, "shape", None) == () and not isinstance(value, np.ndarray | np.generic)


def _is_array(value: Any) -> bool:
    """Return whether a raw parameter is passed by its address; an array without dimensions is a number."""
    return bool(getattr(value, "shape", any(hasattr(value, protocol) for protocol in _PROTOCOLS)))


_PROTOCOLS = ("__dlpack_device__", "__cuda_array_interface__")


def check_complete(params: Sequence[tuple[str, str]], scalars: Mapping[str, Any]) -> None:
    """Refuse a call without the values of all raw parameters."""
    missing = [name for _, name in params if scalars.get(name) is None]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        text = f"the raw parameters {listed} have" if len(missing) > 1 else f"the raw parameter {listed} has"
        keywords, order = ", ".join(f"{name}=" for name in missing), ", ".join(name for _, name in params)
        help = f"pass {keywords} by keyword, or all in order: args=[{order}]"
        raise PtxError([ARRAYS.report(None, f"{text} no value", help=help)])


def check_keywords(kernel: str, keywords: Collection[str], names: Sequence[str], options: Collection[str]) -> None:
    """Refuse keywords that resemble one that a kernel or a call takes, `names` or `options`, and are none."""
    unknown = [name for name in keywords if name not in names]
    close = [match for name in unknown for match in get_close_matches(name, [*names, *options], 1)]
    if close:
        help = f"did you mean {', '.join(f'`{name}=`' for name in close)}?"
        if any(name in options for name in unknown):
            help = f"{kernel}.simulate(…) takes the options of simulated runs, {kernel}.ptx(…) those of PTX text"
        raise PtxError([SPECIALISATION.report(None, f"kernel `{kernel}`: unknown: {', '.join(unknown)}", help=help)])


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


def check_undefined(outputs: Tensors, arrays: Sequence[Described], grid: Sequence[int]) -> None:
    """Refuse to allocate an output with elements for an empty grid, which writes none."""
    names = [f"`{name}`" for (name, _), array in zip(outputs, arrays, strict=True) if 0 not in array.shape]
    if names:
        text = f"the grid {write_extents(grid)} is empty, so nothing would write {', '.join(names)}"
        raise PtxError([GRID.report(None, text, help="pass arrays with the values as out=")])


def write_extents(extents: Sequence[int]) -> str:
    """Return a grid, block or cluster for a message."""
    return "×".join(map(str, extents))


def resolve_grid(
    grid: Any, env: Mapping[str, int], template: Mapping[str, Any], *, may_be_empty: bool = False
) -> tuple[int, ...]:
    """Return the grid for these dimensions: a tuple, or the result of a function of the dimensions, and of those
    template parameters that it names. It `may_be_empty` if an array is: otherwise 0 is a mistake, such as a division
    that rounds down."""
    if grid is None:
        raise PtxError([GRID.report(None, "the kernel has no grid", help="pass grid= to @kernel or to the call")])
    extents: Any = _call(grid, env, template) if callable(grid) else grid
    dims = tuple(cast("Sequence[Any]", extents)) if isinstance(extents, tuple | list) else (extents,)
    smallest = 0 if may_be_empty else 1
    if not 1 <= len(dims) <= 3 or not all(isinstance(d, int | np.integer) and d >= smallest for d in dims):
        context = f" for {', '.join(f'{name}={size}' for name, size in env.items())}" if callable(grid) else ""
        text = f"the grid{context}: expected one to three positive integers, found {extents!r}"
        help = "round up, as -(-n // 128) does; a grid may be empty if an array is" if 0 in dims else None
        raise PtxError([GRID.report(None, text, help=help)])
    return tuple(int(d) for d in dims)
