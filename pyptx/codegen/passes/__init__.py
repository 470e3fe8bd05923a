"""The passes of `--sugar`, one file each. No pass changes an instruction, an operand or the order; when in doubt, a
pass leaves the code unchanged."""
