"""Machine code that earlier processes assembled, in the user's cache: by the PTX, the target, and the assembler.

Only code without messages is kept, since messages name places of this process's program.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import lru_cache

from pyptx.cache import Store
from pyptx.toolchain.assembler import assemble, default_target
from pyptx.toolchain.cubin import Cubin
from pyptx.toolchain.messages import OriginOf
from pyptx.toolchain.tools import ToolMissing, find_tool

FORMAT = 1
"""Changes with what `assemble` passes to the assembler, and with the layout of a file."""
MOST_BYTES = 1 << 28
FOLDER, SUFFIX = "cubins", ".cubin"
_END_BYTES = 1 << 18


def assemble_cached(
    ptx: str, target: str | None = None, *, lineinfo: bool = False, origin_of: OriginOf | None = None
) -> Cubin:
    """Return the machine code of a module like `assemble`, from the cache if it has been assembled before."""
    store, assembler = Store.open(FOLDER, SUFFIX, MOST_BYTES), _identify_assembler()
    if store is None or not assembler:
        return assemble(ptx, target, lineinfo=lineinfo, origin_of=origin_of)
    arch = default_target(ptx) if target is None else target
    key = json.dumps([FORMAT, assembler, arch, lineinfo, ptx])
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    cubin = _decode(store.read(name))
    if cubin is None:
        cubin = assemble(ptx, target, lineinfo=lineinfo, origin_of=origin_of)
        if not cubin.diagnostics:
            store.write(name, _encode(cubin))
    return cubin


def _identify_assembler() -> str:
    """Return what identifies the assembler without running it; nothing if ptxas is not installed, or cannot be read."""
    try:
        path = find_tool("ptxas").path
        status = os.stat(path)
        digest = _compute_digest(path, status.st_size, status.st_mtime_ns, status.st_ino)
    except (ToolMissing, OSError):
        return ""
    return f"{path} {status.st_size} {status.st_mtime_ns} {digest}"


@lru_cache(maxsize=8)
def _compute_digest(path: str, size: int, timestamp: int, inode: int) -> str:
    """Return a digest of the beginning and the end of a program. Size and time do not tell apart the programs of
    images whose files all have one time; these parts hold a program's addresses and sizes. They take 0.7 ms, the
    version that ptxas prints takes 5, and is the same for all builds of a version."""
    with open(path, "rb") as file:
        data = file.read(_END_BYTES)
        file.seek(max(size - _END_BYTES, 0))
        return hashlib.sha256(data + file.read(_END_BYTES)).hexdigest()


def _encode(cubin: Cubin) -> bytes:
    return json.dumps([cubin.target, cubin.producer, cubin.log]).encode("ascii") + b"\n" + cubin.data


def _decode(body: bytes | None) -> Cubin | None:
    if body is None:
        return None
    head, _, data = body.partition(b"\n")
    target, producer, log = json.loads(head)
    return Cubin(data, target, producer, log)
