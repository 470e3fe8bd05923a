"""The 32-bit instruction descriptor of `tcgen05.mma`: shapes, types, transposition ("Instruction descriptor"), and
their legal combinations (the tables of "Matrix Shape" and "Transpose and Negate operations")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyptx.isa.descriptors.fields import Fields, mask, pack_attributes, unpack
from pyptx.types import PtxType, from_name

KINDS = ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
_BLOCK_SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")
_SIGNS: Fields = {
    "negate_a": (13, 1),
    "negate_b": (14, 1),
    "transpose_a": (15, 1),
    "transpose_b": (16, 1),
    "n": (17, 6),
}
_PLAIN: Fields = {
    "sparsity_selector": (0, 2), "sparse": (2, 1), "saturate": (3, 1), "d": (4, 2), "a": (7, 3), "b": (10, 3), **_SIGNS,
    "m": (24, 5), "max_shift": (30, 2),
}  # fmt: skip
_SCALED: Fields = {
    "sparse": (2, 1), "b_scale_id": (4, 2), "a": (7, 3), "b": (10, 3), **_SIGNS, "scale": (23, 1), "m": (27, 2),
    "a_scale_id": (29, 2),
}  # fmt: skip
_FP4: Fields = {**_SCALED, "b": (10, 2), "k96": (31, 1)}
_SMALL_FLOATS = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
_INPUTS: dict[str, dict[str, int]] = {
    "f16": {"f16": 0, "bf16": 1}, "tf32": {"tf32": 2}, "f8f6f4": _SMALL_FLOATS, "i8": {"u8": 0, "s8": 1},
    "mxf8f6f4": _SMALL_FLOATS, "mxf4": {"e2m1": 1}, "mxf4nvf4": {"e2m1": 1},
}  # fmt: skip
_OUTPUTS: dict[str, dict[str, int]] = {
    "f16": {"f16": 0, "f32": 1}, "tf32": {"f32": 1}, "f8f6f4": {"f16": 0, "f32": 1}, "i8": {"s32": 2},
    "mxf8f6f4": {"f32": 0}, "mxf4": {"f32": 0}, "mxf4nvf4": {"f32": 0},
}  # fmt: skip
_SCALES: dict[str, dict[str, int]] = {
    "mxf8f6f4": {"ue8m0": 1}, "mxf4": {"ue8m0": 1}, "mxf4nvf4": {"ue4m3": 0, "ue8m0": 1},
}  # fmt: skip
_DENSE_K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
SHIFTS = (0, 8, 16, 32)
"""Columns of the maximum shift of B, by code."""


@dataclass(frozen=True, slots=True)
class InstructionDescriptor:
    """The operation of one `tcgen05.mma`. `max_shift` is in columns (`.ws` only); scale-factor ids are bytes of a word.
    Without `scale` a block-scaled kind uses ue8m0, mxf4nvf4 ue4m3."""

    kind: str
    m: int
    n: int
    a: PtxType
    b: PtxType
    d: PtxType
    transpose_a: bool = False
    transpose_b: bool = False
    negate_a: bool = False
    negate_b: bool = False
    sparse: bool = False
    sparsity_selector: int = 0
    saturate: bool = False
    max_shift: int = 0
    scale: PtxType | None = None
    a_scale_id: int = 0
    b_scale_id: int = 0
    k96: bool = False

    @property
    def k(self) -> int:
        """The K of the operation, determined by the kind and the sparsity."""
        return 96 if self.k96 else _DENSE_K[_check_kind(self.kind)] * (2 if self.sparse else 1)

    def encode(self) -> int:
        """Return the 32 bits; ValueError for values that they cannot encode."""
        fields, low = _list_fields(self.kind), 7 if self.kind in _BLOCK_SCALED else 4
        if self.n % 8 or self.m % (1 << low):
            raise ValueError(
                f"for kind {self.kind}, M must be a multiple of {1 << low} and N a multiple of 8, got {self.m} "
                f"and {self.n}"
            )
        codes = {"m": self.m >> low, "n": self.n >> 3}
        codes |= {"a": self._find_code(_INPUTS, self.a, "A"), "b": self._find_code(_INPUTS, self.b, "B")}
        codes["d"] = self._find_code(_OUTPUTS, self.d, "D")
        if "scale" in fields:
            default = next(iter(_SCALES[self.kind].values()))
            codes["scale"] = self._find_code(_SCALES, self.scale, "scale factor") if self.scale else default
        if "max_shift" in fields:
            if self.max_shift not in SHIFTS:
                raise ValueError(f"the maximum shift must be 0, 8, 16 or 32 columns, got {self.max_shift}")
            codes["max_shift"] = SHIFTS.index(self.max_shift)
        return pack_attributes(fields, codes, self)

    @staticmethod
    def decode(kind: str, bits: int) -> InstructionDescriptor:
        """Return the descriptor encoded in these 32 bits for this kind; ValueError for a reserved bit that is not 0 and
        for type codes that the kind does not have."""
        fields = _list_fields(kind)
        if stray := bits & ~mask(fields):
            raise ValueError(f"an instruction descriptor of kind {kind} must have 0 in bits {stray:#x}")
        codes = unpack(fields, bits)
        values: dict[str, Any] = {name: bool(code) if fields[name][1] == 1 else code for name, code in codes.items()}
        values |= {"m": codes["m"] << (7 if kind in _BLOCK_SCALED else 4), "n": codes["n"] << 3}
        values |= {name: _find_type(_INPUTS[kind], codes[name], name.upper()) for name in ("a", "b")}
        values["d"] = _find_type(_OUTPUTS[kind], codes.get("d", 0), "D")
        if "scale" in fields:
            values["scale"] = _find_type(_SCALES[kind], codes["scale"], "scale factor")
        if "max_shift" in fields:
            values["max_shift"] = SHIFTS[codes["max_shift"]]
        return InstructionDescriptor(kind, **values)

    def problems(self, *, cta_group: int = 1, ws: bool = False) -> list[str]:
        """Return why the manual's tables do not allow this operation, each reason as a sentence."""
        return [*_find_shape_problems(self, cta_group, ws), *_find_option_problems(self, cta_group, ws)]

    def _find_code(self, table: dict[str, dict[str, int]], dtype: PtxType, operand: str) -> int:
        codes = table[self.kind]
        if dtype.name not in codes:
            raise ValueError(f"{operand} of kind {self.kind} must be {' or '.join(codes)}, not {dtype}")
        return codes[dtype.name]


def _check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"tcgen05.mma has no kind {kind!r}; the kinds are {', '.join(KINDS)}")
    return kind


def _list_fields(kind: str) -> Fields:
    return {"mxf8f6f4": _SCALED, "mxf4": _FP4, "mxf4nvf4": _FP4}.get(_check_kind(kind), _PLAIN)


def _find_type(codes: dict[str, int], code: int, operand: str) -> PtxType:
    for name, number in codes.items():
        if number == code:
            return from_name(name)
    raise ValueError(f"no type of {operand} has the code {code}; known: {codes}")


def _list_shapes(kind: str, cta_group: int, ws: bool, sparse: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the allowed M and N, both empty if the combination does not exist."""
    is_scaled = kind in _BLOCK_SCALED
    if ws:
        valid = cta_group == 1 and not is_scaled
        return ((32, 64, 128), (64, 128) if sparse else (64, 128, 256)) if valid else ((), ())
    if cta_group == 2:
        rows = (256,) if is_scaled and sparse else (128, 256)
        return rows, tuple(range(32, 257, 32)) if kind == "i8" else tuple(range(16, 257, 16))
    columns = (8, 16, 24, *range(32, 257, 16)) if kind == "i8" else tuple(range(8, 257, 8))
    return ((128,) if is_scaled else (64, 128)), columns


def _find_shape_problems(op: InstructionDescriptor, cta_group: int, ws: bool) -> Iterator[str]:
    rows, columns = _list_shapes(_check_kind(op.kind), cta_group, ws, op.sparse)
    mode = f"kind {op.kind}{' .ws' if ws else ''} in cta_group {cta_group}{', sparse' if op.sparse else ''}"
    if not rows:
        yield f"{mode} does not exist"
        return
    if op.m not in rows:
        yield f"{mode} has M = {' or '.join(map(str, rows))}, not {op.m}"
    if op.n not in columns:
        first, second, last = columns[0], columns[1], columns[-1]
        choices = ", ".join(map(str, columns)) if len(columns) <= 3 else f"{first}, {second} … {last}"
        yield f"{mode} has N = {choices}, not {op.n}"
    step = 16 * cta_group
    if op.transpose_b and op.b.bits == 8 and op.n % step:
        yield f"a transposed 8-bit B needs N in steps of {step} in cta_group {cta_group}, not {op.n}"


def _find_option_problems(op: InstructionDescriptor, cta_group: int, ws: bool) -> Iterator[str]:
    for name, transpose, dtype in (("A", op.transpose_a, op.a), ("B", op.transpose_b, op.b)):
        if transpose and (op.kind in ("mxf4", "mxf4nvf4") or dtype.bits < 8):
            yield f"{name} of type {dtype} cannot be transposed in kind {op.kind}"
    if op.kind == "i8" and (op.negate_a or op.negate_b):
        yield "kind i8 cannot negate integers"
    if op.saturate and op.kind != "i8":
        yield f"only kind i8 saturates, not {op.kind}"
    if op.sparsity_selector and not op.sparse:
        yield "the sparsity selector needs a sparse A"
    if op.max_shift and not ws:
        yield "the maximum shift needs `.ws`"
    if op.kind in ("mxf4", "mxf4nvf4") and not op.k96 and (op.a_scale_id | op.b_scale_id) & 1:
        yield f"scale factor ids of kind {op.kind} must be 0 or 2"
    if op.k96 and (op.sparse or op.kind not in ("mxf4", "mxf4nvf4")):
        yield "K = 96 needs dense mxf4 or mxf4nvf4"
