"""The latest calls of a kernel on arrays in device memory, which are repeated without binding them again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pyptx.diagnostics import PtxError

if TYPE_CHECKING:
    from pyptx.runtime.calls import Bound
    from pyptx.runtime.planning import Traceable

_MOST_CALLS, _MOST_KEYS = 8, 32
_CONSTANTS = (bool, int, float, str)
Options = tuple[Sequence[Any] | None, Any, bool, bool]
"""The raw parameters in their order, the stream, and whether a launch is cooperative and programmatic."""
NO_OPTIONS: Options = (None, None, False, False)


class Repeats:
    """What repeats calls, by what else than arrays was passed; returns NotImplemented for other kinds of arrays."""

    def __init__(self, *, writes_inputs: bool) -> None:
        self.writes_inputs = writes_inputs
        self.calls: dict[Hashable, list[Callable[..., Any]]] = {}
        self._misses: dict[Hashable, None] = {}
        """The latest keys that were not kept because there are too many."""

    def run(self, inputs: tuple[Any, ...], out: Any, grid: Any, keywords: Mapping[str, Any], options: Options) -> Any:
        """Repeat a call as it was made before; NotImplemented if it may differ."""
        args, stream, cooperative, programmatic = options
        is_plain = out is grid is args is stream is None and not (keywords or cooperative or programmatic)
        key = None if is_plain else make_key(out, grid, keywords, options)
        targets = _list_targets(out)
        arrays = inputs + targets if targets else inputs
        for call in self.calls.get(key, ()):
            if stream is None:
                results = call(arrays)
            else:
                handle = _read_stream(stream)
                results = NotImplemented if handle is None else call(arrays, handle, stream)
            if results is not NotImplemented:
                if targets or self.writes_inputs:
                    _note_written(targets or inputs)
                return results if not targets else targets[0] if len(targets) == 1 else targets
        return NotImplemented

    def remember(
        self, kernel: Traceable, inputs: Sequence[Any], binding: Bound, device: int, *, out: Any, grid: Any,
        keywords: Mapping[str, Any], options: Options,
    ) -> None:  # fmt: skip
        """Keep a call that has just run on a device, if it can be repeated."""
        key = make_key(out, grid, keywords, options)
        has_targets = out is None or bool(binding.targets)
        if binding.plan.is_empty or key is NotImplemented or not has_targets or not self._deserves_place(key):
            return
        from pyptx.runtime import fast_calls

        _, _, cooperative, programmatic = options
        call = fast_calls.make_call(
            kernel, inputs, binding, device, cooperative=bool(cooperative), programmatic=bool(programmatic)
        )
        if call is not None:
            # A copy replaces the dictionary: other threads may be reading it, or remember a call at the same time.
            calls = dict(self.calls)
            latest = calls.pop(key, [])
            if len(calls) == _MOST_KEYS:
                del calls[next(iter(calls))]
            self.calls = {**calls, key: [call, *latest[: _MOST_CALLS - 1]]}

    def _deserves_place(self, key: Hashable) -> bool:
        """Tell whether to keep a call with this key: with a number that is never the same, keeping takes longer than
        binding. Once there are many keys, a new one must have come before."""
        if key in self.calls or len(self.calls) < _MOST_KEYS or key in self._misses:
            return True
        if len(self._misses) >= _MOST_KEYS:
            self._misses.pop(next(iter(self._misses)), None)
        self._misses[key] = None
        return False


def make_key(out: Any, grid: Any, keywords: Mapping[str, Any], options: Options) -> Hashable:
    """Return what a call depends on besides its arrays and the handle of its stream, None for nothing, NotImplemented
    for what can change in place.

    Numbers that are equal can differ in type or sign, and a NaN differs from itself: the key has the types, and the
    digits of floats. Numbers of other types count as objects that can change."""
    args, stream, cooperative, programmatic = options
    if out is grid is args is stream is None and not (keywords or cooperative or programmatic):
        return None
    extents = () if grid is None else cast("tuple[object, ...]", grid) if isinstance(grid, tuple) else (grid,)
    values = (*keywords.values(), *(args or ()), *extents)
    kinds = tuple(map(type, values))
    if any(kind not in _CONSTANTS for kind in kinds):
        return NotImplemented
    parts = tuple(value.hex() if type(value) is float else value for value in values)
    shape = out is not None, grid is None, args is None, stream is None, bool(cooperative), bool(programmatic)
    return shape, len(keywords), len(extents), (*keywords, *parts), kinds


def _read_stream(stream: Any) -> int | None:
    """Return the handle of a stream, None for what is no stream, about which a call that is bound raises an error."""
    from pyptx.runtime.streams import read_stream

    try:
        return read_stream(stream)
    except PtxError:
        return None


def _list_targets(out: Any) -> tuple[Any, ...]:
    return () if out is None else tuple(cast("Sequence[Any]", out)) if isinstance(out, tuple | list) else (out,)


def _note_written(values: tuple[Any, ...]) -> None:
    from pyptx.runtime import arrays

    arrays.note_written(values)
