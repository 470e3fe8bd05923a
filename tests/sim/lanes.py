"""Runs a few instructions on arrays, one element per thread; a helper for the tests of semantics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.base.formats import Value

Array = NDArray[Any]
_REGISTER = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


def compute(
    code: str, inputs: Mapping[str, Array], outputs: Mapping[str, Any], *, target: str = "sm_100a",
    version: str = "8.8", declare: str = "", block: int = 128,
) -> dict[str, Array]:  # fmt: skip
    """Run code in which `%name` is each input's and output's register; return the outputs."""
    count = len(next(iter(inputs.values())))
    arrays: dict[str, Array] = {name: np.ascontiguousarray(value) for name, value in inputs.items()}
    arrays |= {name: np.zeros(count, dtype) for name, dtype in outputs.items()}
    regs = "\n".join(f".reg .{_REGISTER[a.dtype.itemsize]} %{n};" for n, a in arrays.items())
    params = ", ".join(f".param .u64 p_{name}" for name in arrays)
    before = "\n".join(_move("ld", name, arrays[name]) for name in inputs)
    after = "\n".join(_move("st", name, arrays[name]) for name in outputs)
    text = f""".version {version}
.target {target}
.address_size 64
.visible .entry k({params}, .param .u32 n)
{{
{regs}
.reg .b32 %__i, %__t; .reg .b64 %__a; .reg .pred %__p; .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
{declare}
mov.u32 %__i, %ctaid.x;
mov.u32 %__t, %ntid.x;
mul.lo.u32 %__i, %__i, %__t;
mov.u32 %__t, %tid.x;
add.u32 %__i, %__i, %__t;
ld.param.u32 %__t, [n];
setp.ge.u32 %__p, %__i, %__t;
@%__p exit;
{before}
{code}
{after}
ret;
}}
"""
    sim.run(parse(text), grid=-(-count // block), block=block, args=(*arrays.values(), count))
    return {name: arrays[name] for name in outputs}


def _move(opcode: str, name: str, array: Array) -> str:
    size = array.dtype.itemsize
    address = f"ld.param.u64 %__a, [p_{name}];\nmad.wide.u32 %__a, %__i, {size}, %__a;\n"
    kind = "u8" if size == 1 else _REGISTER[size]
    return address + (f"ld.global.{kind} %{name}, [%__a];" if opcode == "ld" else f"st.global.{kind} [%__a], %{name};")


def integers(dtype: Value, count: int = 1000, seed: int = 0) -> Array:
    """Return boundary values, small ones and random ones of an integer type."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    edges = [info.min, info.min + 1, -1 % (info.max + 1), 0, 1, 2, info.max - 1, info.max, info.max // 2]
    random = rng.integers(info.min, info.max, count - len(edges) - 100, dtype, endpoint=True)
    values = np.concatenate([np.array(edges, dtype), rng.integers(0, 70, 100).astype(dtype), random])
    rng.shuffle(values)
    return values


def floats(dtype: Value, count: int = 1000, seed: int = 0) -> Array:
    """Return special values, values of every exponent, and values near one."""
    rng = np.random.default_rng(seed)
    size = np.dtype(dtype).itemsize
    tiny = np.finfo(dtype).tiny
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, tiny, -tiny, tiny / 2, tiny / 4, np.finfo(dtype).max]
    bits = np.frombuffer(rng.bytes(size * (count // 2)), f"u{size}").view(dtype)
    near = rng.standard_normal(count - len(bits) - len(edges)).astype(dtype)
    values = np.concatenate([np.array(edges, dtype), bits, near])
    rng.shuffle(values)
    return values
