"""Mutants of a package, the tests that run their lines, and the verdicts of those tests."""
