"""Decide which lanes run next and who waits for whom, and explain why a run cannot continue."""
