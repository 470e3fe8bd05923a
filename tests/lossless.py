"""The ways in which parsing and printing must lose nothing, as functions that return what they found wrong.

Byte identity alone proves little: a parser that keeps the source passes it. So tokens are compared as the fields of the
nodes give them, the text is printed again without any layout, and single edits must change single places.
`python -m tests.lossless [FILE…]` runs them over whole files, by default the corpus, and prints counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pyptx.emitter import emit, emit_statement
from pyptx.ir import (
    AddressOperand,
    ImmediateOperand,
    Instruction,
    Module,
    Operand,
    RegisterOperand,
    Statement,
    module_tokens,
    normalize_module,
    replace_statements,
    strip_layout,
    visit,
)
from pyptx.parser import parse, tokenize

Emit = Callable[[Module], str]


def byte_identity(text: str, emit: Emit = emit) -> str | None:
    """Printing what was parsed gives the same bytes."""
    printed = emit(parse(text))
    if printed == text:
        return None
    at = next((i for i, (a, b) in enumerate(zip(printed, text, strict=False)) if a != b), min(len(printed), len(text)))
    return f"differs from byte {at} on: {text[at : at + 60]!r} became {printed[at : at + 60]!r}"


def token_identity(text: str) -> str | None:
    """The tokens that the nodes compute from their fields are the tokens of the text."""
    computed = module_tokens(parse(text))
    lexed = [token.text for token in tokenize(text)][:-1]
    if computed == lexed:
        return None
    at = next((i for i, (a, b) in enumerate(zip(computed, lexed, strict=False)) if a != b), len(lexed))
    return f"token {at} is {lexed[at : at + 4]}, the fields say {computed[at : at + 4]}"


def restyled(text: str, emit: Emit = emit) -> str:
    """Return the text printed without its layout."""
    return emit(strip_layout(parse(text)))


def restyling_keeps_meaning(text: str, emit: Emit = emit) -> str | None:
    """Printed without layout and parsed again, a module is equal to itself."""
    module = parse(text)
    again = parse(emit(strip_layout(module)))
    if normalize_module(again) != normalize_module(module):
        return "the restyled text parses to another module"
    if hash(normalize_module(again)) != hash(normalize_module(module)):
        return "equal modules have different hashes"
    return None


def same_sass(text: str, equal: Callable[[str, str], bool], emit: Emit = emit) -> str | None:
    """The restyled text assembles to the same machine code; `equal` compares the code of two texts."""
    return None if equal(text, restyled(text, emit)) else "the restyled text assembles to other code"


def edit_locality(text: str, emit: Emit = emit) -> str | None:
    """Renaming a register, changing an immediate and deleting a statement change just those bytes."""
    module = parse(text)
    instructions = [s for s in visit(module) if isinstance(s, Instruction)]
    for at, node in enumerate(instructions[:: max(1, len(instructions) // 7)]):
        wrong = _rename(module, node, text, emit) or _delete(module, node, text, emit)
        if wrong:
            return f"instruction {at} of those tried: {wrong}"
    return None


def _rename(module: Module, node: Instruction, text: str, emit: Emit) -> str | None:
    for index, operand in enumerate(node.operands):
        changed = _changed(operand)
        if changed is None:
            continue
        before, after, new = changed
        operands = (*node.operands[:index], new, *node.operands[index + 1 :])
        printed = emit(_with(module, node, node.replace(operands=operands)))
        if not _one_change(text, printed, before, after):
            return f"changing `{before}` to `{after}` in {node} changed more or less than that"
    return None


def _changed(operand: Operand) -> tuple[str, str, Operand] | None:
    """Return a word of an operand, another word, and the operand with that instead."""
    if isinstance(operand, RegisterOperand) and operand.selector is None and operand.name != "_":
        return operand.name, "%renamed__7", RegisterOperand("%renamed__7")
    if isinstance(operand, ImmediateOperand) and operand.text[0] != "-":
        return operand.text, "4242", ImmediateOperand("4242")
    if isinstance(operand, AddressOperand) and operand.base[0] == "%" and "." not in operand.base:
        return operand.base, "%renamed__7", operand.replace(base="%renamed__7")
    return None


def _delete(module: Module, node: Instruction, text: str, emit: Emit) -> str | None:
    printed = emit(_with(module, node, None))
    gone = emit_statement(node)
    if len(text) - len(printed) != len(gone):
        return f"deleting {gone!r} removed {len(text) - len(printed)} bytes"
    at = next((i for i, (a, b) in enumerate(zip(printed, text, strict=False)) if a != b), len(printed))
    return None if any(_cut(text, start, gone) == printed for start in _near(text, at, gone)) else "other bytes changed"


def _near(text: str, at: int, gone: str) -> Iterator[int]:
    start = text.rfind(gone, 0, at + len(gone))
    while start >= 0 and start + len(gone) >= at - len(gone):
        yield start
        start = text.rfind(gone, 0, start + len(gone) - 1)


def _cut(text: str, start: int, gone: str) -> str:
    return text[:start] + text[start + len(gone) :]


def _one_change(text: str, printed: str, before: str, after: str) -> bool:
    at = next((i for i, (a, b) in enumerate(zip(printed, text, strict=False)) if a != b), len(text))
    starts = range(max(0, at - len(before)), at + 1)
    return any(
        text.startswith(before, start) and text[:start] + after + text[start + len(before) :] == printed
        for start in starts
    )


def _with(module: Module, old: Statement, new: Statement | None) -> Module:
    return replace_statements(module, lambda statement: new if statement is old else statement)


def main(arguments: list[str]) -> int:
    """Run every test over files and print what was found."""
    corpus = Path(__file__).parent / "corpus"
    paths = [Path(name) for name in arguments] or sorted(corpus.rglob("*.ptx"))
    checks = (byte_identity, token_identity, restyling_keeps_meaning, edit_locality)
    failed = dict.fromkeys((check.__name__ for check in checks), 0)
    for path in paths:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        for check in checks:
            wrong = check(text)
            if wrong is not None:
                failed[check.__name__] += 1
                print(f"{path}: {check.__name__}: {wrong}")  # noqa: T201
    for name, count in failed.items():
        print(f"{name}: {len(paths) - count} of {len(paths)} files")  # noqa: T201
    return int(any(failed.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
