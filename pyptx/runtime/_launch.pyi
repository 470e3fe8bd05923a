"""Launches of prepared kernels."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, final

VERSION: int

@final
class Launcher:
    """A kernel with its grid; a call with the values of its parameters launches it.

    `parameters` are the bytes of all parameters, which start at `offsets`. `slots` are the values that a call writes
    into them: (kind, offset, size, index of the value), where the kind is `p` for an address, `m` for a tensor map,
    which `encode` makes, `i` and `u` for an integer, and `f` for a float. `attributes` are those of the launch, each a
    number and bytes. `fail` is called with the code of a launch that the driver refuses, and raises.
    """

    def __init__(
        self, function: int, context: int, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
        attributes: list[tuple[int, bytes]], parameters: bytes, offsets: list[int],
        slots: list[tuple[str, int, int, int]], values: int, encode: Callable[[int, int], bytes] | None,
        fail: Callable[[int], object],
    ) -> None: ...
    def __call__(self, *values: Any, stream: int = 0) -> None: ...

@final
class Call:
    """A launcher for tensors of one description, which allocates the outputs.

    `device` is DLPack's kind and number; a description has DLPack's code, bits and lanes, the shape, and the alignment.
    For each tensor, the function
    of each check must return False, or its condition, if there is one; the functions of `states` must return these
    objects. `guards` are those of `pyptx.dsl.guards`; `busy` must be None. `before` and `after` are called with the inputs, the
    outputs, and the stream, and so are `enter` and `leave` around a launch to another stream than the current one.
    """

    def __init__(
        self, launcher: Launcher, device: tuple[int, int], inputs: list[tuple[int, int, int, tuple[int, ...], int]],
        outputs: list[tuple[int, int, int, tuple[int, ...], int]], kinds: tuple[type, ...],
        checks: tuple[tuple[Callable[[Any], bool], Callable[[], bool] | None], ...],
        states: tuple[tuple[Callable[[], object], object], ...],
        guards: tuple[tuple[object, object, object], ...], busy: ContextVar[Any], before: Callable[..., object] | None,
        after: Callable[..., object] | None, enter: Callable[..., object] | None, leave: Callable[..., object] | None,
    ) -> None: ...
    def run(self, inputs: tuple[Any, ...], stream: int = ..., owner: object = ..., /) -> Any:
        """Run the kernel on a tuple of tensors, in the current stream or another; NotImplemented if they are
        unusual."""

def check_guards(guards: tuple[tuple[object, object, object], ...], /) -> bool:
    """Tell whether nothing has changed that guards name."""
