"""The latest calls of a kernel on arrays in device memory, which the C extension repeats without binding them again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyptx.runtime.calls import Bound
    from pyptx.runtime.planning import Traceable

_MOST_CALLS, _MOST_KEYS = 8, 32
_CONSTANTS = (bool, int, str)


class Repeats:
    """What repeats calls, by what else than arrays was passed; returns NotImplemented for other kinds of arrays."""

    def __init__(self, *, writes_inputs: bool) -> None:
        self.writes_inputs = writes_inputs
        self.calls: dict[Hashable, list[Callable[[tuple[Any, ...]], Any]]] = {}

    def run(self, inputs: tuple[Any, ...], out: Any, grid: Any, keywords: Mapping[str, Any]) -> Any:
        """Repeat a call as it was made before; NotImplemented if it may differ."""
        key = None if out is None and grid is None and not keywords else make_key(out, grid, keywords)
        targets = _list_targets(out)
        arrays = inputs + targets if targets else inputs
        for call in self.calls.get(key, ()):
            results = call(arrays)
            if results is not NotImplemented:
                if targets or self.writes_inputs:
                    _note_written(targets or inputs)
                return results if not targets else targets[0] if len(targets) == 1 else targets
        return NotImplemented

    def remember(
        self, kernel: Traceable, inputs: Sequence[Any], binding: Bound, device: int, *, out: Any, grid: Any,
        keywords: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Keep a call that has just run on a device, if it can be repeated."""
        key = make_key(out, grid, keywords)
        if key is NotImplemented or (out is not None and not binding.targets):
            return
        from pyptx.runtime import fast_calls

        call = fast_calls.make_call(kernel, inputs, binding, device)
        if call is not None:
            # A copy replaces the dictionary: other threads may be reading it, or remember a call at the same time.
            calls = dict(self.calls)
            latest = calls.pop(key, [])
            if len(calls) == _MOST_KEYS:
                del calls[next(iter(calls))]
            self.calls = {**calls, key: [call.run, *latest[: _MOST_CALLS - 1]]}


def make_key(out: Any, grid: Any, keywords: Mapping[str, Any]) -> Hashable:
    """Return what a call depends on besides its arrays, None for nothing, NotImplemented for what can change in place.

    Numbers that are equal can differ in type or sign, so those of other types count as objects that can change."""
    if out is None and grid is None and not keywords:
        return None
    extents = () if grid is None else cast("tuple[object, ...]", grid) if isinstance(grid, tuple) else (grid,)
    values = (*keywords.values(), *extents)
    kinds = tuple(map(type, values))
    if any(kind not in _CONSTANTS for kind in kinds):
        return NotImplemented
    return out is not None, grid is None, len(keywords), (*keywords, *values), kinds


def _list_targets(out: Any) -> tuple[Any, ...]:
    return () if out is None else tuple(cast("Sequence[Any]", out)) if isinstance(out, tuple | list) else (out,)


def _note_written(tensors: tuple[Any, ...]) -> None:
    from pyptx.runtime import torch_

    for tensor in tensors:
        torch_.note_written(tensor)
