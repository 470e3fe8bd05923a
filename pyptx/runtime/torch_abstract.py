"""What a call returns for tensors without memory: fake ones, whose sizes may be symbolic, and those on `meta`.

They get the checks and messages of tensors in memory: sizes that are symbolic are checked with the numbers that the
compiler has as examples, and nothing but the equations between them becomes a condition of what is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from pyptx.runtime import arguments, torch_
from pyptx.runtime.arrays import Described, Unusable, find_misplaced
from pyptx.runtime.planning import Traceable, check_numbers, locate_errors, make_plan
from pyptx.specs import Tile

torch: Any = import_module("torch")

_UNKNOWN = 1
"""Stands for a size that only the run will tell, where no other tensor has it either."""


def infer(
    kernel: Traceable,
    inputs: Sequence[Any],
    targets: Sequence[Any],
    grid: Any,
    keywords: Mapping[str, Any],
    memory: Sequence[Any],
) -> list[Any]:
    """Return abstract outputs of a call, none if `targets` are given for them; PtxError as for tensors in memory.
    Raw parameters that point to `memory` are 0 in `keywords`."""
    tensors, count = kernel.definition.tensors, len(kernel.in_specs)
    pairs = [*zip(tensors, (*inputs, *targets), strict=False)]
    examples = _choose_examples(pairs, keywords)
    device = next(iter((*inputs, *targets, *memory))).device
    wrong = find_misplaced({name: _find_place(tensor) for (name, _), tensor in pairs})
    descriptions = [_describe(tile, tensor, examples, wrong.get(name, "")) for (name, tile), tensor in pairs]
    numbers = {name: _find_example(value, examples.get(name, _UNKNOWN)) for name, value in keywords.items()}
    sizes = [*(size for tensor in (*inputs, *targets) for size in tensor.shape), *keywords.values()]
    lengths: list[Any] = [*cast("Any", grid)] if isinstance(grid, tuple | list) else []
    if all(_is_known(value) for value in (*sizes, *lengths)):
        extents = tuple(_find_example(value, _UNKNOWN) for value in lengths) or cast("Any", grid)
        plan = make_plan(
            kernel, descriptions[:count], descriptions[count:], grid=extents, positional=None, keywords=numbers,
            options=(),
            memory=[tuple(_find_example(size, _UNKNOWN) for size in tensor.shape) for tensor in memory],
        )  # fmt: skip
        with locate_errors(kernel.definition):
            arguments.check_complete(plan.definition.raw_params, plan.scalars)
            check_numbers(plan)
    else:
        with locate_errors(kernel.definition):
            arguments.bind(
                kernel.definition.name, tensors[:count], descriptions[:count], tensors[count:], descriptions[count:]
            )
    env = _unify(pairs, {name: value for name, value in keywords.items() if name in kernel.shape_variables})
    if targets:
        return []
    return [
        torch.empty(output.shape, dtype=torch_.get_dtype(output.dtype), device=device)
        for output in arguments.describe_outputs(tensors[count:], env)
    ]


def _is_known(value: Any) -> bool:
    return not isinstance(value, torch.SymInt | torch.SymFloat) or value.node.has_hint()


def _find_example(value: Any, unknown: Any) -> Any:
    if not isinstance(value, torch.SymInt | torch.SymFloat):
        return value
    return value.node.hint if value.node.has_hint() else unknown


def _choose_examples(pairs: Iterable[tuple[tuple[str, Tile], Any]], keywords: Mapping[str, Any]) -> dict[str, int]:
    """Return an example for each named dimension that has one."""
    sizes = [(dim, size) for (_, tile), tensor in pairs for dim, size in zip(tile.shape, tensor.shape, strict=False)]
    examples: dict[str, int] = {}
    for dim, size in (*sizes, *keywords.items()):
        if isinstance(dim, str) and isinstance(size, int | torch.SymInt) and _is_known(size):
            examples.setdefault(dim, _find_example(size, _UNKNOWN))
    return examples


def _find_place(tensor: Any) -> int | str | None:
    """Return the device of a tensor, as `find_misplaced` takes it."""
    kind = tensor.device.type
    return None if kind == "cpu" else tensor.device.index if kind == "cuda" else kind


def _describe(tile: Tile, tensor: Any, examples: Mapping[str, int], misplaced: str) -> Described | Unusable:
    problem = torch_.find_problem(tensor, needs_memory=False)
    if problem is not None:
        return problem
    dims = (*tile.shape, *(_UNKNOWN for _ in tensor.shape[tile.rank :]))
    shape = tuple(
        _find_example(size, dim if isinstance(dim, int) else examples.get(dim, _UNKNOWN))
        for dim, size in zip(dims, tensor.shape, strict=False)
    )
    return Described(shape, torch_.name_dtype(tensor), tensor.is_contiguous(), library="torch", misplaced=misplaced)


def _unify(pairs: Iterable[tuple[tuple[str, Tile], Any]], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named dimensions, which may be symbolic; what must be equal becomes a condition."""
    env: dict[str, Any] = {}
    for (_, tile), tensor in pairs:
        for dim, size in zip(tile.shape, tensor.shape, strict=True):
            torch._check(size == (env.setdefault(dim, size) if isinstance(dim, str) else dim))
    for name, value in keywords.items():
        torch._check(env.setdefault(name, value) == value)
    return env
