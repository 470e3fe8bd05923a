"""Variants of the kernels are right and do not spill, and a process that ends early loses one result only."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from examples.parts.example import find_example
from tools.gpu import benchmarks, timing
from tools.gpu.benchmarks import Results, run_job, sort_names, summarize
from tools.gpu.checks import Machine
from tools.gpu.variants import VARIANTS, Variant, list_variants

CASES = [(name, variant) for name, variants in VARIANTS.items() for variant in variants]
MACHINE = Machine("sm_90a", is_simulated=True, device="h100")


def test_variants_are_right_and_do_not_spill(seed: int) -> None:
    for name, variant in random.Random(seed).sample(CASES, 4):
        example = find_example(name)
        kernel, shape = example.make("sm_90a", **variant.parameters), dict(variant.shape or example.large)
        assert kernel.cubin(**shape).diagnostics == ()
        needs = kernel.resources(**shape)
        assert (needs.spill_stores, needs.spill_loads) == (0, 0)
        outcome = example.simulate(timing.find_small_run(example, variant), kernel=kernel)
        outcome.verify()
        assert outcome.report.hazards == []


def test_labels_are_unique() -> None:
    for name, variants in VARIANTS.items():
        assert len({variant.label for variant in variants}) == len(variants), name


def test_the_rest_is_timed_after_a_process_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first process writes a result and ends, the second ends at once, the third writes the last result."""
    skips = list[int]()

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401
        skips.append(skip := int(command[command.index("--skip") + 1]))
        if skip != 1:
            with Path(command[4]).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"label": f"variant {skip}", "error": 0.0}) + "\n")
        return subprocess.CompletedProcess(command, 1, "", "Timeout!")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setitem(VARIANTS, "any/vector_add", [Variant(f"variant {i}") for i in range(3)])
    path = tmp_path / "results.json"
    results = Results(path, {"device": "none"})
    run_job(MACHINE, "any/vector_add", tmp_path, results, has_variants=True)
    assert skips == [0, 2]
    lines = json.loads(path.read_text("utf-8"))["kernels"]["any/vector_add"]
    assert [line["label"] for line in lines] == ["variant 0", "variant 1", "variant 2"]
    assert lines[1]["failure"] == "the process ended: Timeout!"
    assert "any/vector_add variant 1: FAILED the process ended: Timeout!" in capsys.readouterr().out


def test_results_are_summarized_and_the_fastest_kernels_come_first() -> None:
    line = {"label": "default", "tflops": 700.123, "ratio": 1.05, "mhz": (1200, 1500, 1980), "seconds": 1.5}
    assert summarize(line) == "default: tflops 700.1, ratio 1.05, mhz (1200, 1500, 1980), seconds 1.5"
    assert sort_names(["any/softmax", "hopper/attention"]) == ["hopper/attention", "any/softmax"]
    assert list_variants("absent") == []
    assert benchmarks.read_lines(Path("absent")) == []
