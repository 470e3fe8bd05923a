"""The text of the launcher in C."""

from __future__ import annotations

import re
from pathlib import Path

from pyptx import kernel, ptx


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
