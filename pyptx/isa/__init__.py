"""The definition of PTX: one table of instruction forms, the targets, the special registers. Facts and look-up, no
programs."""
