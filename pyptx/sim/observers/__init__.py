"""What listens to the machine: hazard checks, timeline, statistics, watched registers."""
