"""The static program: blocks of steps, rows of registers, addresses of variables, linked modules."""
