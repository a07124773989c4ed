"""Container images with docker, podman or buildah, with or without a registry.

Theory of operation: `catalogue` lists what to build, `finding` chooses the builder (`engines`), `base` makes the base image.
An image whose label reports that it is made of the same inputs (`fingerprint`) is left as it is.
What is kept lies below one folder (`cache`), under one lock.
"""
