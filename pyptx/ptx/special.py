"""Special registers: `ptx.special.laneid()`, `ptx.special.tid.x()`. The names are the table's."""

from __future__ import annotations

from difflib import get_close_matches

from pyptx.check.operands import UNDECLARED
from pyptx.dsl.emit import emit, need_special, shown, spelled
from pyptx.dsl.registers import Reg, fresh
from pyptx.dsl.trace import current, fail
from pyptx.ir.operands import RegisterOperand
from pyptx.isa.special import COMPONENTS, SPECIAL_REGISTERS, special_register


def read(name: str) -> Reg:
    """Read a special register into a fresh register: one `mov`, typed by the table."""
    trace = current()
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        fail(UNDECLARED, f"the name of a special register is a string, found {shown(name)}", help="write %tid.x")
    full = name if name.startswith("%") else f"%{name}"
    found = special_register(full)
    if found is None or (found.vector and "." not in full):
        names = [register.name for register in SPECIAL_REGISTERS]
        close = get_close_matches(full, names, 1)
        help = f"name a component: {full}.x" if found is not None else f"did you mean `{close[0]}`?" if close else None
        fail(UNDECLARED, f"`{full}` is no special register that can be read", help=help)
    need_special(trace, found)
    made = fresh(found.type)
    emit(spelled("mov", found.type.name), (made, RegisterOperand(full)), None, trace)
    return made


class Special:
    """One special register: call it, or a component of it, to read it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self) -> Reg:
        return read(self._name)

    def __getattr__(self, component: str) -> Special:
        if component not in COMPONENTS:
            raise AttributeError(f"{self._name} has no component {component!r}")
        return Special(f"{self._name}.{component}")

    def __repr__(self) -> str:
        return f"ptx.special.{self._name[1:]}"


def __getattr__(name: str) -> Special:
    if special_register(f"%{name}") is None:
        raise AttributeError(f"PTX has no special register %{name}")
    return Special(f"%{name}")


def __dir__() -> list[str]:
    return sorted(register.name[1:] for register in SPECIAL_REGISTERS)
