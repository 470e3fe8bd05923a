"""Output of kernels: formats against the C library of this machine, arguments as nvcc packs them, limits."""

from __future__ import annotations

import ctypes
import io
import random
import struct
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

from pyptx import kernel as python_kernel
from pyptx import ptx, reg, sim
from pyptx.diagnostics import PtxError
from pyptx.isa import printf
from pyptx.isa.printf import Unprintable, parse_format
from pyptx.parser import parse
from pyptx.sim.state.printing import format_output
from pyptx.types import f32, s32, u64
from tests.messages import raises
from tests.sim.kernels import assert_reported, kernel

LIBC = ctypes.CDLL(None)
WORDS = (b"", b"abc", b"hello world", None)
DOUBLES = (0.0, -0.0, 1.0, 1.5, 2.5, 0.1, 9.5, 99999.95, 1e300, 5e-324, 2.2250738585072014e-308, float("inf"),
           float("-inf"), float("nan"), 0.000123456)  # fmt: skip


def in_c(text: bytes, values: list[Any]) -> bytes:
    """Return the output of the C library."""
    buffer = ctypes.create_string_buffer(4096)
    length = LIBC.snprintf(buffer, len(buffer), text, *values)
    return buffer.raw[:length]


def draw_format(draw: random.Random) -> tuple[bytes, list[Any]]:
    """Return a format and values of the C types that it accepts, without undefined behavior."""
    kind = draw.choice("diouxXaAeEfFgGcsp")
    flags = "".join(draw.sample("-" if kind in "csp" else "-+ #0", draw.randint(0, 1 if kind in "csp" else 3)))
    width, precision = draw.choice(["", "", "5", "20", "*"]), draw.choice(["", "", ".", ".0", ".3", ".20", ".*"])
    precision = "" if kind in "cp" else precision
    size = draw.choice(["", "hh", "h", "l", "ll", "j", "z", "t"]) if kind in "diouxX" else ""
    values: list[Any] = [ctypes.c_int(draw.randint(-3, 20)) for part in (width, precision) if "*" in part]
    if kind in "diouxX":
        number = draw.choice([0, 1, -1, 1 << 31, 1 << 63, draw.getrandbits(64), draw.getrandbits(8)])
        values.append((ctypes.c_int if size in ("", "h", "hh") else ctypes.c_longlong)(number))
    elif kind == "c":
        values.append(ctypes.c_int(draw.randint(1, 127)))
    elif kind in "sp":
        values.append(ctypes.c_char_p(draw.choice(WORDS)))
    else:
        bits = struct.unpack("d", draw.randbytes(8))[0]
        values.append(ctypes.c_double(draw.choice([*DOUBLES, bits, draw.gauss(0, 1), draw.randint(0, 64) / 16])))
        if "0" in flags and "*" in width:
            values[0] = ctypes.c_int(abs(values[0].value))  # glibc pads left-aligned numbers with zeros
        flags = flags.replace("#", "") if kind in "gG" else flags  # glibc drops zeros where 99999.95 rounds up
    return f"<%{flags}{width}{precision}{size}{kind}>".encode(), values


def test_formats_print_what_the_c_library_prints(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4000):
        text, values = draw_format(draw)
        strings = {
            ctypes.cast(v, ctypes.c_void_p).value or 0: v.value or b"" for v in values if type(v) is ctypes.c_char_p
        }
        plain = [v.value if type(v) is not ctypes.c_char_p else next(iter(strings)) for v in values]
        output = format_output(parse_format(text), plain, lambda address, most, memory=strings: memory[address][:most])
        assert output.encode() == in_c(text, values), (text, plain)


def test_zeros_of_an_alternate_form_stay() -> None:
    assert format_output(parse_format(b"%#g"), [999999.5], lambda address, most: b"") == "1.00000e+06"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"%n", "writes to memory"), (b"%1000000000d", "prints 1000000000 characters"), (b"%.99999f", "65536 at most"),
        (b"%" + b"9" * 5000 + b"d", "prints"), (b"%y", "no conversion"), (b"100%", "no conversion"),
        (b"%ls", "no conversion"), (b"%lc", "no conversion"), (b"%1$d", "no conversion"), (b"%'d", "no conversion"),
        (b"%d" * 33, "33 arguments"),
    ],
)  # fmt: skip
def test_what_c_leaves_undefined_and_what_is_unbounded_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(Unprintable, match=words):
        parse_format(text)


def test_a_width_among_the_arguments_is_bounded() -> None:
    with pytest.raises(Unprintable, match="2147483648 characters"):
        format_output(parse_format(b"%*d"), [-(1 << 31), 1], lambda address, most: b"")


def test_bytes_that_are_no_text_are_shown() -> None:
    assert format_output(parse_format(b"\xc3\xa9 %c"), [0xFF], lambda address, most: b"") == "é \\xff"


VPRINTF = ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
CALL = """{ .param .b64 f; .param .b64 a; .param .b32 r;
st.param.b64 [f], %rd1; st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a); ld.param.b32 %r9, [r]; }
st.global.u32 [%o], %r9;"""
PACK = ".local .align 8 .b8 pack[64]; mov.u64 %rd2, pack; cvta.local.u64 %rd2, %rd2;"


def text_variable(text: str) -> str:
    return f".global .align 1 .b8 text[] = {{{', '.join(map(str, [*text.encode(), 0]))}}};\n"


def printing_kernel(text: str, body: str) -> str:
    address = "mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1;"
    return kernel(f"{PACK}\n{body}\n{address}\n{CALL}", module=VPRINTF + text_variable(text))


def run(text: str, body: str, threads: int = 1) -> tuple[str, list[int]]:
    out = np.zeros(threads, np.int32)
    return sim.run(parse(printing_kernel(text, body)), block=threads, args=[out]).printed, out.tolist()


def test_each_argument_lies_at_a_multiple_of_its_size() -> None:
    body = """st.local.u32 [pack], %t; st.local.u32 [pack+4], 7; st.local.u32 [pack+8], 65;
mov.b64 %rd3, 0d3FF8000000000000; st.local.b64 [pack+16], %rd3; st.local.u32 [pack+24], 9;"""
    output, counts = run("%d %hhu %c %.2f %x\n", body, 2)
    assert output == "0 7 A 1.50 9\n1 7 A 1.50 9\n"
    assert counts == [5, 5]


def test_a_string_is_read_up_to_its_precision_only() -> None:
    body = "st.local.u32 [pack], 2; st.local.u32 [pack+32], 0x41424344; add.u64 %rd3, %rd2, 32;\n"
    output, _ = run("%.*s|%.3s\n", f"{body}st.local.u64 [pack+8], %rd3; st.local.u64 [pack+16], %rd3;")
    assert output == "DC|DCB\n"


def test_no_format_prints_nothing_and_returns_minus_one() -> None:
    out = np.zeros(1, np.int32)
    result = sim.run(parse(kernel(f"{PACK}\nmov.u64 %rd1, 0;\n{CALL}", module=VPRINTF)), args=[out])
    assert (result.printed, out.tolist()) == ("", [-1])


def test_formats_in_shared_memory_differ_by_cta() -> None:
    body = f""".shared .align 4 .b32 own; mov.u32 %r1, %ctaid.x; add.u32 %r1, %r1, 0x000a30; st.shared.u32 [own], %r1;
{PACK} mov.u64 %rd1, own; cvta.shared.u64 %rd1, %rd1; {CALL}"""
    result = sim.run(parse(kernel(body, module=VPRINTF)), grid=3, args=[np.zeros(1, np.int32)], check="none")
    assert result.printed == "0\n1\n2\n"


def test_a_format_is_refused_at_the_call() -> None:
    error = assert_reported(
        printing_kernel("%n", ""), "PTX1140", "writes to memory", "thread (0, 0, 0)", args=[np.zeros(1)]
    )
    assert error.diagnostics[0].line


def test_what_a_launch_prints_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyptx.sim.execution.builtins.MOST_PRINTED", 1 << 20)
    body = f"$on: {PACK.replace('.local .align 8 .b8 pack[64];', '')}"
    text = printing_kernel("%65536d", "").replace(PACK, f".local .align 8 .b8 pack[64];\n{body}")
    text = text.replace("st.global.u32 [%o], %r9;", "bra $on;")
    assert_reported(text, "PTX1141", "let one thread print", args=[np.zeros(1)], check="none")


@pytest.mark.parametrize(
    ("declaration", "call", "words"),
    [
        (
            "vprintf(.param .b64 f)",
            "vprintf, (%rd1)",
            "declared to take 8 bytes and return nothing; it takes 8 bytes, 8",
        ),
        ("vprintf()", "vprintf", "declared to take nothing"),
        ("(.param .b64 r) vprintf(.param .b64 f, .param .b64 a)", "(%rd3), vprintf, (%rd1, %rd2)", "return 8 bytes"),
        ("__assertfail(.param .b32 m)", "__assertfail, (%r1)", "takes 8 bytes, 8 bytes, 4 bytes, 8 bytes, 8 bytes"),
    ],
)
def test_a_function_of_the_system_is_declared_as_it_is(declaration: str, call: str, words: str) -> None:
    body = f"mov.u64 %rd1, 0; mov.u64 %rd2, 0; mov.u32 %r1, 0;\ncall {call};"
    assert_reported(
        kernel(body, module=f".extern .func {declaration};"), "PTX1106", words, args=[np.zeros(1, np.int32)]
    )


def test_a_failed_assertion_names_the_first_thread_that_failed_and_its_words() -> None:
    body = """add.u32 %r1, %t, 0; setp.lt.u32 %p0, %r1, 5; @%p0 bra on;
mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; cvt.u64.u32 %rd2, %r1; add.u64 %rd1, %rd1, %rd2; sub.u64 %rd1, %rd1, 5;
mov.u64 %rd2, file; cvta.global.u64 %rd2, %rd2; mov.u64 %rd3, text; cvta.global.u64 %rd3, %rd3;
call __assertfail, (%rd1, %rd2, 7, %rd3, 1);
on:"""
    module = """.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 text[40] = TEXT;
.global .align 1 .b8 file[40] = FILE;"""
    text = kernel(body, module=module)
    for name, value in {"TEXT": b"on grids only", "FILE": b"k.cu"}.items():
        text = text.replace(name, "{" + ", ".join(map(str, value)) + "}")
    words = ["assertion failed: on grids only", "thread (5, 0, 0)", "the assertion is at k.cu:7, in `on grids only`"]
    assert_reported(text, "PTX1142", *words, block=64, args=[np.zeros(64, np.int32)])


def test_an_argument_that_is_no_address_is_reported_at_the_call() -> None:
    error = assert_reported(
        printing_kernel("%s", "st.local.u64 [pack], 6;"), "PTX1110", "a null pointer", args=[np.zeros(1)]
    )
    assert error.diagnostics[0].line


def test_a_string_without_an_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printf, "LONGEST", 64)
    monkeypatch.setattr("pyptx.sim.execution.builtins.LONGEST", 64)
    text = np.full(1000, 65, np.uint8)
    body = f"{PACK}\nld.param.u64 %rd1, [out];\n{CALL}"
    assert_reported(kernel(body, module=VPRINTF), "PTX1140", "has no NUL in its first 64 bytes", args=[text])


def test_printf_of_python_packs_as_nvcc_does() -> None:
    @python_kernel
    def body() -> None:
        ptx.printf("%d %d %llu %d %.1f %d\n", reg.scalar(s32, 1), 2, reg.scalar(u64, 3), 4, reg.scalar(f32, 5.0), 6)

    assert sim.run(parse(body.ptx())).printed == "1 2 3 4 5.0 6\n"


def test_output_of_exactly_the_limit_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyptx.sim.execution.builtins.MOST_PRINTED", 1 << 20)
    assert len(run("%65536d", "st.local.u32 [pack], 5;", threads=16)[0]) == 1 << 20
    with raises(PtxError, match="printed more than 1 MiB"):
        run("%61681d", "st.local.u32 [pack], 5;", threads=17)


def test_text_appears_as_it_is_produced_and_is_attached_to_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = printing_kernel("%d\n", "st.local.u32 [pack], 5;").replace("ret;\n", "trap;\n")
    with raises(PtxError) as excinfo:
        sim.run(parse(text), block=2, args=[np.zeros(2, np.int32)])
    assert excinfo.value.printed == capsys.readouterr().out == "5\n5\n"
    machine = sim.Machine(parse(text), args=[np.zeros(2, np.int32)])
    with raises(PtxError) as excinfo:
        machine.run()
    assert excinfo.value.printed == capsys.readouterr().out == "5\n"


def test_output_may_be_redirected_silenced_or_not_encodable(capsys: pytest.CaptureFixture[str]) -> None:
    with redirect_stdout(None):
        assert run("hello\n", "")[0] == "hello\n"
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    with redirect_stdout(stream):
        assert run("é\n", "")[0] == "é\n"
    assert capsys.readouterr().out == ""
    assert stream.buffer.getvalue() == b"\\xe9\n"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
