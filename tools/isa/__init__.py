"""Tools for the instruction table: synthesize instructions, audit the rows against ptxas."""
