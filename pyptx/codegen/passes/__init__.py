"""The passes of `--sugar`, one file each. None changes an instruction, an operand or the order; where a pass is not
sure, it leaves the code alone."""
