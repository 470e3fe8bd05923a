"""Observers of the machine: hazard checks, timeline, statistics, watched registers."""
