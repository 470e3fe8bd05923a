"""Array arguments of the shell, and files with false headers: the error is one line, and nothing is unpickled."""

from __future__ import annotations

import argparse
import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pyptx.cli import sim_arguments
from pyptx.cli.sim_arguments import (
    Unusable,
    get_array,
    make_value,
    parse_argument,
    parse_whole_number,
    read_array,
    require_room,
    shorten,
)
from pyptx.sim import Tensor
from pyptx.tensormap import Swizzle, TensorMap, element_type
from pyptx.types import f32

SPECS: dict[str, tuple[str, str]] = {
    "infinite bounds": ("f32[4]=uniform(0,inf)", "the range from 0 to inf is not finite"),
    "bounds too far apart": ("f64[4]=uniform(-1e308,1e308)", "is not finite"),
    "no number": ("f32[4]=uniform(nan,1)", "nan is not below 1"),
    "infinite integers": ("u32[4]=randint(0,inf)", "expected two integers"),
    "fractions of integers": ("i32[4]=randint(0.5,0.7)", "expected two integers"),
    "negative integers": ("u32[4]=randint(-5,5)", "integers from -5 to 4 do not fit into u32"),
    "large integers": ("u64[4]=randint(0,1e30)", "do not fit into u64"),
    "an open parenthesis": ("f32[4]=uniform(0,1", "is none of zeros"),
    "bounds in other digits": ("f32[4]=uniform(0,٤)", "expected two numbers"),
    "numbers too large for a type": ("f16[4]=uniform(0,1e9)", "do not fit into f16"),
    "a count too large for a type": ("e4m3[500]=arange", "values up to 499 do not fit into e4m3"),
    "a number too large for a type": ("f16[4]=70000", "70000 does not fit into f16"),
    "an infinity that a type lacks": ("e4m3=inf", "inf does not fit into e4m3"),
    "a number beyond every type": ("f32=1e999", "1e999 does not fit into f32"),
    "many digits": ("i32=" + "9" * 5000, "the number has 5000 characters; at most 100 are allowed"),
    "many hexadecimal digits": ("i32=0x" + "f" * 5000, "the number has 5002 characters"),
    "many digits of a fraction": ("f32=" + "9" * 5000, "the number has 5000 characters"),
    "other digits": ("i32=٤", "is none of zeros"),
    "65 dimensions": ("f32[" + ",".join("1" * 65) + "]=zeros", "65 dimensions; an array has at most 64"),
    "a dimension of many digits": ("f32[" + "9" * 5000 + "]=zeros", "not a list of positive integers"),
    "a dimension in other digits": ("f32[٤]=zeros", "not a list of positive integers"),
    "a power": ("f32[²]=zeros", "not a list of positive integers"),
    "no dimension": ("f32[]=zeros", "not a list of positive integers"),
    "a missing dimension": ("f32[4,]=zeros", "not a list of positive integers"),
    "a dimension of zero": ("f32[2,0]=zeros", "not a list of positive integers"),
    "a long type": ("t" * 5000 + "=1", "is not a type"),
    "a file with a NUL": ("f32[4]=\0.npy", "embedded null byte"),
    "a long file name": ("f32[4]=" + "a" * 5000 + ".npy", "File name too long"),
}


@pytest.mark.parametrize(("text", "words"), list(SPECS.values()), ids=list(SPECS))
def test_an_argument_that_means_nothing_is_refused_in_a_line(text: str, words: str) -> None:
    with pytest.raises(Unusable) as excinfo:
        make_value(parse_argument(text), (0, 0))
    assert words in str(excinfo.value)
    assert len(str(excinfo.value)) < 400


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("u64[64]=randint(0,18446744073709551616)", 0, (1 << 64) - 1),
        ("i64[2]=randint(-9223372036854775808,-9223372036854775807)", -(1 << 63), -(1 << 63)),
        ("i8[64]=randint(-128,128)", -128, 127),
        ("i64[64]=randint(-2,9223372036854775808)", -2, (1 << 63) - 1),
        ("i64[64]=randint(-2,4611686018427387905)", -2, 1 << 62),
        ("u64[64]=randint(9223372036854775807,9223372036854775809)", (1 << 63) - 1, 1 << 63),
    ],
)
def test_bounds_of_integers_reach_to_the_ends_of_a_type(text: str, least: int, most: int) -> None:
    values = get_array(make_value(parse_argument(text), (0, 0)))
    assert values is not None
    assert least <= int(values.min()) <= int(values.max()) <= most


def test_arrays_beyond_the_memory_of_the_machine_are_refused() -> None:
    specs = [parse_argument("f32[1024,1024]=zeros")] * 3
    require_room(specs, 12 << 20)
    with pytest.raises(Unusable, match="take 12 MiB, this machine has 11 MiB"):
        require_room(specs, 11 << 20)


def npy(header: str, data: bytes = bytes(16)) -> bytes:
    """Return a file with this header."""
    text = header.encode() + b" " * (-(11 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def npy_of_shape(shape: str, descr: str = "'<f4'") -> bytes:
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "expected a .npy file"),
    "another magic": (b"XXXXXX" + npy_of_shape("(4,)")[6:], "expected a .npy file"),
    "an archive": (b"PK\x03\x04" + bytes(30), "an archive (.npz); save one of its arrays"),
    "a pickle": (pickle.dumps([1, 2]), "expected a .npy file"),
    "objects": (npy_of_shape("(4,)", "'|O'"), "does not describe an array of numbers"),
    "a cut header": (npy_of_shape("(4,)")[:40], "does not describe an array"),
    "a cut array": (npy_of_shape("(4,)")[:-1], "shorter than its header says"),
    "terabytes": (npy_of_shape("(1000000000000,)"), "shorter than its header says"),
    "sizes that overflow": (
        npy_of_shape("(1099511627776, 1099511627776, 1099511627776)"),
        "does not describe an array",
    ),
    "a size of many digits": (npy_of_shape("(1" + "0" * 30 + ",)"), "does not describe an array"),
    "a negative size": (npy_of_shape("(-4,)"), "does not describe an array"),
    "a fraction": (npy_of_shape("(4.5,)"), "does not describe an array"),
    "truths": (npy_of_shape("(True, True)"), "does not describe an array"),
    "70 dimensions": (npy_of_shape("(" + "1," * 70 + ")"), "does not describe an array"),
    "no type": (npy_of_shape("(4,)", "None"), "does not describe an array"),
    "an empty type": (npy_of_shape("(4,)", "[]"), "expected an array of numbers"),
    "texts": (npy_of_shape("(4,)", "'<U1'"), "expected an array of numbers, found <U1"),
    "huge texts": (npy_of_shape("(4,)", "'<U400000000'"), "shorter than its header says"),
    "complex numbers": (npy_of_shape("(2,)", "'<c8'"), "expected an array of numbers, found complex64"),
    "a call": (npy("__import__('os').abort()"), "does not describe an array"),
    "open braces": (npy("{" * 3000), "does not describe an array"),
    "keys of two types": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 1: 2}"),
        "does not describe an array",
    ),
    "another version": (b"\x93NUMPY\x09\x00" + npy_of_shape("(4,)")[8:], "does not describe an array"),
}


@pytest.mark.parametrize(("data", "words"), list(FILES.values()), ids=list(FILES))
def test_a_file_that_lies_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "in.npy"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Unusable) as excinfo:
            read_array(path)
    assert words in str(excinfo.value)
    assert "\n" not in str(excinfo.value)


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (os.mkdir, "not a regular file"),
    "a pipe": (os.mkfifo, "not a regular file"),
    "a link to itself": (lambda path: path.symlink_to(path), "Too many levels"),
}


@pytest.mark.parametrize(("make", "words"), list(PLACES.values()), ids=list(PLACES))
def test_what_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / "in.npy")
    with pytest.raises(Unusable, match=words):
        read_array(tmp_path / "in.npy")


def test_files_beyond_the_limit_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "in.npy", np.zeros(100))
    monkeypatch.setattr(sim_arguments, "_MOST_BYTES", 99)
    with pytest.raises(Unusable, match="more than"):
        read_array(tmp_path / "in.npy")


def test_columns_first_and_bytes_are_read(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "in.npy", np.asfortranarray(values))
    assert np.array_equal(read_array(tmp_path / "in.npy"), values)


def test_text_of_100_characters_is_shown_whole() -> None:
    assert shorten("x" * 100) == "x" * 100
    assert shorten("x" * 101) == f"{'x' * 100}…"


VALUES: dict[str, float] = {
    "i8=-128": -128, "i8=127": 127, "u8=0": 0, "u8=255": 255, "b16=65535": 65535, "i32=-0x10": -16, "s32=0b11": 3,
    "i32=0x" + "0" * 97 + "1": 1, "f32=" + "0" * 99 + "1": 1, "f16=65504": 65504, "f16=65519": 65504,
    "f32=-inf": -np.inf, "f64=1e300": 1e300, "i32=randint(3,4)": 3, "f32=randint(5,6)": 5, "u64=randint(0,1)": 0,
    "f64=randint(-9223372036854775808,-9223372036854775807)": -(2.0**63),
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_the_value_of_a_number(text: str) -> None:
    value = make_value(parse_argument(text), (0, 0))
    assert isinstance(value, np.generic)
    assert value.item() == VALUES[text]


REFUSALS = {
    "i8=-129": "-129 does not fit into i8", "i8=128": "128 does not fit into i8",
    "u8=-1": "-1 does not fit into u8", "u8=256": "256 does not fit into u8",
    "f16=65520": "65520 does not fit into f16", "f16[2]=uniform(65520,65530)": "values up to 655",
    "i32=0x" + "0" * 98 + "1": "the number has 101 characters; at most 100 are allowed",
    "f32=" + "0" * 100 + "1": "the number has 101 characters; at most 100 are allowed",
    "u32[1]=randint(0,4294967297)": "integers from 0 to 4.29497e+09 do not fit into u32",
    "i8[1]=randint(-129,0)": "integers from -129 to -1 do not fit into i8",
    "f32[1]=randint(0,9223372036854775809)": "integers from 0 to 9.22337e+18 do not fit into f32",
    "i8[1]=randint(4,4)": "4 is not below 4",
    "u8[4294967297]=zeros": "more than 4 GiB", "u8[999999999999999999]=zeros": "more than 4 GiB",
    "u8[1000000000000000000]=zeros": "the shape [1000000000000000000] is not a list of positive integers",
    "f32[4,8]=zeros map(box=2x4, swizzle=16B)":
        "expected a box of 2 sizes and one of the swizzles none, 32B, 64B, 128B",
    "i8[8]=zeros map(box=8)": "expected a box of 1 sizes and one of the swizzles none, 32B, 64B, 128B",
    "f32[8]=zeros map(box=8, x=1)": "a map takes box=ROWSxCOLUMNS and swizzle=128B, 64B, 32B or none",
    "f32=zeros map(box=8)": "a tensor map needs an array",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_beyond_a_limit_is_refused(text: str) -> None:
    with pytest.raises(Unusable) as excinfo:
        make_value(parse_argument(text), (0, 0))
    assert str(excinfo.value).startswith(f"`{shorten(text)}`: {REFUSALS[text]}")


def test_the_largest_shapes() -> None:
    assert parse_argument("u8[4294967296]=zeros").shape == (1 << 32,)
    assert parse_argument("u8[" + "x".join("1" * 64) + "]=zeros").shape == (1,) * 64


@pytest.mark.parametrize(
    ("text", "shape", "strides", "box", "swizzle"),
    [
        ("f32[4,8]=arange map(box=2x4, swizzle=32B)", (8, 4), (32,), (4, 2), Swizzle.B32),
        ("f32[2,4,8]=zeros map(box=1x2x8)", (8, 4, 2), (32, 128), (8, 2, 1), Swizzle.NONE),
        ("f32[64]=zeros map(swizzle=none,box=16)", (64,), (), (16,), Swizzle.NONE),
    ],
)
def test_the_tensor_map_of_an_array(
    text: str, shape: tuple[int, ...], strides: tuple[int, ...], box: tuple[int, ...], swizzle: Swizzle
) -> None:
    value = make_value(parse_argument(text), (0, 0))
    assert isinstance(value, Tensor)
    assert value.map == TensorMap(element_type(f32), 0, shape, strides, box, swizzle=swizzle)
    assert value.array.shape == shape[::-1]


@pytest.mark.parametrize(("text", "least"), [("0", 0), ("-5", -5), ("7", 7), ("007", 0), ("1" * 100, 1)])
def test_the_value_of_an_integer_option(text: str, least: int) -> None:
    assert parse_whole_number(least, text) == int(text)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("6", 7),
        ("-6", -5),
        ("1" * 101, 1),
        *((text, -9) for text in ("٤", "²", "", "-", "--1", "+1", "1.5", " 1", "x")),
    ],
)
def test_an_integer_option_takes_only_integers_of_a_least_size(text: str, least: int) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as excinfo:
        parse_whole_number(least, text)
    assert str(excinfo.value) == f"expected an integer of at least {least}, found {shorten(text)!r}"
