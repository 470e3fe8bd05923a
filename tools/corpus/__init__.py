"""Recipes, schema, inputs and references of the PTX corpus in `tests/corpus`."""
