"""The latest calls of a kernel on arrays in device memory, which the C extension repeats without binding them again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyptx.runtime.calls import Bound
    from pyptx.runtime.planning import Traceable

_MOST_CALLS, _MOST_KEYS = 8, 32
_CONSTANTS = (bool, int, float, str)


class Repeats:
    """What repeats calls, by what else than arrays was passed; returns NotImplemented for other kinds of arrays."""

    def __init__(self, *, writes_inputs: bool) -> None:
        self.writes_inputs = writes_inputs
        self.calls: dict[Hashable, list[Callable[[tuple[Any, ...]], Any]]] = {}
        self._misses: dict[Hashable, None] = {}
        """The latest keys that were not kept because there are too many."""

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
        if (
            binding.plan.is_empty
            or key is NotImplemented
            or (out is not None and not binding.targets)
            or not self._deserves_place(key)
        ):
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

    def _deserves_place(self, key: Hashable) -> bool:
        """Tell whether to keep a call with this key: with a number that is never the same, keeping takes longer than
        binding. Once there are many keys, a new one must have come before."""
        if key in self.calls or len(self.calls) < _MOST_KEYS or key in self._misses:
            return True
        if len(self._misses) >= _MOST_KEYS:
            self._misses.pop(next(iter(self._misses)), None)
        self._misses[key] = None
        return False


def make_key(out: Any, grid: Any, keywords: Mapping[str, Any]) -> Hashable:
    """Return what a call depends on besides its arrays, None for nothing, NotImplemented for what can change in place.

    Numbers that are equal can differ in type or sign, and a NaN differs from itself: the key has the types, and the
    digits of floats. Numbers of other types count as objects that can change."""
    if out is None and grid is None and not keywords:
        return None
    extents = () if grid is None else cast("tuple[object, ...]", grid) if isinstance(grid, tuple) else (grid,)
    values = (*keywords.values(), *extents)
    kinds = tuple(map(type, values))
    if any(kind not in _CONSTANTS for kind in kinds):
        return NotImplemented
    parts = tuple(value.hex() if type(value) is float else value for value in values)
    return out is not None, grid is None, len(keywords), (*keywords, *parts), kinds


def _list_targets(out: Any) -> tuple[Any, ...]:
    return () if out is None else tuple(cast("Sequence[Any]", out)) if isinstance(out, tuple | list) else (out,)


def _note_written(tensors: tuple[Any, ...]) -> None:
    from pyptx.runtime import torch_

    for tensor in tensors:
        torch_.note_written(tensor)
