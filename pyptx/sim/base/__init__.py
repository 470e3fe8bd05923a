"""Shared by all parts of the simulator: number types, sets of lanes, and descriptions of events."""
