"""What exists of a job: its children as the caches show them, and how far the caches have come."""
