"""Computes the status of a job: its conditions, why it is stalled, why it failed. Pure."""
