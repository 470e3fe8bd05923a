"""Variants of the examples' kernels that are worth a measurement: template parameters, and shapes.

Each has the example's default as the first, to be compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from examples.parts.example import load_examples

Gemm: Any = import_module("examples.hopper.06_persistent_gemm").Config
Attention: Any = import_module("examples.hopper.10_attention_overlap").Config
ONCE = "L1::no_allocate"


@dataclass(frozen=True)
class Variant:
    """What a kernel is made with, and its shape, by default the example's large one."""

    label: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shape: Mapping[str, Any] | None = None
    rank: int = 0
    """Variants of rank 0 are timed first."""


def make_gemms(side: int) -> list[Variant]:
    """Return variants of a product of square matrices."""
    configs: dict[str, tuple[Any, int, int]] = {
        "default": (Gemm(), 132, 0),
        "no cluster, band 16": (Gemm(ctas=1, band=16), 132, 0),
        "128 SMs": (Gemm(), 128, 0),
        "no cluster": (Gemm(ctas=1), 132, 0),
        "cluster of 4": (Gemm(ctas=4), 128, 0),
        "cluster of 4, band 4": (Gemm(ctas=4, band=4), 128, 0),
        "no cluster, 128 SMs": (Gemm(ctas=1, band=16), 128, 0),
        "1 buffer": (Gemm(buffers=1), 132, 1),
        "band 4": (Gemm(band=4), 132, 1),
        "band 16": (Gemm(band=16), 132, 1),
        "3 stages, 4 buffers": (Gemm(stages=3, buffers=4), 132, 1),
        "240 registers": (Gemm(registers=(24, 240)), 132, 1),
        "128 columns, 6 stages": (Gemm(columns=128, stages=6), 132, 1),
        "no cluster, 128 columns, 6 stages": (Gemm(ctas=1, band=16, columns=128, stages=6), 132, 1),
        "192 columns, 5 stages": (Gemm(columns=192, stages=5, buffers=1), 132, 1),
    }
    return [
        Variant(f"{side} {label}", {"config": config}, {"m": side, "n": side, "k": side, "sms": sms}, rank)
        for label, (config, sms, rank) in configs.items()
    ]


def make_rows(threads: tuple[int, ...], shape: Mapping[str, int]) -> list[Variant]:
    """Return variants of a kernel that reads and writes rows once."""
    return [
        *(Variant(f"{count} threads", {"threads": count}, shape) for count in threads),
        Variant("plain loads", {"cache": None}, shape),
        Variant("streaming stores", {"store_cache": "cs"}, shape),
        Variant("streaming loads and stores", {"cache": "cs", "store_cache": "cs"}, shape),
    ]


def make_decode(sequences: int, length: int, splits: int) -> dict[str, int]:
    """Return a shape of decode attention, with 8 key heads for 64 query heads."""
    return {"b": sequences, "n": 8 * sequences, "r": 8, "s": length, "d": 128, "splits": splits}


ATTENTION = {"h": 16, "s": 16384, "d": 128}
VARIANTS: dict[str, list[Variant]] = {
    "hopper/persistent_gemm": [*make_gemms(8192), *make_gemms(4096)],
    "hopper/attention_overlap": [
        Variant("default", {}, ATTENTION),
        Variant("headroom", {"config": Attention(headroom=8.0)}, ATTENTION),
        Variant("headroom, 128 keys", {"config": Attention(headroom=8.0, keys=128)}, ATTENTION),
        Variant("headroom, no turns", {"config": Attention(headroom=8.0, takes_turns=False)}, ATTENTION),
        Variant("headroom, 1 of 8 by FMA", {"config": Attention(headroom=8.0, share=8)}, ATTENTION),
        Variant("128 keys", {"config": Attention(keys=128)}, ATTENTION),
        Variant("no turns", {"config": Attention(takes_turns=False)}, ATTENTION),
        Variant("1 of 8 by FMA", {"config": Attention(share=8)}, ATTENTION),
        Variant("causal", {}, {**ATTENTION, "causal": True}),
        Variant("causal, headroom", {"config": Attention(headroom=8.0)}, {**ATTENTION, "causal": True}),
        Variant("causal, no turns", {"config": Attention(takes_turns=False)}, {**ATTENTION, "causal": True}, 1),
        Variant("128 keys, 3 stages", {"config": Attention(keys=128, stages=3)}, ATTENTION, 1),
        Variant("128 keys, no turns", {"config": Attention(keys=128, takes_turns=False)}, ATTENTION, 1),
        Variant("64 wide", {}, {**ATTENTION, "d": 64, "h": 32}, 1),
        Variant("64 wide, headroom", {"config": Attention(headroom=8.0)}, {**ATTENTION, "d": 64, "h": 32}, 1),
        Variant("256 wide", {}, {**ATTENTION, "d": 256, "h": 8}, 1),
    ],
    "hopper/fp8_gemm": [
        Variant("default"),
        Variant("8192", {}, {"m": 8192, "n": 8192, "k": 8192, "kb": 64, "nb": 64, "sms": 132}),
        Variant("band 16", {"band": 16}, rank=1),
        Variant("band 4", {"band": 4}, rank=1),
        Variant("3 stages", {"stages": 3}, rank=1),
    ],
    "any/softmax": make_rows((256, 128, 512), {"m": 65536, "n": 4096}),
    "any/rmsnorm": make_rows((256, 128, 512), {"m": 65536, "n": 4096}),
    "any/layernorm": make_rows((256, 512, 1024), {"m": 65536, "n": 8192}),
    "any/swiglu": [
        *make_rows((256, 128, 512), {"m": 32768, "n": 14336}),
        Variant("1 vector", {"vectors": 1}, {"m": 32768, "n": 14336}),
        Variant("4 vectors", {"vectors": 4}, {"m": 32768, "n": 14336}),
    ],
    "any/vector_add": [
        Variant("default", {}, {"n": 1 << 28}),
        Variant("no allocation", {"cache": ONCE}, {"n": 1 << 28}),
        Variant("streaming", {"cache": "cs", "store_cache": "cs"}, {"n": 1 << 28}),
    ],
    "any/transpose": [
        Variant("default", {}, {"m": 16384, "n": 16384}),
        Variant("16 rows at a time", {"step": 16}, {"m": 16384, "n": 16384}),
        Variant("4 rows at a time", {"step": 4}, {"m": 16384, "n": 16384}),
        Variant("64 x 64, 4 rows", {"side": 64, "step": 4}, {"m": 16384, "n": 16384}),
        Variant("64 x 64, 8 rows", {"side": 64, "step": 8}, {"m": 16384, "n": 16384}),
        Variant("64 x 64, 16 rows", {"side": 64, "step": 16}, {"m": 16384, "n": 16384}),
    ],
    "hopper/decode_attention": [
        *(Variant(f"1 x 1024, {splits} splits", {}, make_decode(1, 1024, splits)) for splits in (1, 2, 4, 8, 16)),
        *(Variant(f"16 x 8192, {splits} splits", {}, make_decode(16, 8192, splits)) for splits in (1, 2, 4)),
    ],
    "any/reduction": [
        Variant(f"{parts} parts", {}, {"m": 1, "n": 1 << 28, "parts": parts}) for parts in (528, 1056, 2112, 8448)
    ],
}


CEILINGS = "ceilings"
"""In place of an example: what the GPU itself can do."""


@dataclass(frozen=True)
class Job:
    """A variant of an example to time."""

    name: str
    variant: Variant


def list_jobs(names: Sequence[str], *, has_variants: bool) -> list[Job]:
    """Return what to time of these examples, or of all: what the GPU can do, then the most valuable first."""
    if has_variants:
        pairs = [(name, variant) for name, variants in VARIANTS.items() for variant in variants]
        pairs.sort(key=lambda pair: pair[1].rank)
    else:
        fast = sorted((example.name for example in load_examples()), key=lambda name: not name.startswith("hopper/"))
        pairs = [(name, Variant("default")) for name in fast]
    return [Job(CEILINGS, Variant("")), *(Job(*pair) for pair in pairs if pair[0] in names or not names)]
