"""The ways in which parsing and printing must lose nothing, as functions that return the first loss.

Byte identity alone proves little: a parser that keeps the source passes it. So the tokens that nodes compute from their
fields are compared, the text is printed again without any layout, and single edits must change single places. `python
-m tests.lossless [FILE…]` runs them over whole files, by default the corpus, and prints counts.
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
    """Printing a parsed text yields the same bytes."""
    output = emit(parse(text))
    if output == text:
        return None
    index = next((i for i, (a, b) in enumerate(zip(output, text, strict=False)) if a != b), min(len(output), len(text)))
    return f"differs from byte {index} on: {text[index : index + 60]!r} became {output[index : index + 60]!r}"


def token_identity(text: str) -> str | None:
    """The tokens that the nodes compute from their fields are the tokens of the text."""
    field_tokens = module_tokens(parse(text))
    lexer_tokens = [token.text for token in tokenize(text)][:-1]
    if field_tokens == lexer_tokens:
        return None
    index = next(
        (i for i, (a, b) in enumerate(zip(field_tokens, lexer_tokens, strict=False)) if a != b), len(lexer_tokens)
    )
    return f"token {index} is {lexer_tokens[index : index + 4]}, the fields say {field_tokens[index : index + 4]}"


def restyle(text: str, emit: Emit = emit) -> str:
    """Return the text printed without its layout."""
    return emit(strip_layout(parse(text)))


def restyling_keeps_meaning(text: str, emit: Emit = emit) -> str | None:
    """Printed without layout and parsed again, a module is equal to itself."""
    module = parse(text)
    reparsed = parse(emit(strip_layout(module)))
    if normalize_module(reparsed) != normalize_module(module):
        return "the restyled text parses to another module"
    if hash(normalize_module(reparsed)) != hash(normalize_module(module)):
        return "equal modules have different hashes"
    return None


def compare_sass(text: str, equal: Callable[[str, str], bool], emit: Emit = emit) -> str | None:
    """The restyled text assembles to the same machine code; `equal` compares the code of two texts."""
    return None if equal(text, restyle(text, emit)) else "the restyled text assembles to other code"


def edit_locality(text: str, emit: Emit = emit) -> str | None:
    """Renaming a register, changing an immediate and deleting a statement change just those bytes."""
    module = parse(text)
    instructions = [s for s in visit(module) if isinstance(s, Instruction)]
    for index, node in enumerate(instructions[:: max(1, len(instructions) // 7)]):
        wrong = _rename(module, node, text, emit) or _delete(module, node, text, emit)
        if wrong:
            return f"instruction {index} of those tried: {wrong}"
    return None


def _rename(module: Module, node: Instruction, text: str, emit: Emit) -> str | None:
    for index, operand in enumerate(node.operands):
        edit = _replace_word(operand)
        if edit is None:
            continue
        before, after, new = edit
        operands = (*node.operands[:index], new, *node.operands[index + 1 :])
        output = emit(_with(module, node, node.replace(operands=operands)))
        if not _has_single_change(text, output, before, after):
            return f"changing `{before}` to `{after}` in {node} changed more or less than that"
    return None


def _replace_word(operand: Operand) -> tuple[str, str, Operand] | None:
    """Return a word of an operand, another word, and the operand with that word instead."""
    if isinstance(operand, RegisterOperand) and operand.selector is None and operand.name != "_":
        return operand.name, "%renamed__7", RegisterOperand("%renamed__7")
    if isinstance(operand, ImmediateOperand) and operand.text[0] != "-":
        return operand.text, "4242", ImmediateOperand("4242")
    if isinstance(operand, AddressOperand) and operand.base[0] == "%" and "." not in operand.base:
        return operand.base, "%renamed__7", operand.replace(base="%renamed__7")
    return None


def _delete(module: Module, node: Instruction, text: str, emit: Emit) -> str | None:
    output = emit(_with(module, node, None))
    statement_text = emit_statement(node)
    if len(text) - len(output) != len(statement_text):
        return f"deleting {statement_text!r} removed {len(text) - len(output)} bytes"
    offset = next((i for i, (a, b) in enumerate(zip(output, text, strict=False)) if a != b), len(output))
    return (
        None
        if any(_cut(text, start, statement_text) == output for start in _near(text, offset, statement_text))
        else "other bytes changed"
    )


def _near(text: str, offset: int, statement_text: str) -> Iterator[int]:
    start = text.rfind(statement_text, 0, offset + len(statement_text))
    while start >= 0 and start + len(statement_text) >= offset - len(statement_text):
        yield start
        start = text.rfind(statement_text, 0, start + len(statement_text) - 1)


def _cut(text: str, start: int, statement_text: str) -> str:
    return text[:start] + text[start + len(statement_text) :]


def _has_single_change(text: str, output: str, before: str, after: str) -> bool:
    index = next((i for i, (a, b) in enumerate(zip(output, text, strict=False)) if a != b), len(text))
    starts = range(max(0, index - len(before)), index + 1)
    return any(
        text.startswith(before, start) and text[:start] + after + text[start + len(before) :] == output
        for start in starts
    )


def _with(module: Module, old: Statement, new: Statement | None) -> Module:
    return replace_statements(module, lambda statement: new if statement is old else statement)


def main(arguments: list[str]) -> int:
    """Run every test over files and print the counts."""
    corpus = Path(__file__).parent / "corpus"
    paths = [Path(name) for name in arguments] or sorted(corpus.rglob("*.ptx"))
    checks = (byte_identity, token_identity, restyling_keeps_meaning, edit_locality)
    failures = dict.fromkeys((check.__name__ for check in checks), 0)
    for path in paths:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        for check in checks:
            wrong = check(text)
            if wrong is not None:
                failures[check.__name__] += 1
                print(f"{path}: {check.__name__}: {wrong}")  # noqa: T201
    for name, count in failures.items():
        print(f"{name}: {len(paths) - count} of {len(paths)} files")  # noqa: T201
    return int(any(failures.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
