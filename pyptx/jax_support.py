"""What JAX programs with kernels need in other processes: import this to run a program that another process exported.

Importing it registers the handlers of the custom call, and loads JAX.
"""

from __future__ import annotations

from pyptx.runtime.jax_calls import TARGET as CUSTOM_CALL

__all__ = ["CUSTOM_CALL"]
