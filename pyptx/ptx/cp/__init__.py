"""Asynchronous copies: `ptx.cp.async_` (non-bulk), `ptx.cp.async_.bulk`, `ptx.cp.async_.bulk.tensor`."""

from pyptx.ptx.cp import async_ as async_
from pyptx.ptx.cp import bulk as async_bulk

__all__ = ["async_", "async_bulk"]


def __dir__() -> list[str]:
    return __all__
