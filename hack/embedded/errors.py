"""The one exception that the command shows to its user, as one sentence."""


class ClusterError(Exception):
    """Something the user can act on: the message states what, where, and what to do, on one line."""
