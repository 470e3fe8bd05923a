"""PTX that attempts to break out of its Python transcript: hostile names, strings, comments, numbers and shapes."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from tests.codegen.transcripts import HEADER, kernel

WORDS = [
    *keyword.kwlist,
    "case",
    "match",
    "type",
    "eval",
    "exec",
    "open",
    "print",
    "__import__",
    "ptx",
    "module",
    "main",
    "sys",
    "STYLE",
    "ORIGINAL",
    "b32",
    "pred",
    "self",
    "l",
    "O",
    "I",
    "__",
    "_0",
    "matmul_kernel",
    "reg",
    "names",
    "layout",
]
STRINGS = [
    "'",
    "\\",
    "\\'",
    "\n",
    "'''",
    "\r",
    "{x}",
    "%s",
    "\\x41",
    "\t",
    "#",
    "\u2028",
    "\u202e",
    "\x0c",
    "\x1b[0m",
    "\x00"[:0],
    "'); import os; os.system('x') #",
    "\\\n",
    "\ud800",
    "é",
    "\U0001f600",
    "coding: utf-7",
    "__import__('os')",
]
NAMES_OF_KERNELS = [
    "",
    "1",
    "a b",
    "class",
    "ptx",
    "module",
    "é",
    "x" * 10_000,
    "a\nimport os",
    'a"); import os; os.system("x',
    "__init__",
    "a;b",
    "main",
    "sys",
    "a\r\nb",
    "lambda: 0",
    "STYLE",
]


def texts() -> Iterator[tuple[str, str]]:
    """Yield hostile modules with a name for each."""
    for word in WORDS:
        yield f"register {word}", kernel(f".reg .b32 {word}, %{word}<3>;\nmov.b32 {word}, %{word}2;\n")
        yield f"symbols {word}", _symbols(word)
    for number, text in enumerate(STRINGS):
        yield f"pragma {number}", kernel(f'.pragma "{text}";\nret;\n')
        yield f"file {number}", f'{HEADER}.file 1 "{text}"\n.entry k() {{ ret; }}'
        comment = text.replace("\n", " ").replace("\r", " ")
        yield (
            f"comment {number}",
            f"{HEADER}// {comment}\n.entry k() /* {text} */ {{ ret; // {comment}\n}} // {comment}",
        )
    yield from _shapes()
    yield from _spellings()
    yield from _declarations()


def _symbols(word: str) -> str:
    module_symbols = f".global .u32 g_{word}[2] = {{1, 2}};\n.func f_{word}(.param .b32 {word}) {{ ret; }}\n"
    body = f"mov.u64 %rd1, g_{word};\nbra {word}_;\n{word}_:\nld.param.b32 %r1, [p_{word}+4];\n"
    return f"{HEADER}{module_symbols}.visible .entry {word}_k(.param .align 8 .b8 p_{word}[8])\n{{\n{body}}}\n"


def _shapes() -> Iterator[tuple[str, str]]:
    long = "x" * 10_000
    yield "long names", kernel(f".reg .b32 %{long}<5>, {long};\nmov.b32 %{long}4, {long};\n{long}_:\n")
    yield "deep blocks", kernel("{" * 1000 + "ret;" + "}" * 1000)
    yield "deep blocks with lines", kernel("{\n" * 300 + ".reg .b32 a;\nmov.b32 a, 1;\n" + "}\n" * 300)
    yield "deep parentheses", kernel("mov.u32 %r1, " + "(" * 5000 + "1" + ")" * 5000 + ";\n")
    yield "long sums", kernel("mov.u32 %r1, " + "1+" * 3000 + "1;\n")
    yield "deep initializers", HEADER + ".global .u32 a[1] = {" + "{" * 500 + "1" + "}" * 500 + "};\n"
    flag, labels = ".reg .pred p;\n", [f"L{i}" for i in range(30)]
    ends = "".join(f"{label}:\n" for label in reversed(labels))
    yield "deep conditions", kernel(flag + "".join(f"@p bra {label};\n" for label in labels) + "ret;\n" + ends)
    tails = "".join(f"@p bra {label};\n" for label in reversed(labels))
    yield "deep loops", kernel(flag + "".join(f"{label}:\n" for label in labels) + "ret;\n" + tails)
    then = else_ = "bar.sync 0;\n"
    for number in range(30):
        then = f"@p bra A{number};\n{then}bra E{number};\nA{number}:\nbar.sync 1;\nE{number}:\n"
        else_ = f"@p bra A{number};\nbar.sync 1;\nbra E{number};\nA{number}:\n{else_}E{number}:\n"
    yield "deep then parts", kernel(f"{flag}{then}ret;\n")
    yield "deep else parts", kernel(f"{flag}{else_}ret;\n")
    for depth in (6, 12):
        starts, ends = labels[:depth], labels[depth - 1 :: -1]
        inside = "{\n" * depth + "ret;\n" + "}\n" * depth
        tails = "".join(f"@p bra {label};\n" for label in ends)
        yield f"blocks in {depth} loops", kernel(flag + "".join(f"{label}:\n" for label in starts) + inside + tails)
        heads = "".join(f"@p bra {label};\n" for label in starts)
        yield f"blocks in {depth} conditions", kernel(flag + heads + inside + "".join(f"{label}:\n" for label in ends))
    wait = "mbarrier.try_wait.parity.b64 p, [r], s;\n@!p bra W;\n"
    yield "waits without a space", kernel(f"{flag}.reg .b64 r;\n.reg .b32 s;\nW:\n{wait}")
    yield (
        "jump tables",
        kernel(
            f"{flag}t: .branchtargets A, B, C<2>;\nA:\n@p bra B;\nbrx.idx %r1, t;\nB:\n@p bra A;\nC0:\nC1:\n"
            "@p bra E;\n{\nu: .branchtargets D, F<2>;\nbrx.idx %r1, u;\n}\nD:\n@p bra F0;\nF0:\nE:\nret;\nF1:\n"
        ),
    )
    yield (
        "branches out of blocks",
        kernel(f"{flag}@p bra B;\n{{\n{{\n@p bra A;\n}}\nbra C;\n}}\nA:\nret;\nB:\n@p bra C;\nret;\nC:\n@p bra C;\n"),
    )
    yield "huge range", kernel(".reg .b32 %r<100000000>;\nmov.b32 %r99999999, %r100000000;\n")
    yield "wide vector", kernel("foo.bar {" + ", ".join(f"%f{i}" for i in range(3000)) + "}, %rd1;\n")
    yield "ranges that meet", kernel(".reg .b32 %r1<3>, %r<30>;\nadd.s32 %r10, %r11, %r12;\nadd.s32 %r05, %r, %r00;\n")
    yield "same identifiers", kernel(".reg .b32 %a, a, $a, %$a, _a, A;\nadd.s32 %a, a, $a;\nadd.s32 %$a, _a, A;\n")
    yield (
        "shadows",
        kernel(".reg .b32 p;\n{\n.reg .pred p;\n@!p ret;\n}\nmov.b32 p, 1;\n{\n.reg .pred p;\n@p ret;\n}\n"),
    )
    yield "Windows", kernel("ret;\n").replace("\n", "\r\n")
    yield "mixed line ends", kernel("ret;\r\n") + "\r"
    yield "a NUL at the end", kernel("ret;\n") + "\0"
    yield "no line end", kernel("ret;\n")[:-1]
    yield (
        "marks without partners",
        kernel(
            "\t// begin inline asm\n\t{\n\t// end inline asm\n ret; }\n"
            "\t// end inline asm\n\tret;\n\t// begin inline asm\n"
        ),
    )
    yield (
        "marks",
        kernel("\t// begin inline asm\n\t// end inline asm\n\t// begin inline asm\n\tret;\n\t// end inline asm\n"),
    )


def _spellings() -> Iterator[tuple[str, str]]:
    yield "unknown", kernel("made.up.u32.zz::yy.1d %r1, [x], {a,b}|c;\nfoo;\n@!x bar.2 y;\nclass.import.for %r1;\n")
    yield "order", kernel(".reg .f32 f;\nadd.f32.rn f,f,f;\nadd .f32 f , f,f ;\nld.u32.global %r1, a[2];\n")
    yield (
        "numbers",
        kernel(
            "mov.u32 %r1, 017;\nmov.u32 %r1, 0x1FU;\nmov.u32 %r1, -0;\nmov.u32 %r1, 0b11;\nmov.u32 %r1, 00;\n"
            "mov.u32 %r1, WARP_SZ;\nmov.u32 %r1, -WARP_SZ;\nmov.f32 %f1, 1e5;\nmov.f32 %f1, 0F3f800000;\n"
            f"mov.f32 %f1, .5;\nmov.u64 %rd1, {(1 << 64) - 1};\n"
        ),
    )
    yield (
        "expressions",
        kernel(
            "mov.u32 %r1, 1?2:(3<<2)|~4&!5-6;\nld.b32 %r1, [%r1+4*8];\nld.b32 %r1, [(4)];\n"
            "ld.b32 %r1, [4*8];\nmov.u64 %rd1, (.s64) 4;\nmov.b32 %r1, -%r0;\nmov.u32 %r1, 5 % 4;\n"
            "ld.b32 %r1, [8];\nld.b32 %r1, [8+4];\nmov.u32 %r1, a+4;\n"
        ),
    )
    yield (
        "parts",
        kernel(
            ".reg .v4 .b32 v;\n.reg .v2 .f32 %w<3>;\nmov.b32 %r1, v.x;\nmov.b32 %w2.y, %tid.x;\n"
            "vadd.s32.s32.s32 %r1, %r2.b0, %r3.h1, 4;\nelect.sync _|%p1, -1;\nshfl.x %r1|_, 1;\n"
        ),
    )
    yield (
        "calls",
        kernel(
            "call (%r1), %r2, (%r3), p0;\ncall k;\ncall.uni (_), k, (1, 2.5);\ncall (), k, ();\n"
            "p0: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;\nt: .calltargets k;\n"
            "b: .branchtargets A, B, L<4>;\nA: B: brx.idx %r1, b;\n"
        ),
    )


def _declarations() -> Iterator[tuple[str, str]]:
    yield (
        "variables",
        HEADER
        + (
            ".global .u32 a[2][3] = {{1,2},{3,-0x4}}, b, c[] = {5};\n"
            ".global .align 8 .u64 p[3] = {generic(a), a+4, 0};\n"
            ".global .u8 q[2] = {0xFF(a), 0xFF00(a)};\n.const .f32 f = 1.5;\n.global .f64 g = 0d3FF0000000000000;\n"
            ".global .v4 .f32 v;\n.extern .shared .b8 s[];\n.global .texref t;\n.const[2] .u32 cc;\n"
            ".global .samplerref sm = {addr_mode_0 = clamp_to_border, filter_mode = nearest};\n"
            ".weak .global .u32 w[0x10];\n"
            ".global .attribute(.managed) .u32 mg;\n.global .align 4 .attribute(.unified(1,2)) .u32 mh;\n"
            ".visible .global .align 4 .b8 one[1] = {0}, two = {3};\n.reg .b32 %m<4>;\n"
        ),
    )
    yield (
        "functions",
        HEADER
        + (
            ".func (.param .b32 r) f(.param .b32 a, .reg .u32 b, .param .align 8 .b8 c[16], .param .u64 .ptr d, "
            ".param .b8 .align 4 e[4]) .noreturn ;\n.visible .func g .noreturn {ret;}\n"
            ".extern .entry e(.param .b8 x[]);\n"
            '.entry z {ret;}\n.weak .entry y () .maxntid 1,2,3 .pragma "a\'"; .minnctapersm 0x2 {ret;}\n.alias g, f;\n'
        ),
    )
    yield (
        "sections",
        HEADER
        + (
            '.file 1 "a\'b\nc.cu", 0x5, 6\n.section .debug_info { \n L: .b8 1, 2, -3\n .b64 L\n.b32 L-M\n'
            " .b32 .debug_str+16\n}\n@@DWARF .byte 1, 2\n@@DWARF .section .debug_info\n@@DWARF x:\n"
            '@@DWARF .string "a"\n@@DWARF .4byte L-M, L+4, N\n'
        ),
    )
    yield (
        "words with dots",
        HEADER
        + (
            ".global .attribute(.unified(0x1, 02), .a::b) .u32 g;\n.func .attribute(.unified(0x1, 2)) f() {ret;}\n"
            ".section .a$b { $x: .b8 1\n.b64 .a::b+4\n.b64 $x-$x }\n.section .a::b { .b8 1 }\n"
            "@@DWARF .section .a$b\n@@DWARF .a$b 1\n"
            ".entry e() {.loc 1 2 3, function_name .a$b, inlined_at 1 2 3\nret;}\n"
        ),
    )
    yield (
        "places",
        kernel(
            ".loc 1 2 3\n.loc 1 2 3, function_name L+4, inlined_at 1 9 3\n.loc_intermediate 1 2 3\n"
            ".loc 0x1 2 3, function_name L, inlined_at 1 9 3 ret;\n"
        ),
    )
    yield "header", ".version  8.07 // x\n\n.target sm_90a ,debug\n.address_size 0x40\n"
    yield "old header", ".version 1.4\n.target sm_20\n.entry k (.param .u32 a){exit;}"
    yield "header of tomorrow", ".version 19.9\n.target sm_999\n.entry k (.param .u32 a){mov.u32 %r1, 1; exit;}"
