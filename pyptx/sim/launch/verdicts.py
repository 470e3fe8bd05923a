"""Turn the findings of a run into a list, or into the error that ends it, and add the source lines of their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyptx.diagnostics import Diagnostic, PtxError, Severity
from pyptx.ir import Module
from pyptx.sim.observers.checks import Checks, Selection
from pyptx.sim.reports.findings import Finding, group_by_cause
from pyptx.sim.reports.graph import Hang
from pyptx.sim.reports.source_lines import find_module_text, read_source_lines
from pyptx.sim.rules import ADDRESS_OVERFLOW, DEADLOCK, NARROWED, NOT_A_BARRIER, PHASE_UNOBSERVED, faults
from pyptx.sim.rules.advice import AHEAD, COUNT, WAIT_FIRST
from pyptx.sim.scheduling.schedules import SEEDED

_WRAPPED = (ADDRESS_OVERFLOW, NARROWED)


def note_seed(why: PtxError, schedule: str, seed: int) -> PtxError:
    """Return the error with a note that says how to repeat its schedule."""
    if schedule not in SEEDED or not why.diagnostics:
        return why
    first = why.diagnostics[0]
    note = f"schedule={schedule!r}, seed={seed} repeats this run"
    return _rebuild(why, [replace(first, notes=(*first.notes, note)), *why.diagnostics[1:]])


def _rebuild(why: PtxError, diagnostics: list[Diagnostic]) -> PtxError:
    """Return an error of the same kind with other diagnostics."""
    error = Hang(diagnostics, why.report) if isinstance(why, Hang) else PtxError(diagnostics)
    error.source = why.source
    return error


def cite_findings(modules: Sequence[Module], selection: Selection, checks: Checks) -> list[Finding]:
    """Return the findings with the source lines of their places."""
    findings = selection.select(checks.engine.findings)
    if findings:
        lines = read_source_lines(*modules)
        for finding in findings:
            lines.cite_finding(finding)
        text = find_module_text(
            modules, [place.origin for finding in findings for place in (finding.place, finding.other) if place]
        )
        for finding in findings:
            finding.source = text
    return findings


def judge_findings(modules: Sequence[Module], selection: Selection, checks: Checks) -> list[Finding]:
    """Return the findings; raise PtxError if any of them is an error."""
    findings = cite_findings(modules, selection, checks)
    fatal = selection.select_fatal(findings)
    if fatal:
        # A phase that completes early causes all kinds of errors; PHASE_UNOBSERVED says which count is too low.
        fatal_ids = {id(finding) for finding in fatal}
        causes = [finding for finding in findings if id(finding) in fatal_ids or finding.rule is PHASE_UNOBSERVED]
        raise PtxError((finding.diagnostic() for finding in group_by_cause(causes)), fatal[0].source)
    return findings


def cite_lines(module: Module, why: PtxError, *other_modules: Module) -> PtxError:
    """Return the error with the source lines of its places."""
    lines = read_source_lines(module, *other_modules)
    error = _rebuild(why, [lines.cite_diagnostic(diagnostic) for diagnostic in why.diagnostics])
    error.source = find_module_text([module, *other_modules], [d.origin for d in error.diagnostics])
    return error


def add_findings(why: PtxError, checks: Checks | None) -> PtxError:
    """Return the error that ended a run, preceded by the hazards that may have caused it, including wrapped addresses.
    A hang is followed by the phases that no thread observed, which often cause it."""
    findings = [] if checks is None else group_by_cause(checks.selection.select(checks.engine.findings))
    causes = [finding for finding in findings if finding.severity is Severity.ERROR or finding.rule in _WRAPPED]
    errors = [finding.diagnostic() for finding in causes]
    phase_findings = [finding for finding in findings if finding.rule is PHASE_UNOBSERVED and isinstance(why, Hang)]
    if isinstance(why, Hang):
        why = _accuse_barrier(why, phase_findings)
    elif any(d.code == NOT_A_BARRIER.code and d.origin == why.diagnostics[0].origin for d in errors):
        # The finding already reports the fault at which the machine stopped.
        why = _rebuild(why, [d for d in why.diagnostics if d.code != faults.MBARRIER.code])
    phase_errors = [finding.diagnostic() for finding in phase_findings]
    return _rebuild(why, [*errors, *why.diagnostics, *phase_errors]) if errors or phase_errors else why


def _accuse_barrier(why: Hang, phase_findings: Sequence[Finding]) -> Hang:
    """Return the deadlock, naming the barrier whose phases completed early if lanes wait for it."""
    help_by_init = {finding.other: finding.help for finding in reversed(phase_findings)}
    nodes = (node for node in why.report.order_nodes() if node.place is not None and node.place in help_by_init)
    node = next(nodes, None)
    if node is None or why.diagnostics[0].code != DEADLOCK.code:
        return why
    why.report.accuse(node, AHEAD if help_by_init[node.place] == WAIT_FIRST else COUNT)
    finding = why.report.make_finding()
    assert finding is not None
    return Hang([finding.diagnostic(), *why.diagnostics[1:]], why.report)
