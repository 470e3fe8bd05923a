"""Audits that the PTX of the Python front end assembles: every wrapper with every value of its options, on its targets.
Prints how often each public name was called in a kernel that ptxas accepted.

python -m tools.audit_wrappers [--sample 20]
"""

from __future__ import annotations

import argparse
import inspect
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pyptx
from pyptx import Kernel, TensorSpec, kernel
from pyptx.dsl.scopes import intrinsic
from pyptx.isa.targets import ASSEMBLED
from pyptx.toolchain import judge, validate
from tests.ptx import async_calls, other_calls, scalar_calls, tensor_calls
from tests.ptx.test_async_calls import TARGETS, list_calls, parts, trace_call
from tests.ptx.test_interface import entries, find_object, path_of

PACKAGE = str(Path(pyptx.__file__).parent)
MODULES = ("pyptx.reg", "pyptx.smem", "pyptx.ptx")
HOST = frozenset(
    "reg.Reg reg.RegArray reg.PipeRef reg.NegPred reg.use reg.RegArray.__getitem__ reg.RegArray.__setitem__ "
    "smem.SharedAlloc smem.SharedSlice smem.MbarrierArray smem.MbarrierRef ptx.PipelineState ptx.NamedBarrier "
    "ptx.decl.reg ptx.decl.var ptx.directive ptx.open_block ptx.close_block ptx.names ptx.layout ptx.module".split()
)
"""Classes that other names return, and the vocabulary of exact transcripts, which has its own audit."""
MOST_IN_A_KERNEL = 4000
SCALAR_TARGETS = ("sm_80", "sm_100a")
"""The targets for arithmetic and accesses, with tens of thousands of spellings each."""


@dataclass
class Report:
    """The calls that were assembled, by name, and the failures."""

    calls: Counter[str] = field(default_factory=Counter[str])
    names: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])


class Watch:
    """Counts the calls of public names from outside the package while kernels are traced."""

    def __init__(self, names: dict[CodeType, str]) -> None:
        self.names = {id(code): (code, name) for code, name in names.items()}
        self.counts: Counter[str] = Counter()
        self.scope_code = intrinsic(lambda: None).__code__

    def __enter__(self) -> Counter[str]:
        self.counts = Counter[str]()
        sys.setprofile(self._count_call)
        return self.counts

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)

    def _count_call(self, frame: FrameType, event: str, argument: object) -> None:
        entry = self.names.get(id(frame.f_code)) if event == "call" else None
        if entry is None:
            return
        caller = frame.f_back
        while caller is not None and caller.f_code is self.scope_code:
            caller = caller.f_back
        if caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            self.counts[_find_public_name(entry[1], frame)] += 1


def _find_public_name(name: str, frame: FrameType) -> str:
    """Return the public name: one function serves all ranks of tensor copies and all special registers."""
    owner = frame.f_locals.get("self")
    if name.startswith("ptx.cp.async_.bulk.tensor"):
        return _RANK.sub(f"_{getattr(owner, 'rank', 0)}d", name)
    return f"ptx.special.{getattr(owner, '_name', '%')[1:]}" if name == "ptx.special" else name


_RANK = re.compile(r"_\dd\b")


def public() -> tuple[dict[CodeType, str], dict[str, str]]:
    """Return the code of each public function with its name, and for each name the one that counts its calls."""
    codes: dict[CodeType, str] = {}
    names: dict[str, str] = {}
    for module, entry in entries():
        name = f"{module.removeprefix('pyptx.')}.{path_of(entry)}"
        value = find_object(module, entry)
        if module not in MODULES or not callable(value) or name in HOST or inspect.ismodule(value):
            continue
        code = _code(value)
        if code is not None:
            canonical = codes.setdefault(code, "ptx.special" if ".special." in name else name)
            names[name] = name if ".special." in name or _RANK.search(name) else canonical
    return codes, names


def _code(value: Callable[..., object]) -> CodeType | None:
    if inspect.isclass(value):
        return None
    plain = inspect.unwrap(value)
    plain = getattr(plain, "__func__", plain)
    code: CodeType | None = getattr(plain, "__code__", None)
    return code or getattr(type(plain).__dict__.get("__call__"), "__code__", None)


def audit(sample: int | None, seed: int) -> Report:
    """Return the report of one call in `sample` of each group."""
    report, watch = Report(), Watch(public()[0])
    rng = random.Random(seed)

    def sample_calls(values: Iterable[Any]) -> list[Any]:
        return [value for value in values if sample is None or rng.randrange(sample) == 0]

    for group in async_calls.GROUPS:
        _audit_async(report, watch, sample_calls(list_calls(group)))
    _audit_tables(report, watch, sample_calls(tensor_calls.calls()), tensor_calls.Registers, "tensor cores", ASSEMBLED)
    scalars = [call for call, _ in scalar_calls.calls() if call is not None]
    _audit_tables(report, watch, sample_calls(scalars), scalar_calls.ScalarRegisters, "scalars", SCALAR_TARGETS)
    _audit_bodies(report, watch, sample_calls(other_calls.bodies()))
    return report


def _audit_async(report: Report, watch: Watch, calls: Sequence[async_calls.Call]) -> None:
    for arch in TARGETS:
        texts: dict[tuple[int, int], list[tuple[str, str, Counter[str]]]] = defaultdict(list)
        for call in calls:
            with watch as counts:
                text_and_kernel = trace_call(call, arch)
            if text_and_kernel is not None:
                version, text = parts(text_and_kernel[0])
                texts[version].append((text, f"{call} on {arch}", counts))
        for version, group in texts.items():
            verdicts = judge([text for text, _, _ in group], target=arch, version=version)
            for verdict, (_, name, counts) in zip(verdicts, group, strict=True):
                _count(report, "synchronization, copies, atomics", name, 1, counts,
                       [] if verdict.accepted else [str(verdict.diagnostics[0].message)])  # fmt: skip


def _audit_tables(
    report: Report,
    watch: Watch,
    calls: Sequence[tensor_calls.Call],
    registers: Callable[[], tensor_calls.Registers],
    kind: str,
    targets: Sequence[str],
) -> None:
    options: dict[str, Any] = {"version": (9, 5), "block": 128}
    for arch in targets:
        groups: dict[str, list[tensor_calls.Call]] = defaultdict(list)
        for call in calls:
            if arch in call.targets:
                groups[call.group].append(call)
        for group in groups.values():
            for first in range(0, len(group), MOST_IN_A_KERNEL):
                chunk = group[first : first + MOST_IN_A_KERNEL]

                def body(chunk: Sequence[tensor_calls.Call] = chunk) -> None:
                    operands = registers()
                    for call in chunk:
                        call.make(operands)

                settings = {"arch": arch, **options}
                _assemble(report, watch, kind, f"{kind} on {arch}", body, len(chunk), settings)


def _audit_bodies(report: Report, watch: Watch, bodies: Iterable[other_calls.Body]) -> None:
    for body in bodies:
        for arch in body.targets:
            _assemble(
                report, watch, "everything else", f"{body.name} on {arch}", body.make, 1, {"arch": arch, **body.options}
            )


def _assemble(
    report: Report,
    watch: Watch,
    kind: str,
    name: str,
    make: Callable[..., object],
    count: int,
    options: dict[str, Any],
) -> None:
    def body() -> None:
        make()

    def with_tensors(x: TensorSpec, y: TensorSpec) -> None:
        make(x, y)

    counts: Kernel = kernel(**options)(with_tensors if options.get("in_specs") else body)
    with watch as sample_kernel:
        text = counts.ptx()
    wrong = [str(d.message) for d in validate(text) if d.severity == "error"]
    _count(report, kind, name, count, sample_kernel, wrong)


def _count(report: Report, kind: str, name: str, count: int, counts: Counter[str], wrong: Sequence[str]) -> None:
    report.calls[kind] += count
    if wrong:
        report.failures.append(f"{name}: {wrong[0]}")
    else:
        report.names += counts


def lines(report: Report) -> Iterator[str]:
    """Yield the counts by group and by name, then the failures."""
    for kind, count in report.calls.items():
        yield f"{count:9,} calls: {kind}"
    for name, canonical in public()[1].items():
        yield f"{report.names[canonical]:9,} {name}"
    yield from report.failures


def main(argv: list[str] | None = None) -> int:
    """Run the audit; exit 1 if a call failed or a name was never called."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sample", type=int, help="assemble one call in SAMPLE")
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args(argv)
    report = audit(arguments.sample, arguments.seed)
    print("\n".join(lines(report)))
    names, failure_count = public()[1], len(report.failures)
    absent = [name for name, canonical in names.items() if arguments.sample is None and not report.names[canonical]]
    print(f"{sum(report.calls.values()):,} calls, {failure_count} rejected by ptxas; {len(names)} public functions, "
          f"{len(absent)} never called: {', '.join(absent) or 'none'}")  # fmt: skip
    return 1 if report.failures or absent else 0


if __name__ == "__main__":
    sys.exit(main())
