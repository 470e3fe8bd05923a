"""Memory barriers: `ptx.mbarrier.*`, wait loops, and rings of barriers at a user-chosen address.

`sem=` and `scope=` name the memory order; one alone implies the other's default: release for an arrival, acquire for a
wait, `cta`. With neither, no modifier is written, and PTX uses the same defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe, emit, refuse_foreign, spell
from pyptx.dsl.registers import Pred, Reg, create_register, move
from pyptx.dsl.scopes import Named, intrinsic
from pyptx.dsl.shared import check_owner, make_symbol_value, to_index32
from pyptx.dsl.trace import CURRENT, check_name, fail, get_trace
from pyptx.dsl.values import Value, is_integer
from pyptx.ir.operands import AddressOperand, Operand
from pyptx.ptx import cluster
from pyptx.ptx.loops import emit_guarded_loop
from pyptx.ptx.orders import spell_barrier_order
from pyptx.ptx.waits import WaitLoop, emit_exact_wait
from pyptx.types import b64, u32
from pyptx.types import pred as pred_type

__all__ = [
    "Barrier", "BarrierArray", "BarrierSlot", "array", "arrive", "arrive_drop", "arrive_drop_expect_tx",
    "arrive_drop_no_complete", "arrive_expect_tx", "arrive_expect_tx_mapped", "arrive_mapped", "arrive_no_complete",
    "check_layout", "complete_tx", "expect_tx", "init", "inval", "pending_count", "test_wait", "try_wait", "wait",
]  # fmt: skip


def init(mbar: Any, count: int | Reg, *, space: str = "shared::cta", pred: Pred | None = None) -> None:
    """Emit `mbarrier.init.shared::cta.b64 [m], n`. `count` counts arrivals."""
    emit(spell("mbarrier", "init", space, "b64"), (mbar, count), pred)


def inval(mbar: Any, *, space: str = "shared", pred: Pred | None = None) -> None:
    """Emit `mbarrier.inval.shared.b64 [m]`."""
    emit(spell("mbarrier", "inval", space, "b64"), (mbar,), pred)


def _emit_arrival(
    op: str,
    operands: Sequence[Any],
    sem: str | None,
    scope: str | None,
    space: str,
    pred: Pred | None,
    keep: bool = True,
) -> Any:
    spelling = spell("mbarrier", *op.split("."), *spell_barrier_order(sem, scope, "release"), space, "b64")
    state = create_register(b64) if keep else None
    emit(spelling, (state, *operands), pred)
    return state


def _append(operands: tuple[Any, ...], optional: Any) -> tuple[Any, ...]:
    return operands if optional is None else (*operands, optional)


def arrive(
    mbar: Any,
    *,
    count: int | Reg | None = None,
    sem: str | None = None,
    scope: str | None = None,
    space: str = "shared",
    state: bool = True,
    pred: Pred | None = None,
) -> Any:
    """Emit `mbarrier.arrive[.sem.scope].shared.b64 state, [m][, n]`; return the state, unless `state=False`. `count`
    counts arrivals."""
    return _emit_arrival("arrive", _append((mbar,), count), sem, scope, space, pred, state)


def arrive_expect_tx(
    mbar: Any,
    tx_count: int | Reg,
    *,
    sem: str | None = None,
    scope: str | None = None,
    space: str = "shared::cta",
    state: bool = True,
    pred: Pred | None = None,
) -> Any:
    """Emit `mbarrier.arrive.expect_tx[.sem.scope].shared::cta.b64 state, [m], bytes`; return the state, unless
    `state=False`. `tx_count` is in bytes."""
    return _emit_arrival("arrive.expect_tx", (mbar, tx_count), sem, scope, space, pred, state)


def arrive_no_complete(mbar: Any, count: int | Reg, *, pred: Pred | None = None) -> Reg:
    """Emit `mbarrier.arrive.noComplete.shared.b64 state, [m], n`: it must not complete the phase. `count` counts
    arrivals."""
    return _emit_arrival("arrive.noComplete", (mbar, count), None, None, "shared", pred)


def arrive_drop(
    mbar: Any,
    *,
    count: int | Reg | None = None,
    sem: str | None = None,
    scope: str | None = None,
    pred: Pred | None = None,
) -> Reg:
    """Emit `mbarrier.arrive_drop[.sem.scope].shared.b64 state, [m][, n]`: arrive, and leave the barrier for later
    phases. `count` counts arrivals."""
    return _emit_arrival("arrive_drop", _append((mbar,), count), sem, scope, "shared", pred)


def arrive_drop_expect_tx(
    mbar: Any,
    tx_count: int | Reg,
    *,
    sem: str | None = None,
    scope: str | None = None,
    pred: Pred | None = None,
) -> Reg:
    """Emit `mbarrier.arrive_drop.expect_tx[.sem.scope].shared::cta.b64 state, [m], bytes`; return the state. `tx_count`
    is in bytes."""
    return _emit_arrival("arrive_drop.expect_tx", (mbar, tx_count), sem, scope, "shared::cta", pred)


def arrive_drop_no_complete(mbar: Any, count: int | Reg, *, pred: Pred | None = None) -> Reg:
    """Emit `mbarrier.arrive_drop.noComplete.shared.b64 state, [m], n`: it must not complete the phase. `count` counts
    arrivals."""
    return _emit_arrival("arrive_drop.noComplete", (mbar, count), None, None, "shared", pred)


def arrive_mapped(
    address: Any,
    *,
    count: int | Reg | None = None,
    sem: str | None = None,
    scope: str | None = None,
    pred: Pred | None = None,
) -> None:
    """Emit `mbarrier.arrive[.sem.scope].shared::cluster.b64 _, [address][, n]`: the barrier of any CTA of the cluster,
    by an address from `ptx.cluster.map_shared_u32`. `count` counts arrivals."""
    _emit_arrival("arrive", _append((address,), count), sem, scope, "shared::cluster", pred, keep=False)


def arrive_expect_tx_mapped(
    address: Any,
    tx_count: int | Reg,
    *,
    sem: str | None = None,
    scope: str | None = None,
    pred: Pred | None = None,
) -> None:
    """Emit `mbarrier.arrive.expect_tx[.sem.scope].shared::cluster.b64 _, [address], bytes`. `tx_count` is in bytes."""
    _emit_arrival("arrive.expect_tx", (address, tx_count), sem, scope, "shared::cluster", pred, keep=False)


def expect_tx(mbar: Any, tx_count: int | Reg, *, space: str = "shared", pred: Pred | None = None) -> None:
    """Emit `mbarrier.expect_tx.shared.b64 [m], bytes`, which is relaxed. For a mapped address,
    `space="shared::cluster"`. `tx_count` is in bytes."""
    emit(spell("mbarrier", "expect_tx", space, "b64"), (mbar, tx_count), pred)


def complete_tx(mbar: Any, tx_count: int | Reg, *, space: str = "shared", pred: Pred | None = None) -> None:
    """Emit `mbarrier.complete_tx.shared.b64 [m], bytes`, as an asynchronous copy does; it is relaxed. `tx_count` is in
    bytes."""
    emit(spell("mbarrier", "complete_tx", space, "b64"), (mbar, tx_count), pred)


def pending_count(state: Reg) -> Reg:
    """Emit `mbarrier.pending_count.b64 n, state`; return the count."""
    result = create_register(u32)
    emit(spell("mbarrier", "pending_count", "b64"), (result, state))
    return result


def check_layout(mbar: Any, layout: str, *, pred: Pred | None = None) -> Reg:
    """Emit `mbarrier.check_layout.layout::v0.shared.b64 p, [m]`, or `v1`; return the predicate."""
    result = create_register(pred_type)
    emit(spell("mbarrier", "check_layout", f"layout::{layout}", "shared", "b64"), (result, mbar), pred)
    return result


def try_wait(
    mbar: Any,
    phase: Reg | int,
    *,
    parity: bool = True,
    suspend_hint: int | Reg | None = None,
    sem: str | None = None,
    scope: str | None = None,
    space: str = "shared",
    pred: Pred | None = None,
) -> Reg:
    """Emit `mbarrier.try_wait[.parity][.sem.scope].shared.b64 p, [m], phase[, nanoseconds]`; return the predicate.

    It may be false at any time: use it in a loop, or call `wait`. Without `parity`, `phase` is the state of an arrival.
    """
    return _emit_wait("try_wait", _append((mbar, phase), suspend_hint), parity, sem, scope, space, pred)


def test_wait(
    mbar: Any,
    phase: Reg | int,
    *,
    parity: bool = True,
    sem: str | None = None,
    scope: str | None = None,
    space: str = "shared",
    pred: Pred | None = None,
) -> Reg:
    """Emit `mbarrier.test_wait[.parity][.sem.scope].shared.b64 p, [m], phase`: does not block; return the predicate."""
    return _emit_wait("test_wait", (mbar, phase), parity, sem, scope, space, pred)


def _emit_wait(
    op: str, operands: tuple[Any, ...], parity: bool, sem: str | None, scope: str | None, space: str, pred: Pred | None
) -> Reg:
    words = (op, *(("parity",) if parity else ()), *spell_barrier_order(sem, scope, "acquire"))
    flag = create_register(pred_type)
    emit(spell("mbarrier", *words, space, "b64"), (flag, *operands), pred)
    return flag


@intrinsic
def wait(
    mbar: Any,
    phase: Reg | int,
    *,
    sem: str | None = None,
    scope: str | None = None,
    pred: Pred | None = None,
    labels: Sequence[str] = (),
    predicate: Reg | str | None = None,
    space: str = "shared",
    suspend_hint: int | Reg | None = None,
    uni: bool = False,
    loop: WaitLoop | None = None,
) -> None:
    """Wait until the phase has completed: a label, `mbarrier.try_wait.parity`, a branch back while it is false.

    A false `pred` skips the whole loop: a branch before it, a label after it. In an exact transcript, `labels` are the
    one or two labels of the loop, and `predicate` is its flag: a register, or the name of one to declare in a block
    around the loop; by default a new one. `loop` sets all of these together.
    """
    if loop is not None:
        labels, predicate, space, uni, sem, scope = loop
    if labels:
        order = [word for word in (sem, scope) if word is not None]
        emit_exact_wait(mbar, phase, order=order, space=space, suspend_hint=suspend_hint, predicate=predicate,
                   labels=labels, uni=uni)  # fmt: skip
        return
    emit_guarded_loop("mbarrier_wait", pred, lambda: ~try_wait(mbar, phase, sem=sem, scope=scope))


class Barrier(Value):
    """One barrier as an object with the functions of `ptx.mbarrier` as methods. Subclasses know its address."""

    # The methods list their arguments: the functions have more, for mapped addresses and for transcripts.

    def __describe__(self) -> str:
        return f"`{self!r}` is a barrier"

    def __alternative__(self) -> str:
        return "its methods use it: arrive(), wait(phase), try_wait(phase)"

    def address_operand(self) -> AddressOperand:
        """Return its address in brackets."""
        address = self.__address__()
        assert isinstance(address, AddressOperand)
        return address

    def init(self, count: int | Reg, *, pred: Pred | None = None) -> None:
        """Emit what `ptx.mbarrier.init` emits."""
        init(self, count, pred=pred)

    def wait(
        self, phase: Reg | int, *, sem: str | None = None, scope: str | None = None, pred: Pred | None = None
    ) -> None:
        """Emit what `ptx.mbarrier.wait` emits."""
        wait(self, phase, sem=sem, scope=scope, pred=pred)

    def try_wait(
        self, phase: Reg | int, *, sem: str | None = None, scope: str | None = None, pred: Pred | None = None
    ) -> Reg:
        """Emit what `ptx.mbarrier.try_wait` emits."""
        return try_wait(self, phase, sem=sem, scope=scope, pred=pred)

    def test_wait(
        self, phase: Reg | int, *, sem: str | None = None, scope: str | None = None, pred: Pred | None = None
    ) -> Reg:
        """Emit what `ptx.mbarrier.test_wait` emits."""
        return test_wait(self, phase, sem=sem, scope=scope, pred=pred)

    def arrive(
        self,
        *,
        count: int | Reg | None = None,
        sem: str | None = None,
        scope: str | None = None,
        pred: Pred | None = None,
    ) -> Reg:
        """Emit what `ptx.mbarrier.arrive` emits."""
        return arrive(self, count=count, sem=sem, scope=scope, pred=pred)

    def expect_tx(self, tx_count: int | Reg, *, pred: Pred | None = None) -> None:
        """Emit what `ptx.mbarrier.expect_tx` emits."""
        expect_tx(self, tx_count, pred=pred)

    def inval(self, *, pred: Pred | None = None) -> None:
        """Emit what `ptx.mbarrier.inval` emits."""
        inval(self, pred=pred)

    def arrive_expect_tx(
        self, tx_count: int | Reg, *, sem: str | None = None, scope: str | None = None, pred: Pred | None = None
    ) -> Reg:
        """Emit what `ptx.mbarrier.arrive_expect_tx` emits."""
        return arrive_expect_tx(self, tx_count, sem=sem, scope=scope, pred=pred)

    def arrive_remote(
        self,
        cta_id: Reg | int,
        count: Reg | int = 1,
        *,
        sem: str | None = None,
        scope: str | None = None,
        pred: Pred | None = None,
    ) -> None:
        """Emit what `ptx.cluster.arrive_remote` emits."""
        cluster.arrive_remote(self, cta_id, count, sem=sem, scope=scope, pred=pred)


class BarrierSlot(Barrier):
    """One barrier of a ring: a symbol or a register plus a byte offset. An operand like `bars[i]`."""

    def __init__(self, base: str | Reg, offset: int, byte_offset: int) -> None:
        self._base, self._offset = base, offset
        self.byte_offset = byte_offset
        """Offset from the base of the ring; for a slot selected by a register, the offset of the first barrier."""

    @property
    def name(self) -> str:
        """The symbol or register at the base of the address."""
        return self._base if isinstance(self._base, str) else self._base.name

    def __operand__(self) -> Operand:
        if isinstance(self._base, str):
            return make_symbol_value(self._base, self._offset)
        if self._offset:
            fail(rules.OPERAND, f"this barrier is {self._offset} bytes after `{self.name}`; no register holds it",
                 help="use slot.addr_reg(), which adds the offset")  # fmt: skip
        return self._base.__operand__()

    def __address__(self) -> Operand:
        return self.address_operand()

    def address_operand(self) -> AddressOperand:
        """Return `[base+offset]`."""
        if isinstance(self._base, Reg) and self._base.__trace__ is not get_trace():
            refuse_foreign(self._base)
        return AddressOperand(self.name, str(self._offset) if self._offset else None)

    def __single__(self) -> Value:
        return self.addr_reg()

    def addr_reg(self) -> Reg:
        """Return a register with the address: a `mov` of a symbol, an `add` to a register, or nothing for an offset of
        0."""
        if isinstance(self._base, str):
            result = create_register(u32)
            move(result, make_symbol_value(self._base, self._offset))
            return result
        return self._base + self._offset if self._offset else self._base

    address = addr_reg

    def __repr__(self) -> str:
        return f"BarrierSlot({self.name}+{self._offset})"


class BarrierArray:
    """Consecutive barriers of 8 bytes each, starting at a base."""

    def __init__(self, base: str | Reg, byte_offset: int, count: int) -> None:
        self._base, self.byte_offset, self.count = base, byte_offset, count
        self.__trace__ = CURRENT.get() if isinstance(base, str) else None

    @property
    def name(self) -> str:
        """The symbol or register at the base of the addresses."""
        return self._base if isinstance(self._base, str) else self._base.name

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[BarrierSlot]:
        return iter([self[index] for index in range(self.count)])

    def __getitem__(self, idx: int | Reg) -> BarrierSlot:
        check_owner(self.__trace__, self.name)
        if isinstance(idx, Reg):
            return self._select(idx)
        if not is_integer(idx) or not -self.count <= idx < self.count:
            fail(rules.INDEX, f"the ring at `{self.name}` has barriers 0 to {self.count - 1}, found {describe(idx)}")
        offset = self.byte_offset + 8 * (idx % self.count)
        return BarrierSlot(self._base, offset, offset)

    def at(self, stage: int | Reg) -> BarrierSlot:
        """Return the barrier of a stage. A register stage emits a scope `barrier_at`: a `mad` on the base register,
        preceded by a `mov` if the base is a symbol."""
        return self[stage]

    def _select(self, stage: Reg) -> BarrierSlot:
        with Named("barrier_at", f"{self.name}, {stage.name}"):
            narrow, base, offset = to_index32(stage), self._base, self.byte_offset
            if isinstance(base, str):
                first = create_register(u32)
                move(first, make_symbol_value(base, offset))
                base, offset = first, 0
            wide = base.dtype.bits == 64
            address = create_register(base.dtype)
            emit(spell("mad", "wide" if wide else "lo", "u32"), (address, narrow, 8, base))
        return BarrierSlot(address, offset, self.byte_offset)

    @intrinsic
    def init_all(self, count: int | Reg, *, pred: Pred | None = None) -> None:
        """Initialize every barrier for `count` arrivals with one `mbarrier.init` each."""
        for index in range(self.count):
            init(self[index], count, pred=pred)

    def arrive_remote_all(
        self,
        cta_id: Reg | int,
        count: Reg | int = 1,
        *,
        sem: str | None = None,
        scope: str | None = None,
        pred: Pred | None = None,
    ) -> None:
        """Arrive at every barrier of the ring in another CTA: the same as `ptx.cluster.arrive_remote` for each. `count`
        counts arrivals at each."""
        with Named("arrive_remote_all", f"{self.name}, {self.count}"):
            for index in range(self.count):
                cluster.arrive_remote(self[index], cta_id, count, sem=sem, scope=scope, pred=pred)

    def __repr__(self) -> str:
        return f"BarrierArray({self.name}+{self.byte_offset}, {self.count})"


def array(base: Any, byte_offset: int, count: int) -> BarrierArray:
    """Return a ring of `count` barriers, `byte_offset` bytes after a base: a register, a symbol, an allocation."""
    if not is_integer(count, 1):
        fail(rules.ARGUMENT, f"expected the number of barriers, found {describe(count)}")
    if not is_integer(byte_offset) or byte_offset % 8:
        fail(rules.ARGUMENT, f"a barrier offset must be a multiple of 8 bytes, found {describe(byte_offset)}")
    begins = base.__ring_base__() if isinstance(base, Value) else None
    if begins is not None:
        base, byte_offset = begins[0], byte_offset + begins[1]
    if isinstance(base, str):
        check_name(base, symbol=True)
        return BarrierArray(base, byte_offset, count)
    if not isinstance(base, Reg) or base.dtype.kind not in "bus" or base.dtype.bits not in (32, 64):
        fail(rules.ARGUMENT, "the base of a ring must be a 32- or 64-bit register, a symbol or an allocation, found "
                             f"{describe(base)}",
                             help="use ptx.mbarrier.array(smem.base(), offset, count)")  # fmt: skip
    if base.__trace__ is not get_trace():
        refuse_foreign(base)
    return BarrierArray(base, byte_offset, count)


def __dir__() -> list[str]:
    return __all__
