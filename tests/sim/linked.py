"""Small modules that link or fail to link, and the verdict of nvJitLink on them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from pyptx.ir import Module
from pyptx.parser import parse

READ = "ld.global.u32 %r1, [x];"
SHARED = "st.shared.u32 [s], %r1;"
X, EXTERN = ".visible .global .u32 x = 5;", ".extern .global .u32 x;"


def kernel(body: str, name: str = "k", linking: str = ".visible") -> str:
    return (
        f"{linking} .entry {name}(.param .u64 out) {{ .reg .b32 %r<9>; .reg .b64 %o; ld.param.u64 %o, [out];\n{body}\n"
        "st.global.u32 [%o], %r1; ret; }\n"
    )


def callee(parameter: str = ".param .b32 a", linking: str = ".visible", result: str = "") -> str:
    return f"{linking} .func {result} f({parameter}) {{ ret; }}\n"


def caller(parameter: str = ".param .b32 a", linking: str = ".extern") -> str:
    return f"{linking} .func f({parameter});\n" + kernel(f"{{ {parameter}; call f, (a); }}")


def reader(declaration: str) -> str:
    return declaration + kernel(READ)


_TEXTS: dict[str, tuple[str, ...]] = {
    "extern": (reader(EXTERN), X),
    "extern, private definition": (reader(EXTERN), ".global .u32 x = 5;"),
    "extern, nowhere defined": (reader(EXTERN), ".visible .global .u32 y;"),
    "extern, nowhere defined nor used": (EXTERN + kernel(""), ".visible .global .u32 y;"),
    "only in a list of targets, nowhere defined": (
        ".extern .func f(.param .b32 a);\n" + kernel("{ .param .b32 a; .reg .b64 %p; ld.param.u64 %p, [out];\n"
        "st.param.b32 [a], %r1;\nT: .calltargets f;\ncall %p, (a), T; }"), ".visible .global .u32 y;"),
    "extern in both": (reader(EXTERN), EXTERN),
    "extern and defined in one module": (EXTERN + reader(X), ".visible .global .u32 y;"),
    "extern with a value": (reader(".extern .global .u32 x = 3;"), X),
    "extern without size": (reader(".extern .global .u32 x[];"), ".visible .global .u32 x[4];"),
    "extern, smaller": (reader(".extern .global .u32 x[2];"), ".visible .global .u32 x[4];"),
    "extern, larger": (reader(".extern .global .u32 x[8];"), ".visible .global .u32 x[4];"),
    "extern, larger, a third without size": (
        reader(".extern .global .u32 x[];"), ".visible .global .u32 x[4];", ".extern .global .u32 x[8];"),
    "extern, another type": (reader(EXTERN), ".visible .global .f32 x;"),
    "extern, bytes": (reader(".extern .global .b8 x[16];"), ".visible .global .u32 x[4];"),
    "extern, wider": (reader(".extern .global .u64 x;"), X),
    "extern, other dimensions": (reader(".extern .global .u32 x[2][2];"), ".visible .global .u32 x[4];"),
    "extern, vector": (reader(".extern .global .v2 .u32 x;"), ".visible .global .u32 x[2];"),
    "extern, aligned": (reader(".extern .global .align 16 .u32 x;"), X),
    "extern, managed": (reader(".extern .global .attribute(.managed) .u32 x;"), X),
    "extern, constant": (reader(EXTERN), ".visible .const .u32 x = 3;"),
    "constant, not": (".extern .const .u32 x;" + kernel("ld.const.u32 %r1, [x];"), X),
    "size by values": (reader(".visible .global .u32 x[] = {1, 2};"), ".extern .global .u32 x[2];"),
    "strong twice": (reader(X), X),
    "private twice": (reader(".global .u32 x;"), ".global .u32 x;"),
    "private and visible": (reader(".global .u32 x;"), X),
    "weak and strong": (reader(".weak .global .u32 x = 1;"), X),
    "strong and weak": (reader(X), ".weak .global .u32 x = 1;"),
    "weak twice": (reader(".weak .global .u32 x = 1;"), ".weak .global .u32 x = 2;"),
    "weak, other size": (reader(".weak .global .u32 x[2];"), ".weak .global .u32 x[4];"),
    "weak and strong, other size": (reader(".weak .global .u32 x[2];"), ".visible .global .u32 x[4];"),
    "weak constants": (".weak .const .u32 x = 3;" + kernel("ld.const.u32 %r1, [x];"), ".weak .const .u32 x = 4;"),
    "common twice": (reader(".common .global .u32 x;"), ".common .global .u32 x;"),
    "common, other size": (reader(".common .global .u32 x[2];"), ".common .global .u32 x[4];"),
    "common and strong": (reader(".common .global .u32 x;"), X),
    "common and strong, larger": (reader(".common .global .u32 x[8];"), ".visible .global .u32 x[4];"),
    "common constant": (".common .const .u32 x;" + kernel("ld.const.u32 %r1, [x];"), ".visible .global .u32 y;"),
    "extern and common": (reader(EXTERN), ".common .global .u32 x;"),
    "extern and weak": (reader(EXTERN), ".weak .global .u32 x;"),
    "weak and weak and strong": (reader(".weak .global .u32 x = 1;"), ".weak .global .u32 x = 2;", X),
    "a function": (caller(), callee()),
    "a private function": (caller(), callee(linking="")),
    "a function, nowhere defined": (caller(), X),
    "a function, nowhere defined nor used": (".extern .func f();" + kernel(""), X),
    "a strong function twice": (callee() + kernel(""), callee()),
    "a weak function and a strong one": (callee(linking=".weak") + kernel(""), callee()),
    "weak functions that differ": (callee(".param .b64 a", ".weak") + kernel(""), callee(linking=".weak")),
    "a visible prototype alone": (caller(linking=".visible"), callee()),
    "a weak prototype alone": (caller(linking=".weak"), callee()),
    "a plain prototype alone": (caller(linking=""), callee()),
    "a prototype that is extern, and its definition": (".extern .func f();\n.visible .func f() { ret; }", kernel("")),
    "parameters, unsigned": (caller(".param .b32 a"), callee(".param .u32 a")),
    "parameters, float": (caller(".param .b32 a"), callee(".param .f32 a")),
    "parameters, double": (caller(".param .b64 a"), callee(".param .f64 a")),
    "parameters, wider": (caller(".param .b32 a"), callee(".param .b64 a")),
    "parameters, bytes": (caller(".param .b32 a"), callee(".param .align 4 .b8 a[4]")),
    "parameters, other size": (caller(".param .align 4 .b8 a[4]"), callee(".param .align 4 .b8 a[8]")),
    "parameters, alignment": (caller(".param .align 8 .b8 a[8]"), callee(".param .align 4 .b8 a[8]")),
    "parameters, count": (caller(), callee(".param .b32 a, .param .b32 b")),
    "parameters, nowhere called": (".extern .func f(.param .b32 a);" + kernel(""), callee(".param .b64 a")),
    "results": (caller(), callee(result="(.param .b32 r)")),
    "a function and a variable": (caller(), ".visible .global .u32 f;"),
    "a function and a kernel": (callee() + kernel(""), kernel("", "f")),
    "kernels": (kernel(""), kernel("")),
    "weak kernels": (kernel("", linking=".weak"), kernel("", linking=".weak")),
    "private kernels": (kernel("", linking=""), kernel("", linking="")),
    "a weak kernel with other parameters": (kernel("", linking=".weak"), ".visible .entry k(.param .u32 n) { ret; }"),
    "an alias": (
        ".extern .func f();" + kernel("call f;"), ".visible .func g() { ret; }\n.func f();\n.alias f, g;"),
    "an alias of a private function": (
        ".extern .func f();" + kernel("call f;"), ".func g() { ret; }\n.visible .func f();\n.alias f, g;"),
    "the system's functions": (
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);"
        + kernel("{ .param .b64 a, b; .param .b32 c; call (c), vprintf, (a, b); }"), X),
    "dynamic shared memory": (
        ".extern .shared .align 16 .b8 s[];" + kernel(SHARED), ".extern .shared .f32 s[];" + kernel(SHARED, "k2")),
    "dynamic shared memory, one with a size": (
        ".extern .shared .b8 s[];" + kernel(SHARED), ".extern .shared .u32 s[4];" + kernel(SHARED, "k2")),
    "shared memory with a size, nowhere defined": (".extern .shared .u32 s[4];" + kernel(SHARED), X),
    "shared memory": (".extern .shared .u32 s[];" + kernel(SHARED), ".visible .shared .u32 s[4];"),
    "shared memory twice": (".visible .shared .u32 s[4];" + kernel(SHARED), ".visible .shared .u32 s[4];"),
    "shared memory, weak": (".weak .shared .u32 s[4];" + kernel(SHARED), ".weak .shared .u32 s[4];"),
    "shared memory and global": (".extern .shared .u32 s[];" + kernel(SHARED), ".visible .global .u32 s[4];"),
}  # fmt: skip
_HEADERS = {
    "other versions": (("7.8", "sm_90", 64), ("8.3", "sm_90", 64), "sm_90"),
    "an older target": (("8.0", "sm_90", 64), ("8.0", "sm_80", 64), "sm_90"),
    "its own target": (("8.0", "sm_90a", 64), ("8.0", "sm_90", 64), "sm_90a"),
    "its own target and a newer one": (("8.8", "sm_90a", 64), ("8.8", "sm_100", 64), "sm_100"),
    "a family": (("8.8", "sm_100f", 64), ("8.8", "sm_103", 64), "sm_103f"),
    "another family": (("8.8", "sm_100f", 64), ("8.8", "sm_120f", 64), "sm_120f"),
    "other addresses": (("8.0", "sm_90", 64), ("8.0", "sm_90", 32), "sm_90"),
}
PAIRS = (*_TEXTS, *_HEADERS)


def add_header(text: str, version: str = "8.0", target: str = "sm_90", size: int = 64) -> str:
    return f".version {version}\n.target {target}\n.address_size {size}\n{text}\n"


def module(text: str) -> Module:
    """Return a module with this text after a header."""
    return parse(add_header(text))


def pair(name: str) -> list[str]:
    """Return the texts of a group of modules."""
    if name in _TEXTS:
        return [add_header(text) for text in _TEXTS[name]]
    first, second, _ = _HEADERS[name]
    return [add_header(reader(EXTERN), *first), add_header(X, *second)]


def arch_of(name: str) -> str:
    """Return the target to link for."""
    return _HEADERS[name][2] if name in _HEADERS else "sm_90"


def links_with_nvjitlink(texts: list[str], arch: str, capture: pytest.CaptureFixture[str]) -> bool:
    """Return whether nvJitLink links these texts; it only prints some of its errors."""
    library: Any = import_module("cuda.bindings.nvjitlink")
    handle = library.create(1, [f"-arch={arch}"])
    capture.readouterr()
    try:
        for index, text in enumerate(texts):
            data = text.encode()
            library.add_data(handle, library.InputType.PTX, data, len(data), f"{index}.ptx")
        library.complete(handle)
    except library.nvJitLinkError:
        return False
    finally:
        library.destroy(handle)
    return "error" not in capture.readouterr().err
