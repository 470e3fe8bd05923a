"""The static program: blocks of steps, register rows, addresses of variables, linked modules."""
