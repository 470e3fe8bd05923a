"""Why spellings have no semantics: by table file, or by the start of a spelling. Counted by `tools.sim_coverage`."""

from __future__ import annotations

_DEVICES = "needs several GPUs"
_UNDESCRIBED = "sm_107a only, and no manual describes what it computes"

REASONS: dict[str, str] = {
    "fabric": _DEVICES,
    "fabric_tensor": _DEVICES,
    "sparse_vectors": _UNDESCRIBED,
    "tcgen05": _UNDESCRIBED,
    "tcgen05_mma": _UNDESCRIBED,
}
