"""Rules PTX0801 to PTX0840: kernels written in Python. `wrong` and `right` are bodies of a kernel."""

from __future__ import annotations

from pyptx.diagnostics import Rule, Severity

_X = "x = ptx.special.laneid()\n"

OUTSIDE = Rule(
    "PTX0801",
    "used outside a kernel",
    "Registers, shared memory and instructions can only be used while a `@kernel` function is traced.",
    "",
    "x = reg.scalar(u32, 1)",
)
FOREIGN = Rule(
    "PTX0802",
    "register of another kernel or of a closed block",
    "A register belongs to the trace that created it, and inside `ptx.scope()` to that block.",
    "with ptx.scope():\n    x = reg.scalar(u32, 1)\ny = x + 1",
    "with ptx.scope():\n    x = reg.scalar(u32, 1)\n    y = x + 1",
)
TRUTH = Rule(
    "PTX0803",
    "Python branch on a register",
    "Python evaluates `if`, `while`, `and`, `or` and `not` while tracing, when a register has no value yet: `if x == "
    "0:` would always be true.",
    f"{_X}if x == 0:\n    ptx.ret()",
    f"{_X}with ptx.if_(x == 0):\n    ptx.ret()",
)
TYPES = Rule(
    "PTX0804",
    "operand types that cannot be combined",
    "An operator uses the type of its register. A narrower integer is extended according to its own signedness; "
    "write any other conversion explicitly.",
    f"{_X}f = reg.scalar(f32, 1.0)\ny = x + f",
    f"{_X}f = reg.scalar(f32, 1.0)\nx_f32 = reg.alloc(f32)\nptx.cvt(f32, u32, x_f32, x, rounding='rn')\ny = x_f32 + f",
)
LITERAL = Rule(
    "PTX0805",
    "number does not fit the type",
    "A literal must be a value of the register's type; PTX would truncate it silently.",
    "x = reg.scalar(u32, 1.5)",
    "x = reg.scalar(u32, 1)",
)
OPERAND = Rule(
    "PTX0806",
    "invalid operand",
    "An operand must be a register, number, symbol (str), address, list or tuple of these, allocation or barrier.",
    "ptx.inst.mov.u32(reg.alloc(u32), object())",
    "ptx.inst.mov.u32(reg.alloc(u32), 1)",
)
NESTING = Rule(
    "PTX0810",
    "misplaced control flow",
    "`else_` and `elif_` must directly follow their `if_`, `break_` and `continue_` must be in a loop, and control "
    "flow cannot leave `ptx.expr()`.",
    "with ptx.else_():\n    ptx.ret()",
    f"{_X}with ptx.if_(x == 0):\n    ptx.ret()\nwith ptx.else_():\n    ptx.ret()",
)
UNCLOSED = Rule(
    "PTX0811",
    "block never closed",
    "A context manager was entered manually and not exited before the kernel ended.",
    f"{_X}ptx.if_(x == 0).__enter__()",
    f"{_X}with ptx.if_(x == 0):\n    ptx.ret()",
)
PYTHON_EXIT = Rule(
    "PTX0812",
    "Python exit from a GPU block",
    (
        "`return` inside `ptx.if_` and `break` inside `ptx.range_` end tracing on every path; they do not affect "
        "single threads."
    ),
    "for i in ptx.range_(0, 8):\n    break",
    "for i in ptx.range_(0, 8):\n    ptx.break_()",
)
LABEL = Rule(
    "PTX0813",
    "undefined or duplicate label",
    "A label must be placed exactly once in the kernel.",
    "ptx.label('top')\nptx.label('top')",
    "ptx.label('top')\nptx.bra('top', pred=ptx.special.laneid() == 0)",
)
INVARIANT = Rule(
    "PTX0814",
    "constant loop condition",
    "The comparison was emitted once, before the loop, so the loop runs either once or forever.",
    "i = reg.scalar(u32, 0)\nwith ptx.loop('top', pred=i < 4):\n    ptx.add(u32, i, i, 1)",
    "i = reg.scalar(u32, 0)\nwith ptx.loop('top', pred=lambda: i < 4):\n    ptx.add(u32, i, i, 1)",
)
NAME = Rule(
    "PTX0815",
    "invalid PTX name",
    (
        "Names consist of letters, digits, `_` and `$`, and do not start with a digit. Parameters and variables can "
        "be declared once."
    ),
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
    "shared memory limit exceeded",
    "The architecture limits the static and dynamic shared memory of a CTA, taken together.",
    "smem.alloc(u32, 1 << 20)",
    "smem.alloc(u32, 1 << 10)",
)
ARGUMENT = Rule(
    "PTX0818",
    "invalid argument",
    "The argument is not one of the values that the function accepts.",
    "ptx.range_(0, 8, 0)",
    "for i in ptx.range_(0, 8, 1):\n    pass",
)
PTX_TEXT = Rule(
    "PTX0819",
    "invalid PTX text",
    "`ptx.raw` takes complete statements, each ending in `;`.",
    "ptx.raw('bar.sync 0')",
    "ptx.raw('bar.sync 0;')",
)
SPECIALISATION = Rule(
    "PTX0820",
    "missing or unknown kernel argument",
    "A kernel is traced for specific shape variables and template parameters, passed by keyword.",
    "",
    "",
)
DECLARATION = Rule(
    "PTX0821",
    "invalid kernel declaration",
    "The arguments of `@kernel` must match the function's parameters.",
    "",
    "",
)
EXACT = Rule(
    "PTX0822",
    "only allowed in an exact transcript",
    "Exact transcripts write spacing, blocks, directives and declarations in place, and nothing is hoisted, added or "
    "folded. Other kernels declare names and choose spacing automatically.",
    "ptx.layout(before='')",
    "ptx.ret()",
)
HELD = Rule(
    "PTX0823",
    "in-place operator on a register that pyptx reuses",
    "`x += 1` writes the register itself. pyptx reuses the counter of `ptx.range_`, the stage and phase of a ring, "
    "the address of a tensor map, and cached descriptors, and would continue with the changed value.",
    "for i in ptx.range_(0, 8):\n    i += 1",
    "for i in ptx.range_(0, 8):\n    j = reg.from_(i, s32)\n    j += 1",
)

COPY = Rule(
    "PTX0824",
    "cannot be copied or pickled",
    "Registers, allocations and tensors belong to the trace of one kernel. A kernel is pickled by name, like a "
    "function.",
    "import copy\nx = copy.copy(reg.scalar(u32, 1))",
    "x = reg.from_(reg.scalar(u32, 1), u32)",
)
LOST_UPDATE = Rule(
    "PTX0831",
    "name rebound inside a GPU loop",
    "Python runs the body of a GPU loop once. `s = s + x` creates a new register and rebinds the name, so the next "
    "iteration reads the old register again. `s += x` writes the register itself.",
    "s = reg.scalar(s32, 0)\nfor i in ptx.range_(0, 8):\n    s = s + i",
    "s = reg.scalar(s32, 0)\nfor i in ptx.range_(0, 8):\n    s += i",
    Severity.WARNING,
)

LINEAR = Rule(
    "PTX0840",
    "linear access of swizzled shared memory",
    "`tile[row, column]` accesses the element at its linear address. Tensor copies and matrix instructions place the "
    "elements of a swizzled tile at other addresses, so this accesses a different element.",
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
