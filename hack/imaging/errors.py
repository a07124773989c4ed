"""The one error that ends `hack/images`."""


class ImagesError(Exception):
    """One sentence for the user: what failed, where, and what to do."""
