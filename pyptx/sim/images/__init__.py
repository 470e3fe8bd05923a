"""Textures, samplers and surfaces: their contents and the results of lookups. Knows no instructions and no lanes."""
