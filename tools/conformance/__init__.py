"""Conformance: every form that works on registers, on boundary and random operands, on the simulator and on a GPU."""
