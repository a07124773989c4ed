"""What ends a release."""


class ReleaseError(Exception):
    """Something is missing or does not fit; the message states what to do."""
