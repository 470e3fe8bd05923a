"""The asynchronous engines: what a bulk or tensor copy moves, and which mbarriers it signals."""
