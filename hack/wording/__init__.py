"""Checks the English of documents, docstrings, comments and messages against a list of words; `hack/prose` runs it."""
