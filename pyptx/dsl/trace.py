"""One kernel being traced: its statements so far, open bodies, and used names.

Holds state and knows no instructions. `current()` is the trace that statements are added to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from pyptx.check.symbols import Kind, Scope, Symbol
from pyptx.diagnostics import Diagnostic, PtxError, PythonFrame, Rule
from pyptx.dsl import rules
from pyptx.dsl.origin import Memo, find_caller, find_user_frame
from pyptx.ir.kinds import ScalarType
from pyptx.ir.nodes import Block, Function, Instruction, IntrinsicScope, Label, RegDecl, Statement, VarDecl
from pyptx.ir.operands import AddressOperand
from pyptx.isa.lookup import find_traits
from pyptx.isa.special import find_special_register
from pyptx.isa.targets import FIRST_PTX, NEWEST_PTX, Target, Version
from pyptx.isa.traits import Trait

if TYPE_CHECKING:
    from pyptx.dsl.returns import Exit

CURRENT: ContextVar[Trace | None] = ContextVar("pyptx_trace", default=None)

_NAME = re.compile(r"[A-Za-z][\w$]*|[_$%][\w$]+", re.ASCII)
_GENERATED = re.compile(r"%?(?:g_)?(?:s\d+_)?(?:p|r|rs|rd|rq|f|fd|rb)\d*")
_RESERVED = frozenset(("WARP_SZ",))


class Declarations:
    """The registers that one block declares: `%r<n>` of each class, ranges, and single names."""

    __slots__ = ("counts", "named", "owned", "prefix", "ranges")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.counts: dict[str, tuple[ScalarType, int]] = {}
        self.ranges: list[tuple[ScalarType, str, int]] = []
        self.named: list[tuple[ScalarType, str]] = []
        self.owned: list[Any] = []
        """The registers of a nested block, which end with it."""

    def generate_name(self, letter: str, storage: ScalarType) -> str:
        """Return the next name of a class."""
        entry = self.counts.get(letter)
        number = entry[1] if entry else 0
        self.counts[letter] = storage, number + 1
        return f"%{self.prefix}{letter}{number}"

    def reserve_generated_names(self) -> bool:
        """Reserve names such as `%r0` for the user's own text; return False if some are already in use."""
        if not self.prefix.startswith("g_"):
            if self.counts:
                return False
            self.prefix = f"g_{self.prefix}"
        return True

    def build_statements(self) -> list[Statement]:
        """Return the declarations, generated names first."""
        out: list[Statement] = []
        for letter, (storage, count) in sorted(self.counts.items()):
            out.append(RegDecl(storage, f"%{self.prefix}{letter}", count))
        out += [RegDecl(storage, base, count) for storage, base, count in self.ranges]
        out += [RegDecl(storage, name) for storage, name in self.named]
        return out


class OpenBody:
    """An open body: what it will become, where it was opened, and where it started."""

    __slots__ = ("body", "close", "declarations", "mark", "origin", "pure", "title")

    def __init__(
        self,
        title: str,
        origin: PythonFrame | None,
        body: list[Statement],
        close: Callable[[tuple[Statement, ...]], Statement] | None,
        declarations: Declarations | None,
        pure: bool,
    ) -> None:
        self.title, self.origin, self.body, self.close = title, origin, body, close
        self.declarations, self.pure, self.mark = declarations, pure, len(body)


class Unit:
    """What the functions of one module share: names, variables, device functions, files."""

    def __init__(self) -> None:
        self.scope = Scope()
        self.names: set[str] = set()
        self.variables: list[VarDecl] = []
        self.functions: dict[str, Function] = {}
        """Device functions by name, in the order of their declarations."""
        self.files: dict[int, str] = {}
        self.once: dict[Hashable, Any] = {}


class Trace:
    """What a `@kernel` function has written so far."""

    def __init__(self, target: Target, version: Version | None, name: str, unit: Unit | None = None) -> None:
        self.target, self.fixed_version, self.name = target, version, name
        self.unit = unit or Unit()
        self.root: CodeType | None = None
        self.table_version: Version = version or NEWEST_PTX
        self.least_version: Version = FIRST_PTX[target.name]
        self.statements: list[Statement] = []
        self.body = self.statements
        self.prologue: list[Statement] = []
        self.open: list[OpenBody] = []
        self.declarations = self.top = Declarations("")
        self.scope = Scope(self.unit.scope, header=(target, self.table_version))
        self.used_names: set[str] = set(_RESERVED)
        self.numbers: dict[str, int] = {}
        self.frames: Memo = {}
        self.plans: dict[Any, Any] = {}
        self.vectors: dict[tuple[int, ...], Any] = {}
        self.placements: dict[tuple[int, type, int | float | str], Any] = {}
        self.fitting: set[tuple[object, ...]] = set()
        """Positions, by identity, with the bases and coordinates of addresses that fit there."""
        self.addresses: dict[tuple[str, int | None], AddressOperand] = {}
        self.once: dict[Hashable, Any] = {}
        """Values emitted or declared once per kernel, wherever they are first requested."""
        self.variables: list[VarDecl] = []
        self.labels: dict[str, PythonFrame | None] = {}
        self.jumps: list[tuple[str, PythonFrame | None]] = []
        self.folds: dict[int, str] = {}
        """Copies into register arrays, by identity of the statement, with the register that they read."""
        self.maps: list[str] = []
        self.array_parameters: set[str] = set()
        self.warnings: list[Diagnostic] = []
        self.lenient_origins: set[PythonFrame | None] = set()
        """Origins of instructions that the table need not know."""
        self.pending: list[Diagnostic] = []
        """Mistakes found where Python cannot raise (a generator being closed); the next statement raises them."""
        self.blocks_to_open: dict[int, tuple[object, str, PythonFrame | None]] = {}
        """Blocks that were created and not yet opened with `with`, by identity: the block, its description, and its
        place."""
        self.exits: dict[int, tuple[FrameType, list[Exit]]] = {}
        """Blocks that ended in functions that may have left them by `return`, by identity of the frame."""
        self.pure = 0
        self.loops: list[Any] = []
        self.from_numbers: dict[str, int | float] = {}
        """Registers created by an operator with a Python number on its left, by name."""
        self.operators: dict[str, str] = {}
        """The binary operators that created registers, by the name of the register."""
        self.facts: dict[str, Any] = {}
        """State that helpers keep in this trace, under their own keys."""
        self.exact: Any = None
        """The builder of instructions of an exact transcript (`exact.Exact`)."""

    def locate(self) -> PythonFrame | None:
        """Return the user's place."""
        return find_user_frame(self.root, self.frames)

    def intern_address(self, base: str, offset: int | None) -> AddressOperand:
        """Return the interned node of `[base]` or `[base+offset]`."""
        node = self.addresses.get((base, offset))
        if node is None:
            node = self.addresses[base, offset] = AddressOperand(base, None if offset is None else str(offset))
        return node

    def append(self, statement: Statement) -> None:
        """Add a statement to the innermost open body."""
        if self.pending:
            raise PtxError(self.pending)
        self.body.append(statement)

    def require_version(self, version: Version, feature: str) -> None:
        """Record that something needs a PTX version."""
        if version > self.least_version:
            if self.fixed_version is not None and version > self.fixed_version:
                self.fail_version(version, feature)
            self.least_version = version

    def fail_version(self, version: Version, feature: str) -> NoReturn:
        """Refuse what the kernel's `version=` does not support."""
        from pyptx.check.spelling import NEWER_VERSION

        assert self.fixed_version is not None
        fail(
            NEWER_VERSION,
            f"{feature} needs PTX {version[0]}.{version[1]} on {self.target}, but the kernel requests "
            f"version=({self.fixed_version[0]}, {self.fixed_version[1]})",
            help=f"write version=({version[0]}, {version[1]}) or omit it",
        )

    def number(self, kind: str) -> int:
        """Count things of one kind, starting at 1."""
        self.numbers[kind] = count = self.numbers.get(kind, 0) + 1
        return count

    def choose_name(self, hint: str | None, kind: str) -> str:
        """Return an unused name: the requested one, with a number appended if it is taken or could collide with
        generated names."""
        if hint is None:
            name = f"{kind}_{self.number(kind)}"
        else:
            name = hint
            prefix_name(name)
        stem = name
        while name in self.used_names or _GENERATED.fullmatch(name) or find_special_register(name) is not None:
            name = f"{stem}_{self.number(f'name {stem}')}"
        self.used_names.add(name)
        return name

    def choose_module_name(self, hint: str | None, kind: str) -> str:
        """Return a name for something at module level that no function of the module uses."""
        name = self.choose_name(hint, kind)
        while name in self.unit.names:
            name = self.choose_name(hint, kind)
        self.unit.names.add(name)
        return name

    def declare_module_variable(self, declaration: VarDecl) -> None:
        """Declare a variable at module level."""
        self.unit.variables.append(declaration)
        space = declaration.state_space.ptx[1:]
        symbol = Symbol(Kind.VARIABLE, declaration.type.ptx[1:], space, declaration=declaration)
        self.unit.scope.put(declaration.name, symbol)

    def claim(self, name: str, noun: str) -> str:
        """Reserve a name that cannot be changed: a label, a variable or a parameter."""
        check_name(name, symbol=True)
        if name in self.used_names:
            fail(
                rules.NAME,
                f"the name `{name}` is already used in this kernel, so it cannot name a {noun}",
                help="rename one of them",
            )
        self.used_names.add(name)
        return name

    def push(
        self,
        title: str,
        close: Callable[[tuple[Statement, ...]], Statement] | None = None,
        *,
        declarations: Declarations | None = None,
        pure: bool = False,
    ) -> OpenBody:
        """Open a body. With `close` its statements become one statement at the end; without, they stay in line."""
        if self.pending:
            raise PtxError(self.pending)
        if close is not None:
            self.body = []
        # Only the place, without its callers: bodies are opened as often as instructions are written.
        body = OpenBody(title, find_user_frame(None, self.frames), self.body, close, declarations, pure)
        self.open.append(body)
        if declarations is not None:
            self.declarations = declarations
        self.pure += pure
        return body

    def pop(self, body: OpenBody, *, keep: bool = True) -> None:
        """Close a body; `keep=False` (an exception is leaving it) removes everything written since it was opened."""
        if not self.open or self.open[-1] is not body:
            inner = self.open[-1] if self.open else None
            if keep and inner is not None and body in self.open:
                fail(rules.UNCLOSED, f"`{body.title}` ends here, but `{inner.title}` inside it is still open",
                     notes=[f"`{inner.title}` was opened at {inner.origin}"])  # fmt: skip
            while self.open and self.open[-1] is not body:
                self._close_last(keep=False)
        self._close_last(keep=keep)

    def _close_last(self, *, keep: bool) -> None:
        body = self.open.pop()
        self.pure -= body.pure
        if body.declarations is not None:
            for register in body.declarations.owned:
                register.__trace__ = None
            self.declarations = next((o.declarations for o in reversed(self.open) if o.declarations), self.top)
        if body.close is None:
            if not keep:
                self._forget(body.body[body.mark :])
                del body.body[body.mark :]
            return
        self.body = self.open[-1].body if self.open else self.statements
        if keep:
            self.body.append(body.close(tuple(body.body)))
        else:
            self._forget(body.body)

    def _forget(self, statements: list[Statement]) -> None:
        """Drop the labels and jumps of removed statements."""
        for statement in statements:
            if isinstance(statement, Label):
                self.labels.pop(statement.name, None)
                self.used_names.discard(statement.name)
            elif isinstance(statement, Block | IntrinsicScope):
                self._forget(list(statement.body))
            elif isinstance(statement, Instruction) and Trait.JUMPS in find_traits(
                statement.opcode, statement.modifiers
            ):
                origin = statement.origin
                self.jumps = [j for j in self.jumps if j[1] is not origin]

    def in_prologue(self) -> _Prologue:
        """Return a context manager whose statements go to the start of the kernel."""
        return _Prologue(self)

    def declare_variable(self, declaration: VarDecl) -> None:
        """Declare a variable at the top of the function."""
        self.variables.append(declaration)
        space = declaration.state_space.ptx[1:]
        self.scope.put(declaration.name, Symbol(Kind.VARIABLE, declaration.type.ptx[1:], space))

    def declare_parameter(self, name: str, type_name: str) -> None:
        """Declare a parameter for the checks."""
        self.scope.put(name, Symbol(Kind.VARIABLE, type_name, "param", entry=True))


class _Prologue:
    """Sends statements to the start of the kernel, declared at function level."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> None:
        trace = self.trace
        self.saved = trace.body, trace.declarations, trace.open, trace.pure, trace.statements
        trace.body, trace.declarations, trace.open, trace.pure = trace.prologue, trace.top, [], 0
        trace.statements = trace.prologue

    def __exit__(self, *exception: object) -> None:
        trace = self.trace
        trace.body, trace.declarations, trace.open, trace.pure, trace.statements = self.saved


def is_generated(name: str) -> bool:
    """Tell whether a name could be that of an unnamed register."""
    return _GENERATED.fullmatch(name) is not None


def get_trace() -> Trace:
    """Return the current trace."""
    trace = CURRENT.get()
    if trace is None:
        fail(
            rules.OUTSIDE,
            "used outside a kernel: no trace is active",
            help="call it in a function decorated with @kernel, while the function is traced (k.ptx(), k(...))",
        )
    return trace


def place() -> PythonFrame | None:
    """Return the user's place, inside a trace or not."""
    trace = CURRENT.get()
    return trace.locate() if trace is not None else find_caller()


def fail(rule: Rule, message: str, *, help: str | None = None, notes: list[str] | None = None) -> NoReturn:
    """Raise the finding at the user's line."""
    raise PtxError([rule.report(place(), message, notes=notes or (), help=help)])


def check_name(name: object, *, symbol: bool = False) -> None:
    """Refuse a name that is invalid in PTX."""
    if not isinstance(name, str) or not (_NAME if symbol else _STEM).fullmatch(name) or name in _RESERVED:
        fail(
            rules.NAME,
            f"expected a PTX name (letters, digits, `_`, `$`; no digit first), found {name!r}",
            help="WARP_SZ is reserved in PTX" if name in _RESERVED else _suggest_name(name),
        )


def prefix_name(name: str) -> str:
    """Return a register's name with its `%`; refuse one that is invalid in PTX."""
    stem = name.removeprefix("%") if isinstance(name, str) else name  # pyright: ignore[reportUnnecessaryIsInstance]
    check_name(stem)
    return f"%{stem}"


def _suggest_name(name: object) -> str:
    """Return a valid PTX name as similar as possible."""
    if not isinstance(name, str):
        return "a name must be a string"
    spelling = re.sub(r"[^\w$]", "_", name, flags=re.ASCII) or "_"
    return f"write {'_' + spelling if spelling[0].isdigit() else spelling!r}"


_STEM = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
