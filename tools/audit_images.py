"""Runs every kernel of the corpus twice: as its file, and as the PTX that ptxas stored in the cubin with `-lineinfo`,
which `pyptx simulate --from-images` simulates. Both must leave the same bytes in the outputs, and have the same
findings at the same lines.

python -m tools.audit_images [PRODUCER ...]
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyptx import sim
from pyptx.diagnostics import Diagnostic, PtxError, Span
from pyptx.driver.images import read_image
from pyptx.ir import Module
from pyptx.isa.targets import find_target
from pyptx.parser import parse
from pyptx.toolchain import AssemblyError, assemble, default_target
from tools.corpus import inputs, manifest
from tools.corpus.manifest import Entry, File
from tools.sim_corpus import list_arguments

MAX_STEPS = 3_000_000
Outcome = tuple[dict[str, bytes], Counter[tuple[str, int]]]
"""The bytes of each output, and how often each code was found at each line."""


def list_files(producers: Sequence[str] = ()) -> list[tuple[str, Path, File]]:
    """Return the files that have kernels to run, with their producer."""
    return [
        (corpus.producer, directory / item.path, item)
        for directory in manifest.producers()
        for corpus in [manifest.load(directory)]
        for item in corpus.files
        if (not producers or corpus.producer in producers) and any(entry.run is not None for entry in item.entries)
    ]


def count_others() -> int:
    """Return how many entries of the corpus have no arguments to run with."""
    files = (item for directory in manifest.producers() for item in manifest.load(directory).files)
    return sum(entry.run is None for item in files for entry in item.entries)


def read_stored(text: str) -> str:
    """Return the PTX in the cubin that ptxas makes of a text."""
    try:
        cubin = assemble(text, lineinfo=True, engine="ptxas").data
    except AssemblyError:
        # A module that is to be linked with others.
        cubin = assemble(text, lineinfo=True, engine="ptxas", options=["-c"]).data
    buffer = ctypes.create_string_buffer(cubin, len(cubin))
    return read_image(ctypes.addressof(buffer), find_target(default_target(text)), from_images=True)


def run(module: Module, entry: Entry) -> Outcome:
    """Run an entry, and return what it left."""
    launch = entry.run
    assert launch is not None
    values: dict[str, Any] = inputs.arguments(launch)
    try:
        result = sim.run(
            module, entry.name, grid=launch.grid, block=launch.block, args=list_arguments(launch, values),
            cluster=launch.cluster, shared=launch.smem, cooperative=launch.cooperative, max_steps=MAX_STEPS,
            on_hazard="report",
        )  # fmt: skip
        findings = [finding.diagnostic() for finding in result.hazards]
    except PtxError as error:
        findings = list(error.diagnostics)
    outputs = {output.argument: values[output.argument].tobytes() for output in launch.outputs}
    return outputs, Counter((item.code, _find_line(item)) for item in findings)


def _find_line(item: Diagnostic) -> int:
    return item.origin.line if isinstance(item.origin, Span) else 0


def find_differences(path: Path, item: File) -> Iterator[tuple[str, Counter[str], str]]:
    """Run the entries of a file; yield the name of each, the codes that were found, and what differs."""
    text = path.read_bytes().rstrip(b"\0").decode("utf-8", "surrogateescape")
    module, stored = parse(text), parse(read_stored(text))
    for entry in item.entries:
        if entry.run is not None:
            (outputs, findings), (other_outputs, other_findings) = run(module, entry), run(stored, entry)
            wrong = [f"{name} differs" for name, data in outputs.items() if data != other_outputs[name]]
            if findings != other_findings:
                wrong.append(f"found {dict(other_findings)} instead of {dict(findings)}")
            codes = Counter({code: count for (code, _), count in findings.items()})
            yield entry.name, codes, "; ".join(wrong)


def main(argv: Sequence[str] | None = None) -> int:
    """Run all files; print what differs, and the counts by producer."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("producers", nargs="*")
    counts, findings, problems = Counter[str](), Counter[str](), 0
    for producer, path, item in list_files(options.parse_args(argv).producers):
        for name, codes, wrong in find_differences(path, item):
            counts[producer] += 1
            findings.update(dict.fromkeys(codes, 1))
            problems += bool(wrong)
            if wrong:
                print(f"{producer}/{item.path} {name}: {wrong}", flush=True)
    for producer, count in sorted(counts.items()):
        print(f"{producer:10}{count:6} kernels")
    print(
        f"kernels with findings: {', '.join(f'{code} {count}' for code, count in sorted(findings.items())) or 'none'}"
    )
    print(
        f"{sum(counts.values())} kernels, {problems} of which differ; {count_others()} others have no run in the corpus"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
