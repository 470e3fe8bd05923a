"""A wrapper call for every spelling of the tensor-core instructions in the table, derived from the spelling alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyptx import ptx, reg
from pyptx.isa import lookup
from pyptx.isa.model import Kind, Match, Operand
from pyptx.isa.table import matrix_move, mma, tcgen05, tcgen05_mma, wgmma
from pyptx.isa.targets import ASSEMBLED, FIRST_PTX, NEWEST_PTX, find_target
from pyptx.types import ALL, from_name

TYPES = {t.name for t in ALL}
ROWS = (*wgmma.FORMS, *mma.FORMS, *tcgen05.FORMS, *tcgen05_mma.FORMS, *matrix_move.FORMS)


class Registers:
    """Registers of a kernel by type, created on first use."""

    def __init__(self) -> None:
        self.by_type: dict[str, Any] = {}
        self.turn = 0

    def of(self, name: str, count: int = 0) -> Any:
        """Return one register, or the first `count` of a range."""
        key = name if not count else f"{name}*"
        if key not in self.by_type:
            self.by_type[key] = reg.array(from_name(name), 256) if count else reg.alloc(from_name(name))
        return self.by_type[key][:count] if count else self.by_type[key]

    def next(self, *values: Any) -> Any:
        """Return the values in turn, one per call."""
        self.turn += 1
        return values[self.turn % len(values)]

    def value(self, operand: Operand) -> Any:
        """Return an operand for a position: registers, or a number within its bounds."""
        if operand.kind is Kind.ADDRESS:
            return self.of("u32")
        if operand.kind is Kind.IMMEDIATE:
            low, high, step = operand.bounds or (0, 64, 1)
            return self.next(low, min(high, low + 64 * step) // step * step)
        assert operand.type is not None, operand
        if operand.type == "pred":
            return self.next(self.of("pred"), ~self.of("pred"), True, False)
        return self.of(operand.type, operand.count)


@dataclass(frozen=True)
class Call:
    """A spelling, its targets, the group of calls that can share a kernel, and the call that should emit it."""

    spelling: str
    targets: tuple[str, ...]
    group: str
    make: Callable[[Registers], None]


Signature = dict[str, Operand]


def wgmma_call(words: list[str], form: Signature) -> Callable[[Registers], None]:
    """Return the call of `wgmma.…`."""
    if words[0] != "mma_async":
        wrapper = getattr(ptx.wgmma, words[0])
        return lambda r: wrapper(*(r.value(operand) for operand in form.values()))
    d, a, b = (from_name(word) for word in words if word in TYPES)
    shape = _shape(words)

    def make(r: Registers) -> None:
        values = {name: r.value(operand) for name, operand in form.items()}
        keyword_of = {"meta": "sparse_metadata", "selector": "sparsity_selector"}
        keyword_of |= {"transpose_a": "trans_a", "transpose_b": "trans_b"}
        if "scale_a" in values:
            values |= {"scale_a": r.next(1, -1), "scale_b": r.next(1, 1, -1)}
        options: dict[str, Any] = {keyword_of.get(name, name): value for name, value in values.items()}
        options |= {"satfinite": True} if "satfinite" in words else {}
        ptx.wgmma.mma_async(shape=shape, dtype_d=d, dtype_a=a, dtype_b=b, **options)

    return make


def _word(words: list[str], name: str, pattern: str, read: Callable[[str], Any] = str) -> dict[str, Any]:
    """Return an option with the pattern's group in the one modifier that it matches, or nothing if it matches none."""
    matches = [match[1] for word in words if (match := re.fullmatch(pattern, word))]
    return {name: read(matches[0])} if matches else {}


def _shape(words: list[str]) -> tuple[int, int, int]:
    word = next(w for w in words if w[0] == "m" and w[1:].replace("n", "").replace("k", "").isdigit())
    m, n, k = (int(part) for part in word[1:].replace("n", "k").split("k"))
    return m, n, k


def mma_call(words: list[str], form: Signature) -> Callable[[Registers], None]:
    """Return the call of `mma.…`."""
    types = [from_name(word) for word in words if word in TYPES]
    options: dict[str, Any] = dict(
        zip(("dtype_d", "dtype_a", "dtype_b", "dtype_c", "scale_dtype"), types, strict=False)
    )
    layouts = [word for word in words if word in ("row", "col")]
    options |= {"shape": _shape(words), "a_layout": layouts[0], "b_layout": layouts[1]}
    options |= _word(words, "kind", r"kind::(.*)")
    options |= _word(words, "scale_vec", r"scale_vec::(.)X", int)
    options |= _word(words, "rounding", r"(r[nzmp])")
    options |= _word(words, "bit_op", r"(xor|and)")
    options |= {"satfinite": True} if "satfinite" in words else {}
    options |= {"ordered_metadata": False} if "sp" in words else {}
    keyword_of = {
        "meta": "sparse_metadata", "selector": "sparsity_selector", "which_a": "scale_a_id", "which_b": "scale_b_id",
    }  # fmt: skip

    def make(r: Registers) -> None:
        values: dict[str, Any] = {keyword_of.get(name, name): r.value(operand) for name, operand in form.items()}
        if "scale_a_id" in values:
            values |= {"scale_a_id": r.next((0, 0), (0, 1), (r.of("u16"), r.of("u16")))}
        ptx.mma.sync(**options, **values)

    return make


def matrix_call(opcode: str, words: list[str], form: Signature) -> Callable[[Registers], None]:
    """Return the call of `ldmatrix`, `stmatrix` or `movmatrix`."""
    options: dict[str, Any] = {}
    registers, address = ("regs", "smem") if opcode == "stmatrix" else ("dst", "src")
    if opcode != "movmatrix":
        space = next((word for word in words if word.startswith("shared")), None)
        options = {"layout": ".".join(words[2:4]), "trans": "trans" in words, "space": space}
        if opcode == "ldmatrix":
            options["dtype"] = ".".join(words[4 + ("trans" in words) + (space is not None) :])

    def make(r: Registers) -> None:
        arguments = {registers if operand.count else address: operand for operand in form.values()}
        if opcode == "movmatrix":
            arguments = dict(zip(("dst", "src"), form.values(), strict=True))
        getattr(ptx, opcode)(**{name: r.value(operand) for name, operand in arguments.items()}, **options)

    return make


def tcgen05_call(words: list[str], form: Signature, *, a_is_tmem: bool) -> Callable[[Registers], None] | None:
    """Return the call of `tcgen05.…`, or None if another form has the same spelling."""
    name, modifiers = words[0], words[1:]
    options = _word(modifiers, "cta_group", r"cta_group::(.)", int)
    options |= {"exclusive": True} if "exclusive" in modifiers else {}
    if name == "mma":
        return _product(modifiers, form, options, a_is_tmem)
    if name in ("ld", "st"):
        return _registers(name, modifiers, form)
    if name == "commit":
        if "multicast::cluster::16b" in modifiers:
            return None
        options |= {} if "shared::cluster" in modifiers else {"space": "generic"}
        keyword_of = {"ctas": "multicast_mask"}
        return lambda r: ptx.tcgen05.commit(
            **{keyword_of.get(n, n): r.of("u64") if n == "mbar" and "space" in options else r.value(o)
               for n, o in form.items()}, **options)  # fmt: skip
    if name == "alloc" and "shared::cta" not in modifiers:
        return None
    if name == "cp":
        warps = [word for word in modifiers if word.startswith("warpx")]
        options |= {"size": ".".join([modifiers[1], *warps])}
        options |= {"src_format": modifiers[-1]} if modifiers[-1].startswith("b") else {}
        return lambda r: ptx.tcgen05.cp(*map(r.value, form.values()), **options)
    wrapper = getattr(ptx.tcgen05, name.replace("::", "_"))

    def make(r: Registers) -> None:
        values = [r.next(64, r.of("u32")) if n == "columns" else r.value(o) for n, o in form.items()]
        wrapper(*values, **options)

    return make


def _registers(name: str, words: list[str], form: Signature) -> Callable[[Registers], None]:
    count = int(next(word for word in words if word[0] == "x" and word[1:].isdigit())[1:])
    least = next((word for word in words if word in ("min", "max")), None)
    if "spcompress" in words:
        flags: dict[str, Any] = {"abs": "abs" in words, "red_nan": "NaN" in words}
        return lambda r: ptx.tcgen05.ld_spcompress(
            r.value(form["d"]), r.value(form["meta"]), r.value(form["t"]), op=least or "", count=count,
            red_dst=r.value(form["r"]) if "r" in form else None, **flags)  # fmt: skip
    options: dict[str, Any] = {"shape": next(word for word in words if word[:2] in ("16", "32")), "count": count}
    options |= {"pack": True} if "pack::16b" in words else {}
    options |= {"unpack": True} if "unpack::16b" in words else {}
    if least:
        options |= {"red": least, "red_abs": "abs" in words, "red_nan": "NaN" in words, "dtype": words[-1]}

    def make(r: Registers) -> None:
        values = {n: r.value(o) for n, o in form.items()}
        extra = {"split": values["split"]} if "split" in values else {}
        extra |= {"red_dst": values["r"]} if "r" in values else {}
        if name == "ld":
            ptx.tcgen05.ld(values["d"], values["t"], **options, **extra)
        else:
            ptx.tcgen05.st(values["t"], values["a"], **options, **extra)

    return make


def _product(
    words: list[str], form: Signature, options: dict[str, Any], a_is_tmem: bool
) -> Callable[[Registers], None]:
    options |= {"kind": next(word[6:] for word in words if word.startswith("kind::"))}
    options |= _word(words, "scale_vec", r"scale_vec::(.)X", int) | _word(words, "scale_vec", r"(block\d+)")
    options |= {"ashift": True} if "ashift" in words else {}
    options |= _word(words, "collector_a", r"collector::a::(.*)") | _word(words, "collector_b", r"collector::b::(.*)")
    options |= _word(words, "collector_b", r"collector::(b\d.*)")
    options |= {"a_is_tmem": True} if a_is_tmem else {}
    ws = "ws" in words
    if ws:
        del options["cta_group"]
    keyword_of = {
        "meta": "sparse_metadata", "disabled": "disable_output_lane", "scale": "scale_c", "lut": "lut_b",
        "columns": "zero_column_mask", "accumulate": "enable_input_d",
    }  # fmt: skip

    def make(r: Registers) -> None:
        values = {name: r.value(operand) for name, operand in form.items()}
        positional = [values.pop(name) for name in ("d", "a", "b", "idesc")]
        wrapper = ptx.tcgen05.mma.ws if ws else ptx.tcgen05.mma
        wrapper(*positional, **{keyword_of.get(n, n): v for n, v in values.items()}, **options)

    return make


def call_of(match: Match, signature: tuple[Operand, ...]) -> Callable[[Registers], None] | None:
    """Return the call that should emit a spelling with one of its operand lists."""
    opcode, words = match.form.opcode, list(match.modifiers)
    form = {operand.name: operand for operand in signature}
    if opcode == "wgmma":
        return wgmma_call(words, form) if "aligned" in words else None
    if opcode == "mma":
        return mma_call(words, form)
    if opcode == "tcgen05":
        return tcgen05_call(words, form, a_is_tmem="a" in form and form["a"].kind is Kind.ADDRESS)
    return matrix_call(opcode, words, form)


def calls() -> Iterator[Call]:
    """Yield every call."""
    for row in ROWS:
        for binding in lookup.spellings(row):
            match = lookup.match_of(row, binding)
            targets = tuple(name for name in ASSEMBLED if _exists(match, name))
            for signature in match.signatures:
                make = call_of(match, signature)
                if make is not None:
                    spelling = ".".join((row.opcode, *match.modifiers))
                    yield Call(spelling, targets, next((w for w in match.modifiers if w[:5] == "cta_g"), ""), make)


def _exists(match: Match, name: str) -> bool:
    return FIRST_PTX[name] <= NEWEST_PTX and all(need.on(find_target(name), NEWEST_PTX) for need in match.needs)
