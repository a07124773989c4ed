"""What is generated in this repository, and from what: see `hack/generate`."""
