"""Mutates a package, and runs the tests that execute the mutated lines."""
