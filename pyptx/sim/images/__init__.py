"""Textures, samplers and surfaces: what they hold and what a lookup returns. Knows no instructions and no lanes."""
