"""Random command lines of `pyptx sim` end with a status and one line of usage or findings, never a traceback or an
escape."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from pyptx.cli import main
from tests.cli.conftest import COPY, HANGS, SCALE

RUNS = 100
NUMBERS = ("1", "2", "4", "32", "0", "-1", "1.5", "x", "", "1,1", "1,1,1,1", "9" * 5000, "1e3", "nan", "٤", " 4", "_4")
TYPES = ("f32", "i32", "u8", "bf16", "e4m3", "f64", "b32", "x", "")
SHAPES = ("", "[4]", "[64]", "[2,2]", "[0]", "[-1]", "[]", "[999999999999]", "[4][4]", "[٤]", "[" + "1," * 70 + "1]")
VALUES = (
    "zeros", "arange", "randn", "uniform(0,1)", "uniform(-inf,1)", "randint(0,9)", "randint(9,0)", "1", "-1", "1e3",
    "nan", "inf", "in.npy", "lie.npy", "none.npy", "folder.npy", "", "(", "zeros map(box=4)", "zeros map(box=4x4)",
    "zeros map(", "9" * 5000, "\x1b[31m", "=",
)  # fmt: skip
FILES = ("copy.ptx", "scale.ptx", "hangs.ptx", "none.ptx", "folder.npy", "lie.npy", "-", "", "\0", "raises.py:k",
         "exits.py:k", "raises.py", "copy.ptx:copy")  # fmt: skip
NAMED = ("0=in.npy", "to=in.npy", "to=lie.npy", "to=none.npy", "to", "=", "9=in.npy", "to=folder.npy", "to=\0")
OPTIONS: dict[str, tuple[str, ...]] = {
    "--grid": NUMBERS, "--block": NUMBERS, "--cluster": NUMBERS, "--shared": NUMBERS, "--seed": NUMBERS,
    "--data-seed": NUMBERS, "--repeat": ("1", "2", "0", "x"), "--max-steps": ("1", "1000", "0", "9" * 5000),
    "--tolerance": NUMBERS, "--entry": ("copy", "scale", "x", "", "\x1b[31m"), "--precision": ("hardware", "x", ""),
    "--schedule": ("eager", "lazy", "random", "x", ""), "--check": ("all", "none", "strict", "all,outputs", ",", "x"),
    "--expect": NAMED, "--save": ("to=out.npy", "to=none/out.npy", *NAMED[4:]), "--arg": ("f32=1", "x"),
    "--timeline": ("t.json", "t.x", "", "none/t.html", "\0.json"),
}  # fmt: skip


def draw_words(draw: random.Random) -> list[str]:
    """Return the words of a random command line, most of them meaningful."""
    words = [draw.choice(FILES[:2] if draw.random() < 0.8 else FILES)]
    if draw.random() < 0.6:
        second = "f32[64]=zeros" if words[0] == "copy.ptx" else "f32=2"
        words += ["--arg", "f32[64]=arange", "--arg", second, "--block", draw.choice(("32", "64", "65"))]
    else:
        for _ in range(draw.choice((0, 1, 2, 3))):
            words += ["--arg", f"{draw.choice(TYPES)}{draw.choice(SHAPES)}={draw.choice(VALUES)}"]
    for name in draw.sample(sorted(OPTIONS), draw.choice((0, 1, 1, 2))):
        words += [name, draw.choice(OPTIONS[name])][: draw.choice((1, 2, 2, 2, 2, 2))]
    return words


def test_random_launches_end_with_a_status_and_a_line(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"copy": COPY, "scale": SCALE, "hangs": HANGS}.items():
        (tmp_path / f"{name}.ptx").write_text(text)
    np.save("in.npy", np.arange(64, dtype=np.float32))
    (tmp_path / "lie.npy").write_bytes((tmp_path / "in.npy").read_bytes()[:-1])
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "raises.py").write_text("def k():\n    raise RuntimeError('no')\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    draw, statuses = random.Random(seed), set[int]()
    for _ in range(RUNS):
        words = draw_words(draw)
        try:
            status = main(["sim", *words])
        except SystemExit as stop:
            status = int(str(stop.code))
        error = capsys.readouterr().err
        statuses.add(status)
        assert status in (0, 1, 2), words
        assert "Traceback" not in error, words
        assert error.replace("\n", "").replace("\t", "").isprintable(), words
        assert status != 2 or len(error.splitlines()) == 1 or "error[PTX" in error, words
    assert statuses >= {0, 2}


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 1\nraise OSError('no')\n", "k.py:2: OSError: no"), ("raise SystemExit(3)\n", "k.py:1: SystemExit: 3"),
     ("def k():\n    return 1 / 0\n", "k.py:2: ZeroDivisionError: division by zero"), ("def (\n", "SyntaxError: ")],
)  # fmt: skip
def test_a_python_file_that_fails_is_a_line(
    text: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(text)
    assert main(["sim", "k.py:k"]) == 2
    assert line in capsys.readouterr().err
