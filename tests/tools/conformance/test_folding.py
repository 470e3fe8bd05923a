"""Results of ptxas for instructions on constants, compared with the simulator; and the reading of its SASS."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tools.conformance import folding
from tools.conformance.folding_operations import Known
from tools.conformance.folding_sass import Store, execute, instruction


def test_a_sample_is_what_ptxas_computes(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    section = folding.SECTIONS[seed % len(folding.SECTIONS)]
    arguments = ["--section", section, "--sample", "30", "--tuples", "8", "--seed", str(seed)]
    assert folding.main(arguments) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("section", "opcodes"),
    [("integer", ["brev", "bfind", "bfe"]), ("logic", ["lop3", "shf"]), ("video", ["vabsdiff2"])],
)
def test_every_form_of_an_opcode_has_an_answer(section: str, opcodes: list[str]) -> None:
    selection = folding.select_cases([section], opcodes)
    foldings = list(folding.examine([pairs[0][1] for pairs in selection.values()], 4, Counter()))
    assert {item.case.text for item in foldings if item.fold_count + item.lowering_count > 0} == set(selection)
    assert sum(item.agreement.differing for item in foldings) == 0


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    true = folding.simulate

    def wrong(*arguments: Any) -> Any:
        words = true(*arguments)
        words[0, 3, 0] ^= 1
        return words

    monkeypatch.setattr(folding, "simulate", wrong)
    ((_, case),) = folding.select_cases(["integer"], ["popc"])["popc.b32 q_b32_0, q_b32_1;"][:1]
    (finding,) = folding.examine([case], 8, Counter())
    assert (finding.fold_count, finding.agreement.differing) == (8, 1)


def test_only_a_tie_excuses_a_sum() -> None:
    (text,) = (text for text in folding.select_cases(["floating_point"], ["sub"]) if text.startswith("sub.f32 "))
    ((_, case), *_) = folding.select_cases(["floating_point"], ["sub"])[text]
    even_code, odd = 0x41116788, 0x41116787
    assert folding.excuse(case, [0xC0D8879F, 0xC17DAB57], even_code, odd) == "ptxas folds a tie to odd"
    assert folding.excuse(case, [0xC0D8879F, 0xC17DAB57], even_code, odd - 1) == ""
    assert folding.excuse(case, [0xC0D8879E, 0xC17DAB57], even_code, odd) == ""
    assert folding.excuse(case, [0x7F800000, 0xC17DAB57], even_code, odd) == ""
    (text,) = (text for text in folding.select_cases(["floating_point"], ["sub"]) if text.startswith("sub.ftz.f32x2 "))
    ((_, case), *_) = folding.select_cases(["floating_point"], ["sub"])[text]
    operands, same = [0x2AAA7A7C23FAF25B, 0x1E800000177FFFFF], 0x2AAA7A7C23FAF25B
    assert folding.excuse(case, operands, same, 0x2AAA7A7B23FAF25B) == "ptxas folds a tie to odd"
    assert folding.excuse(case, operands, same, 0x2AAA7A7B23FAF25A) == ""


def _run(text: str, immediate: int = 0, **state: int) -> dict[str, Known]:
    words = {name: Known(bits, True) for name, bits in state.items()}
    step = instruction(f"        /*0000*/                   {text} ;", bytes(4) + immediate.to_bytes(4, "little"))
    assert step is not None
    assert execute(step, words)
    return words


@pytest.mark.parametrize(
    ("text", "immediate", "value"),
    [
        ("MOV R0, 0x7fffffff", 0, 0x7FFFFFFF),
        ("IMAD.MOV.U32 R0, RZ, RZ, -0x10", 0, 0xFFFFFFF0),
        ("HFMA2.MMA R0, -RZ, RZ, 0, +QNAN ", 0x00007E01, 0x7E01),
        ("UMOV UR0, 0x5", 0, 5),
        ("PRMT R0, R2.reuse, 0x5410, R3", 0, 0xDDDDBBBB),
        ("SEL R0, R2, R3, !PT", 0, 0xCCCCDDDD),
        ("PRMT R0, R2, 0x5410, 0x3", 0, 0x3BBBB),
    ],
)
def test_moves_are_folded(text: str, immediate: int, value: int) -> None:
    words = _run(text, immediate, R2=0xAAAABBBB, R3=0xCCCCDDDD)
    assert (words.get("R0") or words["UR0"]) == Known(value, True)


@pytest.mark.parametrize(
    ("text", "registers", "predicates"),
    [
        ("IADD3 R0, P0, R2, -R3, RZ", {"R0": 0xFFFFFFFE}, {"P0": 0}),
        ("IADD3 R0, P0, R3, -RZ, RZ", {"R0": 7}, {"P0": 1}),
        ("IADD3.X R0, R2, ~R3, RZ, P1, !PT", {"R0": 0xFFFFFFFE}, {}),
        ("ISETP.GT.U32.AND P0, P2, R4, R3, PT", {}, {"P0": 1, "P2": 0}),
        ("ISETP.LT.AND.EX P0, PT, R4, R3, PT, P1", {}, {"P0": 1}),
        ("ISETP.NE.AND.EX P0, PT, R3, R3, PT, P1", {}, {"P0": 1}),
        ("LOP3.LUT P0, R0, R2, R3, RZ, 0x3c, !PT", {"R0": 2}, {"P0": 1}),
        ("SHF.R.S32.HI R0, RZ, 0x1f, R4", {"R0": 0xFFFFFFFF}, {}),
        ("SHF.L.U64.HI R0, R4, R3, R2", {"R0": 0x2FF}, {}),
        ("SHF.L.U32 R0, R2, 0x20, RZ", {"R0": 0}, {}),
        ("IMAD.WIDE R0, R4, R3, R2", {"R0": 0xFFFFFFFE, "R1": 6}, {}),
        ("LEA.HI.SX32 R0, R4, 0x1, 0x1", {"R0": 0}, {}),
        ("VIMNMX R0, R4, R3, !PT", {"R0": 7}, {}),
        ("I2I.U8.S32.SAT R0, R4", {"R0": 0}, {}),
        ("PRMT R0, R4, 0x9910, RZ", {"R0": 0xFFFFFFFF}, {}),
    ],
)
def test_what_integer_instructions_compute(text: str, registers: dict[str, int], predicates: dict[str, int]) -> None:
    words = _run(text, R2=5, R3=7, R4=0xFFFFFFFF, P1=1)
    assert {name: words[name] for name in (*registers, *predicates)} == {
        name: Known(bits, False) for name, bits in (registers | predicates).items()
    }


def test_a_half_is_known_where_the_other_is_not() -> None:
    words = _run("PRMT R0, R2, 0x7610, R0", R2=0xAAAABBBB)
    assert words["R0"] == Known(0xBBBB, True, 0xFFFF)
    assert Store(0, 2, (words["R0"],)).value() == Known(0xBBBB, True)
    assert Store(0, 4, (words["R0"],)).value() is None


def test_what_depends_on_the_unknown_has_no_value() -> None:
    words = {"R0": Known(1, True), "R1": Known(1, True), "R4": Known(1, True)}
    for text in ("LDC.64 R0, c[0x0][0x210]", "VABSDIFF R4, R2, R3, RZ"):
        step = instruction(f"        /*0000*/                   {text} ;")
        assert step is not None
        execute(step, words)
    assert words == {}
