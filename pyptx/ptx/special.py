"""Special registers: `ptx.special.laneid()`, `ptx.special.tid.x()`. The names come from the table; special.pyi declares
them for editors."""

from __future__ import annotations

from pyptx.dsl.registers import Reg
from pyptx.isa.special import COMPONENTS, SPECIAL_REGISTERS, find_special_register
from pyptx.ptx.scalar import sreg


class Special:
    """One special register: call it, or a component of it, to read it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self) -> Reg:
        return sreg(self._name)

    def __getattr__(self, component: str) -> Special:
        if component not in COMPONENTS:
            raise AttributeError(f"{self._name} has no component {component!r}")
        return Special(f"{self._name}.{component}")

    def __dir__(self) -> list[str]:
        register = find_special_register(self._name)
        return list(COMPONENTS) if register is not None and register.vector and "." not in self._name else []

    def __repr__(self) -> str:
        return f"ptx.special.{self._name[1:]}"


def __getattr__(name: str) -> Special:
    if find_special_register(f"%{name}") is None:
        raise AttributeError(f"PTX has no special register %{name}")
    return Special(f"%{name}")


def __dir__() -> list[str]:
    return sorted(register.name[1:] for register in SPECIAL_REGISTERS)
