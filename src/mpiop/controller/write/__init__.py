"""Everything that a sync sends to the API server: children, status, events."""
