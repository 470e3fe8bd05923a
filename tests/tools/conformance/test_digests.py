"""The simulator against the recorded digests of GPUs' answers, and what a digest distinguishes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tools.conformance import digests, forms, recording, simulated
from tools.conformance.agreement import compare

FEW = 80


@pytest.mark.parametrize("name", digests.list_records())
def test_a_sample_has_the_recorded_digests(name: str, seed: int) -> None:
    record = digests.read(name)
    known = [case for case in digests.list_cases(record.device.target) if digests.shorten(case) in record.digests]
    assert len(known) == len(record.digests)
    sample = random.Random(seed).sample(known, FEW)
    assert [case.text for case in digests.find_differences(record, sample)] == []


def run(case: forms.Case) -> tuple[forms.Array, forms.Array]:
    ((_, operands, results),) = simulated.run([case], 0)
    assert not isinstance(results, Exception)
    return operands, results


def find_case(section: str, head: str) -> forms.Case:
    return next(case for case in forms.cases([section]) if case.text.startswith(f"{head} "))


def test_a_record_shows_a_wrong_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "FOLDER", tmp_path)
    some = [
        find_case("integer", "add.s32"),
        find_case("integer", "sub.s32"),
        find_case("floating_point", "lg2.approx.f32"),
    ]
    answers = {case: run(case)[1] for case in some}
    answers[some[1]][0, 7, 0] ^= 1
    device = digests.Device("a device", "sm_90a")
    (tmp_path / "name.txt").write_text(digests.make(recording.record(device, 0, answers)))
    record = digests.read("name")
    assert (record.device, record.seed, len(record.digests)) == (device, 0, 3)
    assert record.digests[digests.shorten(some[2])] == digests.WITHIN
    assert list(digests.find_differences(record, some)) == [some[1]]
    answers[some[2]][0, 7, 0] ^= 1 << 30
    assert digests.digest(some[2], *run(some[2])[:1], answers[some[2]]) == digests.BEYOND


def test_nans_are_alike_and_the_other_half_is_not() -> None:
    case = find_case("half_precision", "add.f16x2")
    operands, results = run(case)
    first, second, third = results.copy(), results.copy(), results.copy()
    first[0, 7, 0], second[0, 7, 0], third[0, 7, 0] = 0x3C00FE01, 0x3C007FFF, 0x3C017FFF
    assert digests.digest(case, operands, first) == digests.digest(case, operands, second)
    assert digests.digest(case, operands, first) != digests.digest(case, operands, third)
    assert (compare(case, operands, first, second).differing, compare(case, operands, first, second).payloads) == (0, 1)
    assert compare(case, operands, first, third).differing == 1


def test_a_digest_is_of_operands_and_results() -> None:
    case = find_case("integer", "add.s32")
    operands, results = run(case)
    others = operands.copy()
    others[0, 0, 0] ^= 1
    assert digests.digest(case, operands, results) != digests.digest(case, others, results)
    assert digests.shorten(case) != digests.shorten(replace(case, text=case.text.replace("add", "sub")))
    assert not np.array_equal(operands, others)
