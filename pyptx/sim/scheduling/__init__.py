"""Which lanes run next, who waits for whom, and what is said when nobody can go on."""
