"""What every part of the simulator shares: number types, sets of lanes, and the words that describe events."""
