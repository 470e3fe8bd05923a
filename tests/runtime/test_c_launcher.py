"""The text of the launcher in C."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from pyptx import kernel, ptx
from pyptx.driver.build import find_compiler
from pyptx.runtime.c_launcher import choose_name


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
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
    volatile wchar_t while xor xor_eq
""".split()
"""Of C and C++."""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_no_parameter_has_the_name_of_a_keyword(language: str) -> None:
    names = [choose_name(keyword + tail) for keyword in KEYWORDS for tail in ("", "_")]
    assert len(set(names)) == len(names)
    assert not set(names) & set(KEYWORDS)
    text = f"int sum(int {', int '.join(names)});\n"
    command = [*find_compiler(), "-x", language, "-std=gnu17" if language == "c" else "-std=gnu++20"]
    subprocess.run([*command, "-fsyntax-only", "-"], input=text, text=True, check=True)
