"""Audits the special registers against ptxas: `mov` reads each on its first target and version, and on none below.

python -m tools.isa.audit_special [--show 40]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from pyptx.isa.special import COMPONENTS, SPECIAL_REGISTERS, SpecialRegister
from tools.isa.audit_spellings import Place, list_first_places, places_below
from tools.isa.ptxas import module_error


def reads(register: SpecialRegister) -> Iterator[tuple[str, str]]:
    """Yield a declaration and an instruction for every way to read the register."""
    if register.vector:
        yield ".reg .v4 .u32 d;", f"mov.v4.u32 d, {register.name};"
    names = [f"{register.name}.{c}" for c in COMPONENTS] if register.vector else [register.name]
    types = [register.type.name, *(f"u{bits}" for bits in register.narrower)]
    for name in names:
        for type_name in types:
            yield f".reg .{type_name} d;", f"mov.{type_name} d, {name};"


def module(register: SpecialRegister, declaration: str, instruction: str, place: Place) -> str:
    """Return a module that reads the register at this place."""
    directive = f"{register.requires} 16" if register.requires else ""
    version = f"{place.version[0]}.{place.version[1]}"
    return (
        f".version {version}\n.target {place.target.name}\n.address_size 64\n"
        f".visible .entry k() {directive} {{ {declaration} {instruction} ret; }}\n"
    )


def disagreements() -> Iterator[str | None]:
    """Yield, for each read at each place, None or how ptxas contradicts the table."""
    for register in SPECIAL_REGISTERS:
        for place in list_first_places([register.available]):
            for declaration, instruction in reads(register):
                error = module_error(module(register, declaration, instruction, place), place.target.name)
                yield f"{instruction} {place}: {error}" if error else None
            declaration, instruction = next(iter(reads(register)))
            for below in places_below([register.available], place):
                error = module_error(module(register, declaration, instruction, below), below.target.name)
                yield None if error else f"{instruction} {below}: accepted"


def main(argv: list[str] | None = None) -> int:
    """Run the audit; exit 1 when ptxas disagrees."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--show", type=int, default=40, help="how many disagreements to print")
    arguments = options.parse_args(argv)
    answers = list(disagreements())
    wrong = [answer for answer in answers if answer]
    for answer in wrong[: arguments.show]:
        print(answer)
    print(f"{len(SPECIAL_REGISTERS)} special registers, {len(answers)} reads, {len(wrong)} disagreements with ptxas")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
