"""The reports of a run: findings, the wait-for graph of a hang, and the source lines that they name."""
