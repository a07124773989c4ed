"""The invariants of the machine room: which tests show them, and which defects those tests must catch."""
