"""The asynchronous engines: what a bulk or tensor copy moves, and whom it signals."""
