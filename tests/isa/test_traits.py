"""The effects of instructions beyond computing: traits in the table that no other module repeats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pyptx
from pyptx.isa import lookup, table
from pyptx.isa.lookup import find_traits
from pyptx.isa.model import Form, Kind, Match, Operand
from pyptx.isa.table import logic
from pyptx.isa.traits import LEAVES, PROXIES, VALUES, Trait, read
from pyptx.sim.base.events import Movement
from tools.audit_measures import list_comparisons, read_sources

ROOT = Path(pyptx.__file__).parent

OPCODES_ELSEWHERE = {
    "check/uniformity.py": "what arithmetic makes of values that differ between lanes",
    "check/warps.py": "what arithmetic makes of the index of a warp",
    "driver/conflicts.py": "which accesses go through a multicast object",
    "dsl/linear_access.py": "which bulk copies have a tensor map",
    "codegen": "how the Python of an instruction looks",
    "dsl/run.py": "ptxas wants a directive with `setmaxnreg`",
    "parser": "where the grammar of operands differs",
    "ptx": "which instruction a function writes",
    "sim/observers/checks/accesses.py": "which loads are read-only",
    "sim/observers/checks/addresses.py": "what arithmetic makes of an address",
    "sim/observers/checks/convergence.py": "which check hears of an instruction",
    "sim/observers/checks/fences.py": "which check hears of an instruction",
    "sim/observers/checks/integers.py": "which arithmetic wraps",
    "sim/observers/checks/mbarriers.py": "whether an arrival also expects bytes",
    "sim/observers/checks/numerics.py": "which arithmetic makes NaN of numbers",
    "sim/program/blocks.py": "what a mask of an address means",
    "sim/scheduling/awaited_events.py": "which instruction expected bytes",
    "sim/scheduling/convergence.py": "which collective instructions have a mask of members",
    "sim/state/memory.py": "which copies have a tensor map",
    "sim/semantics": "what an instruction computes",
    "sim/execution/transfers.py": "which bits an instruction carries where",
}
"""The modules and packages that may compare opcodes, or modifiers that tell instructions apart, with the purpose."""


def _first(row: Form) -> Match:
    return lookup.match_of(row, next(lookup.spellings(row)))


def _traits(match: Match) -> set[Trait]:
    return set(match.traits)


def _operands(match: Match) -> Iterator[Operand]:
    for signature in match.signatures:
        yield from signature


MATCHES = [_first(row) for row in table.list_all_rows()]
_TOUCHES = {
    Trait.LOADS, Trait.STORES, Trait.UPDATES, Trait.ISSUES, Trait.OPAQUE, Trait.SIGNALS, Trait.HINTS, Trait.ORDERS,
    Trait.REARRANGES, Trait.ALLOCATES,
}  # fmt: skip
_ASYNCHRONOUS = {Trait.ISSUES, Trait.COMMITS, Trait.LANDS, Trait.HINTS, Trait.ORDERS}
_GROUPS = {Trait.COMMITS, Trait.LANDS}
_RETURNS = {Trait.YIELDS, Trait.CARRIES, Trait.MULTIPLIES, Trait.REARRANGES, Trait.ISSUES}


def _missing(traits: set[Trait], subjects: list[Match]) -> list[str]:
    assert subjects
    return [match.form.line for match in subjects if _traits(match).isdisjoint(traits)]


def test_every_name_with_traits_is_explained_and_every_word_is_known() -> None:
    for name in table.traits():
        opcode, *modifiers = name.split(".")
        assert table.find_name((opcode, *modifiers)), name
        assert find_traits(opcode, tuple(modifiers)), name


def test_every_instruction_has_a_name() -> None:
    nameless = [match.form.line for match in MATCHES if not table.find_name((match.form.opcode, *match.modifiers))]
    assert not nameless


def test_instructions_with_a_label_jump_or_call() -> None:
    subjects = [match for match in MATCHES if any(operand.kind is Kind.LABEL for operand in _operands(match))]
    assert not _missing({Trait.JUMPS, Trait.CALLS}, subjects)


def test_instructions_with_an_address_say_what_they_do_with_memory() -> None:
    opaque = ("texref", "samplerref", "surfref")
    subjects = [
        match for match in MATCHES
        if any(operand.kind is Kind.ADDRESS and operand.parts[0].type not in opaque for operand in _operands(match))
    ]  # fmt: skip
    assert not _missing(_TOUCHES, subjects)


def test_asynchronous_instructions_say_which_engine_works() -> None:
    subjects = [
        match for match in MATCHES
        if any("async" in word.partition("::")[0] for word in (match.form.opcode, *match.modifiers))
    ]  # fmt: skip
    assert not _missing(_ASYNCHRONOUS, subjects)


def test_instructions_that_take_an_mbarrier_signal_it_or_have_an_engine_do_it() -> None:
    subjects = [
        match for match in MATCHES
        if any("mbar" in (operand.name, *(part.name for part in operand.parts)) for operand in _operands(match))
    ]  # fmt: skip
    assert not _missing({Trait.SIGNALS, Trait.ISSUES}, subjects)


def test_collective_instructions_say_whether_their_result_is_uniform() -> None:
    subjects = [
        match for match in MATCHES
        if Trait.GATHERS in _traits(match)
        and any("w" in operand.access and operand.kind is not Kind.ADDRESS for operand in _operands(match))
    ]  # fmt: skip
    assert not _missing(_RETURNS, subjects)


def test_every_simulated_engine_has_a_proxy() -> None:
    engines = {match.traits[Trait.ISSUES] for match in MATCHES if Trait.ISSUES in match.traits}
    assert engines - {"fabric"} == PROXIES.keys()


def test_groups_belong_to_an_engine_that_has_work() -> None:
    engines = {match.traits[Trait.ISSUES] for match in MATCHES if Trait.ISSUES in match.traits}
    assert {match.traits[trait] for match in MATCHES for trait in _GROUPS & match.traits.keys()} <= engines


def test_signals_say_what_they_change() -> None:
    named = [read(words, ()) for words in table.traits().values()]
    signals = {traits[Trait.SIGNALS] for traits in named if Trait.SIGNALS in traits}
    assert signals == {"arrival", "drop", "expectation", "completion"}


def test_work_of_the_tensor_core_multiplies_or_moves() -> None:
    subjects = [match for match in MATCHES if match.traits.get(Trait.ISSUES) == "tcgen05"]
    assert not _missing({Trait.MULTIPLIES, Trait.MOVES}, subjects)
    movements = {match.traits[Trait.MOVES] for match in subjects if Trait.MOVES in match.traits}
    assert movements == {movement.value for movement in Movement if movement}


def test_every_value_is_one_that_analyses_tell_apart() -> None:
    computed = {match.traits[Trait.COMPUTES] for match in MATCHES if Trait.COMPUTES in match.traits}
    assert computed == VALUES.keys()


def test_logic_says_where_its_bits_come_from() -> None:
    subjects = [
        match for match in MATCHES
        if match.form in logic.FORMS and match.form.opcode not in ("shl", "cnot")
    ]  # fmt: skip
    assert not _missing({Trait.COMPUTES}, subjects)


def test_instructions_of_sync_gather_or_meet() -> None:
    subjects = [match for match in MATCHES if "sync" in match.modifiers]
    assert not _missing({Trait.GATHERS, Trait.MEETS}, subjects)


def test_instructions_without_operands_do_something() -> None:
    subjects = [match for match in MATCHES if not any(match.signatures) and match.form.opcode != "brkpt"]
    assert not [match.form.line for match in subjects if not _traits(match)]


@pytest.mark.parametrize(
    ("spelling", "traits"),
    [
        ("bra", {Trait.JUMPS: ""}),
        ("brx.idx", {Trait.JUMPS: "table"}),
        ("bar.sync", {Trait.MEETS: "cta", Trait.ALIGNED: "", Trait.YIELDS: "uniform"}),
        ("bar.warp.sync", {Trait.MEETS: "warp"}),
        ("barrier.cluster.arrive.aligned", {Trait.MEETS: "cluster", Trait.ALIGNED: "", Trait.ARRIVES: ""}),
        ("barrier.cta.red.popc.u32", {Trait.MEETS: "cta", Trait.REDUCES: "", Trait.YIELDS: "uniform"}),
        ("griddepcontrol.launch_dependents", {Trait.MEETS: "grid", Trait.ARRIVES: ""}),
        ("griddepcontrol.wait", {Trait.MEETS: "grid"}),
        ("red.global.add.u32", {Trait.UPDATES: ""}),
        ("shfl.down.b32", {Trait.GATHERS: "warp", Trait.CARRIES: ""}),
        ("vote.sync.ballot.b32", {Trait.GATHERS: "warp", Trait.YIELDS: "uniform", Trait.COMPUTES: "mask"}),
        (
            "tcgen05.wait::ld.sync.aligned",
            {Trait.TENSOR: "", Trait.LANDS: "tcgen05.ld", Trait.GATHERS: "warp", Trait.ALIGNED: ""},
        ),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile", {Trait.HINTS: ""}),
        ("mbarrier.try_wait.b64", {Trait.OPAQUE: "mbarrier", Trait.TESTS: "", Trait.SUSPENDS: "phase"}),
        ("add.u32", {Trait.COMPUTES: "offset"}),
        ("mul.lo.u32", {}),
        ("nonsense.sync", {Trait.GATHERS: "warp"}),
    ],
)
def test_traits_of_spellings(spelling: str, traits: dict[Trait, str]) -> None:
    opcode, *modifiers = spelling.split(".")
    assert dict(find_traits(opcode, tuple(modifiers))) == traits
    assert dict(find_traits(opcode, tuple(f".{modifier}" for modifier in modifiers))) == traits


def test_leaving_is_returning_or_exiting() -> None:
    assert set(find_traits("ret", ())) | set(find_traits("exit", ())) == LEAVES


def test_no_other_module_asks_for_opcodes() -> None:
    asking = set(list_comparisons(read_sources(ROOT)))
    exceptions = {
        name for name in asking for prefix in OPCODES_ELSEWHERE if name == prefix or name.startswith(f"{prefix}/")
    }
    assert asking - exceptions == set()
    obsolete = {
        prefix for prefix in OPCODES_ELSEWHERE if not any(n == prefix or n.startswith(f"{prefix}/") for n in asking)
    }
    assert obsolete == set()
