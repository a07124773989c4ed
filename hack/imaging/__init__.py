"""Container images with docker, podman or buildah, with or without a registry.

Theory of operation: `catalogue` says what there is to build, `finding` which builder (`engines`) does it, `base` what it stands on.
An image whose label says that it is made of the same inputs (`fingerprint`) is left as it is.
What is kept lies below one folder (`cache`), under one lock.
"""
