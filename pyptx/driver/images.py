"""The PTX in what programs load: PTX text, and on request the PTX that a compiler stored in a cubin or fatbin. Never
reads machine code."""

from __future__ import annotations

import struct
from mmap import PAGESIZE

from pyptx.diagnostics import PtxError
from pyptx.driver import host_memory
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.line_info import restore_lines
from pyptx.isa.targets import FIRST_PTX, Target, find_target
from pyptx.toolchain import ToolFailed, ToolMissing, default_target
from pyptx.toolchain.elf import ELF_MAGIC, Elf, read_elf
from pyptx.toolchain.extraction import extract_images

_ELF, _FATBIN, _WRAPPER = ELF_MAGIC[:4], b"\x50\xed\x55\xba", b"\xb1\x43\x62\x46"
_TEXT = ".nv_debug_ptx_txt"
"""The section in which compilers store the PTX with the information about lines; relocatable code adds a suffix."""
_HEADER, _NOBITS = 64, 8
_KEEP_PTX = "compile with `-lineinfo`, or with `--generate-line-info` for NVRTC, which stores the PTX in the image"
_NOT_CHOSEN = (
    "this image holds machine code, and the PTX in it is used only on request: run `pyptx simulate --from-images`, and "
    f"{_KEEP_PTX}; or load PTX"
)
_NO_PTX = f"this cubin holds machine code only: {_KEEP_PTX}; or load PTX"
_NO_PTX_IN_FATBIN = (
    "this fatbin holds no PTX: compile with `-lineinfo`, which stores it in the cubins, or with `-gencode "
    "arch=compute_XX,code=compute_XX`"
)
_SEVERAL = (
    "this cubin was linked from several PTX modules, which cannot be linked here: link with `-lto`, or load one module"
)


def read_image(address: int, device: Target, *, from_images: bool, size: int | None = None) -> str:
    """Return the PTX of an image in memory for a device. DriverError if it has none, with a text that says what to do;
    PTX in machine code is used only with `from_images`. `size` is that of a file, whose end is known."""
    magic = _read_magic(address)
    if is_text(address):
        text = host_memory.read_text(address)
        _refuse_other_target(text, device)
        return text
    if not from_images:
        raise DriverError(Code.ERROR_NO_BINARY_FOR_GPU, _NOT_CHOSEN)
    end = None if size is None else address + size
    if magic == _WRAPPER:
        if end is not None:
            raise DriverError(Code.ERROR_INVALID_IMAGE, "a file cannot hold the address of a fatbin")
        (address,) = host_memory.read_pointers(address + 8, 1)
        magic = host_memory.read(address, 4)
    try:
        if magic == _ELF:
            return _read_cubin(_copy_elf(address, end), device)
        return _read_fatbin(_copy_fatbin(address, end), device)
    except (ToolMissing, ToolFailed) as why:
        (finding,) = why.diagnostics
        text = "; ".join(filter(None, [finding.message, finding.help]))
        raise DriverError(Code.ERROR_NO_BINARY_FOR_GPU, text) from None
    except PtxError as why:
        raise DriverError(Code.ERROR_INVALID_IMAGE, why.diagnostics[0].message) from None


def is_text(address: int) -> bool:
    """Return whether an image is PTX, and not machine code that may have PTX beside it."""
    return _read_magic(address) not in (_ELF, _FATBIN, _WRAPPER)


def _refuse_other_target(text: str, device: Target) -> None:
    """Refuse PTX that the driver's compiler could not compile for the device; an unknown target is the checker's."""
    name = default_target(text)
    if name in FIRST_PTX and not device.provides(find_target(name)):
        why = f"this PTX is for {name} and cannot run on {device}: compile for it, or choose a GPU with --device"
        raise DriverError(Code.ERROR_INVALID_PTX, why)


def _read_magic(address: int) -> bytes:
    """Return the first bytes of an image: the number of its format, or text, which may end earlier."""
    start = host_memory.read(address, min(4, PAGESIZE - address % PAGESIZE))
    return start if len(start) == 4 or b"\0" in start else host_memory.read(address, 4)


def _read(address: int, size: int, end: int | None) -> bytes:
    """Return bytes of an image, which must not go beyond its end if that is known."""
    if end is not None and address + size > end:
        raise DriverError(Code.ERROR_INVALID_IMAGE, "the file ends in the middle of the image")
    return host_memory.read(address, size)


def _copy_elf(address: int, end: int | None) -> bytes:
    """Return the bytes of an ELF file in memory, as far as its section headers and sections go."""
    header = _read(address, _HEADER, end)
    if not header.startswith(ELF_MAGIC):
        raise DriverError(Code.ERROR_INVALID_IMAGE)
    (start,), (count,) = struct.unpack_from("<Q", header, 0x28), struct.unpack_from("<H", header, 0x3C)
    table = _read(address + start, 64 * count, end)
    ends = [
        offset + size for _, kind, _, _, offset, size, *_ in struct.iter_unpack("<IIQQQQIIQQ", table) if kind != _NOBITS
    ]
    return _read(address, max(_HEADER, start + 64 * count, *ends), end)


def _copy_fatbin(address: int, end: int | None) -> bytes:
    """Return the bytes of a fatbin in memory."""
    magic, _, header, size = struct.unpack("<4sHHQ", _read(address, 16, end))
    if magic != _FATBIN:
        raise DriverError(Code.ERROR_INVALID_IMAGE)
    return _read(address, header + size, end)


def _read_cubin(data: bytes, device: Target) -> str:
    """Return the PTX from which a cubin was compiled, if the compiler stored it and the device could run the cubin."""
    elf = read_elf(data)
    if not _runs_on(elf, device):
        why = f"this cubin for sm_{elf.arch} cannot run on {device}: compile for it, or choose a GPU with --device"
        raise DriverError(Code.ERROR_NO_BINARY_FOR_GPU, why)
    texts = _list_stored(elf)
    if len(texts) != 1:
        raise DriverError(Code.ERROR_NO_BINARY_FOR_GPU, _SEVERAL if texts else _NO_PTX)
    return texts[0]


def _runs_on(elf: Elf, device: Target) -> bool:
    return elf.arch // 10 == device.arch // 10 and elf.arch <= device.arch


def _list_stored(elf: Elf) -> list[str]:
    """Return the PTX of each module in a cubin, as far as it is stored."""
    # Lines end with NUL in the image.
    texts = [section.data.replace(b"\0", b"\n") for section in elf.sections if section.name.startswith(_TEXT)]
    return [restore_lines(text.decode("utf-8", "replace"), elf) for text in texts]


def _read_fatbin(data: bytes, device: Target) -> str:
    """Return the PTX of a fatbin for the newest target that the device provides, its own or that of its cubins.
    cuobjdump takes both out: the format of the members, which are compressed, is not documented."""
    own_texts, cubins = extract_images(data)
    stored = [_list_stored(elf) for elf in map(read_elf, cubins.values()) if _runs_on(elf, device)]
    # The fatbin's own text is complete, so it replaces the same text of a cubin.
    all_texts = [*(texts[0] for texts in stored if len(texts) == 1), *own_texts.values()]
    texts = {find_target(name): text for text in all_texts if (name := default_target(text)) in FIRST_PTX}
    if not texts:
        raise DriverError(Code.ERROR_NO_BINARY_FOR_GPU, _NO_PTX_IN_FATBIN)
    usable = [target for target in texts if device.provides(target)]
    if not usable:
        names = ", ".join(map(str, texts))
        why = f"this fatbin has PTX for {names}, which cannot run on {device}: choose a GPU with --device"
        raise DriverError(Code.ERROR_NO_BINARY_FOR_GPU, why)
    return texts[max(usable, key=lambda target: (target.arch, ("", "f", "a").index(target.suffix)))]
