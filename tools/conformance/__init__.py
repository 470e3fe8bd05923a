"""Runs every form that works on registers on the simulator and a GPU, with boundary and random operands."""
