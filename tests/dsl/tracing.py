"""Helpers for tests of the Python front end: trace a body, locate its errors, run ptxas."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pyptx import Kernel, PtxError, kernel
from pyptx.diagnostics import Diagnostic
from pyptx.toolchain import validate
from tests.messages import raises


def make_kernel(body: Callable[..., Any], **options: Any) -> Kernel:
    """Return the kernel of a function without tensors."""
    return kernel(**options)(body)


def code(body: Callable[..., Any], **options: Any) -> list[str]:
    """Return the statements of a kernel without declarations, comments and the final `ret`, after ptxas has accepted
    the module."""
    text = make_kernel(body, **options).ptx()
    assert_accepted(text)
    lines = [line.strip() for line in text[text.index("{\n") + 2 : text.rindex("}")].splitlines()]
    statements = [line for line in lines if line and not line.startswith((".reg", ".shared", "//", ".extern"))]
    return statements[:-1] if statements[-1] == "ret;" else statements


def assert_accepted(text: str) -> None:
    """Fail unless ptxas accepts the module."""
    errors = [str(d.message) for d in validate(text) if d.severity == "error"]
    assert not errors, f"{errors}\n{text}"


def text_of(error: PtxError) -> str:
    """Return the text of an error without the source line it shows, which may contain the words to search for."""
    return "\n".join(
        str(part) for finding in error.diagnostics for part in (finding.message, finding.help, finding.notes)
    )


def assert_rejected(
    body: Callable[..., Any], rule: str, *words: str, marker: str = "# here", **options: Any
) -> Diagnostic:
    """Trace a body that must raise an error with this code and these words at its line marked `# here`; return the
    finding."""
    kernel_object = make_kernel(body, **options)
    with raises(PtxError) as excinfo:
        kernel_object.ptx()
    finding = excinfo.value.diagnostics[0]
    assert finding.code == rule, excinfo.value
    lines, first = inspect.getsourcelines(body)
    line_numbers = [first + index for index, line in enumerate(lines) if marker in line]
    assert finding.origin is not None, excinfo.value
    assert (finding.origin.file, finding.line) == (body.__code__.co_filename, line_numbers[0]), excinfo.value
    for word in words:
        assert word in text_of(excinfo.value), excinfo.value
    assert finding.help or finding.notes, "an error says how to fix it"
    return finding


def refusal(use: Callable[[], Any], **options: Any) -> tuple[str, str, str | None]:
    """Trace a kernel that calls a lambda, which must raise at its first line; return code, message and help."""

    def body() -> None:
        use()

    with raises(PtxError) as caught:
        make_kernel(body, **options).ptx()
    found = caught.value.diagnostics[0]
    assert found.origin is not None, caught.value
    assert (found.origin.file, found.line) == (use.__code__.co_filename, use.__code__.co_firstlineno), caught.value
    return found.code, str(found.message), None if found.help is None else str(found.help)
