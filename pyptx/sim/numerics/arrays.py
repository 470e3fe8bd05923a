"""The array types of this package, and a context without NumPy's warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bits = NDArray[np.unsignedinteger[Any]]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I16 = NDArray[np.int16]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Mask = NDArray[np.bool_]


def quiet() -> np.errstate:
    """Return a context in which infinities, NaN and subnormals are results, not warnings."""
    return np.errstate(all="ignore")
