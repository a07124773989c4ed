"""Changes that no test notices, and why that is right; see `hack/mutants --generic`."""

from collections.abc import Mapping

EXPLAINED: Mapping[tuple[str, str, str], str] = {
    (
        "informers/backoff.py",
        "now >= self._healthy_at",
        "now > self._healthy_at",
    ): "whether two minutes to the nanosecond are enough is no promise",
    ("informers/backoff.py", "now >= self._forgivable_at", "now > self._forgivable_at"): "the same",
    ("informers/compaction.py", "8192", "8193"): "how much is remembered is a choice, not a promise",
    ("informers/compaction.py", "256", "257"): "the same",
    ("informers/compaction.py", "len(self._parts) > self._capacity", "len(self._parts) >= self._capacity"): "the same",
    ("workqueue/queue.py", "pending.when() <= due", "pending.when() < due"): "a timer is replaced by one for the same moment",
}
"""By file, old text and new text."""
