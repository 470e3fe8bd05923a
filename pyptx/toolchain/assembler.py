"""Assembles PTX to cubin, with ptxas as a subprocess or nvJitLink in this process; and validates PTX with ptxas.

ptxas is the reference and the default: nvJitLink compiles every module as relocatable code, which ignores `setmaxnreg`
and costs registers and instructions for kernels with functions, variables or static shared memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pyptx.diagnostics import Diagnostic, PtxError, Span
from pyptx.isa.targets import ASSEMBLED
from pyptx.toolchain import nvjitlink, rules
from pyptx.toolchain.cubin import AssemblyError, Cubin, Engine
from pyptx.toolchain.elf import ELF_MAGIC
from pyptx.toolchain.messages import INPUT_NAME, OriginOf, is_error, parse_log
from pyptx.toolchain.process import DEFAULT_TIMEOUT, create_private_folder, run
from pyptx.toolchain.tools import INSTALL, Tool, ToolMissing, find_tool

_UNSUPPORTED = "Unsupported .version"
_TARGET = re.compile(r"(?:sm|compute)_(\d+[af]?)")
_DIRECTIVE = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"[^\"\n]*\"|\.target\s+(?:sm|compute)_(\d+[af]?)", re.DOTALL)


def assemble(
    ptx: str,
    target: str | None = None,
    *,
    engine: Engine | None = None,
    lineinfo: bool = False,
    options: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
    origin_of: OriginOf | None = None,
) -> Cubin:
    """Return the machine code of a PTX module for `target` (default: the module's own), or raise AssemblyError with
    every message. `engine=None` uses ptxas if installed, else nvJitLink. `options` are ptxas options without spaces
    (`-maxrregcount=64`). nvJitLink runs in this process: `timeout` cannot stop it."""
    assembler = engine or _choose_engine()
    if assembler == "nvjitlink":
        return assemble_with_nvjitlink(ptx, target, lineinfo=lineinfo, options=options, origin_of=origin_of)
    return assemble_with_ptxas(ptx, target, lineinfo=lineinfo, options=options, timeout=timeout, origin_of=origin_of)


def _choose_engine() -> Engine:
    try:
        find_tool("ptxas")
    except ToolMissing:
        return "nvjitlink"
    return "ptxas"


def assemble_with_ptxas(
    ptx: str,
    target: str | None = None,
    *,
    lineinfo: bool = False,
    options: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
    origin_of: OriginOf | None = None,
) -> Cubin:
    """Assemble with ptxas in a subprocess: whole-program code, as nvcc would generate."""
    tool, name, text = find_tool("ptxas"), _find_real_target(ptx, target), encode_text(ptx)
    flags = ["-v", *(["--generate-line-info"] if lineinfo else []), *check_options(options)]
    with create_private_folder() as folder:
        (folder / INPUT_NAME).write_bytes(text)
        run_result = run([tool.path, "-arch", name, *flags, "-o", "out.cubin", INPUT_NAME], cwd=folder, timeout=timeout)
        output = folder / "out.cubin"
        cubin = output.read_bytes() if output.exists() else b""
    findings = parse_log(run_result.messages, ptx, origin_of)
    if run_result.status != 0:
        if not any(is_error(d) for d in findings):
            raise run_result.make_failure()
        raise AssemblyError(_add_remedy(findings, tool), ptx, run_result.messages)
    if not cubin.startswith(ELF_MAGIC[:4]):
        raise run_result.make_useless_error("machine code")
    return Cubin(cubin, name, str(tool), run_result.messages, findings)


def assemble_with_nvjitlink(
    ptx: str,
    target: str | None = None,
    *,
    lineinfo: bool = False,
    relocatable: bool = False,
    options: Sequence[str] = (),
    origin_of: OriginOf | None = None,
) -> Cubin:
    """Assemble with nvJitLink in this process: half the time of ptxas for a small kernel, but relocatable code (see the
    module docstring). `relocatable=True` leaves it unlinked, so that external functions may remain undefined. A crash
    of the library crashes this process: pass only trusted text."""
    producer, name, text = f"nvJitLink {nvjitlink.version()}", _find_real_target(ptx, target), encode_text(ptx)
    flags = [f"-arch={name}", "-verbose", *(["-lineinfo"] if lineinfo else []), *(["-r"] if relocatable else [])]
    flags += [f"-Xptxas={option}" for option in check_options(options)]
    cubin, log = nvjitlink.link(text, flags)
    findings = parse_log(log, ptx, origin_of)
    if cubin is not None:
        return Cubin(cubin, name, producer, log, findings)
    if not any(is_error(d) for d in findings):
        message = "nvJitLink does not recognize this text as PTX: only comments may precede `.version`"
        findings = (*findings, rules.STOPPED.report(Span(1, 1), message, notes=log.splitlines()))
    raise AssemblyError(findings, ptx, log)


def validate(
    ptx: str,
    target: str | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    origin_of: OriginOf | None = None,
) -> tuple[Diagnostic, ...]:
    """Return the ptxas diagnostics of a module without generating code (`-arch compute_XX`). Fast, but misses errors
    that only code generation detects: too much shared or constant memory, undefined functions."""
    tool, text = find_tool("ptxas"), encode_text(ptx)
    virtual = _find_real_target(ptx, target).replace("sm_", "compute_")
    with create_private_folder() as folder:
        (folder / INPUT_NAME).write_bytes(text)
        run_result = run([tool.path, "-arch", virtual, INPUT_NAME], cwd=folder, timeout=timeout)
    findings = parse_log(run_result.messages, ptx, origin_of)
    if run_result.status != 0 and not any(is_error(d) for d in findings):
        raise run_result.make_failure()
    return _add_remedy(findings, tool)


def _add_remedy(diagnostics: Sequence[Diagnostic], tool: Tool) -> tuple[Diagnostic, ...]:
    """Add the version of ptxas, and how to get a newer one, if that is what is missing."""
    return tuple(
        replace(d, help=f"this is {tool}, from {tool.source}; {INSTALL} installs the newest")
        if d.code == rules.BAD_TARGET.code or d.message.startswith(_UNSUPPORTED) else d
        for d in diagnostics
    )  # fmt: skip


def default_target(ptx: str) -> str:
    """Return the target that a module's `.target` names, or the oldest target still supported if it is older (PTX runs
    on newer GPUs) or missing."""
    for match in _DIRECTIVE.finditer(ptx):
        if number := match[1]:
            old = int(number.rstrip("af")) < int(ASSEMBLED[0][3:])
            return ASSEMBLED[0] if old else f"sm_{number}"
    return ASSEMBLED[0]


def _find_real_target(ptx: str, target: str | None) -> str:
    name = default_target(ptx) if target is None else target
    match = _TARGET.fullmatch(name)
    if not match:
        diagnostic = rules.BAD_TARGET.report(None, f"expected a target such as sm_90a, found {name!r}")
        raise PtxError([diagnostic], None)
    return f"sm_{match[1]}"


def encode_text(ptx: str) -> bytes:
    """Return the bytes to pass to a tool: trailing NULs are dropped, any other is refused."""
    text = ptx.rstrip("\0")
    nul = text.find("\0")
    if nul >= 0:
        line, start = text.count("\n", 0, nul) + 1, text.rfind("\n", 0, nul) + 1
        finding = rules.BAD_TEXT.report(Span(line, nul - start + 1), "the PTX text contains a NUL character")
        raise PtxError([finding], ptx)
    return text.encode("utf-8", "surrogatepass")


def check_options(options: Sequence[str]) -> list[str]:
    """Refuse anything but options: a bare word would be read as another input file."""
    for option in options:
        if not re.fullmatch(r"--?[A-Za-z][\w-]*(=[^\0]*)?", option):
            raise ValueError(f"expected a ptxas option without spaces, such as '-maxrregcount=64', found {option!r}")
    return list(options)
