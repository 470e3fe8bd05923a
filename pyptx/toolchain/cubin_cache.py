"""Machine code that earlier processes assembled, in the user's cache: by the PTX, the target, and the assembler.

Only code without messages is kept, since messages name places of this process's program.
"""

from __future__ import annotations

import hashlib
import json
import os

from pyptx.cache import Store
from pyptx.toolchain.assembler import assemble, default_target
from pyptx.toolchain.cubin import Cubin
from pyptx.toolchain.messages import OriginOf
from pyptx.toolchain.tools import ToolMissing, find_tool

FORMAT = 1
"""Changes with what `assemble` passes to the assembler, and with the layout of a file."""
MOST_BYTES = 1 << 28
FOLDER, SUFFIX, DIGEST_SUFFIX = "cubins", ".cubin", ".digest"


def assemble_cached(
    ptx: str, target: str | None = None, *, lineinfo: bool = False, origin_of: OriginOf | None = None
) -> Cubin:
    """Return the machine code of a module like `assemble`, from the cache if it has been assembled before."""
    store = Store.open(FOLDER, SUFFIX, MOST_BYTES)
    assembler = "" if store is None else _identify_assembler(store)
    if store is None or not assembler:
        return assemble(ptx, target, lineinfo=lineinfo, origin_of=origin_of)
    arch = default_target(ptx) if target is None else target
    key = json.dumps([FORMAT, assembler, arch, lineinfo, ptx])
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    cubin = _decode(store.read(name))
    if cubin is None:
        cubin = assemble(ptx, target, lineinfo=lineinfo, origin_of=origin_of)
        if not cubin.diagnostics:
            store.write(name, _encode(cubin))
    return cubin


def _identify_assembler(store: Store) -> str:
    """Return what identifies the assembler without running it; nothing if ptxas is not installed, or cannot be read.
    The path counts, as a script may start another program."""
    try:
        path = find_tool("ptxas").path
        status = os.stat(path)
        times = status.st_mtime_ns, status.st_ctime_ns
        return f"{path} {_find_digest(store, path, status.st_dev, status.st_ino, status.st_size, *times)}"
    except (ToolMissing, OSError):
        return ""


def _find_digest(store: Store, path: str, *status: int) -> str:
    """Return the digest of a program, which is kept until its status changes: computing it takes 70 ms, reading it 0.1.
    Only the time of the status tells apart the programs of images whose files all have one time and size."""
    digests = Store(store.folder, DIGEST_SUFFIX, MOST_BYTES)
    name = hashlib.sha256(json.dumps([path, *status]).encode()).hexdigest()[:32]
    digest = digests.read(name)
    if digest is None:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest().encode()
        digests.write(name, digest)
    return digest.decode()


def _encode(cubin: Cubin) -> bytes:
    return json.dumps([cubin.target, cubin.producer, cubin.log]).encode("ascii") + b"\n" + cubin.data


def _decode(body: bytes | None) -> Cubin | None:
    if body is None:
        return None
    head, _, data = body.partition(b"\n")
    target, producer, log = json.loads(head)
    return Cubin(data, target, producer, log)
