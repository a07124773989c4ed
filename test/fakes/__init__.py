"""Stand-ins that keep the contracts of what they stand in for."""
