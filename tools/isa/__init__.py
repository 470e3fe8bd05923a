"""Programs over the instruction table: synthesising instructions and auditing the rows against ptxas."""
