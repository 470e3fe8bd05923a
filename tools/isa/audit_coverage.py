"""Audits that every instruction in the manual's table of contents has a row, and that every opcode has a meaning.

python -m tools.isa.audit_coverage
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyptx.isa import lookup, table
from pyptx.isa.model import Form, Slot
from tools.isa.manual_contents import INSTRUCTIONS

WITHOUT_A_ROW: dict[str, str] = {}
"""Instructions of the manual without a row, each with the reason."""


def has_row(name: str, rows: Iterable[Form]) -> bool:
    """Return whether some row has the name's modifiers in this order, with others between them if need be."""
    opcode, *modifiers = name.split(".")
    return any(
        row.opcode == opcode and any(_contains(sequence, modifiers) for sequence in lookup.list_sequences(row))
        for row in rows
    )


def _contains(sequence: tuple[Slot, ...], modifiers: list[str]) -> bool:
    left = list(modifiers)
    for slot in sequence:
        if left and any(left[0] in choice.modifiers for choice in slot.choices):
            left.pop(0)
    return not left


def main() -> int:
    """Print the missing instructions and the counts."""
    rows = table.list_all_rows()
    names = [name for names in INSTRUCTIONS.values() for name in names.split()]
    missing = [name for name in names if name not in WITHOUT_A_ROW and not has_row(name, rows)]
    silent = sorted({row.opcode for row in rows} - {name.split(".")[0] for name in table.meanings()})
    for name in missing:
        print(f"no row: {name}")
    for name, reason in WITHOUT_A_ROW.items():
        print(f"omitted: {name}: {reason}")
    for opcode in silent:
        print(f"no meaning: {opcode}")
    quirks = sum(row.quirk is not None for row in rows)
    print(
        f"{len(names)} instructions in the manual, {len(missing)} missing, {len(WITHOUT_A_ROW)} omitted with a reason"
    )
    print(f"{len(rows)} rows, {len(table.list_opcodes())} opcodes, {quirks} rows with a quirk")
    return 1 if missing or silent else 0


if __name__ == "__main__":
    sys.exit(main())
