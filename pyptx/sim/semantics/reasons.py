"""Why spellings have no semantics: by table file, or by the start of a spelling. Counted by `tools.sim_coverage`."""

from __future__ import annotations

_ENGINE = "an asynchronous engine, not simulated yet"
_DEVICES = "needs several GPUs"

REASONS: dict[str, str] = {
    "async_copy": "`.ignore_oob`, reports and multimem, not simulated yet",
    "tensor_copy": "overriding fields of a map, not simulated yet",
    "tcgen05": "copies, shifts, reducing loads, `.16x32bx2` and pairs of CTAs, not simulated yet",
    "tcgen05_mma": "block-scaled, sparse, weight-stationary products and pairs of CTAs, not simulated yet",
    "tensormap": "cancellation for all CTAs of a cluster, not simulated yet",
    "mbarrier": "conditional phases, not simulated yet",
    "miscellaneous": _ENGINE,
    "synchronization": _ENGINE,
    "multimem": _DEVICES,
    "fabric": _DEVICES,
    "fabric_tensor": _DEVICES,
    "sparse_vectors": "spcompress and spdecompress, not simulated yet",
    "stack": "alloca moves the frames of later calls, not simulated yet",
    "cvt": "scaled s2f6, not simulated yet",
}
