"""Modules and libraries, and what a program asks about their kernels and variables."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from pyptx.driver.settings import Settings
from tests.driver.direct import Direct, make_room

TEXT = b"""\
.version 8.0
.target sm_80
.address_size 64
.global .align 8 .b64 total[4];
.visible .entry first(.param .u32 n, .param .u64 out, .param .align 16 .b8 many[24]) .maxntid 64, 2 { ret; }
.visible .entry second() { ret; }
.visible .entry third() .reqntid 32, 3, 2 { ret; }
\0"""
LAYOUT = [(0, 4), (8, 8), (16, 24)]


def get_names(direct: Direct, kernels: list[int]) -> list[str]:
    found = {
        tuple(ctypes.string_at(direct.ask(name, kernel)).decode() for kernel in kernels)
        for name in ("cuFuncGetName", "cuKernelGetName")
    }
    (names,) = found
    return list(names)


@pytest.mark.parametrize(
    ("owner", "count", "enumerate_", "find", "variable"),
    [
        ("Module", "FunctionCount", "Functions", "Function", "Global_v2"),
        ("Library", "KernelCount", "Kernels", "Kernel", "Global"),
        ("Library", "KernelCount", "Kernels", "Kernel", "Managed"),
    ],
)
def test_an_image_lists_its_kernels_and_finds_them_and_variables_by_name(
    owner: str, count: str, enumerate_: str, find: str, variable: str
) -> None:
    direct = Direct()
    unused = () if owner == "Module" else (0, 0, 0, 0, 0, 0)
    image = direct.ask(f"cu{owner}LoadData", TEXT, *unused)
    assert direct.ask(f"cu{owner}Get{count}", image) == 3
    found = make_room(5)
    for room in range(5):
        found = make_room(5, 7)
        direct.call(f"cu{owner}Enumerate{enumerate_}", found, room, image)
        kernels = [kernel for kernel in found if kernel != 7]
        assert get_names(direct, kernels) == ["first", "second", "third"][:room]
        assert list(found) == kernels + [7] * (5 - len(kernels))
    assert [direct.ask(f"cu{owner}Get{find}", image, name) for name in (b"first\0", b"third\0")] == found[:3:2]
    assert direct.try_call(f"cu{owner}Get{find}", make_room(1), image, b"fourth\0") == 500
    place, size = make_room(1), make_room(1)
    direct.call(f"cu{owner}Get{variable}", place, size, image, b"total\0")
    assert (place[0] % 8, size[0]) == (0, 32)
    direct.call("cuMemsetD8_v2", place[0], 7, 32)
    assert ctypes.string_at(place[0], 32) == b"\7" * 32
    assert direct.try_call(f"cu{owner}Get{variable}", place, size, image, b"first\0") == 500
    direct.call(f"cu{owner}Get{variable}", 0, 0, image, b"total\0")
    direct.call(f"cu{owner}Unload", image)
    assert direct.try_call(f"cu{owner}Unload", image) == 400


def test_a_kernel_tells_its_parameters_and_attributes() -> None:
    direct = Direct(Settings(device="a100"))
    image = direct.ask("cuLibraryLoadData", TEXT, 0, 0, 0, 0, 0, 0)
    first, second, third = (
        direct.ask("cuLibraryGetKernel", image, name) for name in (b"first\0", b"second\0", b"third\0")
    )
    for kind in ("Func", "Kernel"):
        assert [direct.tell(f"cu{kind}GetParamCount", kernel) for kernel in (first, second)] == [3, 0]
        for index, expected in enumerate(LAYOUT):
            offset, size = make_room(1), make_room(1)
            direct.call(f"cu{kind}GetParamInfo", first, index, offset, size)
            assert (offset[0], size[0]) == expected
            direct.call(f"cu{kind}GetParamInfo", first, index, offset, 0)
        for kernel, index in ((first, 3), (second, 0)):
            assert direct.try_call(f"cu{kind}GetParamInfo", kernel, index, 0, 0) == 1
    assert [direct.ask("cuFuncGetAttribute", 0, kernel) for kernel in (first, second, third)] == [128, 1024, 192]
    for kernel in (first, third):
        assert direct.ask("cuKernelGetFunction", kernel) == kernel
        assert direct.ask("cuKernelGetLibrary", kernel) == direct.ask("cuFuncGetModule", kernel) == image
        assert direct.ask("cuFuncIsLoaded", kernel) == 1
        direct.call("cuFuncLoad", kernel)
        direct.call("cuFuncSetCacheConfig", kernel, 2)
        direct.call("cuKernelSetCacheConfig", kernel, 2, 0)
    assert direct.try_call("cuKernelSetCacheConfig", first, 2, 1) == 101
    wrong = ("cuFuncLoad", 7), ("cuFuncSetCacheConfig", 7, 2), ("cuKernelSetCacheConfig", 7, 2, 0)
    assert [direct.try_call(name, *words) for name, *words in wrong] == [400, 400, 400]
    assert direct.ask("cuLibraryGetModule", image) == image
    assert (direct.ask("cuModuleGetLoadingMode"), direct.try_call("cuFuncIsLoaded", make_room(1), 7)) == (1, 400)


@pytest.mark.parametrize("attribute", range(-1, 20))
def test_attributes_of_kernels_are_set_one_by_one(attribute: int) -> None:
    direct = Direct(Settings(device="a100"))
    image = direct.ask("cuModuleLoadData", TEXT)
    first, second = (direct.ask("cuModuleGetFunction", image, name) for name in (b"first\0", b"second\0"))
    default = make_room(1, 77)
    is_known = direct.try_call("cuFuncGetAttribute", default, attribute, first) == 0
    assert is_known == (0 <= attribute <= 17)
    can_be_set = 8 <= attribute <= 17
    # Only the dynamic shared memory has a limit here.
    for value, prefix in ((3 if attribute == 8 else 1 << 20, "Func"), (5, "Kernel")):
        words = (first, attribute, value) if prefix == "Func" else (attribute, value, first, 0)
        assert direct.try_call(f"cu{prefix}SetAttribute", *words) == (0 if can_be_set else 1)
        assert not can_be_set or direct.ask("cuFuncGetAttribute", attribute, first) == value
        assert not can_be_set or direct.ask("cuKernelGetAttribute", attribute, first, 0) == value
    if is_known and attribute != 0:
        assert direct.ask("cuFuncGetAttribute", attribute, second) == default[0]


def test_dynamic_shared_memory_is_limited_by_the_device() -> None:
    direct = Direct(Settings(device="a100"))
    kernel = direct.ask("cuModuleGetFunction", direct.ask("cuModuleLoadData", TEXT), b"second\0")
    codes = [direct.try_call("cuFuncSetAttribute", kernel, 8, value) for value in (-1, 0, 166912, 166913)]
    assert (codes, direct.ask("cuFuncGetAttribute", 8, kernel)) == ([1, 0, 0, 1], 166912)


def test_images_are_loaded_from_files(tmp_path: Path) -> None:
    direct = Direct()
    file = tmp_path / "image.ptx"
    file.write_bytes(TEXT[:-1])
    path, absent = str(file).encode() + b"\0", str(tmp_path / "absent").encode() + b"\0"
    image, library = direct.ask("cuModuleLoad", path), direct.ask("cuLibraryLoadFromFile", path, 0, 0, 0, 0, 0, 0)
    assert image != library
    assert [direct.ask("cuModuleGetFunctionCount", item) for item in (image, library)] == [3, 3]
    assert direct.try_call("cuModuleLoad", make_room(1), absent) == 301
    assert direct.try_call("cuLibraryLoadFromFile", make_room(1), absent, 0, 0, 0, 0, 0, 0) == 301
    assert direct.ask("cuModuleGetFunctionCount", direct.ask("cuModuleLoadFatBinary", TEXT)) == 3


def test_what_is_wrong_with_an_image_is_written_to_the_log() -> None:
    direct = Direct()
    names = (ctypes.c_uint64 * 1)(5 | 6 << 32)
    for size in (0, 1, 10, 100):
        log = ctypes.create_string_buffer(b"\xee" * 200, 200)
        values = (ctypes.c_uint64 * 2)(ctypes.addressof(log), 1 << 40 | size)
        assert direct.try_call("cuModuleLoadDataEx", make_room(1), b".version 8.0 oops\0", 2, names, values) == 218
        text = log.raw.partition(b"\xee")[0]
        assert len(text) == (min(size, len(text)) if size else 0)
        assert text.endswith(b"\0") == (size > 0)
        assert set(log.raw[len(text) :]) == {0xEE}
    assert b"PTX" in text
    # Without a size, there is no room.
    log = ctypes.create_string_buffer(b"\xee" * 200, 200)
    values = (ctypes.c_uint64 * 1)(ctypes.addressof(log))
    assert direct.try_call("cuModuleLoadDataEx", make_room(1), b".version 8.0 oops\0", 1, names, values) == 218
    assert log.raw == b"\xee" * 200
    assert direct.try_call("cuModuleLoadDataEx", make_room(1), b".version 8.0 oops\0", 0, 0, 0) == 218
