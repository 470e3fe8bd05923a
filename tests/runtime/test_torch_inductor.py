"""Inductor, which needs a C++ compiler, generates code around kernels."""

from __future__ import annotations

import shutil
from importlib import import_module
from typing import Any

import pytest

from tests.runtime.torch_kernels import product

torch: Any = import_module("torch")


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor compiles C++")
def test_inductor_compiles_what_surrounds_a_kernel(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def compute(x: Any) -> Any:
        return product(x + 1, x.sin(), factor=3).relu() * 2

    x = torch.linspace(-3, 3, 32)
    compiled = torch.compile(compute, fullgraph=True, backend="inductor")
    torch.testing.assert_close(compiled(x), compute(x), rtol=1e-6, atol=1e-6)
