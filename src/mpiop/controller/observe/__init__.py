"""The children of a job as the caches show them, and whether the caches are current."""
