"""A release: what users install, with what is needed to check it."""
