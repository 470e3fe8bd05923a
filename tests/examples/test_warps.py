"""An elected lane issues its TMA and tensor-core instructions without loops over lanes in the machine code."""

from __future__ import annotations

import pytest

from examples.parts.example import Example, load_examples

BLACKWELL = [example for example in load_examples() if example.path.parent.name == "blackwell"]
LOOP = "BRA.U.ANY"
"""The branch back of a loop that ptxas puts around an instruction whose operands may differ between lanes."""


@pytest.mark.parametrize("example", BLACKWELL, ids=lambda example: example.name)
def test_no_asynchronous_instruction_is_in_a_loop_over_lanes(example: Example) -> None:
    assert LOOP not in example.make().sass(**example.large)
