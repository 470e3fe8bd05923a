"""The programs and Python texts of the corpus's kernels, unchecked and with everything that checks add, are the
reviewed ones: which lanes run together, and how fast, shows in no result."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pyptx.sim.execution import codegen
from pyptx.sim.launch.prepared import Options, prepare_launch
from pyptx.sim.observers.checks import Checks, Selection
from pyptx.sim.program.blocks import Block, Program
from tests.digests import assert_digest
from tests.sim.test_corpus import CASES, Case, name_of
from tools.corpus import inputs
from tools.sim_corpus import list_arguments, module_of

_PARTS = ("code", "steps", "after_call")
"""The fields of a block that its text shows."""


def describe_program(program: Program) -> list[str]:
    """Return everything that running reads of a program: functions, variables and blocks."""
    variables, facts = program.variables, [program.communicates, program.cancels, program.pairs, program.triggers]
    lines = [f"{facts} {program.dynamic}"]
    for code in program.codes:
        rows = [(name, row.letter, row.index, row.count, row.type) for (name, _), row in code.rows.by_name.items()]
        frame = [sorted(code.frame.formal.items()), sorted((name, at) for (name, _), at in code.frame.offsets.items())]
        lines.append(f"{code.function.name} {code.entry} {code.recursive} {sorted(code.callees)} {rows} {frame}")
    addresses = sorted((name, address) for (name, _), address in variables.addresses.items())
    lines.append(f"{addresses} {variables.shared} {variables.sizes} {variables.find_dynamic_base()}")
    return [*lines, *map(describe_block, program.blocks)]


def describe_block(block: Block) -> str:
    names = [field.name for field in fields(block) if field.name not in _PARTS]
    return " ".join([block.code.function.name, str(len(block.steps)), *(f"{getattr(block, name)}" for name in names)])


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_programs_and_their_text(case: Case) -> None:
    texts: list[str] = []
    _, directory, item, entry = case
    run, module = entry.run, module_of(directory / item.path)
    assert run is not None
    options = Options(
        grid=run.grid, block=run.block, cluster=run.cluster, shared=run.smem, cooperative=run.cooperative,
        args=list_arguments(run, inputs.arguments(run)),
    )  # fmt: skip
    for is_checked in (False, True):
        launch = prepare_launch(module, entry.name, options, is_checked=is_checked)
        checks = [Checks(Selection(None, False, False, frozenset()))] if is_checked else []
        batch = next(launch.batches(checks)).machine
        program = batch.program
        texts += describe_program(program)
        for block in program.blocks:
            source = codegen.Writer(
                program, block, batch.resources.instrument, batch.launch.tracker, batch.accumulators
            ).write_block()
            texts += [source.bind, source.spread]
            texts.append(f"{sorted(source.constants)} {sorted(source.approximate)} {source.numbers}")
    assert_digest("programs", name_of(case), "\n".join(texts))
