"""What the tests of the Python front end share: trace a body, see where an error points, ask ptxas."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import Kernel, PtxError, kernel
from pyptx.diagnostics import Diagnostic
from pyptx.toolchain import validate


def traced(body: Callable[..., Any], **options: Any) -> Kernel:
    """Return the kernel of a function without tensors."""
    return kernel(**options)(body)


def code(body: Callable[..., Any], **options: Any) -> list[str]:
    """Return the statements of a kernel: no declarations, comments or final `ret`. ptxas has accepted the module."""
    text = traced(body, **options).ptx()
    accepted(text)
    lines = [line.strip() for line in text[text.index("{\n") + 2 : text.rindex("}")].splitlines()]
    kept = [line for line in lines if line and not line.startswith((".reg", ".shared", "//", ".extern"))]
    return kept[:-1] if kept[-1] == "ret;" else kept


def accepted(text: str) -> None:
    """Fail unless ptxas accepts the module."""
    found = [str(d.message) for d in validate(text) if d.severity == "error"]
    assert not found, f"{found}\n{text}"


def text_of(error: PtxError) -> str:
    """Return what an error says, without the line of source that it shows, which may hold the words to look for."""
    return "\n".join(str(part) for found in error.diagnostics for part in (found.message, found.help, found.notes))


def refused(body: Callable[..., Any], rule: str, *words: str, marker: str = "# here", **options: Any) -> Diagnostic:
    """Trace a body that must raise, at its line marked `# here`, with this code and these words; return the finding."""
    made = traced(body, **options)
    with pytest.raises(PtxError) as caught:
        made.ptx()
    found = caught.value.diagnostics[0]
    assert found.code == rule, caught.value
    lines, first = inspect.getsourcelines(body)
    marked = [first + index for index, line in enumerate(lines) if marker in line]
    assert found.origin is not None, caught.value
    assert (found.origin.file, found.line) == (body.__code__.co_filename, marked[0]), caught.value
    for word in words:
        assert word in text_of(caught.value), caught.value
    assert found.help or found.notes, "an error says how to mend it"
    return found


def refusal(use: Callable[[], Any], **options: Any) -> tuple[str, str, str | None]:
    """Trace a kernel that calls a lambda, which must raise at its first line; return code, message and help."""

    def body() -> None:
        use()

    with pytest.raises(PtxError) as caught:
        traced(body, **options).ptx()
    found = caught.value.diagnostics[0]
    assert found.origin is not None, caught.value
    assert (found.origin.file, found.line) == (use.__code__.co_filename, use.__code__.co_firstlineno), caught.value
    return found.code, str(found.message), None if found.help is None else str(found.help)
