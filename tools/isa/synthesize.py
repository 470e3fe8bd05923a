"""Turns a match of the table into a PTX instruction whose operands all exist, for the audits to assemble."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyptx.isa.model import Kind, Match, Operand
from pyptx.types import from_name

REGISTERS = 600
"""Registers declared per class; vectors use consecutive ones."""

_CLASS_OF_BITS = {1: "b16", 4: "b16", 6: "b16", 8: "b16", 16: "b16", 32: "b32", 64: "b64", 128: "b128"}
_OWN_CLASS = {"f32", "f64", "f16", "f16x2", "pred"}


def declarations(version: tuple[int, int], arch: int) -> list[str]:
    """Return a function's register declarations for a module of this PTX version and architecture."""
    classes = ["pred", "b8", "b16", "b32", "b64", "f32", "f64"]
    classes += ["b128"] if version >= (8, 3) and arch >= 70 else []
    is_native = version >= (4, 2) and arch >= 53
    halves = [("f16", "f16" if is_native else "b16"), ("f16x2", "f16x2" if is_native else "b32")]
    return [f".reg .{of} q_{name}_<{REGISTERS}>;" for name, of in [*((c, c) for c in classes), *halves]]


def module_variables(*, sampler: bool) -> list[str]:
    """Return the variables that operands may name; a sampler only where textures and samplers are independent."""
    return [
        ".global .texref q_texref;",
        ".global .surfref q_surfref;",
        *([".global .samplerref q_samplerref;"] if sampler else []),
        ".global .align 16 .b8 q_global[1024];",
        ".const .align 16 .b8 q_const[1024];",
        ".shared .align 128 .b8 q_shared[1024];",
        ".func q_callee() { ret; }",
        ".func q_callee_1(.param .b32 q_in) { ret; }",
        ".func (.param .b32 q_out) q_callee_2() { ret; }",
        ".func (.param .b32 q_out) q_callee_3(.param .b32 q_in) { ret; }",
    ]


def function_labels(version: tuple[int, int], arch: int) -> list[str]:
    """Return the parameters and labels of a function that calls and branches may name."""
    return [
        ".param .align 16 .b8 q_funcparam[256];",
        ".param .b32 q_argument, q_result;",
        "q_prototype: .callprototype _ ();",
        "q_prototype_1: .callprototype _ (.param .b32 _);",
        "q_prototype_2: .callprototype (.param .b32 _) _ ();",
        "q_prototype_3: .callprototype (.param .b32 _) _ (.param .b32 _);",
        *(["q_targets: .branchtargets q_label;"] if version >= (5, 1) and arch >= 30 else []),
    ]


def register_class(type_name: str | None) -> str:
    """Return the class of register that holds a value of this type."""
    if type_name is None:
        return "b32"
    return type_name if type_name in _OWN_CLASS else _CLASS_OF_BITS[from_name(type_name).bits]


@dataclass
class Registers:
    """Allocates registers; destinations never repeat, so ptxas cannot reject overlapping vectors."""

    counts: dict[str, int] = field(default_factory=dict[str, int])

    def fresh(self, type_name: str | None) -> str:
        name = register_class(type_name)
        number = self.counts.get(name, 0)
        self.counts[name] = number + 1
        return f"q_{name}_{number}"

    def fresh_byte(self) -> str:
        """Return an 8-bit register, for operands that need exactly eight bits."""
        self.counts["b8"] = self.counts.get("b8", 0) + 1
        return f"q_b8_{self.counts['b8']}"


def instruction(match: Match, signature: tuple[Operand, ...], guard: str = "") -> str:
    """Return one instruction of this spelling, with its semicolon."""
    registers = Registers()
    head = ".".join((match.form.opcode, *match.modifiers))
    operands = ", ".join(operand(o, registers) for o in signature)
    if match.form.opcode == "call" and (lists := ("(q_argument" in operands) + 2 * ("(q_result" in operands)):
        operands = operands.replace("q_callee", f"q_callee_{lists}").replace("q_prototype", f"q_prototype_{lists}")
    return f"{guard}{head}{' ' if operands else ''}{operands};"


def instructions(match: Match) -> Iterator[str]:
    """Yield one instruction for each operand list of the spelling."""
    for signature in match.signatures:
        yield instruction(match, signature)


def operand(o: Operand, registers: Registers) -> str:
    """Return legal text for an operand."""
    if o.kind is Kind.ADDRESS:
        return "[" + ", ".join([_base(o, registers), *(operand(p, registers) for p in o.parts[1:])]) + "]"
    if o.kind is Kind.PIPE:
        return "|".join(operand(p, registers) for p in o.parts)
    if o.count:
        return "{" + ", ".join(_scalar(o, registers) for _ in range(o.count)) + "}"
    if o.kind is Kind.IMMEDIATE:
        return immediate(o)
    return _scalar(o, registers)


def _base(o: Operand, registers: Registers) -> str:
    if o.space == "param::func" or (o.space == "param" and "w" in o.access):
        return "q_funcparam"
    if o.space in ("param", "param::entry"):
        return "q_param"
    base = o.parts[0]
    if base.kind in (Kind.VARIABLE, Kind.REGISTER):
        return _scalar(base, registers)
    return registers.fresh("b64")


def _scalar(o: Operand, registers: Registers) -> str:
    if o.kind is Kind.SINK:
        return "_"
    if o.kind is Kind.LABEL:
        return {"targets": "q_targets", "prototype": "q_prototype"}.get(o.name, "q_label")
    if o.kind is Kind.FUNCTION:
        return "q_callee"
    if o.kind is Kind.LIST:
        return "(q_result)" if o.access == "w" else "(q_argument)"
    if o.kind is Kind.SPECIAL:
        return "%clock64" if register_class(o.type) == "b64" else "%tid.x"
    if o.kind is Kind.VARIABLE and o.type in ("texref", "samplerref", "surfref"):
        return f"q_{o.type}"
    if o.kind is Kind.VARIABLE:
        return f"q_{o.space or 'global'}"
    if o.type in ("b8", "u8", "s8") and not o.widenable:
        return registers.fresh_byte()
    return registers.fresh(o.type)


def immediate(o: Operand) -> str:
    """Return the smallest immediate that the operand's bounds allow."""
    if o.type in ("f32", "f64"):
        return "0f00000000" if o.type == "f32" else "0d0000000000000000"
    return str(o.bounds[0] if o.bounds else 0)
