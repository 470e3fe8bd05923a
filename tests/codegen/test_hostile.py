"""PTX is untrusted: its transcript is valid Python that emits the same module and evaluates none of its text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.codegen import ptx_to_python
from tests.codegen.hostile import NAMES_OF_KERNELS, texts
from tests.codegen.transcripts import HEADER, foreign, kernel, module_of, problem

_TEXTS = dict(texts())
_NAMES = st.from_regex(r"(?a:[A-Za-z_][\w$]{0,9}|[$%][\w$]{1,9})", fullmatch=True)
_COMMENTS = st.text(st.characters(exclude_characters="\r\n*", exclude_categories=()), max_size=30)


def test_there_are_enough_of_them() -> None:
    assert len(_TEXTS) >= 100


@pytest.mark.parametrize("name", list(_TEXTS))
def test_hostile_text_comes_back_as_it_was(name: str) -> None:
    assert problem(_TEXTS[name]) is None


@pytest.mark.parametrize("name", NAMES_OF_KERNELS, ids=range(len(NAMES_OF_KERNELS)))
def test_hostile_names_of_kernels_become_identifiers(name: str) -> None:
    assert problem(kernel("ret;\n"), name) is None


@given(_NAMES, _NAMES, _COMMENTS, st.text(st.characters(exclude_characters='"\r'), max_size=30))
def test_any_name_comment_and_string_is_only_data(register: str, symbol: str, comment: str, text: str) -> None:
    source = (
        f"{HEADER}// {comment}\n.global .u32 {symbol};\n.entry k() {{ /*{comment}*/\n.reg .b32 {register};\n"
        f'mov.b32 {register}, {symbol};\n.pragma "{text}";\n{symbol}: bra {symbol}; }}'
    )
    if register != symbol and not {"WARP_SZ", "_"} & {register, symbol}:
        assert problem(source) is None


@given(st.text(max_size=60))
def test_any_name_of_a_kernel_is_only_data(name: str) -> None:
    python = ptx_to_python(kernel("ret;\n"), kernel_name=name)
    assert foreign(python) is None
    assert len(module_of(python).functions) == 1


@pytest.mark.parametrize(
    "python",
    ["import os", "from os import path", "x = open('f')", "ptx.__class__", "lambda: 0", "[x for x in y]", "f'{x}'",
     "sys = 1", "(lambda: 0)()", "if 1: pass", "while 1: pass", "eval('1')", "x if y else z"],
)  # fmt: skip
def test_the_guard_of_these_tests_sees_foreign_code(python: str) -> None:
    assert foreign(python) is not None
