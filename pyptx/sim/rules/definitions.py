"""How a hazard rule is written: its code, what it means, the section of the manual that says so, and the remedy."""

from __future__ import annotations

from pyptx.diagnostics import Rule, Severity

REMEDIES: dict[str, str] = {}
"""What to do about a finding, by its code."""
KERNEL = """\
.version 8.5
.target sm_90a
.address_size 64
.global .u32 flag;
.visible .entry k()
{{
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    {}
    ret;
}}
"""
"""A kernel that 32 threads run, for the examples of hangs."""
ARITHMETIC = KERNEL.replace(
    ".reg .b32 %r<4>;", ".reg .b32 %r<4>;\n    .reg .b64 %rd<4>;\n    .reg .b16 %h<4>;\n    .reg .f32 %f<4>;"
)
"""The same with registers of all sizes, for the examples of numerics."""


def error(number: int, title: str, why: str, remedy: str, *, wrong: str = "", right: str = "") -> Rule:
    """Return a rule about something that is wrong on hardware."""
    return _define(Rule(f"PTX{number:04d}", title, why, wrong, right, Severity.ERROR), remedy)


def warning(number: int, title: str, why: str, remedy: str, *, wrong: str = "", right: str = "") -> Rule:
    """Return a rule about something that the manual requires and published kernels omit, or that may be intended."""
    return _define(Rule(f"PTX{number:04d}", title, why, wrong, right, Severity.WARNING), remedy)


def _define(rule: Rule, remedy: str) -> Rule:
    REMEDIES[rule.code] = remedy
    return rule
