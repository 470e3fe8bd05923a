"""Launches: arguments in, batches through the scheduler, results out; step by step and in streams."""
