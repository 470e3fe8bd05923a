"""What all packages of the simulator share: number types, sets of lanes, descriptions of events."""
