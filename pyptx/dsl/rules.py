"""What each PTX08xx code means: mistakes in writing a kernel in Python. `wrong` and `right` are bodies of a kernel."""

from __future__ import annotations

from pyptx.diagnostics import Rule, Severity

_X = "x = ptx.special.laneid()\n"

OUTSIDE = Rule(
    "PTX0801",
    "used outside a kernel",
    "Registers, shared memory and instructions exist while a `@kernel` function is traced; elsewhere there is nothing "
    "to add them to.",
    "",
    "x = reg.scalar(u32, 1)",
)
FOREIGN = Rule(
    "PTX0802",
    "register of another kernel or of a closed block",
    "A register belongs to the trace that made it, and inside `ptx.scope()` to that block.",
    "with ptx.scope():\n    x = reg.scalar(u32, 1)\ny = x + 1",
    "with ptx.scope():\n    x = reg.scalar(u32, 1)\n    y = x + 1",
)
TRUTH = Rule(
    "PTX0803",
    "a register has no value while the kernel is written",
    "Python decides `if`, `while`, `and`, `or`, `not` while it traces, the GPU when it runs: `if x == 0:` would always "
    "be true.",
    f"{_X}if x == 0:\n    ptx.ret()",
    f"{_X}with ptx.if_(x == 0):\n    ptx.ret()",
)
TYPES = Rule(
    "PTX0804",
    "operand types that PTX cannot combine",
    "Operators follow the type of the register. A narrower integer is widened by its own signedness; everything else "
    "is written out.",
    f"{_X}f = reg.scalar(f32, 1.0)\ny = x + f",
    f"{_X}f = reg.scalar(f32, 1.0)\nx_f32 = reg.alloc(f32)\nptx.cvt(f32, u32, x_f32, x, rounding='rn')\ny = x_f32 + f",
)
LITERAL = Rule(
    "PTX0805",
    "number that does not fit the type",
    "A literal must be a value of the register's type; PTX would truncate it silently.",
    "x = reg.scalar(u32, 1.5)",
    "x = reg.scalar(u32, 1)",
)
OPERAND = Rule(
    "PTX0806",
    "not an operand",
    "Operands are registers, numbers, symbols (str), addresses, lists and tuples of these, allocations and barriers.",
    "ptx.inst.mov.u32(reg.alloc(u32), object())",
    "ptx.inst.mov.u32(reg.alloc(u32), 1)",
)
NESTING = Rule(
    "PTX0810",
    "control flow out of place",
    "`else_` and `elif_` follow their `if_` directly; `break_` and `continue_` stand inside a loop; control flow "
    "cannot leave `ptx.expr()`.",
    "with ptx.else_():\n    ptx.ret()",
    f"{_X}with ptx.if_(x == 0):\n    ptx.ret()\nwith ptx.else_():\n    ptx.ret()",
)
UNCLOSED = Rule(
    "PTX0811",
    "block never closed",
    "A context manager was entered by hand and not left before the kernel ended.",
    f"{_X}ptx.if_(x == 0).__enter__()",
    f"{_X}with ptx.if_(x == 0):\n    ptx.ret()",
)
PYTHON_EXIT = Rule(
    "PTX0812",
    "Python leaves a block that the GPU decides",
    "`return` inside `ptx.if_` and `break` inside `ptx.range_` end the tracing on every path, not the thread's.",
    "for i in ptx.range_(0, 8):\n    break",
    "for i in ptx.range_(0, 8):\n    ptx.break_()",
)
LABEL = Rule(
    "PTX0813",
    "label declared twice or nowhere",
    "A label names one place of the kernel.",
    "ptx.label('top')\nptx.label('top')",
    "ptx.label('top')\nptx.bra('top', pred=ptx.special.laneid() == 0)",
)
INVARIANT = Rule(
    "PTX0814",
    "loop condition that never changes",
    "The comparison was emitted once, before the loop: the loop would run for ever or once.",
    "i = reg.scalar(u32, 0)\nwith ptx.loop('top', pred=i < 4):\n    ptx.add(u32, i, i, 1)",
    "i = reg.scalar(u32, 0)\nwith ptx.loop('top', pred=lambda: i < 4):\n    ptx.add(u32, i, i, 1)",
)
NAME = Rule(
    "PTX0815",
    "name that PTX does not allow",
    "Names are letters, digits, `_` and `$`, not starting with a digit; parameters and variables are declared once.",
    "ptx.var('shared', u32, 'two words')",
    "ptx.var('shared', u32, 'two_words')",
)
INDEX = Rule(
    "PTX0816",
    "index out of range",
    "Register arrays, allocations and barrier arrays have a fixed size.",
    "reg.array(u32, 4)[4]",
    "reg.array(u32, 4)[3]",
)
SHARED_SIZE = Rule(
    "PTX0817",
    "more shared memory than the target has",
    "Static and dynamic shared memory of one CTA together are limited by the architecture.",
    "smem.alloc(u32, 1 << 20)",
    "smem.alloc(u32, 1 << 10)",
)
ARGUMENT = Rule(
    "PTX0818",
    "wrong argument",
    "An argument of a helper has a fixed set of values.",
    "ptx.range_(0, 8, 0)",
    "for i in ptx.range_(0, 8, 1):\n    pass",
)
PTX_TEXT = Rule(
    "PTX0819",
    "PTX text that does not parse",
    "`ptx.raw` takes whole statements, each with its `;`.",
    "ptx.raw('bar.sync 0')",
    "ptx.raw('bar.sync 0;')",
)
SPECIALISATION = Rule(
    "PTX0820",
    "missing or unknown kernel argument",
    "A kernel is traced for given shape variables and template parameters, by keyword.",
    "",
    "",
)
DECLARATION = Rule(
    "PTX0821",
    "kernel declared wrongly",
    "What `@kernel` is given and the function's own parameters must agree.",
    "",
    "",
)
EXACT = Rule(
    "PTX0822",
    "belongs in an exact transcript",
    "Spacing, blocks, directives and declarations in place are written in exact transcripts, where nothing is hoisted, "
    "added or folded; elsewhere the kernel declares and spaces by itself.",
    "ptx.layout(before='')",
    "ptx.ret()",
)
HELD = Rule(
    "PTX0823",
    "operator in place on a register that pyptx reads again",
    "`x += 1` writes the register itself. The counter of `ptx.range_`, the stage and phase of a ring, the address of a "
    "tensor map and descriptors made once belong to pyptx, which would go on with the changed value.",
    "for i in ptx.range_(0, 8):\n    i += 1",
    "for i in ptx.range_(0, 8):\n    j = reg.from_(i, s32)\n    j += 1",
)

COPY = Rule(
    "PTX0824",
    "neither copied nor pickled",
    "Registers, allocations and tensors belong to the trace of one kernel. A kernel is pickled by its name, like a "
    "function.",
    "import copy\nx = copy.copy(reg.scalar(u32, 1))",
    "x = reg.from_(reg.scalar(u32, 1), u32)",
)
LOST_UPDATE = Rule(
    "PTX0831",
    "name rebound inside a loop of the GPU",
    "Python runs the body of a GPU loop once. `s = s + x` makes a fresh register and binds the name to it; the next "
    "round reads the old register again. `s += x` writes the register itself.",
    "s = reg.scalar(s32, 0)\nfor i in ptx.range_(0, 8):\n    s = s + i",
    "s = reg.scalar(s32, 0)\nfor i in ptx.range_(0, 8):\n    s += i",
    Severity.WARNING,
)

LINEAR = Rule(
    "PTX0840",
    "linear access of swizzled shared memory",
    "`tile[row, column]` is the element at its linear address. A tensor copy and a product have the elements of a "
    "swizzled tile elsewhere: there it is another element.",
    "tile, sums = smem.wgmma_tile(bf16, (64, 64)), reg.array(f32, 32)\n"
    "ptx.wgmma.mma_async(\n    shape=(64, 64, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums, a=tile, b=tile\n)\n"
    "x = tile[1, 8]",
    "tile, sums = smem.wgmma_tile(bf16, (64, 64)), reg.array(f32, 32)\n"
    "ptx.wgmma.mma_async(\n    shape=(64, 64, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums, a=tile, b=tile\n)\n"
    "x = tile.swizzled(1, 8).load()",
    Severity.WARNING,
)

RULES = (
    OUTSIDE, FOREIGN, TRUTH, TYPES, LITERAL, OPERAND, NESTING, UNCLOSED, PYTHON_EXIT, LABEL, INVARIANT, NAME, INDEX,
    SHARED_SIZE, ARGUMENT, PTX_TEXT, SPECIALISATION, DECLARATION, EXACT, HELD, COPY, LOST_UPDATE,
    LINEAR,
)  # fmt: skip
