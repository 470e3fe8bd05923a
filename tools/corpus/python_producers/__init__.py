"""Producers of PTX that are driven from Python, each in a virtual environment of its own; see README.md."""
