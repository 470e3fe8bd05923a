"""How registers enter a trace: their names and declarations. Does not know `Reg`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from pyptx.dsl.trace import Trace, prefix_name
from pyptx.dsl.values import Register, choose_storage, make_symbol
from pyptx.types import PtxType

R = TypeVar("R", bound=Register)


def declare_register(make: Callable[[str, PtxType], R], dtype: PtxType, name: str | None, trace: Trace) -> R:
    """Return a new register of the trace, built by `make` with a unique name."""
    user_name = None if trace.exact is None else trace.exact.take(dtype)
    if user_name is not None:
        return make(user_name, dtype)
    letter, storage_type = choose_storage(dtype)
    if name is None:
        full = trace.declarations.generate_name(letter, storage_type)
    else:
        full = trace.choose_name(prefix_name(name), "reg")
        trace.declarations.named.append((storage_type, full))
    trace.scope.put(full, make_symbol(dtype))
    register = make(full, dtype)
    if trace.declarations is not trace.top:
        trace.declarations.owned.append(register)
    return register


def create_peer(register: Register, dtype: PtxType, trace: Trace) -> Any:
    """Return a new register of the same class as another one."""
    return declare_register(cast("Callable[[str, PtxType], Register]", type(register)), dtype, None, trace)
