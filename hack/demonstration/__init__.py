"""The demo: where it runs, what it does, and what it shows."""
