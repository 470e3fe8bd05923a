"""The codes of what a simulated launch reports. Every one is an error at a place of the PTX, or of the launch."""

from __future__ import annotations

from pyptx.diagnostics import Diagnostic, Origin, PtxError, Rule

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.global .align 16 .u32 data[64];
.const .u32 table[2] = {{1, 2}};
.visible .entry k()
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    mov.u64 %rd1, data;
    {}
    ret;
}}
"""


def _rule(number: int, title: str, why: str, wrong: str = "", right: str = "") -> Rule:
    """Return a rule; its examples are bodies of a kernel that 32 threads run."""
    examples = (_FRAME.format(wrong), _FRAME.format(right)) if wrong else ("", "")
    return Rule(f"PTX11{number:02d}", title, why, *examples)


MISSING_ENTRY = _rule(1, "no such entry", "The launch must name an `.entry` of the module.")
ARGUMENTS = _rule(2, "arguments do not fit", "Every parameter takes one argument of its size.")
LAUNCH_SHAPE = _rule(
    3, "invalid launch shape", "Grid, block and cluster must be positive and within the limits of the target."
)
OUT_OF_MEMORY = _rule(
    7, "out of memory", "The threads that must be resident together do not fit in this machine's memory."
)
UNDEFINED_EXTERN = _rule(4, "undefined external symbol", "A function or variable is declared but not defined.")
LINKING = _rule(
    8,
    "modules do not link",
    "Modules that run together have one definition of every shared name, declare it alike, and have the same target.",
)
UNSUPPORTED = _rule(5, "instruction not simulated", "The simulator has no semantics for this form.")
ILLEGAL = _rule(6, "illegal instruction", "The instruction is not legal PTX, so it has no meaning to simulate.")
OUT_OF_BOUNDS = _rule(
    10,
    "access out of bounds",
    "An access must be inside one allocation of its state space.",
    "ld.global.u32 %r2, [%rd1+256];",
    "ld.global.u32 %r2, [%rd1+252];",
)
MISALIGNED = _rule(
    11,
    "misaligned access",
    "An address must be a multiple of the size of the whole access.",
    "ld.global.u32 %r2, [%rd1+2];",
    "ld.global.u32 %r2, [%rd1+4];",
)
WRONG_SPACE = _rule(
    12,
    "wrong state space",
    "The address belongs to a state space other than the instruction's.",
    "ld.const.u32 %r2, [%rd1];",
    "mov.u64 %rd2, table;\n    ld.const.u32 %r2, [%rd2];",
)
READ_ONLY = _rule(
    13,
    "write to read-only memory",
    "Constants and kernel parameters are read-only.",
    "mov.u64 %rd2, table;\n    st.u32 [%rd2], %r1;",
    "st.u32 [%rd1], %r1;",
)
TRAP = _rule(
    20,
    "trap",
    "The kernel executed `trap`.",
    "setp.eq.u32 %p0, %r1, 5;\n    @%p0 trap;",
    "setp.eq.u32 %p0, %r1, 32;\n    @%p0 trap;",
)
STEP_LIMIT = _rule(
    22,
    "step limit reached",
    "The launch executed more instructions than allowed; it may never end.",
    "$again: add.u32 %r1, %r1, 1;\n    bra $again;",
    "$again: add.u32 %r1, %r1, 1;\n    setp.lt.u32 %p0, %r1, 40;\n    @%p0 bra $again;",
)
BAD_CALL = _rule(
    23,
    "indirect call to an address that is not a function",
    "An indirect call takes the address of a function.",
    "mov.u64 %rd2, 64;\n    $proto: .callprototype _ ();\n    call %rd2, $proto;",
    "bar.sync 0;",
)
STACK = _rule(24, "stack overflow", "Local memory is limited to 512 KiB per thread.")
BAD_BRANCH = _rule(
    25,
    "branch index out of range",
    "The index of `brx.idx` selects a label of its list.",
    "$list: .branchtargets $a, $b;\n    brx.idx %r1, $list;\n    $a: ret;\n    $b: ret;",
    "and.b32 %r1, %r1, 1;\n    $list: .branchtargets $a, $b;\n    brx.idx %r1, $list;\n    $a: ret;\n    $b: ret;",
)
MBARRIER = _rule(
    26, "mbarrier misuse", "An mbarrier must be initialized before use, and its counts must stay in range."
)
COPY = _rule(27, "illegal copy", "A bulk copy needs a valid alignment and size, and a tensor copy a valid tensor map.")
MATRIX = _rule(28, "illegal matrix operand", "The operands of a matrix instruction must be inside shared memory.")
IMAGE = _rule(
    30, "illegal use of a texture or surface", "A handle must name an image of the instruction's kind and geometry."
)
VALUELESS = _rule(
    31,
    "special register without a value",
    "Some special registers are set by a driver, a profiler or hardware that is not simulated.",
    "mov.u32 %r1, %pm0;",
    "mov.u32 %r1, %clock;",
)
_PRINTS = """\
.version 8.5
.target sm_90a
.address_size 64
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[4] = {{37, {}, 10, 0}};
.visible .entry k()
{{
    .local .align 8 .b64 words[1];
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    st.local.u32 [words], %r1;
    mov.u64 %rd1, words;
    cvta.local.u64 %rd2, %rd1;
    mov.u64 %rd3, text;
    cvta.global.u64 %rd3, %rd3;
    call.uni (%r1), vprintf, (%rd3, %rd2);
    ret;
}}
"""
PRINTED_FORMAT = Rule(
    "PTX1140",
    "invalid printf format",
    "A format may contain the conversions of device code's printf, each of bounded length; `%n`, wide strings and "
    "formats that C leaves undefined are rejected.",
    _PRINTS.format(ord("n")),
    _PRINTS.format(ord("d")),
)
PRINTED_TOO_MUCH = Rule(
    "PTX1141", "too much printf output", "The output of a launch is kept in memory, so it is limited to 16 MiB.", "", ""
)
_ASSERTS = """\
.version 8.5
.target sm_90a
.address_size 64
.extern .func __assertfail(.param .b64 text, .param .b64 file, .param .b32 line, .param .b64 name, .param .b64 size);
.global .align 1 .b8 text[8] = {{97, 32, 62, 32, 48, 0}};
.global .align 1 .b8 file[8] = {{107, 46, 99, 117, 0}};
.visible .entry k()
{{
    .reg .pred %p;
    .reg .b32 %r;
    .reg .b64 %rd<3>;
    mov.u32 %r, %tid.x;
    setp.lt.u32 %p, %r, {};
    mov.u64 %rd1, text;
    cvta.global.u64 %rd1, %rd1;
    mov.u64 %rd2, file;
    cvta.global.u64 %rd2, %rd2;
    @%p call.uni __assertfail, (%rd1, %rd2, 7, %rd2, 1);
    ret;
}}
"""
ASSERTION = Rule(
    "PTX1142",
    "failed assertion",
    "The condition of an `assert` in device code was false: the kernel called `__assertfail`.",
    _ASSERTS.format(1),
    _ASSERTS.format(0),
)
_FREES = """\
.version 8.5
.target sm_90a
.address_size 64
.extern .func (.param .b64 address) malloc(.param .b64 size);
.extern .func free(.param .b64 address);
.visible .entry k()
{{
    .reg .b64 %rd<3>;
    mov.u64 %rd1, 64;
    call.uni (%rd2), malloc, (%rd1);
    {}
    call.uni free, (%rd2);
    ret;
}}
"""
BAD_FREE = Rule(
    "PTX1132",
    "free of other memory",
    "`free` takes an address that `malloc` returned, once, or 0.",
    _FREES.format("add.u64 %rd2, %rd2, 16;"),
    _FREES.format("st.u64 [%rd2], 7;"),
)
TENSOR = _rule(
    29, "illegal use of tensor memory", "Columns must be allocated, and a warp accesses only its quarter of the lanes."
)

RULES: tuple[Rule, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Rule))


def error(
    rule: Rule, origin: Origin | None, message: str, *, help: str | None = None, notes: tuple[str, ...] = ()
) -> PtxError:
    """Return a finding of a rule, ready to raise."""
    diagnostic: Diagnostic = rule.report(origin, message, help=help, notes=notes)
    return PtxError([diagnostic])
