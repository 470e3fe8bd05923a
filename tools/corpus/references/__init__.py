"""What the corpus kernels compute, in NumPy: each function maps the arguments before a launch to its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

Args = Mapping[str, Any]
Results = dict[str, NDArray[Any]]
