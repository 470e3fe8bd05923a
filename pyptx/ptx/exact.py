"""The statements of exact transcripts that are neither instructions nor declarations: blocks, spacing, names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.exact import Exact, Given
from pyptx.dsl.exact_layout import Gap, Mark
from pyptx.dsl.registers import Reg
from pyptx.dsl.scopes import Body
from pyptx.dsl.trace import OpenBody, current, fail
from pyptx.emitter.styles import Style
from pyptx.ir.nodes import Block, Statement

__all__ = ["Style", "block", "close_block", "inline_asm", "layout", "names", "open_block"]


def exact_of(what: str) -> Exact:
    """Return the exact trace that is being written, or refuse what only stands there."""
    trace = current()
    if trace.exact is None:
        fail(rules.EXACT, f"`{what}` is only allowed in an exact transcript", help="write @kernel(exact=True)")
    return trace.exact


def gap(
    gaps: Sequence[str],
    before: str | None,
    after: str | None,
    inner: Mapping[int, str] | None,
    what: str = "ptx.layout",
) -> Gap:
    """Return the mark that `ptx.layout` leaves."""
    texts: tuple[Any, ...] = (*gaps, before or "", after or "", *(inner or {}).values())
    if not all(isinstance(text, str) for text in texts):
        fail(rules.ARGUMENT, f"`{what}` takes the text between tokens: whitespace and comments")
    return Gap(tuple(gaps), before, after, tuple((inner or {}).items()))


def layout(
    *gaps: str, before: str | None = None, after: str | None = None, inner: Mapping[int, str] | None = None
) -> None:
    """Space the next statement by hand, or the brace that closes the block: the n+1 gaps around its n tokens; or only
    what differs from the module's style: what stands `before`, `after`, or between tokens (`inner`, by index)."""
    exact_of("ptx.layout").trace.append(gap(gaps, before, after, inner))


class ExactBlock(Body):
    """`{ … }`, without anything of its own."""

    what = "ptx.block()"
    decides = False

    def begin(self) -> OpenBody:
        exact_of(self.what)
        return self.trace.push(self.what, self._close)

    def _close(self, body: tuple[Statement, ...]) -> Statement:
        return Block(body, origin=self.opened.origin)


def block() -> ExactBlock:
    """Open `{ … }`; what it declares is written inside."""
    return ExactBlock()


def open_block() -> None:
    """Emit `{`, where blocks are nested deeper than Python takes `with`."""
    exact = exact_of("ptx.open_block")
    origin = exact.trace.here(2)
    exact.blocks.append(exact.trace.push("ptx.open_block()", lambda body: Block(body, origin=origin)))


def close_block() -> None:
    """Emit the `}` of the innermost `ptx.open_block()`."""
    exact = exact_of("ptx.close_block")
    if not exact.blocks:
        fail(rules.NESTING, "`ptx.close_block` has no open block", help="open a block with ptx.open_block()")
    exact.trace.pop(exact.blocks.pop())


class InlineAsm(Body):
    """What LLVM puts around inline assembly: two lines of comment, and a style of its own between them."""

    what = "ptx.inline_asm()"
    decides = False

    def begin(self) -> OpenBody:
        exact_of(self.what)
        opened = self.trace.push(self.what)
        self.trace.append(Mark("asm"))
        return opened

    def end(self) -> None:
        self.trace.append(Mark("end"))
        self.trace.pop(self.opened)


def inline_asm() -> InlineAsm:
    """Put `// begin inline asm` and `// end inline asm` around what stands inside, spaced by the style's `asm`."""
    return InlineAsm()


class Naming:
    """`with ptx.names(…)`."""

    def __init__(self, registers: Sequence[Any], labels: Sequence[str]) -> None:
        self.registers, self.labels = registers, labels

    def __enter__(self) -> None:
        self.exact = exact_of("ptx.names")
        flat: list[Reg] = []
        for item in self.registers:
            flat += [item] if isinstance(item, Reg) else list(item)
        self.exact.given.append(Given(self.exact, flat, self.labels))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.exact.given.pop()


def names(*registers: Reg | Sequence[Reg], labels: Sequence[str] = ()) -> Naming:
    """Give names to the fresh registers and labels that operators and structured control flow make inside, in order,
    each register to the next value of its class (predicates, and by width; floats prefer float registers). When they
    run out, fresh ones are made."""
    return Naming(registers, labels)
