"""Analyses of a body of IR statements; nothing here changes or prints anything."""
