"""Runs every form that works on registers and compares the bits: `python -m tools.conformance [--gpu] [--opcode add]`.

Compares the simulator with the scalar `references` beside this file, where a form has one, or with `--gpu` with the GPU
of this machine. Approximations must be within the manual's error bound. Prints a line per opcode and exits 1 if
anything differs.

`--gpu --record FOLDER` only runs the forms on the GPU, in less than a minute, and writes its answers; it continues a
recording of the same GPU. `--answers FOLDER` compares the simulator with them on any machine.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tools.conformance import launchers, memory_forms, recording, simulated
from tools.conformance.agreement import Agreement, compare, summarize_judgments
from tools.conformance.device import Device, NoGpuError
from tools.conformance.forms import SECTIONS, Case, cases
from tools.conformance.memory_forms import memory_cases
from tools.conformance.recording import Recording, RecordingError
from tools.conformance.references import reference
from tools.conformance.references.bounded import judge


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--section", action="append", choices=sorted({*SECTIONS, *memory_forms.SECTIONS}))
    options.add_argument("--opcode", action="append")
    options.add_argument("--sample", type=int, help="try only this many forms, chosen by --seed")
    options.add_argument("--seed", type=int, default=0)
    source = options.add_mutually_exclusive_group()
    source.add_argument("--gpu", action="store_true", help="compare with the GPU of this machine")
    source.add_argument("--answers", type=Path, metavar="FOLDER", help="compare with a recording")
    options.add_argument("--record", type=Path, metavar="FOLDER", help="with --gpu, record instead of comparing")
    options.add_argument(
        "--simulated", metavar="DEVICE", help="with --gpu, run on the simulated driver, as this device"
    )
    options.add_argument("--seconds", type=float, default=600, help="with --gpu, launch nothing later (default: 600)")
    options.add_argument("--show", type=int, default=20, help="how many of the forms that differ to print")
    arguments = options.parse_args(argv)
    try:
        if arguments.gpu:
            answers = _run_on_gpu(arguments)
        elif arguments.answers:
            answers = recording.load(arguments.answers)
            print(answers.device.description)
        else:
            selection = _select(arguments, "sm_90a")
            return report(selection, list(_with_references(selection, arguments.seed)), arguments.show)
        if arguments.record:
            path = recording.save(answers, arguments.record)
            print(f"{len(answers.answers)} forms recorded in {path}, {path.stat().st_size} bytes")
            return 0 if answers.answers else 1
        selection = _select(arguments, answers.device.target)
        return report(selection, list(_with_recording(answers, selection)), arguments.show)
    except (NoGpuError, RecordingError) as why:
        print(why, file=sys.stderr)
        return 1


def _select(arguments: argparse.Namespace, target: str) -> list[Case]:
    """Return the cases that the options choose."""
    sections = arguments.section or [*SECTIONS, *memory_forms.SECTIONS]
    selection = [*cases([name for name in SECTIONS if name in sections], target),
             *memory_cases([name for name in memory_forms.SECTIONS if name in sections], target)]  # fmt: skip
    selection = [case for case in selection if not arguments.opcode or case.opcode in arguments.opcode]
    if arguments.sample and arguments.sample < len(selection):
        selection = random.Random(arguments.seed).sample(selection, arguments.sample)
    return selection


def _run_on_gpu(arguments: argparse.Namespace) -> Recording:
    """Run the cases on the GPU, except those recorded before, and print those without results."""
    start = time.monotonic()
    limits = launchers.Limits(deadline=start + arguments.seconds)
    with launchers.open_launchers(arguments.simulated, arguments.seed) as processes:
        device = processes[0].device
        print(f"{device.description} (started in {time.monotonic() - start:.0f} s)", flush=True)
        earlier = _load_earlier(arguments, device)
        selection = [case for case in _select(arguments, device.target) if not _is_recorded(case, earlier)]
        print(f"{len(selection)} forms (listed after {time.monotonic() - start:.0f} s)", flush=True)
        outcomes = launchers.run(processes, selection, limits)
    for case, outcome in outcomes.items():
        if isinstance(outcome, str):
            print(f"{case.text}  {outcome}")
    results = {case: outcome for case, outcome in outcomes.items() if not isinstance(outcome, str)}
    print(f"{len(results)} answers (after {time.monotonic() - start:.0f} s)", flush=True)
    return recording.record(device, arguments.seed, results, earlier)


def _load_earlier(arguments: argparse.Namespace, device: Device) -> Recording:
    """Return what is recorded in the folder, if it is of this device and seed; else an empty recording."""
    if arguments.record and recording.exists(arguments.record):
        earlier = recording.load(arguments.record)
        if (earlier.device, earlier.seed) == (device, arguments.seed):
            return earlier
    return Recording(device, arguments.seed, {})


def _is_recorded(case: Case, earlier: Recording) -> bool:
    return case in earlier and earlier.find(case, simulated.draw_operands(case, earlier.seed)) is not None


def _with_recording(answers: Recording, selection: list[Case]) -> Iterable[tuple[Case, Agreement]]:
    for case, operands, results in simulated.run([case for case in selection if case in answers], answers.seed):
        answer = answers.find(case, operands)
        if answer is None:
            continue
        right = judge(case, operands, answer)
        if right is not None and not isinstance(results, Exception):
            yield case, summarize_judgments(case, operands, answer, right)
        else:
            yield case, compare(case, operands, results, answer)


def _with_references(selection: list[Case], seed: int) -> Iterable[tuple[Case, Agreement]]:
    for case, operands, results in simulated.run(selection, seed):
        right = None if isinstance(results, Exception) else judge(case, operands, results)
        if right is not None and not isinstance(results, Exception):
            yield case, summarize_judgments(case, operands, results, right)
            continue
        expectation = reference(case, operands)
        if expectation is not None or isinstance(results, Exception):
            yield case, compare(case, operands, results, expectation)


def report(selection: list[Case], agreements: list[tuple[Case, Agreement]], show: int) -> int:
    """Print counts per opcode and examples of differences."""
    forms = Counter(case.opcode for case in selection)
    by_opcode: defaultdict[str, list[Agreement]] = defaultdict(list)
    for case, agreement in agreements:
        by_opcode[case.opcode].append(agreement)
    heads = ("forms", "missing", "compared", "bounded", "tuples", "differing", "payloads")
    print(f"{'opcode':<14}" + "".join(f"{head:>10}" for head in heads))
    for opcode, count in sorted(forms.items()):
        lacking = sum(a.lacking for a in by_opcode[opcode])
        answers = [a for a in by_opcode[opcode] if not a.lacking]
        sums = [sum(getattr(a, name) for a in answers) for name in ("tuples", "differing", "payloads")]
        columns = (count, lacking, len(answers), sum(a.has_bound for a in answers), *sums)
        print(f"{opcode:<14}" + "".join(f"{number:>10}" for number in columns))
    all_answers = [a for answers in by_opcode.values() for a in answers if not a.lacking]
    differing = sum(a.differing for a in all_answers)
    tuples = sum(a.tuples for a in all_answers)
    bound_count = sum(a.has_bound for a in all_answers)
    print(
        f"{len(selection)} forms, {len(all_answers)} compared, {bound_count} with a bound, {tuples} tuples, "
        f"{differing} differ"
    )
    for agreement in [a for a in all_answers if a.differing][:show]:
        print(f"  {agreement.differing} of {agreement.tuples}: {agreement.example}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
