"""The Pygments lexer preserves all text, knows the tables, and is registered; kernels render in notebooks."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments import token

from pyptx import Kernel, Tile, highlighting, kernel, ptx, reg
from pyptx.highlighting.lexer import Kind, PtxLexer
from pyptx.types import f32, u32

ROOT = Path(__file__).parent.parent.parent
SAMPLES = [ROOT / "examples" / "hopper_gemm.ptx", *sorted((ROOT / "tests" / "corpus").rglob("*.ptx"))[::40]]
LINE = '@!%p1 mad.lo.s32 %r1, %tid.x, WARP_SZ, 0f3F800000; /* "a" */ // b'
K = token.Keyword


def parts(text: str) -> list[tuple[Kind, str]]:
    return [(kind, part) for _, kind, part in PtxLexer().get_tokens_unprocessed(text) if not part.isspace()]


def test_an_instruction() -> None:
    assert parts(LINE) == [
        (token.Name.Decorator, "@!%p1"), (K, "mad"), (token.Name.Attribute, ".lo"), (K.Type, ".s32"),
        (token.Name.Variable, "%r1"), (token.Punctuation, ","), (token.Name.Builtin, "%tid.x"),
        (token.Punctuation, ","), (token.Name.Constant, "WARP_SZ"), (token.Punctuation, ","),
        (token.Number, "0f3F800000"), (token.Punctuation, ";"), (token.Comment, '/* "a" */'), (token.Comment, "// b"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [
        ("tcgen05.ld.sync", K, "tcgen05"),
        ("clusterlaunchcontrol.try_cancel", K, "clusterlaunchcontrol"),
        (".reg .pred %p;", K.Declaration, ".reg"),
        (".reg .pred %p;", K.Type, ".pred"),
        (".maxclusterrank 2", K.Declaration, ".maxclusterrank"),
        ("ld.global.b32", token.Name.Attribute, ".global"),
        ("cp.async.bulk.shared::cluster", token.Name.Attribute, ".shared::cluster"),
        ("spcompress.sp::4:16.b8", token.Name.Attribute, ".sp::4:16"),
        ("$L_1: ret;", token.Name.Label, "$L_1"),
        ("bra added;", token.Name, "added"),
        ('# 1 "a.cu"\nret;', token.Comment.Preproc, '# 1 "a.cu"'),
        ("ret; \\", token.Error, "\\"),
    ],
)
def test_a_part(text: str, kind: Kind, part: str) -> None:
    assert (kind, part) in parts(text)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_real_ptx_has_no_errors(path: Path) -> None:
    text = path.read_text("utf-8")
    tokens = list(PtxLexer().get_tokens_unprocessed(text))
    assert "".join(part for _, _, part in tokens) == text
    assert [(offset, part) for offset, kind, part in tokens if kind is token.Error] == []


@given(st.text() | st.text('.%@"/*# \n:a1;'))
def test_nothing_is_lost(text: str) -> None:
    tokens = list(PtxLexer().get_tokens_unprocessed(text))
    assert "".join(part for _, _, part in tokens) == text
    assert all(text[offset : offset + len(part)] == part for offset, _, part in tokens)


def test_pygments_finds_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module, _, name = project["entry-points"]["pygments.lexers"]["nvptx"].partition(":")
    assert getattr(import_module(module), name) is PtxLexer
    assert PtxLexer.analyse_text(".version 8.0\n.target sm_90") > PtxLexer.analyse_text("int main() {}") == 0


@kernel
def plain() -> None:
    ptx.inst.add.u32(reg.scalar(u32), 1, 2)


def in_notebook(example: Kernel) -> str:
    return example._repr_html_()  # pyright: ignore[reportPrivateUsage]  Notebooks call it.


def test_a_notebook_shows_the_ptx_in_colors() -> None:
    html = in_notebook(plain)
    assert '<span style="' in html
    assert ">add</span>" in html
    assert ">.u32</span>" in html


def test_a_notebook_shows_the_newest_trace_or_what_is_missing() -> None:
    @kernel(in_specs=[Tile("N", dtype=f32)])
    def with_shape(a: object) -> None:
        ptx.inst.bar.sync(0)

    assert "missing: N" in in_notebook(with_shape)
    with_shape.ptx(N=4)
    assert ">bar</span>" in in_notebook(with_shape)


def test_without_pygments_the_text_is_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> None:
        """Raise ImportError for any package."""

    monkeypatch.setattr(highlighting, "find_spec", find_nothing)
    assert highlighting.html("setp.lt a < b;") == "<pre>setp.lt a &lt; b;</pre>"
