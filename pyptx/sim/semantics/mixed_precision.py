"""Manual: Mixed Precision Floating Point Instructions: narrow operands, an f32 sum with one rounding."""

from __future__ import annotations

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array
from pyptx.sim.numerics.formats import widen
from pyptx.sim.numerics.rounding import round_to_format, round_to_odd, to_f32, two_sum
from pyptx.sim.semantics import rounding as r
from pyptx.sim.semantics.floating_point import find_mode
from pyptx.sim.semantics.narrow import pack, unpack
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, value


def _finish(match: Match, x: Array) -> Array:
    result = to_f32(x, find_mode(match))
    return r.saturate(result) if "sat" in match.modifiers else result


def _add(match: Match, signature: Signature) -> Operation | None:
    return _sum(match, 1.0)


def _sub(match: Match, signature: Signature) -> Operation | None:
    return _sum(match, -1.0)


def _sum(match: Match, sign: float) -> Operation | None:
    if "cdtype" in match.chosen:
        kind, atype = match.chosen["cdtype"], match.chosen["atype"]
        return value(lambda a, c: _pack(match, kind, [
            round_to_odd(*two_sum(x, sign * y)) for x, y in zip(unpack(a, atype), unpack(c, kind), strict=True)
        ]))  # fmt: skip
    name = match.chosen["atype"]
    return value(
        lambda a, c: _finish(match, r.sum_exactly(widen(a, name), sign * c.astype(np.float64), find_mode(match)))
    )


def _pack(match: Match, kind: str, values: list[Array]) -> Array:
    name = kind.removesuffix("x4")
    satfinite = "satfinite" in match.modifiers
    return pack([round_to_format(v, name, "rn", satfinite=satfinite) for v in values], kind)


def _mul(match: Match, signature: Signature) -> Operation | None:
    kind, atype, ctype = match.chosen["dtype"], match.chosen["atype"], match.chosen["ctype"]
    return value(lambda a, c: _pack(match, kind, [
        x * y for x, y in zip(unpack(a, atype), unpack(c, ctype), strict=True)
    ]))  # fmt: skip


def _fma(match: Match, signature: Signature) -> Operation | None:
    if "cdtype" in match.chosen:
        kind, atype, btype = match.chosen["cdtype"], match.chosen["atype"], match.chosen["btype"]
        return value(lambda a, b, c: _pack(match, kind, [
            round_to_odd(*two_sum(x * y, z))
            for x, y, z in zip(unpack(a, atype), unpack(b, btype), unpack(c, kind), strict=True)
        ]))  # fmt: skip
    name = match.chosen["abtype"]
    return value(lambda a, b, c: _finish(
        match, r.sum_exactly(widen(a, name) * widen(b, name), c.astype(np.float64), find_mode(match))
    ))  # fmt: skip


BUILDERS: dict[str, Builder] = {"add": _add, "sub": _sub, "mul": _mul, "fma": _fma}
