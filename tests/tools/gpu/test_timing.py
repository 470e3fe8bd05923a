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
from tools.gpu.benchmarks import run_jobs, summarize
from tools.gpu.checks import Machine
from tools.gpu.variants import VARIANTS, Variant, list_jobs

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
    """The first process writes what the GPU can do and ends, the second writes the variant after the next and a fault,
    the last one the rest."""
    skips = list[int]()

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401
        skips.append(skip := int(command[command.index("--skip") + 1]))
        lines: list[dict[str, Any]] = [{"name": "any/vector_add", "label": f"variant {skip - 1}", "error": 0.0}]
        if skip == 2:
            lines.append({"name": "any/vector_add", "label": "variant 2", "failure": "fault", "is_fatal": True})
        with Path(command[3]).open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
        return subprocess.CompletedProcess(command, 1, "", "Timeout!")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setitem(VARIANTS, "any/vector_add", [Variant(f"variant {i}") for i in range(4)])
    file = tmp_path / "results.jsonl"
    lines = run_jobs(MACHINE, ["any/vector_add"], file, has_variants=True)
    assert skips == [0, 2, 4]
    assert [line["label"] for line in lines] == ["variant -1", "variant 0", "variant 1", "variant 2", "variant 3"]
    assert [line.get("failure") for line in lines] == [None, "the process ended: Timeout!", None, "fault", None]
    printed = capsys.readouterr().out
    assert printed.count("\n") == 5
    assert "any/vector_add variant 0: FAILED the process ended: Timeout!" in printed


def test_results_are_summarized_and_the_fastest_kernels_come_first() -> None:
    line = {"name": "any/softmax", "label": "default", "tflops": 700.123, "mhz": (1200, 1500, 1980), "seconds": 1.5}
    assert summarize(line) == "any/softmax default: tflops 700.1, mhz (1200, 1500, 1980), seconds 1.5"
    jobs = list_jobs(["any/softmax", "hopper/attention"], has_variants=False)
    assert [job.name for job in jobs] == ["ceilings", "hopper/attention", "any/softmax"]
    assert benchmarks.read_lines(Path("absent")) == []
