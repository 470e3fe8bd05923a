"""Variants of the examples' kernels that are worth a measurement: template parameters, and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variant:
    """What a kernel is made with, and its shape, by default the example's large one."""

    label: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shape: Mapping[str, int] | None = None


VARIANTS: dict[str, list[Variant]] = {}


def list_variants(name: str) -> list[Variant]:
    """Return the variants of an example."""
    return VARIANTS.get(name, [])
