"""Each pass, broken on purpose: its own check must refuse the result, or the tokens must differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pyptx.codegen import sugar, sugar_function
from pyptx.codegen.analysis import structure
from pyptx.codegen.analysis.bench import Bench
from pyptx.codegen.analysis.branches import Entries
from pyptx.codegen.names import Names
from pyptx.codegen.passes import (
    choose_types,
    describe_blocks,
    fold_expressions,
    gather_arrays,
    name_registers,
    name_rings,
    raise_waits,
    roll_repeats,
    shorten_symbols,
    show_masks,
    spell_instructions,
    use_families,
    use_matrices,
    use_operators,
    use_wrappers,
)
from pyptx.codegen.plan import Binary, Define, Expr, Line, Literal
from pyptx.codegen.sugar_function import BrokenPass
from pyptx.diagnostics import PtxError
from tests.codegen.passes.test_passes import READS
from tests.codegen.sugared import body, find_difference

Patch = pytest.MonkeyPatch


def _return_declared_type(_: Any, variable: Any) -> Any:
    return variable.declared_type


def _always(*_: Any) -> bool:
    return True


def _is_noticed(ptx: str, before: str = "") -> bool:
    """Return whether a broken pass is detected: the file cannot be generated or run, or has different tokens."""
    try:
        return find_difference(ptx, before) is not None
    except (BrokenPass, PtxError, NameError, UnboundLocalError, SyntaxError, TypeError):
        return True


def test_operators_of_another_type_are_refused_by_the_bench(monkeypatch: Patch) -> None:
    ptx = READS["a signed reading"][0]
    monkeypatch.setattr(use_operators, "fits", _always)
    monkeypatch.setattr(choose_types, "decide", _return_declared_type)
    assert "< 5" not in body(ptx)
    assert find_difference(ptx) is None


def test_without_the_bench_wrong_operators_show(monkeypatch: Patch) -> None:
    ptx = READS["a signed reading"][0]
    monkeypatch.setattr(use_operators, "fits", _always)
    monkeypatch.setattr(choose_types, "decide", _return_declared_type)
    usual = Bench.try_expression

    def credulous(bench: Bench, expr: Expr, fresh: Any, expectation: Any) -> Any:
        expression = usual(bench, expr, fresh, None)
        del expression
        return fresh[0] if len(fresh) == 1 else usual(bench, expr, fresh, expectation)

    monkeypatch.setattr(Bench, "try_expression", credulous)
    assert _is_noticed(ptx)


@pytest.mark.parametrize(("module", "table", "opcode", "name"), [
    (use_wrappers, "WAYS", "st", "expressions"), (use_families, "FAMILIES", "shfl", "shuffles"),
    (use_matrices, "MATRICES", "mma", "accumulators"),
])  # fmt: skip
def test_wrappers_with_other_operands_are_refused(
    monkeypatch: Patch, module: Any, table: str, opcode: str, name: str
) -> None:
    ways: dict[str, Callable[[Any], Iterator[Any]]] = getattr(module, table)
    usual = ways[opcode]

    def swap(site: Any) -> Iterator[Any]:
        for plan in usual(site):
            if plan is not None:
                keywords = tuple([(k, v) if k not in ("c", "width") else (k, Literal(1)) for k, v in plan.keywords])
                yield plan.replace(arguments=tuple(reversed(plan.arguments)), keywords=keywords)

    for namespace in (module, use_families, use_wrappers):
        for attribute in ("WAYS", "FAMILIES", "MATRICES"):
            if opcode in getattr(namespace, attribute, {}):
                monkeypatch.setitem(getattr(namespace, attribute), opcode, swap)
    ptx = READS[name][0]
    assert f"ptx.inst.{opcode}" in body(ptx)
    assert find_difference(ptx) is None


def test_structures_that_do_not_nest_break_the_promise(monkeypatch: Patch) -> None:
    usual = structure._Search._find_choice  # pyright: ignore[reportPrivateUsage]

    def longer(search: Any, start: int, high: int, end: int | None, depth: int) -> Any:
        branch = usual(search, start, high, end, depth)
        if branch is not None and branch.jump is None and len(branch.then) > 1:
            branch.then = branch.then[:-1]
        return branch

    monkeypatch.setattr(structure._Search, "_find_choice", longer)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(BrokenPass, match="raise_control_flow"):
        body(READS["conditions with a common end"][0])


def test_structures_entered_from_outside_are_only_refused_by_their_entries(monkeypatch: Patch) -> None:
    ptx = "@%p1 bra I;\n@%p2 bra D;\nmov.u32 %r1, 0;\nI:\nmov.u32 %r1, 1;\nD:\nret;\n"
    assert 'ptx.bra("D"' in body(ptx)
    monkeypatch.setattr(Entries, "is_closed", _always)
    assert find_difference(ptx) is None


def _return_cta_space(_: Any) -> dict[str, str]:
    return {"space": "shared::cta"}


def test_wait_loops_that_test_something_else_are_refused(monkeypatch: Patch) -> None:
    ptx = READS["wait loops"][0].replace(".parity", "")
    monkeypatch.setattr(raise_waits, "_read_modifiers", _return_cta_space)
    assert "ptx.mbarrier.wait" not in body(ptx)
    assert find_difference(ptx) is None


def test_folding_past_what_emits_shows(monkeypatch: Patch) -> None:
    ptx = "ld.shared.u32 %r1, [%rd1];\nld.shared.u32 %r2, [%rd2];\nsub.u32 %r3, %r2, %r1;\nst.shared.u32 [%rd1], %r3;\n"
    assert find_difference(ptx) is None
    monkeypatch.setattr(fold_expressions._Folding, "is_first", _always)  # pyright: ignore[reportPrivateUsage]
    assert _is_noticed(ptx)


def test_folding_what_is_read_twice_shows(monkeypatch: Patch) -> None:
    ptx = "add.u32 %r1, %r8, %r9;\nmul.lo.u32 %r2, %r1, 3;\nadd.u32 %r3, %r1, %r2;\nst.shared.u32 [%r3], %r1;\n"
    monkeypatch.setattr("pyptx.codegen.sugar_draft.Draft.is_read_once", _always)
    assert _is_noticed(ptx)


def _wrong_numbers(counter: Expr, first: int, by: int) -> Expr:
    del first
    return Binary("*", Literal(by + 1), counter)


def test_loops_with_wrong_numbers_are_not_taken(monkeypatch: Patch) -> None:
    ptx = READS["repeated statements"][0]
    monkeypatch.setattr(roll_repeats, "_build_affine", _wrong_numbers)
    assert "for j in" not in body(ptx)
    assert find_difference(ptx) is None


def test_without_unrolling_wrong_loops_show(monkeypatch: Patch) -> None:
    ptx = READS["repeated statements"][0]
    monkeypatch.setattr(roll_repeats, "_build_affine", _wrong_numbers)

    class Equal:
        def __init__(self, *_: Any) -> None: ...

        def __eq__(self, value: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    monkeypatch.setattr(roll_repeats, "unroll", Equal)
    assert _is_noticed(ptx)


def test_a_lost_round_breaks_the_promise(monkeypatch: Patch) -> None:
    ptx = READS["repeated statements"][0]
    usual = roll_repeats._Stretch.build_loop  # pyright: ignore[reportPrivateUsage]

    def shorter(stretch: Any, start: int, length: int, count: int) -> Any:
        pair: Any = usual(stretch, start, length, count)
        return pair and (pair[0], pair[1].replace(emits=pair[1].emits[:-1]))

    monkeypatch.setattr(roll_repeats._Stretch, "build_loop", shorter)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(BrokenPass, match="roll_repeats"):
        body(ptx)


def test_arrays_of_other_registers_are_refused(monkeypatch: Patch) -> None:
    ptx = READS["accumulators"][0]
    usual = gather_arrays._get_index  # pyright: ignore[reportPrivateUsage]

    def next_one(place: Any) -> int:
        return usual(place) + 1

    monkeypatch.setattr(gather_arrays, "_get_index", next_one)
    assert _is_noticed(ptx)


def test_masks_with_other_values_show(monkeypatch: Patch) -> None:
    usual = show_masks.show

    def wrong(value: Expr, pattern: bool) -> Expr:
        literal = usual(value, pattern)
        return Literal(int(str(literal.value)) + 1, True) if isinstance(literal, Literal) and literal.hex else literal

    monkeypatch.setattr(show_masks, "show", wrong)
    assert _is_noticed(READS["masks"][0])


def _left(operator: str, left: Expr, right: Expr) -> Expr:
    del operator, right
    return left


def test_symbols_that_get_another_name_show(monkeypatch: Patch) -> None:
    name = "_ZN6Vector" + "3dotERKS_" * 6
    ptx, outer = (
        f"mov.u64 %rd1, {name};\nld.global.u32 %r1, [%rd1];\n",
        f".global .u32 {name};\n.global .u32 {name}2;\n",
    )
    assert find_difference(ptx, outer) is None
    monkeypatch.setattr(shorten_symbols, "Binary", _left)
    assert _is_noticed(ptx, outer)


def _return_same_name(names: Names, preference: str) -> str:
    del names, preference
    return "x"


def test_two_registers_of_one_name_show(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Names, "make_name", _return_same_name)
    assert _is_noticed(READS["special registers and roles"][0])


def test_a_role_for_the_wrong_register_is_only_a_name(monkeypatch: Patch) -> None:
    monkeypatch.setattr(name_rings, "_STEP", 4)
    monkeypatch.setattr(name_registers, "_GENERATED", re.compile(".*"))
    for ptx, _ in READS.values():
        assert find_difference(ptx) is None


def test_comments_change_nothing(monkeypatch: Patch) -> None:
    monkeypatch.setattr(describe_blocks, "SHORTEST", 0)
    for ptx, _ in READS.values():
        assert find_difference(ptx) is None


def test_registers_in_another_order_show(monkeypatch: Patch) -> None:
    usual = sugar_function.list_new_names

    def reverse_names(*arguments: Any) -> list[Expr]:
        return usual(*arguments)[::-1]

    monkeypatch.setattr(sugar_function, "list_new_names", reverse_names)
    assert _is_noticed(
        "add.u32 %r5, %r8, %r9;\nadd.u32 %r2, %r8, %r5;\nadd.u32 %r7, %r2, %r5;\nst.shared.u32 [%r7], %r2;\n"
    )


def test_fresh_registers_of_the_wrong_class_are_refused(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Bench, "reaches", _always)
    monkeypatch.setattr(spell_instructions, "_WORTH", -9.0)
    for ptx, _ in READS.values():
        assert find_difference(ptx) is None


@pytest.mark.parametrize("name", ["fold_expressions", "describe_blocks", "roll_repeats", "show_masks", "cite_lines"])
@pytest.mark.parametrize("defect", ["drops", "repeats", "moves"])
def test_whatever_a_pass_drops_repeats_or_moves_breaks_the_promise(monkeypatch: Patch, name: str, defect: str) -> None:
    usual = getattr(sugar_function, name)

    def wrong(*arguments: Any) -> Any:
        body = usual(*arguments)
        return {"drops": body[:-1], "repeats": (*body, body[-1]), "moves": body[::-1]}[defect]

    monkeypatch.setattr(sugar_function, name, wrong)
    with pytest.raises(BrokenPass, match=name):
        body(READS["expressions"][0])


def test_a_statement_that_is_dropped_with_its_name_is_noticed(monkeypatch: Patch) -> None:
    usual = sugar.drop_unused

    def without_unnamed(function: Define) -> Define:
        result = usual(function)
        removals = {id(step) for step in result.body if isinstance(step, Line) and step not in function.body}
        return result.replace(body=tuple(step for step in result.body if id(step) not in removals))

    monkeypatch.setattr(sugar, "drop_unused", without_unnamed)
    assert _is_noticed("ld.shared.u32 %r1, [%rd1];\nst.shared.u32 [%rd1], %r2;\n")
