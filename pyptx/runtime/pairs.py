"""Pairs of kernels, of which one computes the gradient of the other. Knows no library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

from pyptx.diagnostics import PtxError
from pyptx.dsl.origin import find_caller
from pyptx.dsl.run import Definition
from pyptx.runtime.registry import register
from pyptx.runtime.rules import GRADIENTS
from pyptx.specs import Tile


class Paired(Protocol):
    """A kernel as this file sees it."""

    in_specs: tuple[Tile, ...]
    out_specs: tuple[Tile, ...]
    grid: Any
    template_params: dict[str, Any]
    key: str

    @property
    def name(self) -> str:
        """The name of the entry in PTX."""
        ...

    @property
    def definition(self) -> Definition:
        """The checked arguments of `@kernel`."""
        ...

    @property
    def is_importable(self) -> bool:
        """Whether its module has it under its own name."""
        ...

    @property
    def raw_parameters(self) -> tuple[str, ...]:
        """The names of the raw parameters."""
        ...

    @property
    def shape_variables(self) -> tuple[str, ...]:
        """The named dimensions of the tensors."""
        ...

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """Run the kernel on arrays."""
        ...


@dataclass(eq=False)
class Pair:
    """A kernel, and the kernel that takes saved inputs and the gradients of the outputs."""

    forward: Any
    backward: Any
    save_indices: tuple[int, ...]
    """The positions of the inputs that the gradient needs."""
    gradients: int
    """How many inputs have a gradient: the first ones."""

    def __post_init__(self) -> None:
        self.key = register(self)


def split_options(options: Mapping[str, Any], *kernels: Paired) -> tuple[dict[str, Any], ...]:
    """Return the options that each kernel takes."""
    option_names = [
        {*kernel.template_params, *kernel.shape_variables, *kernel.raw_parameters, "grid"} for kernel in kernels
    ]
    unknown = [name for name in options if not any(name in names for names in option_names)]
    if unknown:
        choices = sorted(set[str]().union(*option_names))
        close = get_close_matches(unknown[0], choices, 1)
        help = f"did you mean `{close[0]}=`?" if close else f"they take {', '.join(choices)}"
        raise PtxError(
            [
                GRADIENTS.report(
                    find_caller(), f"neither kernel takes {', '.join(f'`{name}`' for name in unknown)}", help=help
                )
            ]
        )
    return tuple({name: value for name, value in options.items() if name in names} for names in option_names)
