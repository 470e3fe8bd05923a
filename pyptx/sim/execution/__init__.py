"""Compile blocks to Python functions over registers, and run them for a batch of CTAs."""
