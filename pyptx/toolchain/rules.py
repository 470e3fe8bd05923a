"""Rules PTX0701 to PTX0714: NVIDIA's tools. `wrong` and `right` are PTX modules for codes about PTX, and Python
statements for codes about the tools themselves."""

from __future__ import annotations

from pyptx.diagnostics import Rule, Severity

_HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
_GOOD = _HEAD + ".visible .entry k()\n{\n    .reg .b32 %r<3>;\n    add.s32 %r1, %r2, 1;\n    ret;\n}\n"
_LIBRARY = _HEAD + ".func late()\n{\n    ret;\n}\n.visible .entry k()\n{\n    call late;\n    ret;\n}\n"

TOOL_MISSING = Rule(
    "PTX0701",
    "NVIDIA tool not installed",
    "Assembling and disassembling need NVIDIA's own tools, which install as ordinary wheels and do not need a GPU.",
    "from pyptx.toolchain import find_tool\nfind_tool('no-such-tool')",
    "from pyptx.toolchain import find_tool\nfind_tool('ptxas')",
)
TOOL_FAILED = Rule(
    "PTX0702",
    "NVIDIA tool failed without an explanation",
    "The tool crashed or rejected its input without a message about the PTX; the notes show its output.",
    "from pyptx.toolchain import sass\nsass(b'not a cubin')",
    f"from pyptx.toolchain import sass\nsass({_GOOD!r})",
)
TOOL_TIMEOUT = Rule(
    "PTX0703",
    "NVIDIA tool timed out",
    "ptxas needs minutes for some kernels and may never finish on hostile input, so every run has a time limit.",
    f"from pyptx.toolchain import validate\nvalidate({_GOOD!r}, timeout=0)",
    f"from pyptx.toolchain import validate\nvalidate({_GOOD!r})",
)
BAD_TARGET = Rule(
    "PTX0704",
    "unknown target",
    (
        "Code is generated for one architecture, written sm_90, sm_90a (architecture-specific) or sm_100f "
        "(family-specific)."
    ),
    f"from pyptx.toolchain import validate\nvalidate({_GOOD!r}, 'sm_hopper')",
    f"from pyptx.toolchain import validate\nvalidate({_GOOD!r}, 'sm_90a')",
)
BAD_TEXT = Rule(
    "PTX0705",
    "NUL character in the PTX text",
    "nvJitLink silently ignores everything after a NUL; ptxas rejects it. pyptx drops trailing NULs, which some "
    "compilers write, and rejects any other.",
    f"from pyptx.toolchain import validate\nvalidate({_GOOD!r} + '\\0 more')",
    f"from pyptx.toolchain import validate\nvalidate({_GOOD!r} + '\\0')",
)
TOOL_BROKEN = Rule(
    "PTX0706",
    "NVIDIA tool cannot be run",
    "The file exists, but the system cannot run it: it was built for another architecture, is not a program, or is "
    "on a disk mounted without execute permission.",
    "from pyptx.toolchain.process import run\nrun(['/dev/null'])",
    "from pyptx.toolchain.process import run\nrun(['/bin/true'])",
)
NO_STORAGE = Rule(
    "PTX0707",
    "cannot write temporary files",
    "NVIDIA's tools read and write files, and ptxas does not report a full disk. TMPDIR is full, or no temporary "
    "directory is writable.",
    "import errno\nfrom pyptx.toolchain.process import create_private_folder\n"
    "with create_private_folder():\n    raise OSError(errno.ENOSPC, 'No space left on device')",
    "from pyptx.toolchain.process import create_private_folder\nwith create_private_folder():\n    pass",
)
TOOL_USELESS = Rule(
    "PTX0708",
    "NVIDIA tool produced no output",
    "The tool exited successfully but wrote no machine code or text: another program has its name, or the "
    "installation is damaged.",
    "from pyptx.toolchain.process import run\nraise run(['/bin/true']).make_useless_error('machine code')",
    "from pyptx.toolchain.process import run\nrun(['/bin/true'])",
)
REJECTED = Rule(
    "PTX0710",
    "rejected by ptxas",
    "ptxas decides what is legal; the message is from ptxas.",
    _GOOD.replace("add.s32", "add.f32 "),
    _GOOD,
)
SYNTAX = Rule(
    "PTX0711",
    "syntax error reported by ptxas",
    "ptxas stops at the first syntax error; there may be more below it.",
    _GOOD.replace("%r2, 1", "%r2 1"),
    _GOOD,
)
STOPPED = Rule(
    "PTX0712",
    "fatal ptxas error",
    "A fatal error is not tied to one statement: an undefined function, a target that cannot run this module, an "
    "unknown option.",
    _LIBRARY.replace(".func late()\n{\n    ret;\n}", ".extern .func late;"),
    _LIBRARY,
)
WARNED = Rule(
    "PTX0713",
    "ptxas warning",
    "ptxas accepts the code but considers it suspicious.",
    _GOOD.replace("    ret;", '    .pragma "faster";\n    ret;'),
    _GOOD,
    Severity.WARNING,
)
ADVISED = Rule(
    "PTX0714",
    "ptxas advice",
    "ptxas changed or ignored something that costs performance, for example a `setmaxnreg` that it cannot honor.",
    _HEAD + ".visible .entry k()\n{\n    setmaxnreg.inc.sync.aligned.u32 240;\n    ret;\n}\n",
    _HEAD + ".visible .entry k() .reqntid 384 .maxnreg 168\n{\n    setmaxnreg.inc.sync.aligned.u32 240;\n    ret;\n}\n",
    Severity.NOTE,
)

RULES = (
    TOOL_MISSING,
    TOOL_FAILED,
    TOOL_TIMEOUT,
    BAD_TARGET,
    BAD_TEXT,
    TOOL_BROKEN,
    NO_STORAGE,
    TOOL_USELESS,
    REJECTED,
    SYNTAX,
    STOPPED,
    WARNED,
    ADVISED,
)
