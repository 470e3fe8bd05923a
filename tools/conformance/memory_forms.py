"""The spellings that access memory, one case each: atom, red, ld, st, ldmatrix, stmatrix, cvta.

Every thread has a 32-byte cell in global, shared or local memory. A case fills it from registers, executes the
instruction on it and reads it back, so that the harness sees only registers. Commutative operations have a second
case, in which the lanes of a warp share the cell of the first. Memory orders, scopes, cache operators and hints change
no value, so of spellings that differ only in these, the first is tried. Omitted are spaces that a kernel cannot write
(const, param, the read-only path) and asynchronous or distributed instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice

from pyptx.isa import lookup
from pyptx.isa.model import Kind, Match, Operand
from pyptx.isa.targets import Target, find_target
from pyptx.types import from_name
from tools.conformance.forms import Case, Column, place_of
from tools.conformance.modules import CELL
from tools.isa.synthesize import Registers, register_class

SECTIONS = ("atomics", "load", "store", "matrix_move", "data_movement")
_WITHOUT_VALUE = frozenset(("weak", "relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys", "cluster"))
_SPACES = {"": "generic", "global": "global", "shared": "shared", "shared::cta": "shared", "local": "local"}
_ORDERLESS = frozenset(("add", "and", "or", "xor", "min", "max"))
_OPCODES = frozenset(("atom", "red", "ld", "st", "ldmatrix", "stmatrix"))
_KINDS = ("global", "shared", "local", "const")


def memory_cases(sections: Iterable[str] = SECTIONS, arch: str = "sm_90a") -> Iterator[Case]:
    """Yield the cases of the sections."""
    for section in sections:
        if section == "data_movement":
            yield from _addresses(find_target(arch))
            continue
        spellings, cases_in_order = set[tuple[str, ...]](), dict[Case, None]()
        for row in import_module(f"pyptx.isa.table.{section}").FORMS:
            if row.opcode not in _OPCODES:
                continue
            for bindings in islice(lookup.spellings(row), 200_000):
                match = lookup.match_of(row, bindings)
                words = (row.opcode, *(m for m in match.modifiers if m not in _WITHOUT_VALUE))
                if words in spellings:
                    continue
                spellings.add(words)
                cases_in_order.update(dict.fromkeys(_of_match(match, words, find_target(arch))))
        yield from cases_in_order


def _of_match(match: Match, words: tuple[str, ...], preference: Target) -> Iterator[Case]:
    space = next((m for m in words if m.split("::")[0] in ("const", "param", "global", "local", "shared")), "")
    plain = [m for m in words[1:] if m != space]
    if space not in _SPACES or not _means_values(match.form.opcode, plain):
        return
    place = place_of(match, preference)
    signature = next((s for s in match.signatures if all(o.kind is not Kind.IMMEDIATE for o in s)), None)
    if place is None or signature is None:
        return
    space_name = "shared" if match.form.opcode.endswith("matrix") else _SPACES[space]
    case = Case(match.form.opcode, "", *place, (), ())
    if match.form.opcode in ("ldmatrix", "stmatrix"):
        if "m8n8" in match.modifiers:
            yield _fill_cell(case, match, signature, space_name, ["b64"] * 2)
    elif match.form.opcode in ("ld", "st"):
        yield _fill_cell(case, match, signature, space_name, ["b64"] * 4)
        if match.form.opcode == "ld" and match.modifiers[-1][1:] in ("8", "16", "32") and "v" not in "".join(plain[:1]):
            yield _fill_cell(case, match, signature, space_name, ["b64"] * 4, wide=True)
    else:
        values = next(o for o in signature if o.name == "b")
        memory = [values.type or "b32"] * max(values.count, 1)
        yield _fill_cell(case, match, signature, space_name, memory)
        whole = memory[0][0] in "usb" and memory[0][1:].isdigit()
        if match.form.opcode == "red" and whole and _ORDERLESS & set(match.modifiers):
            yield _fill_cell(case, match, signature, space_name, memory, shares_cell=True)


def _means_values(opcode: str, plain: list[str]) -> bool:
    """Return whether the modifiers are only those of the operation, its types and vectors."""
    if opcode.endswith("matrix"):
        return True
    allowlist = {*_ORDERLESS, "exch", "inc", "dec", "cas", "noftz", "v2", "v4", "v8"}
    return all(m in allowlist or _is_type(m) for m in plain)


def _is_type(name: str) -> bool:
    try:
        return bool(from_name(name).bits)
    except (KeyError, ValueError):
        return False


def _fill_cell(
    case: Case, match: Match, signature: tuple[Operand, ...], space_name: str, memory: list[str], *,
    shares_cell: bool = False, wide: bool = False,
) -> Case:  # fmt: skip
    """Return the case of an instruction on a cell filled from registers of these types."""
    registers, inputs, outputs = Registers(), list[Column](), list[Column]()
    contents = [_column(name, registers, f"m{n}") for n, name in enumerate(memory)]
    texts: list[str] = []
    for o in signature:
        if o.kind is Kind.ADDRESS:
            texts.append("[cell]")
            continue
        name = "b64" if wide and o.name == "d" else o.type
        columns = [_column(name, registers, o.name) for _ in range(max(o.count, 1))]
        registers_text = ", ".join(column.register for column in columns)
        texts.append(f"{{{registers_text}}}" if o.count else registers_text)
        (outputs if "w" in o.access else inputs).extend(columns)
    final = [_column(name, registers, f"after{n}") for n, name in enumerate(memory)]
    reads = match.form.opcode in ("ld", "ldmatrix")
    real = "global" if space_name == "generic" else space_name
    before = [*_cell(real, shares_cell), *_moves("st", real, memory, contents)]
    if shares_cell:
        contents, before = [], [*_cell(real, shares_cell), f"st.{real}.b64 [cell], 0;"]
    before += ["cvta.global.u64 cell, cell;"] if space_name == "generic" else []
    before += ["bar.warp.sync -1;"] if shares_cell or match.form.opcode.endswith("matrix") else []
    after = ["bar.warp.sync -1;"] if shares_cell or match.form.opcode == "stmatrix" else []
    after += [] if reads else _moves("ld", "" if space_name == "generic" else real, memory, final)
    head = ".".join((match.form.opcode, *match.modifiers))
    return Case(
        case.opcode, f"{head} {', '.join(texts)};", case.target, case.version, (*contents, *inputs),
        (*outputs, *([] if reads else final)), tuple(before), tuple(after),
    )  # fmt: skip


def _column(type_name: str | None, registers: Registers, name: str) -> Column:
    kind = register_class(type_name)
    if type_name in ("b8", "u8", "s8"):
        kind = "b16"
    return Column(registers.fresh("b16" if kind == "b16" else type_name), kind, type_name, name)


def _cell(space: str, shares_cell: bool) -> list[str]:
    """Return instructions that set `cell` to the address of the thread's cell; `tid` counts the threads of all CTAs."""
    number = ["and.b32 cta, tid, -32;" if shares_cell else "mov.b32 cta, tid;"]
    if space == "local":
        return ["mov.u64 cell, stack;"]
    number += ["and.b32 cta, cta, 127;"] if space == "shared" else []
    base = "rows" if space == "shared" else "cells"
    return [f"mov.u64 cell, {base};", *number, f"mad.wide.u32 cell, cta, {CELL}, cell;"]


def _moves(opcode: str, space_name: str, memory: list[str], columns: list[Column]) -> list[str]:
    """Return the loads or stores of the registers of a cell."""
    lines: list[str] = []
    offset = 0
    for name, column in zip(memory, columns, strict=True):
        bits = from_name(name).bits
        address = f"[cell+{offset}]" if offset else "[cell]"
        space = f".{space_name}" if space_name else ""
        order = [column.register, address] if opcode == "ld" else [address, column.register]
        lines.append(f"{opcode}{space}.b{bits} {', '.join(order)};")
        offset += bits // 8
    return lines


def _addresses(target: Target) -> Iterator[Case]:
    """Yield cases that test the space of an address in each space, and that convert it there and back."""
    for kind in _KINDS:
        take = [f"mov.u64 cell, {_variable(kind)};", f"cvta.{kind}.u64 cell, cell;"]
        for space in _KINDS:
            answer = Column("q_pred_0", "pred", "pred", kind)
            yield Case("isspacep", f"isspacep.{space} q_pred_0, cell;", target, (8, 0), (), (answer,), tuple(take))
        pointer = Column("q_b64_0", "b64", "b64", "d")
        after = (f"mov.u64 q_b64_1, {_variable(kind)};", "sub.u64 q_b64_0, q_b64_0, q_b64_1;")
        yield Case("cvta", f"cvta.to.{kind}.u64 q_b64_0, cell;", target, (8, 0), (), (pointer,), tuple(take), after)


def _variable(kind: str) -> str:
    return {"global": "cells", "shared": "rows", "local": "stack", "const": "table"}[kind]
