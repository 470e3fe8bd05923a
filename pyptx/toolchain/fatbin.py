"""Combines machine code for several targets, and the PTX, in one image that the driver chooses from."""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.toolchain.cubin import Cubin
from pyptx.toolchain.process import create_private_folder, run
from pyptx.toolchain.tools import find_tool


def combine_images(ptx: str, target: str, cubins: Sequence[Cubin]) -> bytes:
    """Return a fatbin of machine code and PTX for a target."""
    tool = find_tool("fatbinary")
    with create_private_folder() as folder:
        images = [(f"kind=ptx,sm={target.removeprefix('sm_')}", "module.ptx", ptx.encode())]
        images += [(f"kind=elf,sm={c.target.removeprefix('sm_')}", f"{c.target}.cubin", c.data) for c in cubins]
        words = [tool.path, "-64", f"--create={folder / 'module.fatbin'}"]
        for kind, file, data in images:
            (folder / file).write_bytes(data)
            words.append(f"--image3={kind},file={folder / file}")
        completed = run(words)
        if completed.status:
            raise completed.make_failure()
        return (folder / "module.fatbin").read_bytes()
