"""Communication between the threads of a warp: `shfl`, `vote`, `match`, `redux`, and reductions built from them.

`mask` names the participating lanes, by default all; all of them must make the call.
"""

from __future__ import annotations

from typing import Any

from pyptx.check.spelling import find_missing_requirement
from pyptx.dsl import rules
from pyptx.dsl.arithmetic import check_operand, to_unsigned, to_untyped
from pyptx.dsl.emit import Spelling, describe, emit, spell
from pyptx.dsl.registers import PipeRef, Pred, Reg, create_register
from pyptx.dsl.scopes import Named, intrinsic
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import Pair
from pyptx.isa import lookup
from pyptx.types import PtxType, b32
from pyptx.types import pred as pred_type

__all__ = [
    "activemask", "all_reduce", "all_reduce_max", "all_reduce_min", "all_reduce_sum", "ballot", "elect", "match_all",
    "match_any", "reduce", "reduce_max", "reduce_min", "reduce_sum", "redux", "shfl", "shfl_bfly", "shfl_down",
    "shfl_idx", "shfl_up", "sync", "vote_all", "vote_any", "vote_uni",
]  # fmt: skip

_ALL = 0xFFFFFFFF
"""All lanes."""
_WIDTHS = (2, 4, 8, 16, 32)
_OPERATIONS = {"sum": "add", "add": "add", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}


def _exchange(mode: str, value: Any, lane: Any, clamp: int, valid: Reg | None, mask: Any, pred: Pred | None) -> Reg:
    """Emit `shfl.sync` for values of any size: 16 bits travel in 32, 64 bits in two halves."""
    if not isinstance(value, Reg):
        fail(rules.ARGUMENT, f"`shfl` exchanges registers, found {describe(value)}", help="use reg.from_(x, u32)")
    spelling, bits = spell("shfl", "sync", mode, "b32"), value.dtype.bits
    result = create_register(value.dtype)
    target: Any = result if valid is None else Pair(result, valid)
    if bits not in (16, 64):
        emit(spelling, (target, value, lane, clamp, mask), pred)
        return result
    with Named(f"shfl_{mode}", f"{value.name}, {getattr(lane, 'name', lane)}"):
        parts = [create_register(b32) for _ in range(bits // 64 + 1)]
        outputs = [create_register(b32) for _ in parts]
        if bits == 16:
            emit(spell("mov", "b32"), (parts[0], [value, value]), pred)
        else:
            emit(spell("mov", "b64"), (parts, value), pred)
        for index, (part, output) in enumerate(zip(parts, outputs, strict=True)):
            dst: Any = output if valid is None or index else Pair(output, valid)
            emit(spelling, (dst, part, lane, clamp, mask), pred)
        if bits == 16:
            emit(spell("mov", "b32"), ([result, None], outputs[0]), pred)
        else:
            emit(spell("mov", "b64"), (result, outputs), pred)
    return result


def shfl(
    mode: str, value: Any, lane: Any, clamp: Any, mask: Any = _ALL, *, valid: bool = False, pred: Any = None
) -> Any:
    """Emit `shfl.sync.mode.b32 d[|p], a, b, c, mask` as in PTX: `clamp` is the operand that `shfl_bfly` derives from
    `width`. Returns the new register; with `valid`, also the predicate whether the source lane was in range."""
    result: Any = create_register(value.dtype) if isinstance(value, Reg) else create_register(b32)
    target: Any = PipeRef(result, create_register(pred_type)) if valid else result
    emit(spell("shfl", "sync", mode, "b32"), (target, value, lane, clamp, mask), pred)
    return target


def _compute_clamp(mode: str, width: int) -> int:
    """Return the operand that keeps the exchange within segments of a width."""
    if width not in _WIDTHS:
        fail(
            rules.ARGUMENT,
            f"`width` must be 2, 4, 8, 16 or 32, found {describe(width)}",
            help="use width=32 for the warp",
        )
    return 32 - width << 8 | (0 if mode == "up" else 31)


def shfl_bfly(
    value: Reg, lane_mask: int | Reg, *, width: int = 32, valid: Reg | None = None, mask: Any = _ALL, pred: Any = None
) -> Reg:
    """Emit `shfl.sync.bfly.b32 d[|valid], a, b, c, mask`; return the value of the lane `lane ^ lane_mask`. `width`
    counts lanes, a power of two from 2 to 32.

    A 16- or 64-bit register takes one or two shuffles with `mov`s around them, in a scope.
    """
    return _exchange("bfly", value, lane_mask, _compute_clamp("bfly", width), valid, mask, pred)


def shfl_up(
    value: Reg, delta: int | Reg, *, width: int = 32, valid: Reg | None = None, mask: Any = _ALL, pred: Any = None
) -> Reg:
    """Emit `shfl.sync.up.b32`: return the value of the lane `delta` below; the lowest lanes keep their own. Sizes as
    for `shfl_bfly`. `delta` and `width` count lanes."""
    return _exchange("up", value, delta, _compute_clamp("up", width), valid, mask, pred)


def shfl_down(
    value: Reg, delta: int | Reg, *, width: int = 32, valid: Reg | None = None, mask: Any = _ALL, pred: Any = None
) -> Reg:
    """Emit `shfl.sync.down.b32`: return the value of the lane `delta` above; the highest lanes keep their own. Sizes as
    for `shfl_bfly`. `delta` and `width` count lanes."""
    return _exchange("down", value, delta, _compute_clamp("down", width), valid, mask, pred)


def shfl_idx(
    value: Reg, lane: int | Reg, *, width: int = 32, valid: Reg | None = None, mask: Any = _ALL, pred: Any = None
) -> Reg:
    """Emit `shfl.sync.idx.b32`: return the value of one lane. Sizes as for `shfl_bfly`. `lane` counts within every
    `width` lanes."""
    return _exchange("idx", value, lane, _compute_clamp("idx", width), valid, mask, pred)


def elect(mask: Any = _ALL, *, leader: bool = True, pred: Any = None) -> Any:
    """Emit `elect.sync d|p, mask`: return the elected lane and whether it is this one; with `leader=False` only the
    latter, `elect.sync _|p, mask`."""
    pair = PipeRef(create_register(b32) if leader else None, create_register(pred_type))
    emit(spell("elect", "sync"), (pair, mask), pred)
    return pair if leader else pair.right


def _emit_vote(mode: str, value: Pred, mask: Any, pred: Pred | None) -> Reg:
    result = create_register(b32 if mode == "ballot" else pred_type)
    emit(spell("vote", "sync", mode, "b32" if mode == "ballot" else "pred"), (result, value, mask), pred)
    return result


def vote_all(value: Pred, *, mask: Any = _ALL, pred: Pred | None = None) -> Reg:
    """Emit `vote.sync.all.pred d, p, mask`; return the predicate."""
    return _emit_vote("all", value, mask, pred)


def vote_any(value: Pred, *, mask: Any = _ALL, pred: Pred | None = None) -> Reg:
    """Emit `vote.sync.any.pred d, p, mask`; return the predicate."""
    return _emit_vote("any", value, mask, pred)


def vote_uni(value: Pred, *, mask: Any = _ALL, pred: Pred | None = None) -> Reg:
    """Emit `vote.sync.uni.pred d, p, mask`: return whether all lanes agree."""
    return _emit_vote("uni", value, mask, pred)


def ballot(value: Pred, *, mask: Any = _ALL, pred: Pred | None = None) -> Reg:
    """Emit `vote.sync.ballot.b32 d, p, mask`; return the mask of the lanes whose predicate is true."""
    return _emit_vote("ballot", value, mask, pred)


def match_any(value: Reg, *, mask: Any = _ALL, pred: Pred | None = None) -> Reg:
    """Emit `match.any.sync.bN d, a, mask`; return the mask of the lanes with the same value."""
    result = create_register(b32)
    emit(spell("match", "any", "sync", to_untyped(value.dtype).name), (result, value, mask), pred)
    return result


def match_all(value: Reg, *, mask: Any = _ALL, pred: Pred | None = None) -> tuple[Reg, Reg]:
    """Emit `match.all.sync.bN d|p, a, mask`; return the mask (0 if any differs) and the predicate."""
    result, agrees = create_register(b32), create_register(pred_type)
    emit(spell("match", "all", "sync", to_untyped(value.dtype).name), (Pair(result, agrees), value, mask), pred)
    return result, agrees


def activemask() -> Reg:
    """Emit `activemask.b32 d`."""
    result = create_register(b32)
    emit(spell("activemask", "b32"), (result,))
    return result


def sync(mask: Any = _ALL, *, pred: Pred | None = None) -> None:
    """Emit `bar.warp.sync mask`."""
    emit(spell("bar", "warp", "sync"), (mask,), pred)


def redux(
    op: str,
    value: Reg,
    *,
    dst: Reg | None = None,
    abs_: bool = False,
    nan: bool = False,
    mask: Any = _ALL,
    pred: Pred | None = None,
) -> Reg:
    """Emit `redux.sync.op[.abs][.NaN].T d, a, mask`: integers, and `min`, `max` of f32 if the target has them."""
    result = create_register(value.dtype) if dst is None else dst
    emit(_spell_redux(op, value.dtype, abs_, nan), (result, value, mask), pred)
    return result


def _spell_redux(op: str, dtype: PtxType, abs_: bool = False, nan: bool = False) -> Spelling:
    word = _check_operation(op)
    kind = dtype if dtype.kind == "f" else to_untyped(dtype) if word in ("and", "or", "xor") else to_unsigned(dtype)
    return spell("redux", "sync", word, *(("abs",) if abs_ else ()), *(("NaN",) if nan else ()), kind.name)


def _check_operation(op: str) -> str:
    if op not in _OPERATIONS:
        fail(rules.ARGUMENT, f"a warp reduction is sum, max, min, and, or, xor; found {describe(op)}")
    return _OPERATIONS[op]


def _emit_butterfly(op: str, value: Any, width: int, *, direct: bool = False) -> Reg:
    """Combine each register with that of the opposite lane, halving the distance each time; all lanes end with the
    result."""
    word = _check_operation(op)
    if not isinstance(value, Reg):
        fail(rules.ARGUMENT, f"a warp reduction needs a register, found {describe(value)}")
    if direct and width == 32 and _has(_spell_redux(op, value.dtype)):
        return redux(op, value, dst=value)
    check_operand(word, value.dtype, f"reduce_{op}")
    kind = value.dtype if value.dtype.kind == "f" else to_untyped(value.dtype) if word in ("and", "or", "xor") else (
        to_unsigned(value.dtype)
    )  # fmt: skip
    _compute_clamp("bfly", width)
    distance = width // 2
    while distance:
        partner = _exchange("bfly", value, distance, 31, None, _ALL, None)
        emit(spell(word, kind.name), (value, value, partner))
        distance //= 2
    return value


@intrinsic
def reduce_sum(val: Reg, *, width: int = 32) -> Reg:
    """Sum the registers of every `width` lanes, in place, in all lanes: log2(width) times `shfl.sync.bfly.b32` and
    `add` (64 bits: two `shfl` with `mov`s around them)."""
    return _emit_butterfly("sum", val, width)


@intrinsic
def reduce_max(val: Reg, *, width: int = 32) -> Reg:
    """Compute the maximum of every `width` lanes, in place, in all lanes: like `reduce_sum`, with `max` typed by the
    register."""
    return _emit_butterfly("max", val, width)


@intrinsic
def reduce_min(val: Reg, *, width: int = 32) -> Reg:
    """Compute the minimum of every `width` lanes, in place, in all lanes: like `reduce_sum`, with `min` typed by the
    register."""
    return _emit_butterfly("min", val, width)


@intrinsic
def reduce(op: str, val: Reg, *, width: int = 32) -> Reg:
    """Reduce the registers of every `width` lanes, in place, in all lanes: by sum, max, min, and, or, xor.

    Emits one `redux.sync` for the whole warp if the target supports it for the type, else the code of `reduce_sum` with
    that operation.
    """
    return _emit_butterfly(op, val, width, direct=True)


def _has(spelling: Spelling) -> bool:
    """Tell whether the target has an instruction."""
    trace = get_trace()
    matches = lookup.find_matches(spelling.opcode, spelling.modifiers)
    return any(find_missing_requirement(match, trace.target, trace.table_version) is None for match in matches)


all_reduce, all_reduce_sum, all_reduce_max, all_reduce_min = reduce, reduce_sum, reduce_max, reduce_min


def __dir__() -> list[str]:
    return __all__
