"""Which findings a run reports: `check="all"`, `"strict"`, `"none"`, or names of classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyptx.diagnostics import PtxError, Severity
from pyptx.sim.hazards import Finding
from pyptx.sim.rules import faults

CLASSES = {
    "races": range(901, 908), "uninitialised": range(910, 914), "proxies": range(920, 929),
    "async": range(930, 945), "tensor": range(945, 950), "mbarriers": range(950, 960),
    "convergence": range(960, 970), "barriers": range(970, 975), "lifetimes": range(980, 985),
    "layouts": (914, *range(985, 990)), "bounds": range(917, 918), "hangs": range(990, 992),
    "numerics": range(992, 998), "outputs": range(998, 999), "unused": range(976, 979), "dependents": range(929, 930),
}  # fmt: skip
"""The classes of docs/hazards.md, by the numbers of their codes."""
OPTIONAL = frozenset(("numerics", "outputs", "unused", "dependents"))
"""Classes that `all` omits: their findings may be intended."""
Check = str | Collection[str]


@dataclass(frozen=True, slots=True)
class Selection:
    """What to check and how to report it. `codes` is None for everything; `optional` are the additional classes
    requested by name."""

    codes: frozenset[int] | None
    strict: bool
    raises: bool
    optional: frozenset[str]

    def covers(self, name: str) -> bool:
        """Tell whether a class of hazards is checked."""
        if self.codes is None:
            return name not in OPTIONAL or name in self.optional
        return self.codes.issuperset(CLASSES[name])

    def select(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the selected findings."""
        if self.codes is None:
            return list(findings)
        return [finding for finding in findings if int(finding.rule.code[3:]) in self.codes]

    def select_fatal(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that end the run with an error."""
        if not self.raises:
            return []
        return [finding for finding in findings if self.strict or finding.severity is Severity.ERROR]


def parse_choice(check: Check, on_hazard: str) -> Selection | None:
    """Return the selection of `check` and `on_hazard`, None for no checks; PtxError for unknown words."""
    if on_hazard not in ("raise", "report"):
        raise _make_choice_error(f"on_hazard {on_hazard!r}: expected `raise` or `report`")
    if not isinstance(check, Collection):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _make_choice_error(
            f"check is {check!r}: expected a string or a collection of names, such as 'all' or 'none'"
        )
    names = [name.strip() for name in check.split(",")] if isinstance(check, str) else list(check)
    if names in (["none"], []):
        return None
    unknown = [name for name in names if name not in (*CLASSES, "all", "strict")]
    if unknown:
        choices = ", ".join(("all", "strict", "none", *CLASSES))
        raise _make_choice_error(f"check {unknown[0]!r}: expected one of {choices}")
    classes = [name for name in names if name in CLASSES]
    codes = None if not classes or "all" in names else frozenset(code for name in classes for code in CLASSES[name])
    return Selection(codes, "strict" in names, on_hazard == "raise", OPTIONAL & set(classes))


def _make_choice_error(text: str) -> PtxError:
    return faults.error(faults.LAUNCH_SHAPE, None, text)
