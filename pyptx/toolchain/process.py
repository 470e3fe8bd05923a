"""Runs one NVIDIA program: without a shell or standard input, with a time limit and a private folder that is always
removed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyptx.diagnostics import PtxError
from pyptx.toolchain import rules

DEFAULT_TIMEOUT = 300.0
"""Seconds. The largest published kernels assemble in one to two minutes."""


_REINSTALL = "check that it is an NVIDIA tool built for this machine; pip install '.[tools]' installs one"


class ToolFailed(PtxError):
    """Raised when a tool crashed, timed out, or failed without a message about its input."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished run: the exit status (negative: the signal that ended it) and its output."""

    command: str
    status: int
    output: str
    messages: str

    @property
    def ending(self) -> str:
        """A description of how the run ended."""
        if self.status >= 0:
            return f"exit status {self.status}"
        signals = {s.value: s.name for s in signal.Signals}
        return f"killed by {signals.get(-self.status, f'signal {-self.status}')}"

    def make_failure(self) -> ToolFailed:
        """Return the error for a run that failed without a message about the PTX."""
        help = "it was probably killed because the system ran out of memory" if self.status == -signal.SIGKILL else None
        finding = rules.TOOL_FAILED.report(
            None, f"{self.command} failed: {self.ending}", notes=self._select_last_lines(), help=help
        )
        return ToolFailed([finding])

    def make_useless_error(self, noun: str) -> ToolFailed:
        """Return the error for a run that succeeded without writing its output."""
        text = f"{self.command} ended with {self.ending} but wrote no {noun}"
        return ToolFailed([rules.TOOL_USELESS.report(None, text, notes=self._select_last_lines(), help=_REINSTALL)])

    def _select_last_lines(self) -> list[str]:
        return make_printable((self.messages or self.output).strip()[-2000:]).splitlines()


@contextmanager
def create_private_folder() -> Generator[Path]:
    """Create a folder that only this user can access, and always remove it with its contents at the end."""
    with _report_storage_errors(), tempfile.TemporaryDirectory(prefix="pyptx-") as name:
        yield Path(name)


@contextmanager
def _report_storage_errors() -> Generator[None]:
    """Report that temporary files cannot be created or written."""
    try:
        yield
    except OSError as why:
        text = f"cannot write temporary files: {why.strerror or why}"
        help = f"set TMPDIR to a writable directory with free space (now {tempfile.tempdir or 'none is usable'})"
        raise ToolFailed([rules.NO_STORAGE.report(None, text, help=help)]) from None


def run(command: Sequence[str], *, cwd: Path | None = None, timeout: float = DEFAULT_TIMEOUT) -> Completed:
    """Run a program to its end. Its output goes to unnamed files, not pipes: no amount of output blocks it, and a
    surviving child cannot keep us waiting. On timeout its whole process group is killed and ToolFailed is raised."""
    name = os.path.basename(command[0])
    with _report_storage_errors(), tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        try:
            process = subprocess.Popen(
                command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=messages, start_new_session=True
            )
        except OSError as why:
            text = f"{command[0]} cannot be run: {why.strerror or why}"
            raise ToolFailed([rules.TOOL_BROKEN.report(None, text, help=_REINSTALL)]) from None
        try:
            if timeout <= 0:
                # `wait` would first ask whether it has ended already.
                raise subprocess.TimeoutExpired(command, timeout)
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            finding = rules.TOOL_TIMEOUT.report(
                None, f"{name} did not finish within {timeout:g} s", help="pass a larger timeout="
            )
            raise ToolFailed([finding]) from None
        finally:
            if process.returncode is None:
                _kill(process)
        if _is_full(output.fileno()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return Completed(name, status, _read(output.fileno()), _read(messages.fileno()))


def _is_full(descriptor: int) -> bool:
    """Tell whether a file's disk is full: programs that do not check omit part of their output."""
    status = os.fstatvfs(descriptor)
    return status.f_blocks > 0 and (status.f_bavail if os.geteuid() else status.f_bfree) == 0


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(descriptor: int) -> str:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")


def make_printable(text: str) -> str:
    """Return text without control characters except line breaks: PTX is untrusted, and terminals obey escape
    sequences."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
