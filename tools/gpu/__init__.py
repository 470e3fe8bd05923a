"""What `make gpu` checks on a machine with a GPU, and how much of it the simulated driver can try."""
