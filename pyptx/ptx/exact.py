"""Statements of exact transcripts other than instructions and declarations: blocks, spacing, names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.exact import Exact, NameQueues
from pyptx.dsl.exact_layout import Gap, Mark
from pyptx.dsl.registers import Reg
from pyptx.dsl.scopes import Body
from pyptx.dsl.trace import OpenBody, fail, get_trace
from pyptx.emitter.styles import Style
from pyptx.ir.nodes import Block, Statement

__all__ = ["Style", "block", "close_block", "inline_asm", "layout", "names", "open_block"]


def require_exact(name: str) -> Exact:
    """Return the current exact trace, or refuse a function that is only allowed there."""
    trace = get_trace()
    if trace.exact is None:
        fail(rules.EXACT, f"`{name}` is only allowed in an exact transcript", help="write @kernel(exact=True)")
    return trace.exact


def make_gap(
    gaps: Sequence[str],
    before: str | None,
    after: str | None,
    inner: Mapping[int, str] | None,
    name: str = "ptx.layout",
) -> Gap:
    """Return the mark of `ptx.layout`."""
    texts: tuple[Any, ...] = (*gaps, before or "", after or "", *(inner or {}).values())
    if not all(isinstance(text, str) for text in texts):
        fail(rules.ARGUMENT, f"`{name}` takes the text between tokens: whitespace and comments")
    return Gap(tuple(gaps), before, after, tuple((inner or {}).items()))


def layout(
    *gaps: str, before: str | None = None, after: str | None = None, inner: Mapping[int, str] | None = None
) -> None:
    """Set the spacing of the next statement, or of the closing brace of the block: the n+1 gaps around its n tokens; or
    only what differs from the module's style: the text `before`, `after`, or between tokens (`inner`, by index)."""
    require_exact("ptx.layout").trace.append(make_gap(gaps, before, after, inner))


class ExactBlock(Body):
    """`{ … }`, with nothing of its own."""

    title = "ptx.block()"
    decides = False

    def begin(self) -> OpenBody:
        require_exact(self.title)
        return self.trace.push(self.title, self._close)

    def _close(self, body: tuple[Statement, ...]) -> Statement:
        return Block(body, origin=self.open_body.origin)


def block() -> ExactBlock:
    """Open `{ … }`; its declarations are written inside."""
    return ExactBlock()


def open_block() -> None:
    """Emit `{`, for blocks nested deeper than Python allows `with`."""
    exact = require_exact("ptx.open_block")
    origin = exact.trace.locate()
    exact.blocks.append(exact.trace.push("ptx.open_block()", lambda body: Block(body, origin=origin)))


def close_block() -> None:
    """Emit the `}` of the innermost `ptx.open_block()`."""
    exact = require_exact("ptx.close_block")
    if not exact.blocks:
        fail(rules.NESTING, "`ptx.close_block` has no open block", help="open a block with ptx.open_block()")
    exact.trace.pop(exact.blocks.pop())


class InlineAsm(Body):
    """The markers that LLVM puts around inline assembly: two comment lines, and a separate style between them."""

    title = "ptx.inline_asm()"
    decides = False

    def begin(self) -> OpenBody:
        require_exact(self.title)
        body = super().begin()
        self.trace.append(Mark("asm"))
        return body

    def end(self) -> None:
        self.trace.append(Mark("end"))
        self.trace.pop(self.open_body)


def inline_asm() -> InlineAsm:
    """Put `// begin inline asm` and `// end inline asm` around the statements inside, spaced by the style's `asm`."""
    return InlineAsm()


class Naming:
    """`with ptx.names(…)`."""

    def __init__(self, registers: Sequence[Any], labels: Sequence[str]) -> None:
        self.registers, self.labels = registers, labels

    def __enter__(self) -> None:
        self.exact = require_exact("ptx.names")
        flat: list[Reg] = []
        for item in self.registers:
            flat += [item] if isinstance(item, Reg) else list(item)
        self.exact.name_queues.append(NameQueues(self.exact, flat, self.labels))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.exact.name_queues.pop()


def names(*registers: Reg | Sequence[Reg], labels: Sequence[str] = ()) -> Naming:
    """Name the registers and labels that operators and structured control flow create inside, in order, each register
    for the next value of its class (predicates, and by width; floats prefer float registers). When the names run out,
    generated ones are used."""
    return Naming(registers, labels)
