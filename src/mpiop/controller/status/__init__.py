"""What the status of a job should say: its conditions, why it is stalled, why it failed. Pure."""
