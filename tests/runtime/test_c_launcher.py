"""The text of the launcher in C."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from pyptx import kernel, ptx
from pyptx.driver.build import find_compiler
from pyptx.runtime.c_launcher import choose_name
from tests.runtime.test_calls import tensor_copy
from tests.runtime.test_launching import write_ranks


@kernel(
    raw_params=[("f64", "a"), ("f32", "b"), ("s16", "c"), ("b64", "d"), ("u8", "e"), ("b8[3]", "f")], grid=(1,)
)  # fmt: skip
def take_each_type() -> None:
    ptx.ret()


def test_parameters_have_the_types_of_c(tmp_path: Path) -> None:
    take_each_type.export(tmp_path)
    (declaration,) = re.findall(r"take_each_type_launch\((.*)\);", (tmp_path / "take_each_type.h").read_text("ascii"))
    assert declaration.split(", ")[2:] == [
        "double a", "float b", "int16_t c", "uint64_t d", "uint8_t e", "const unsigned char f[3]",
    ]  # fmt: skip


def test_the_image_is_written_in_lines_of_24_bytes(tmp_path: Path) -> None:
    take_each_type.export(tmp_path)
    lines = re.findall(r"^    ([\d,]+),$", (tmp_path / "take_each_type.c").read_text("ascii"), re.MULTILINE)
    image = bytes(int(number) for line in lines for number in line.split(","))
    assert image == (tmp_path / "take_each_type.fatbin").read_bytes()
    assert {line.count(",") for line in lines[:-1]} == {23}


KEYWORDS = """
    _Alignas _Alignof _Atomic _BitInt _Bool _Complex _Decimal128 _Decimal32 _Decimal64 _Generic _Imaginary _Noreturn
    _Static_assert _Thread_local
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
    virtual void volatile wchar_t while xor xor_eq
""".split()
"""Of C and C++."""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_no_parameter_has_the_name_of_a_keyword(language: str, tmp_path: Path) -> None:
    names = [choose_name(keyword + tail) for keyword in KEYWORDS for tail in ("", "_")]
    assert len(set(names)) == len(names)
    assert not set(names) & set(KEYWORDS)
    (tmp_path / "names.c").write_text(f"int sum(int {', int '.join(names)});\n", "ascii")
    options = ["-x", language, "-std=c11" if language == "c" else "-std=c++17", "-fsyntax-only", "names.c"]
    subprocess.run([*find_compiler(), *options], cwd=tmp_path, check=True)


def test_no_parameter_has_a_name_of_the_driver_api(tmp_path: Path) -> None:
    for kernel_object in (tensor_copy, write_ranks):
        manifest = kernel_object.export(tmp_path)
        text = "".join((tmp_path / f"{manifest['kernel']}.{end}").read_text("ascii") for end in ("c", "h"))
        names = set(re.findall(r"\bCU(?!DA\b)\w+", text))
        assert len(names) > 6
        assert {name for name in names if choose_name(name) == name} == set()
