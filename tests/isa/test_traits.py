"""The effects of instructions beyond computing: traits in the table that no other module repeats."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyptx
from pyptx.isa import lookup, table
from pyptx.isa.lookup import find_traits
from pyptx.isa.model import Form, Kind, Match, Operand
from pyptx.isa.table import logic
from pyptx.isa.traits import LEAVES, PROXIES, VALUES, Trait

ROOT = Path(pyptx.__file__).parent

OPCODES_ELSEWHERE = {
    "check/uniformity.py": "what arithmetic makes of values that differ between lanes",
    "check/warps.py": "what arithmetic makes of the index of a warp",
    "codegen": "how the Python of an instruction looks",
    "dsl/run.py": "ptxas wants a directive with `setmaxnreg`",
    "parser": "where the grammar of operands differs",
    "ptx": "which instruction a function writes",
    "sim/observers/checks/addresses.py": "what arithmetic makes of an address",
    "sim/observers/checks/convergence.py": "which check hears of an instruction",
    "sim/observers/checks/fences.py": "which check hears of an instruction",
    "sim/observers/checks/integers.py": "which arithmetic wraps",
    "sim/observers/checks/numerics.py": "which arithmetic makes NaN of numbers",
    "sim/program/blocks.py": "what a mask of an address means",
    "sim/semantics": "what an instruction computes",
    "sim/execution/transfers.py": "which bits an instruction carries where",
}
"""The modules and packages that may compare opcodes, with the purpose."""


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
_RETURNS = {Trait.YIELDS, Trait.CARRIES, Trait.MULTIPLIES, Trait.REARRANGES, Trait.ISSUES}


def _missing(traits: set[Trait], subjects: list[Match]) -> list[str]:
    assert subjects
    return [match.form.line for match in subjects if _traits(match).isdisjoint(traits)]


def test_every_name_with_traits_is_explained_and_every_word_is_known() -> None:
    assert table.traits().keys() <= table.meanings().keys()
    for name in table.traits():
        opcode, *modifiers = name.split(".")
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
        ("barrier.cluster.arrive.aligned", {Trait.MEETS: "cluster", Trait.ALIGNED: ""}),
        ("shfl.down.b32", {Trait.GATHERS: "warp", Trait.CARRIES: ""}),
        ("vote.sync.ballot.b32", {Trait.GATHERS: "warp", Trait.YIELDS: "uniform", Trait.COMPUTES: "mask"}),
        (
            "tcgen05.wait::ld.sync.aligned",
            {Trait.TENSOR: "", Trait.LANDS: "tcgen05", Trait.GATHERS: "warp", Trait.ALIGNED: ""},
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


def _compares_opcodes(path: Path) -> bool:
    tree = ast.parse(path.read_text())
    return any(_asks(node) for node in ast.walk(tree))


def _asks(node: ast.AST) -> bool:
    """Return whether a comparison or a `match` tests for an opcode by name, or looks it up in a constant."""
    if isinstance(node, ast.Match):
        return _is_opcode(node.subject)
    if isinstance(node, ast.Subscript):
        return _is_name(node.value) and _is_opcode(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return _is_name(node.func.value) and any(map(_is_opcode, node.args))
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    return any(_is_opcode(side) for side in sides) and any(_is_name(side) for side in sides)


def _is_opcode(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("opcode", "full_opcode")


def _is_name(node: ast.expr) -> bool:
    """Return whether this is a string, several strings, or a constant of the module."""
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return any(_is_name(item) for item in node.elts)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and not node.value.startswith(".")
    return isinstance(node, ast.Name) and node.id.isupper()


def test_no_other_module_asks_for_opcodes() -> None:
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "isa" not in path.relative_to(ROOT).parts and _compares_opcodes(path)
    }
    exceptions = {
        name for name in asking for prefix in OPCODES_ELSEWHERE if name == prefix or name.startswith(f"{prefix}/")
    }
    assert asking - exceptions == set()
    obsolete = {
        prefix for prefix in OPCODES_ELSEWHERE if not any(n == prefix or n.startswith(f"{prefix}/") for n in asking)
    }
    assert obsolete == set()
