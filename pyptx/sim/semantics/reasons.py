"""Why spellings have no semantics: by their words and by the target that brought them. `tools.sim_coverage` counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why spellings that contain all of these words and need this target have no semantics."""

    words: str
    """The opcode and modifiers, each after a dot, in any order."""
    target: str
    rows: int
    """The number of table rows with such spellings: another row needs its own reason."""
    why: str


_DEVICES = "requires several GPUs"
_UNDESCRIBED = "no manual describes its result"

REASONS = (
    Reason("fabric.try_get", "sm_100", 1, _DEVICES),
    Reason("fabric.try_put", "sm_100", 2, _DEVICES),
    Reason("fabric.try_red", "sm_100", 2, _DEVICES),
    Reason("fabric.try_pullred", "sm_100", 1, _DEVICES),
    Reason("fabric.try_atom", "sm_100", 1, _DEVICES),
    Reason("fabric.submit", "sm_100", 2, _DEVICES),
    Reason("fabric.wait", "sm_100", 1, _DEVICES),
    Reason("fabric.try_get.tensor", "sm_107f", 3, _DEVICES),
    Reason("fabric.try_put.tensor", "sm_107f", 3, _DEVICES),
    Reason("fabric.try_red.tensor", "sm_107f", 3, _DEVICES),
    Reason("spcompress", "sm_107a", 4, _UNDESCRIBED),
    Reason("tcgen05.ld.spcompress", "sm_107a", 2, _UNDESCRIBED),
    Reason("tcgen05.mma.kind::ti16", "sm_107f", 5, _UNDESCRIBED),
    Reason("tcgen05.mma.decompress::lut::b", "sm_107f", 4, _UNDESCRIBED),
)
