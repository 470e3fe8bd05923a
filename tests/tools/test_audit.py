"""The pages in docs/audits: each states how many files, rows or patterns it covers, and the tree has as many."""

from __future__ import annotations

import re
import subprocess

import pytest

from tools import audit

NAMES = sorted(audit.audits())
PAGES = {path.stem: path.read_text("utf-8").splitlines() for path in audit.RESULTS.glob("*.txt")}
OVERVIEW = (audit.RESULTS.parent / "audits.md").read_text("utf-8")
COMMAND = "; run `python -m tools.audit NAME` and commit the page, or say in tools/audit.py why not"


def test_every_audit_has_a_page_and_is_listed() -> None:
    assert set(PAGES) <= set(NAMES)
    assert set(NAMES) - set(PAGES) <= set(audit.OUTDATED)
    names = re.findall(r"\(audits/(\w+)\.txt\)", OVERVIEW)
    assert sorted(names) == sorted(PAGES)
    assert {name for names in audit.COVERAGE.values() for name in names} | set(audit.OUTDATED) <= set(NAMES)


def run_git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(audit.ROOT), *words], capture_output=True, text=True, check=False)


HAS_HISTORY = run_git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"


def find_problem(name: str) -> str:
    """Return why a page is not one of this tree, if it is not: its counts differ, or its commit is not in the history,
    so that nobody can repeat it."""
    if name not in PAGES:
        return "no page"
    first, second = PAGES[name][:2]
    header = re.fullmatch(r"ptxas [\d.]+, Python [\d.]+, \d{4}-\d\d-\d\d, commit ([0-9a-f]{9})", first)
    if not header:
        return f"{first!r} does not name a commit"
    if HAS_HISTORY and run_git("merge-base", "--is-ancestor", header[1], "HEAD").returncode:
        return f"commit {header[1]} is not in the history"
    coverage = audit.describe_coverage(name)
    expected = f"covers {coverage}" if coverage else ""
    return "" if second == expected else f"{second!r}, the tree: {expected!r}"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_one_of_this_tree(name: str) -> None:
    problem = find_problem(name)
    if name not in audit.OUTDATED:
        assert not problem, f"{name}: {problem}{COMMAND}"
    elif HAS_HISTORY:
        assert problem, f"{name} is up to date; remove it from OUTDATED in tools/audit.py"


def test_an_outdated_page_has_a_reason() -> None:
    assert all(reason for reason in audit.OUTDATED.values())


def test_counts_on_pages_are_those_of_the_header() -> None:
    files = f"{audit.counts()['files of the corpus']} files"
    for name in ("lossless", "sass", "hazards"):
        if name not in audit.OUTDATED:
            assert files in "\n".join(PAGES[name][:2]), name


SAMPLES = {("conformance", "256"), ("hardware", "1,024"), ("numerics", "1,000")}
"""Sizes of samples, which the programs state and do not print."""
ROWS = re.findall(r"^\| \[(\w+)\]\(audits/\1\.txt\) \| (.*) \|$", OVERVIEW, re.MULTILINE)


@pytest.mark.parametrize(("name", "text"), ROWS, ids=[name for name, _ in ROWS])
def test_the_overview_has_the_numbers_of_the_pages(name: str, text: str) -> None:
    page = "\n".join(PAGES[name]).replace(",", "")
    numbers = re.findall(r"(?<![\w.])\d[\d,]*\d(?![\w.])", text)
    absent = [item for item in numbers if not re.search(rf"(?<!\d){item.replace(',', '')}(?!\d)", page)]
    assert [item for item in absent if (name, item) not in SAMPLES] == []
