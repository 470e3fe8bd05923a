"""The state that a running batch changes: memory, barriers, tensor memory, queued effects."""
