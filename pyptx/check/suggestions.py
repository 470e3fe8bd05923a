"""Suggests names similar to an undeclared one. The cost is linear in the number of names, however many suggestions are
requested: declared names are indexed by themselves with one character removed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice

from pyptx.check.symbols import Scope
from pyptx.isa import special

_LONGEST = 64
_SURE = 4
"""Names of at least this length may differ in one character; shorter ones only by one extra character."""
_MOST_SCOPES = 32
_RANGE = "<"
"""Marks entries of ranges such as `%r<8>`, whose base is not itself declared."""

_CUDA = {"threadIdx": "%tid", "blockIdx": "%ctaid", "blockDim": "%ntid", "gridDim": "%nctaid", "warpSize": "WARP_SZ"}


def suggest_name(name: str, scope: Scope) -> str | None:
    """Return the help for an undeclared name: a similar declared name, or the range that it exceeds."""
    if len(name) > _LONGEST:
        return None
    base, _, component = name.partition(".")
    if base in _CUDA:
        return f"in PTX this is `{_CUDA[base]}{'.' * bool(component)}{component}`"
    digits = name[len(name.rstrip("0123456789")) :]
    stem = name.removesuffix(digits) if digits else name
    for block in islice(scope.walk_outward(), _MOST_SCOPES):
        suggestion = _suggest_in_scope(name, stem, digits, block)
        if suggestion is not None:
            return suggestion
    near = _find_near(name, _index_special_names())
    return f"did you mean `{near}`?" if near else None


def _suggest_in_scope(name: str, stem: str, digits: str, scope: Scope) -> str | None:
    symbol_range = scope.ranges.get(stem)
    if symbol_range is not None and digits:
        return (
            f"`{stem}<{symbol_range[0]}>` declares `{stem}0` to `{stem}{symbol_range[0] - 1}`"
            if symbol_range[0]
            else None
        )
    _index_new_names(scope)
    near = _find_near(name, scope.near)
    if near is None and digits:
        base = _find_near(stem, scope.near, _RANGE)
        near = f"{base}{digits}" if base is not None and scope.find(f"{base}{digits}") is not None else None
    return f"did you mean `{near}`?" if near and scope.find(near) is not None else None


def _index_new_names(scope: Scope) -> None:
    """Index the names declared since the last call."""
    for table_index, (names, mark) in enumerate(((scope.names, ""), (scope.ranges, _RANGE))):
        if len(names) == scope.index_counts[table_index]:
            continue
        for name in islice(names, scope.index_counts[table_index], None):
            for key in _generate_keys(name):
                scope.near.setdefault(key + mark, name)
        scope.index_counts[table_index] = len(names)


def _find_near(name: str, index: dict[str, str], mark: str = "") -> str | None:
    for key in _generate_keys(name):
        suggestion = index.get(key + mark)
        if (
            suggestion is not None
            and suggestion != name
            and (key in (name.lower(), suggestion.lower()) or len(name) >= _SURE)
        ):
            return suggestion
    return None


def _generate_keys(name: str) -> Iterator[str]:
    """Yield a name in lower case, and with each of its characters removed."""
    small = name.lower()
    if len(small) <= _LONGEST:
        yield small
        for index in range(len(small) if len(small) > 1 else 0):
            yield small[:index] + small[index + 1 :]


@cache
def _index_special_names() -> dict[str, str]:
    components = [f"{r.name}.{c}" for r in special.SPECIAL_REGISTERS if r.vector for c in special.COMPONENTS]
    names = [*components, *(r.name for r in special.SPECIAL_REGISTERS)]
    return {key: name for name in reversed(names) for key in _generate_keys(name)}
