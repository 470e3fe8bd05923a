"""Run a Python file as the main program, and serve Triton if it imports it. Only `launcher` starts this."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, TracebackType


def run(words: Sequence[str]) -> None:
    """Run a file with its arguments."""
    file = words[0]
    sys.argv[:] = words
    sys.path[0] = str(Path(file).resolve().parent)
    sys.meta_path.insert(0, _TritonFinder())
    sys.excepthook = partial(_show, file)
    runpy.run_path(file, run_name="__main__")


def _show(file: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an exception as Python does, with the frames from the program's first."""
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


class _TritonFinder(MetaPathFinder):
    """Finds Triton where it is, and activates the simulator when it has been imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return Triton's spec with another loader, None for other modules."""
        if fullname != "triton":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _ActivatingLoader(spec.loader)
        return spec


class _ActivatingLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        from pyptx.driver.triton import install

        install()
