"""Running a kernel object: arrays are matched to its tensors, then launched."""
