"""Device functions, module-level constants, and `trap`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

from pyptx.check.symbols import Kind, Symbol
from pyptx.diagnostics import PtxError, format_count
from pyptx.dsl import rules
from pyptx.dsl.emit import emit, spell
from pyptx.dsl.finish import build_body
from pyptx.dsl.origin import find_definition
from pyptx.dsl.registers import Dtype, Pred, Reg, create_register, resolve_type
from pyptx.dsl.run import run_function
from pyptx.dsl.scopes import Named, Scope, refuse_deferred
from pyptx.dsl.shared import SharedMemory, choose_memory_type
from pyptx.dsl.trace import Trace, check_name, fail, get_trace
from pyptx.dsl.values import choose_storage, make_literal
from pyptx.ir.kinds import ScalarType, StateSpace
from pyptx.ir.nodes import Function, Param, Statement, VarDecl
from pyptx.ir.operands import AddressOperand, LabelOperand
from pyptx.types import PtxType

Signature = tuple[tuple[PtxType, ...], tuple[PtxType, ...]]


class DeviceFunction:
    """A `.func` of the module. Calling it inside a kernel emits a call; its body is traced once per module."""

    def __init__(
        self, function: Callable[..., Any], params: Sequence[Dtype] | None, returns: Sequence[Dtype] | None
    ) -> None:
        refuse_deferred(function, "device function")
        functools.update_wrapper(self, function)  # pyright: ignore[reportArgumentType]
        self.function, self.name = function, function.__name__
        check_name(self.name, symbol=True)
        self._given = params, returns

    def resolve_signature(self) -> Signature:
        """Return the parameter and return types: as declared, or from the annotations."""
        names = list(inspect.signature(self.function).parameters)
        params, returns = self._given
        if params is None or returns is None:
            annotations = inspect.get_annotations(self.function, eval_str=True)
            missing = [name for name in names if not isinstance(annotations.get(name), PtxType | str)]
            if params is None and missing:
                fail(
                    rules.DECLARATION,
                    f"`{self.name}`: no type for {', '.join(missing)}",
                    help="annotate with types of pyptx.types, x: f32, or pass @ptx.func(params=(f32,), returns=(f32,))",
                )
            params = [annotations[name] for name in names] if params is None else params
            back: Any = annotations.get("return") if returns is None else returns
            returns = () if back is None else (back,) if isinstance(back, PtxType | str) else tuple(back)
        if len(params) != len(names):
            fail(
                rules.DECLARATION,
                (
                    f"`{self.name}` takes {format_count('argument', len(names))}, but `params` has "
                    f"{format_count('type', len(params))}"
                ),
            )
        return tuple(map(resolve_type, params)), tuple(map(resolve_type, returns))

    def __call__(self, *args: Any) -> Any:
        trace = get_trace()
        params, returns = self.resolve_signature()
        if len(args) != len(params):
            fail(rules.ARGUMENT, f"`{self.name}` takes {format_count('argument', len(params))}, found {len(args)}")
        self._define(trace, params, returns)
        results = call(trace, self.name, list(zip(params, args, strict=True)), returns)
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def _define(self, trace: Trace, params: Sequence[PtxType], returns: Sequence[PtxType]) -> None:
        """Trace the body unless the module already has it; a recursive call refers to its own name."""
        owner = trace.unit.once.get(("function", self.name))
        if owner is not None:
            if owner is not self:
                fail(rules.NAME, f"two device functions are named `{self.name}`", help="rename one of them")
            return
        trace.unit.once["function", self.name] = self
        param_decls = [
            Param(StateSpace.PARAM, _choose_parameter_type(t), f"{self.name}_{i}") for i, t in enumerate(params)
        ]
        return_decls = [
            Param(StateSpace.PARAM, _choose_parameter_type(t), f"{self.name}_result{i}") for i, t in enumerate(returns)
        ]
        head = Function(
            False, self.name, tuple(param_decls), tuple(return_decls) or None, origin=find_definition(self.function)
        )  # fmt: skip
        declare(trace, head)
        body = self._trace_body(trace, params, returns)
        trace.unit.functions[self.name] = head.replace(body=body)

    def _trace_body(self, outer: Trace, params: Sequence[PtxType], returns: Sequence[PtxType]) -> tuple[Statement, ...]:
        inner = Trace(outer.target, outer.fixed_version, self.name, outer.unit)
        inner.facts["shared"] = SharedMemory(0, None)
        for prefix, kinds in ((f"{self.name}_", params), (f"{self.name}_result", returns)):
            for index, kind in enumerate(kinds):
                inner.declare_parameter(f"{prefix}{index}", kind.name)

        def write() -> None:
            arguments = [create_register(kind) for kind in params]
            for index, register in enumerate(arguments):
                address = AddressOperand(f"{self.name}_{index}")
                emit(spell("ld", "param", choose_memory_type(register.dtype)), (register, address))
            result = self.function(*arguments)
            try:
                self._leave(returns, result)
            except PtxError as wrong:
                # The function has returned, so none of its lines is running.
                raise PtxError(
                    diagnostic.move_to(find_definition(self.function)) for diagnostic in wrong.diagnostics
                ) from None

        run_function(inner, write)
        outer.require_version(inner.least_version, f"`{self.name}`")
        outer.warnings += inner.warnings
        return build_body(inner, self.function)

    def _leave(self, returns: Sequence[PtxType], result: Any) -> None:
        results: list[Any] = list(result) if isinstance(result, tuple) else [] if result is None else [result]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if len(results) != len(returns):
            fail(
                rules.ARGUMENT,
                f"`{self.name}` returns {format_count('value', len(results))}, but declares {len(returns)}",
                help="annotate the return types: -> f32, or returns=(f32, u32)",
            )
        for index, (kind, value) in enumerate(zip(returns, results, strict=True)):
            _store(f"{self.name}_result{index}", kind, value)

    def __repr__(self) -> str:
        return f"<device function {self.name}>"


@overload
def func(fn: Callable[..., Any], /) -> DeviceFunction: ...
@overload
def func(
    fn: None = None, *, params: Sequence[Dtype] | None = None, returns: Sequence[Dtype] | None = None
) -> Callable[[Callable[..., Any]], DeviceFunction]: ...
def func(
    fn: Callable[..., Any] | None = None,
    *,
    params: Sequence[Dtype] | None = None,
    returns: Sequence[Dtype] | None = None,
) -> DeviceFunction | Callable[[Callable[..., Any]], DeviceFunction]:
    """Make a device function: its arguments and return values are registers. Types come from the annotations, or from
    `params=` and `returns=`."""
    if fn is not None:
        return DeviceFunction(fn, params, returns)
    return lambda function: DeviceFunction(function, params, returns)


def declare(trace: Trace, function: Function) -> None:
    """Declare a function's name for the checks."""
    if function.name in trace.used_names or function.name in trace.unit.names or function.name == trace.name:
        fail(rules.NAME, f"the name `{function.name}` is already used in this module", help="rename the function")
    trace.unit.names.add(function.name)
    trace.unit.scope.put(function.name, Symbol(Kind.FUNCTION, declaration=function))


def _choose_parameter_type(kind: PtxType) -> ScalarType:
    """Return the type of a function's parameter: smaller types become untyped 32 bits."""
    storage = choose_storage(kind)[1]
    return ScalarType.B32 if storage.bits < 32 else storage


def _store(name: str, kind: PtxType, value: Any) -> None:
    emit(spell("st", "param", choose_memory_type(kind)), (AddressOperand(name), _convert_argument(kind, value)))


def _convert_argument(kind: PtxType, value: Any) -> Any:
    return make_literal(value, kind) if isinstance(value, int | float) else value


def call(trace: Trace, name: str, args: list[tuple[PtxType, Any]], returns: Sequence[PtxType]) -> list[Reg]:
    """Emit a call in its own block: declare and store the parameters, call, load the results."""
    outputs = [create_register(kind) for kind in returns]
    with Named("call", name), Scope():
        for prefix, kinds in (("arg", [kind for kind, _ in args]), ("result", returns)):
            for index, kind in enumerate(kinds):
                trace.append(VarDecl(StateSpace.PARAM, _choose_parameter_type(kind), f"{prefix}{index}"))
                trace.declare_parameter(f"{prefix}{index}", kind.name)
        for index, (kind, value) in enumerate(args):
            _store(f"arg{index}", kind, value)
        results, arguments = (
            tuple(LabelOperand(f"{prefix}{i}") for i in range(count))
            for prefix, count in (("result", len(returns)), ("arg", len(args)))
        )
        operands: tuple[Any, ...] = (name,) if not args and not returns else (name, arguments)
        emit(spell("call", "uni"), (results, *operands) if returns else operands, None, trace)
        for index, register in enumerate(outputs):
            emit(spell("ld", "param", choose_memory_type(register.dtype)), (register, AddressOperand(f"result{index}")))
    return outputs


def const(dtype: Dtype, values: Sequence[int | float], *, name: str | None = None, space: str = "const") -> str:
    """Declare a table at module level: `.const .T name[n] = {…}`, or in `space="global"`. Returns its name."""
    dtype = resolve_type(dtype)
    trace = get_trace()
    if space not in ("const", "global"):
        fail(rules.ARGUMENT, f"a table must be in 'const' or 'global', found {space!r}")
    if not values:
        fail(rules.ARGUMENT, "a table must have at least one value")
    kind = ScalarType.from_ptx(choose_memory_type(dtype))
    texts = tuple(make_literal(value, dtype).text for value in values)
    full = trace.choose_module_name(name, "table")
    trace.declare_module_variable(VarDecl(StateSpace.from_ptx(space), kind, full, len(texts), initializer=texts))
    return full


def trap(*, pred: Pred | None = None) -> None:
    """Emit `trap`: aborts the kernel with an error."""
    emit(spell("trap"), (), pred)
