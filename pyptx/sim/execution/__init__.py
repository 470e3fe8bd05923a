"""Blocks as Python functions over registers, and the batch of CTAs that runs them."""
