"""Layouts: the whitespace and comments around the tokens of one statement."""

from __future__ import annotations

from collections.abc import Iterable


class Layout(tuple[str, ...]):
    """The n+1 gaps around n tokens. Many statements share one.

    `form`, if present, is the same layout as a `%`-format: one placeholder for the guard if `guarded`, one for opcode
    and modifiers, and one for each of `arity` operands in its default spacing. The emitter uses it to save time.
    """

    form: str | None = None
    guarded: bool = False
    arity: int = 0


_MOST = 1 << 14
_LONGEST = 1024
_interned: dict[tuple[str, ...], Layout] = {}


def layout_of(gaps: Iterable[str]) -> Layout:
    """Return the shared layout of these gaps."""
    key = tuple(gaps)
    layout = _interned.get(key)
    if layout is None:
        layout = Layout(key)
        if sum(map(len, key)) < _LONGEST:
            if len(_interned) >= _MOST:
                _interned.clear()
            _interned[key] = layout
    return layout
