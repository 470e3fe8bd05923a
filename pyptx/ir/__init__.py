"""The representation of PTX shared by all layers: frozen nodes that compute their own text. Names are loaded on first
use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.ir.base import Node, tokens
    from pyptx.ir.constants import displacement, evaluate, fault, overflows
    from pyptx.ir.directives import (
        AddressSize,
        AliasDirective,
        BranchTargets,
        CallPrototype,
        CallTargets,
        Directive,
        DwarfDirective,
        FileDirective,
        LabelRange,
        LocDirective,
        Module,
        PragmaDirective,
        Section,
        SectionData,
        SectionLabel,
        SkippedText,
        Target,
        Version,
    )
    from pyptx.ir.kinds import UNSIZED, LinkingDirective, Number, ScalarType, StateSpace
    from pyptx.ir.layout import Layout, layout_of
    from pyptx.ir.nodes import (
        Attribute,
        Block,
        Declarator,
        Function,
        FunctionDirective,
        Instruction,
        IntrinsicScope,
        Label,
        Param,
        Predicate,
        RegDecl,
        Statement,
        VarDecl,
    )
    from pyptx.ir.operands import (
        AddressOperand,
        BinaryOperand,
        CastOperand,
        ConditionalOperand,
        ConstantAddressOperand,
        FieldOperand,
        GenericOperand,
        ImmediateOperand,
        IndexedOperand,
        LabelOperand,
        MaskOperand,
        NegatedOperand,
        Operand,
        ParenthesizedOperand,
        PipeOperand,
        RegisterOperand,
        UnaryOperand,
        VectorOperand,
        text_of,
    )
    from pyptx.ir.spans import guard_span, modifier_span, opcode_span, operand_span, part_span, token_span, word_span
    from pyptx.ir.walk import (
        body_of,
        children,
        diff_modules,
        module_tokens,
        normalize_module,
        parts_of,
        replace_statements,
        strip_layout,
        visit,
    )

_NAMES_OF = {
    "base": "Node tokens",
    "constants": "displacement evaluate fault overflows",
    "directives": "AddressSize AliasDirective BranchTargets CallPrototype CallTargets Directive DwarfDirective "
    "FileDirective LabelRange LocDirective Module PragmaDirective Section SectionData SectionLabel SkippedText Target "
    "Version",
    "kinds": "UNSIZED LinkingDirective Number ScalarType StateSpace",
    "layout": "Layout layout_of",
    "nodes": "Attribute Block Declarator Function FunctionDirective Instruction IntrinsicScope Label Param Predicate "
    "RegDecl Statement VarDecl",
    "operands": "AddressOperand BinaryOperand CastOperand ConditionalOperand ConstantAddressOperand FieldOperand "
    "GenericOperand ImmediateOperand IndexedOperand LabelOperand MaskOperand NegatedOperand Operand "
    "ParenthesizedOperand PipeOperand RegisterOperand UnaryOperand VectorOperand text_of",
    "spans": "guard_span modifier_span opcode_span operand_span part_span token_span word_span",
    "walk": "body_of children diff_modules module_tokens normalize_module parts_of replace_statements strip_layout "
    "visit",
}
__all__ = [
    "Node", "tokens", "displacement", "evaluate", "fault", "AddressSize", "AliasDirective", "BranchTargets",
    "CallPrototype", "CallTargets", "Directive", "DwarfDirective", "FileDirective", "LabelRange", "LocDirective",
    "Module", "PragmaDirective", "Section", "SectionData", "SectionLabel", "SkippedText", "Target", "Version",
    "UNSIZED", "LinkingDirective", "Number", "ScalarType", "StateSpace", "Layout", "layout_of", "Attribute",
    "Block", "Declarator", "Function", "FunctionDirective", "Instruction", "IntrinsicScope", "Label", "Param",
    "Predicate", "RegDecl", "Statement", "VarDecl", "AddressOperand", "BinaryOperand", "CastOperand",
    "ConditionalOperand", "ConstantAddressOperand", "FieldOperand", "GenericOperand", "ImmediateOperand",
    "IndexedOperand", "LabelOperand", "MaskOperand", "NegatedOperand", "Operand", "ParenthesizedOperand",
    "PipeOperand", "RegisterOperand", "UnaryOperand", "VectorOperand", "text_of", "guard_span", "modifier_span",
    "opcode_span", "operand_span", "overflows", "part_span", "token_span", "word_span", "body_of", "children",
    "diff_modules", "module_tokens", "normalize_module", "parts_of", "replace_statements", "strip_layout", "visit",
]  # fmt: skip
__getattr__, __dir__ = defer_imports(__name__, _NAMES_OF)
