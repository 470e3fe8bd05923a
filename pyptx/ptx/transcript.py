"""`ptx.module(…)`: a whole module as an exact transcript: header, variables, functions and sections, in order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from pyptx.check import check as check_module
from pyptx.diagnostics import Diagnostic, PtxError, PythonFrame
from pyptx.dsl import exact_declarations, rules
from pyptx.dsl.emit import describe
from pyptx.dsl.exact import Exact, check_symbol_name
from pyptx.dsl.exact_layout import apply_layout
from pyptx.dsl.exact_lines import match_origins
from pyptx.dsl.finish import build_body
from pyptx.dsl.registers import Dtype
from pyptx.dsl.run import run_function
from pyptx.dsl.scopes import refuse_deferred
from pyptx.dsl.shared import SharedMemory
from pyptx.dsl.trace import Trace, fail, place
from pyptx.emitter import emit
from pyptx.emitter.styles import DEFAULT, Style
from pyptx.ir.collection import without_collector
from pyptx.ir.directives import AddressSize, Module, Section, Target, Version
from pyptx.ir.layout import layout_of
from pyptx.ir.nodes import Declarator, Function, Label, Param, Statement
from pyptx.isa.targets import FIRST_PTX
from pyptx.isa.targets import find_target as target_of
from pyptx.parser import PtxSyntaxError, parse
from pyptx.ptx.directives import build_data, build_directive
from pyptx.ptx.exact import make_gap

if TYPE_CHECKING:
    from pyptx.toolchain import Cubin, Resources

__all__ = ["ExactFunction", "ExactModule", "module"]

_NEWEST = list(FIRST_PTX)[-1]
Header = tuple[int, int] | str
_SECTION_HEAD = ".version 9.5\n.target sm_90a\n"
_NOT_SECTION = "a section can only contain labels and data"


class ExactFunction:
    """A function of an exact module; its body is traced when the module's text is requested."""

    def __init__(self, owner: ExactModule, body: Callable[[], object], head: Function) -> None:
        refuse_deferred(body, "function")
        self.owner, self.body, self.head = owner, body, head
        self.__name__, self.__doc__ = body.__name__, body.__doc__

    @property
    def name(self) -> str:
        """The name in PTX."""
        return self.head.name

    def ptx(self) -> str:
        """Return the text of the whole module."""
        return self.owner.ptx()

    def trace_function(self) -> Function:
        """Return the function with its body, including layout marks."""
        owner = self.owner
        # The instructions of an unknown future target are emitted unchecked; `check` reports the rest.
        trace = Trace(target_of(owner.arch if owner.arch in FIRST_PTX else _NEWEST), owner.version, self.head.name)
        trace.exact = Exact(trace)
        trace.facts["shared"] = SharedMemory(0, None)
        run_function(trace, self.body)
        return self.head.replace(body=build_body(trace))

    def __repr__(self) -> str:
        return f"<exact function {self.name}>"


class ExactModule:
    """A module written out exactly. Its methods add to it what `ptx.decl` and `ptx.directive` add to a function."""

    def __init__(
        self, version: tuple[int, int], header: tuple[Statement, ...], style: Style, ending: str, newline: str
    ) -> None:
        self.version, self.header, self.style, self.ending, self.newline = version, header, style, ending, newline
        self.items: list[Any] = []
        self.inner: list[Any] | None = None
        self._module: Module | None = None

    @property
    def arch(self) -> str:
        """The target, without options."""
        target = self.header[1]
        assert isinstance(target, Target)
        return target.targets[0]

    def _add(self, item: Any) -> None:
        self._module = None
        (self.items if self.inner is None else self.inner).append(item)

    def layout(
        self, *gaps: str, before: str | None = None, after: str | None = None, inner: dict[int, str] | None = None
    ) -> None:
        """Set the spacing of the next statement, as `ptx.layout` does in a function."""
        self._add(make_gap(gaps, before, after, inner))

    def reg(self, dtype: Dtype, *names: str, vector: int | None = None, align: Any = None) -> Any:
        """Declare registers of the module; returns what `ptx.decl.reg` returns."""
        node, registers = exact_declarations.declare_registers(dtype, names, vector, align)
        self._add(node.replace(origin=place()))
        return registers[0] if len(registers) == 1 else tuple(registers)

    def var(self, space: str, dtype: Dtype, name: str, shape: Any = None, *more: Declarator, **options: Any) -> str:
        """Declare a variable, as `ptx.decl.var` does in a function."""
        self._add(
            exact_declarations.build_variable(space, dtype, name, shape, *more, **options).replace(origin=place())
        )
        return name

    def directive(self, name: str, *values: Any, **options: Any) -> None:
        """Add a directive, as `ptx.directive` does in a function."""
        self._add(build_directive(name, *values, **options).replace(origin=place()))

    def label(self, name: str) -> None:
        """Add a label to the open section."""
        if self.inner is None:
            fail(rules.NESTING, "a label is only allowed in a function or a section")
        self._add(Label(check_symbol_name(name), origin=place()))

    def data(self, dtype: Dtype, *values: Any) -> None:
        """Add a line to the open section: `.b8 1, 2`; labels, (label, offset), (label, "-", label)."""
        if self.inner is None:
            fail(
                rules.NESTING,
                "data are only allowed in a section",
                help='with module.section(".debug_info"):',
            )
        self._add(build_data(dtype, *values).replace(origin=place()))

    def section(self, name: Any) -> AbstractContextManager[None]:
        """Open `.section name { … }`."""
        if self.inner is not None:
            fail(rules.NESTING, f"a section is only allowed at module level: {_NOT_SECTION}")
        return self._open_section(exact_declarations.check_dotted(name, "a section such as '.debug_info'"), place())

    @contextmanager
    def _open_section(self, name: str, origin: PythonFrame | None) -> Generator[None, None, None]:
        inner: list[Any] = []
        self.inner = inner
        try:
            yield
        finally:
            self.inner = None
        self._add(Section(name, tuple(inner), origin=origin))

    def section_text(self, text: str) -> None:
        """Add a whole section, `.section .debug_str { … }`, with its spacing. The text is parsed into nodes."""
        if self.inner is not None:
            fail(rules.NESTING, f"a section is only allowed at module level: {_NOT_SECTION}")
        origin = place()
        try:
            module = parse(f"{_SECTION_HEAD}{text}")
        except PtxSyntaxError as wrong:
            head_lines = _SECTION_HEAD.count("\n")
            raise PtxError(
                rules.PTX_TEXT.report(
                    origin, f"line {max(1, d.line - head_lines)} of the section: {d.message}", help=d.help
                )
                for d in wrong.diagnostics
            ) from None
        section, *extras = module.directives or (None,)
        if not isinstance(section, Section) or extras or (module.layout and module.layout[0]):
            fail(rules.PTX_TEXT, f"expected one section, found {describe(text)}", help="'.section .debug_str { … }'")
        lines: list[Any] = [line.replace(origin=origin) for line in section.body]
        self._add(section.replace(body=tuple(lines), origin=origin))

    def entry(self, name: str, *params: Param, **options: Any) -> Callable[[Callable[[], object]], ExactFunction]:
        """Make the function below the body of `.entry name(params)`. Keywords: `linking`, `directives` (names, or
        (name, value, …)), `attributes`, `parens` (False where empty parentheses are left out)."""
        return self._make_decorator(_make_head(True, name, params, None, options))

    def func(
        self, name: str, *params: Param, returns: Sequence[Param] | None = None, **options: Any
    ) -> Callable[[Callable[[], object]], ExactFunction]:
        """Make the function below the body of `.func (returns) name(params)`; keywords as of `entry`."""
        return self._make_decorator(_make_head(False, name, params, returns, options))

    def _make_decorator(self, head: Function) -> Callable[[Callable[[], object]], ExactFunction]:
        head = head.replace(origin=place())

        def decorate(body: Callable[[], object]) -> ExactFunction:
            function = ExactFunction(self, body, head)
            self._add(function)
            return function

        return decorate

    def declare(
        self, name: str, *params: Param, entry: bool = False, returns: Sequence[Param] | None = None, **options: Any
    ) -> str:
        """Declare a function without a body; keywords as of `entry`."""
        head = _make_head(entry, name, params, returns, options)
        self._add(head.replace(definition=False, origin=place()))
        return name

    def module(self) -> Module:
        """Return the module as nodes."""
        if self._module is None:
            with without_collector():
                items = [item.trace_function() if isinstance(item, ExactFunction) else item for item in self.items]
                version, target, *size = self.header
                self._module = Module(
                    version, target, size[0] if size else None, tuple(apply_layout(items, self.style)),  # pyright: ignore[reportArgumentType]
                    layout_of((self.ending,)),
                )  # fmt: skip
        return self._module

    def ptx(self) -> str:
        """Return the text."""
        module = self.module()
        with without_collector():
            text = emit(module, style=self.style)
        return text if self.newline == "\n" else text.replace("\n", self.newline)

    @property
    def functions(self) -> tuple[ExactFunction, ...]:
        """The functions that have a body."""
        return tuple([item for item in self.items if isinstance(item, ExactFunction)])

    def check(self) -> list[Diagnostic]:
        """Return the findings of the checks, at their Python lines."""
        return list(check_module(self.module()))

    def cubin(self) -> Cubin:
        """Return the machine code."""
        from pyptx.toolchain import assemble

        text = self.ptx()
        origins = match_origins(text, self.module())
        return assemble(text, origin_of=lambda line: origins.get(line))

    def sass(self) -> str:
        """Return the machine code as text."""
        from pyptx.toolchain import sass

        return sass(self.cubin())

    def resources(self) -> dict[str, Resources]:
        """Return the resources that ptxas reports for each function."""
        from pyptx.toolchain import resources

        return dict(resources(self.cubin()))

    def __repr__(self) -> str:
        return f"<exact module for {self.arch}>"


def _make_head(
    is_entry: bool, name: str, params: Sequence[Param], returns: Sequence[Param] | None, options: dict[str, Any]
) -> Function:
    unknown = set(options) - {"linking", "directives", "attributes", "parens"}
    every: tuple[Any, ...] = (*params, *(returns or ()))
    if unknown or not all(isinstance(param, Param) for param in every):
        problem = (
            f"unknown options: {', '.join(sorted(unknown))}" if unknown else "a parameter that is not ptx.decl.param(…)"
        )
        fail(rules.ARGUMENT, f"`{name}` is declared with {problem}")
    return Function(
        is_entry, check_symbol_name(name), tuple(params), None if returns is None else tuple(returns), (),
        exact_declarations.parse_linking(options.get("linking")),
        exact_declarations.parse_directives(options.get("directives", ())),
        True, options.get("parens", True), exact_declarations.parse_attributes(options.get("attributes", ())),
    )  # fmt: skip


def module(
    version: Header,
    target: str | Sequence[str],
    *,
    address_size: Any = None,
    style: Style = DEFAULT,
    before: str = "",
    layouts: Sequence[Sequence[str] | None] = (),
    ending: str = "",
    newline: str = "\n",
) -> ExactModule:
    """Start a module: `.version`, `.target`, `.address_size`. `before` is the start of the text, `ending` its end;
    `layouts` are the gaps of the header lines if they differ from the default; every line ends in `newline`. Version
    (8, 7), or "8.7" to keep a spelling."""
    major, minor = _parse_version(version)
    names = (target,) if isinstance(target, str) else tuple(target)
    for name in names:
        check_symbol_name(name)
    if not names:
        fail(rules.DECLARATION, "a module needs a target, such as 'sm_90a'")
    header: list[Statement] = [Version(major, minor), Target(names)]
    if address_size is not None:
        header.append(AddressSize(exact_declarations.to_integer(address_size)))
    lines = apply_layout(header, DEFAULT)
    for index, gaps in enumerate(layouts):
        if gaps is not None:
            lines[index] = lines[index].replace(layout=layout_of(gaps))
    first: Any = lines[0]
    lines[0] = first.replace(layout=layout_of((before, *first.layout[1:])))
    return ExactModule((int(major), int(minor)), tuple(lines), style, ending, newline)


def _parse_version(version: Header) -> tuple[int, int]:
    parts = version.split(".") if isinstance(version, str) else list(version)
    if len(parts) != 2 or not all(str(part).isdigit() for part in parts):
        fail(rules.DECLARATION, f"a version must be (8, 7) or '8.7', found {describe(version)}")
    major, minor = (exact_declarations.parse_version_part(str(part)) for part in parts)
    return major, minor
