"""The rows: one file per section of the manual, each with MEANING (instruction -> one line), FORMS and, where its
instructions do more than compute, TRAITS (instruction -> words of `traits.Trait`)."""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from importlib import import_module

from pyptx.isa.model import Form

SECTIONS = (
    "integer", "extended_precision", "floating_point", "half_precision", "mixed_precision", "comparison",
    "logic", "data_movement", "conversion", "sparse_vectors", "load", "store", "multimem", "cache_control",
    "async_copy", "tensor_copy", "fabric", "fabric_tensor", "texture", "surface", "control_flow",
    "synchronization", "atomics", "mbarrier", "tensormap", "wmma", "mma", "matrix_move", "wgmma", "tcgen05",
    "tcgen05_mma", "stack", "video", "miscellaneous",
)  # fmt: skip
"""The table's files, in the manual's order."""


@cache
def _index_by_opcode() -> dict[str, tuple[Form, ...]]:
    forms: dict[str, list[Form]] = {}
    for row in list_all_rows():
        forms.setdefault(row.opcode, []).append(row)
    return {opcode: tuple(rows) for opcode, rows in forms.items()}


@cache
def list_all_rows() -> tuple[Form, ...]:
    """Return every row, in the manual's order."""
    return tuple(row for section in SECTIONS for row in import_module(f"{__name__}.{section}").FORMS)


@cache
def meanings() -> dict[str, str]:
    """Return the one-line meaning of each instruction, keyed by its name (`add`, `cp.async.bulk.tensor`)."""
    return {
        name: meaning
        for section in SECTIONS
        for name, meaning in import_module(f"{__name__}.{section}").MEANING.items()
    }


@cache
def traits() -> dict[str, str]:
    """Return what instructions do beyond computing, keyed as `meanings` is, or by a longer name where the meanings of
    several instructions are one."""
    return {
        name: words
        for section in SECTIONS
        for name, words in getattr(import_module(f"{__name__}.{section}"), "TRAITS", {}).items()
    }


def find_name(words: tuple[str, ...]) -> str:
    """Return the name of the instruction that an opcode and its modifiers spell, which `meanings` explains: the longest
    that they begin with; an empty one for an unknown opcode."""
    return _find_longest(words, meanings())


def find_traits(words: tuple[str, ...]) -> str:
    """Return the words of `traits` for the instruction that an opcode and its modifiers spell."""
    return traits().get(_find_longest(words, _collect_names()), "")


@cache
def _collect_names() -> frozenset[str]:
    return frozenset((*meanings(), *traits()))


def _find_longest(words: tuple[str, ...], names: Container[str]) -> str:
    for count in range(len(words), 0, -1):
        *before, last = words[:count]
        for name in (".".join((*before, last)), ".".join((*before, last.partition("::")[0]))):
            if name in names:
                return name
    return ""


def find_rows(opcode: str) -> tuple[Form, ...]:
    """Return the rows of an opcode; none for an unknown one."""
    return _index_by_opcode().get(opcode, ())


def list_opcodes() -> tuple[str, ...]:
    """Return every opcode that has a row."""
    return tuple(_index_by_opcode())
