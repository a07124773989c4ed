"""What ends a release."""


class ReleaseError(Exception):
    """Something is missing or does not fit; the message says what to do."""
