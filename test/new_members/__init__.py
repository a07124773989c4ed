"""Throw-away members of open sets. Each is added to its table before the rest of the code is imported (see unit/test_open_sets.py)."""
