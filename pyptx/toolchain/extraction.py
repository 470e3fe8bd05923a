"""Extracts PTX and cubins from fatbins, object files, libraries and executables with cuobjdump."""

from __future__ import annotations

from pyptx.toolchain import rules
from pyptx.toolchain.process import DEFAULT_TIMEOUT, ToolFailed, create_private_folder, run
from pyptx.toolchain.tools import find_tool

MAGIC = (b"\x7fELF", b"\x50\xed\x55\xba", b"!<arch>\n", b"MZ")
"""The first bytes of files that may contain PTX: ELF, fatbin, archive, Windows executable."""


def holds_ptx(data: bytes) -> bool:
    """Tell whether PTX can be extracted from this kind of file."""
    return data.startswith(MAGIC)


def extract_ptx(data: bytes, *, timeout: float = DEFAULT_TIMEOUT) -> dict[str, str]:
    """Return the PTX texts in a binary by the names that cuobjdump gives them; ToolFailed if there are none."""
    texts, _ = extract_images(data, timeout=timeout)
    if texts:
        return texts
    message = "no PTX in this file: it contains only machine code"
    help = "compile with -gencode arch=compute_XX,code=compute_XX to keep the PTX"
    raise ToolFailed([rules.TOOL_FAILED.report(None, message, help=help)])


def extract_images(data: bytes, *, timeout: float = DEFAULT_TIMEOUT) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the PTX texts and the cubins in a binary by the names that cuobjdump gives them."""
    tool = find_tool("cuobjdump")
    with create_private_folder() as folder:
        (folder / "in").write_bytes(data)
        run_result = run([tool.path, "--extract-ptx", "all", "--extract-elf", "all", "in"], cwd=folder, timeout=timeout)
        texts = {path.name: path.read_bytes().rstrip(b"\0") for path in sorted(folder.glob("*.ptx"))}
        cubins = {path.name: path.read_bytes() for path in sorted(folder.glob("*.cubin"))}
    if not texts and not cubins and run_result.status != 0:
        raise run_result.make_failure()
    return {name: text.decode("utf-8", "replace") for name, text in texts.items()}, cubins
