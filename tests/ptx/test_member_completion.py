"""Completion in editors on a register, an allocation, a barrier offers the public interface and nothing else."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import pytest

from pyptx.dsl.tensors import TensorSpec
from pyptx.dsl.values import Value
from pyptx.ptx import mbarrier
from pyptx.reg import NegPred, PipeRef, Reg, RegArray
from pyptx.smem import MbarrierArray, MbarrierRef, SharedAlloc, SharedSlice

VIEWS = "b16 u16 s16 b32 u32 s32 b64 u64 s64 f16 bf16 f16x2 bf16x2 f32 f64"
BARRIER = (
    "address addr_reg address_operand arrive arrive_expect_tx arrive_remote byte_offset expect_tx init inval name "
    "test_wait try_wait wait"
)
SHARED = "address byte_offset dtype k_offset max min name register shape swizzled"
OFFERED: list[tuple[type[object], str]] = [
    (Reg, f"dtype max min name view {VIEWS}"),
    (RegArray, "base count dtype hw_order regs"),
    (NegPred, "reg"),
    (PipeRef, "left right"),
    (SharedAlloc, f"{SHARED} gmma_layout gmma_major size swizzle"),
    (SharedSlice, f"{SHARED} alloc size stage"),
    (MbarrierArray, "address byte_offset count name"),
    (MbarrierRef, f"{BARRIER} array idx register"),
    (mbarrier.BarrierSlot, BARRIER),
    (TensorSpec, "dtype layout name rank shape tile tma_desc"),
]


def _members(owner: type[object]) -> Iterator[str]:
    """Return the names that a class declares: in its body, and in its methods by `self.x = …`."""
    (body,) = ast.parse(inspect.getsource(owner)).body
    for node in ast.walk(body):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr
    assert isinstance(body, ast.ClassDef)
    for statement in body.body:
        if isinstance(statement, ast.FunctionDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


@pytest.mark.parametrize(("owner", "names"), OFFERED, ids=lambda value: getattr(value, "__name__", ""))
def test_an_object_offers_its_interface_only(owner: type[object], names: str) -> None:
    classes = [base for base in owner.__mro__ if issubclass(base, Value)]
    read = {name for base in classes for name in _members(base) if not name.startswith("_")}
    assert read == set(names.split())
    assert {name for name in dir(owner) if not name.startswith("_")} <= read
