"""Runs kernel objects: matches arrays to tensors, then launches."""
