"""What every file of the gallery declares: a kernel with a bug, which the template parameter `fixed=True` removes.

Knows no particular bug.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from pyptx import Kernel, sim
from pyptx.diagnostics import PtxError, render

BUGS = Path(__file__).parents[1] / "bugs"


@dataclass(frozen=True)
class Bug:
    """A kernel with a bug, the code of its finding, and what to run it on. `check` adds classes that are off by
    default, and `schedule` is an order in which the bug shows."""

    kernel: Kernel
    code: str
    inputs: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    check: str = "all"
    schedule: str = "lazy"

    def run(self, *, fixed: bool) -> sim.Result:
        """Run the kernel, or its fixed version; the result carries the findings."""
        options: dict[str, Any] = {"check": self.check, "schedule": self.schedule, "on_hazard": "report"}
        return self.kernel.simulate(*self.inputs, fixed=fixed, **self.keywords, **options)

    def report(self) -> str:
        """Return what the simulator says about the bug."""
        try:
            findings = [finding.diagnostic() for finding in self.run(fixed=False).hazards]
        except PtxError as error:  # a hang ends the run
            findings = list(error.diagnostics)
        return "\n".join(render([finding], "") for finding in findings if finding.code == self.code)

    def show(self) -> None:
        """Print what the simulator says about the bug, and about the fixed version."""
        print(self.report())
        findings = self.run(fixed=True).hazards
        print(f"with fixed=True: {len(findings)} findings")


def load_bugs() -> dict[str, Bug]:
    """Return the gallery by the names of the hazard classes."""
    names = sorted(path.stem for path in BUGS.glob("*.py"))
    return {name: import_module(f"examples.bugs.{name}").BUG for name in names}
