"""The audits on samples drawn with the printed seed. `make audit` runs them in full."""

from __future__ import annotations

import random

import pytest

from examples.parts.example import load_examples
from pyptx.isa import lookup, table
from pyptx.isa.model import Form
from tools import audit_corruptions, audit_fuzz, audit_lines, audit_sass, audit_wrappers
from tools.isa import audit_coverage, audit_mutants, audit_special, audit_spellings
from tools.isa.mutants import STRATA, Source, split
from tools.isa.ptxas import Case, verdicts

ROWS = 60
SPELLINGS_OF_A_ROW = 12


def draw_rows(seed: int) -> list[Form]:
    """Return a random sample of rows."""
    draw = random.Random(seed)
    return draw.sample(table.list_all_rows(), ROWS)


def draw_cases(seed: int, *, below: bool) -> list[Case]:
    """Return the cases of some spellings of random rows, at their first places or just below."""
    draw = random.Random(seed)
    cases: list[Case] = []
    for row in draw_rows(seed):
        sequences = lookup.list_sequences(row)
        for _ in range(SPELLINGS_OF_A_ROW):
            sequence = draw.choice(sequences)
            binding = tuple((slot.name, draw.choice(slot.choices)) for slot in sequence)
            cases += audit_spellings.cases_of(row, binding, below)
    return list(dict.fromkeys(cases))


def test_every_instruction_of_the_manual_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit_coverage.main() == 0, capsys.readouterr().out


def test_legal_spellings_assemble_on_their_own_target_and_version(seed: int) -> None:
    cases = draw_cases(seed, below=False)
    assert len(cases) > ROWS
    assert [(case.text, case.target, case.version, why) for case, why in verdicts(cases) if why] == []


def test_legal_spellings_do_not_assemble_below(seed: int) -> None:
    cases = draw_cases(seed, below=True)
    assert [(case.text, case.target, case.version) for case, why in verdicts(cases) if why is None] == []


def test_an_impossible_spelling_is_seen_by_the_audit() -> None:
    wrong = Case("add.wide.f32 q_f32_0, q_f32_1, q_f32_2;", "sm_90a", (8, 5))
    right = Case("add.f32 q_f32_0, q_f32_1, q_f32_2;", "sm_90a", (8, 5))
    verdict_of = dict(verdicts([wrong, right]))
    assert verdict_of[wrong] is not None
    assert verdict_of[right] is None


def test_check_agrees_with_ptxas_on_mutants(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    source = Source(seed)
    mutants = {mutant.case: mutant for i in range(1500) for mutant in [source.mutant(STRATA[i % len(STRATA)])]}
    good = audit_mutants.report(list(mutants.values()), 5, least=0.98, least_in_stratum=0.95)
    assert good, capsys.readouterr().out


def test_a_mutant_is_taken_apart_and_put_together() -> None:
    text = "ld.global.v2.f32 {q_f32_0, q_f32_1}, [q_b64_0], q_b64_1;"
    assert str(split(text)) == text
    assert split(text).operands == ["{q_f32_0, q_f32_1}", "[q_b64_0]", "q_b64_1"]


def test_corruptions_that_ptxas_rejects_are_reported(seed: int) -> None:
    unreported = audit_corruptions.list_unreported(audit_corruptions.generate_rejections(seed, 60_000), 160)
    assert len(unreported) <= 1, [
        f"{corruption.path.name}:{corruption.line} {corruption.stratum}" for corruption in unreported
    ]


def test_the_corpus_has_no_false_errors() -> None:
    assert audit_corruptions.false_errors(sorted(audit_corruptions.CORPUS.rglob("*.ptx")), 5) == 0


def test_special_registers_are_where_the_table_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit_special.main([]) == 0, capsys.readouterr().out


def test_printing_anew_keeps_the_sass(seed: int) -> None:
    paths = random.Random(seed).sample(sorted(audit_sass.CORPUS.rglob("*.ptx")), 12)
    assert [(path.name, difference) for path in paths for difference in audit_sass.differences(path)] == []


def test_fuzzed_text_raises_nothing_but_syntax_errors(seed: int) -> None:
    audit_fuzz.fuzz(1500, 300, seed)


def test_profilers_show_the_python_line_of_every_access(seed: int) -> None:
    examples = load_examples()
    # Here, two neighboring instructions are in lines of two files with the same number.
    shares_a_number = next(example for example in examples if example.name == "tcgen05/mma_sparse")
    for example in (shares_a_number, *random.Random(seed).sample(examples, 5)):
        report = audit_lines.audit(example.make(example.targets[0]), dict(example.large))
        assert report.wrong == [], example.name
        # The smallest example, patterns/dependent_launch, has three.
        assert report.counts["accesses"] >= 3


def test_wrappers_with_values_of_their_options_assemble(seed: int) -> None:
    report = audit_wrappers.audit(150, seed)
    assert report.failures == []
    assert len(report.names) > 25
