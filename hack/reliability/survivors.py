"""Changes that no test notices, and why that is right; see `hack/mutants --generic`."""

from collections.abc import Mapping

# ruff: noqa: E501 - a table: a row is a line

# fmt: off
EXPLAINED: Mapping[tuple[str, str, str, str], str] = {
    ("informers/backoff.py", "Backoff.__init__", "self._base_seconds = INITIAL_SECONDS", "pass"): "the first delay sets it, too; here it says that there always is one",
    ("informers/backoff.py", "Backoff.delay", "now >= self._healthy_at", "now > self._healthy_at"): "whether two minutes to the nanosecond are enough is no promise",
    ("informers/backoff.py", "Backoff.forgive", "now >= self._forgivable_at", "now > self._forgivable_at"): "the same",
    ("informers/compaction.py", "", "2048", "2049"): "how much is remembered is a choice, not a promise",
    ("informers/compaction.py", "", "512", "513"): "the same",
    ("informers/compaction.py", "Compactor.compact", "len(self._parts) + len(self._strings) > self._capacity", "len(self._parts) + len(self._strings) >= self._capacity"): "the same",
    ("informers/compaction.py", "Compactor._shared", "len(value) <= LONGEST_SHARED", "len(value) < LONGEST_SHARED"): "the same",
    ("informers/compaction.py", "Compactor._shared", "len(text) > LONGEST_SHARED", "len(text) >= LONGEST_SHARED"): "the same",
    ("informers/factory.py", "InformerFactory.run", 'raise AssertionError("unreachable: a task group that never completes")', "pass"): "it is never reached",
    ("informers/listener.py", "Listener._count_initial", "self._initial_left = None", "pass"): "it goes on counting below 0, and says once more that it is synced",
    ("informers/listener.py", "Listener._drain", "now() >= until", "now() > until"): "whether a slice ends at its last instant or just after is no promise",
    ("informers/mutation.py", "_fingerprint", "16", "17"): "how long a fingerprint is is a choice; so short a difference finds the same changes",
    ("informers/mutation.py", "_fingerprint", "True", "False"): "a dict that nobody changes keeps its order: sorting only forgives one that was filled anew with the same",
    ("informers/reflector.py", "Reflector._may_retry_internal", "False", "True"): "the answer counts for internal errors alone, and this is the one for all others",
    ("informers/reflector.py", "ReflectorSettings", "10.0", "11.0"): "how long internal errors are forgiven is a choice, not a promise",
    ("informers/shared_informer.py", "SharedInformer.run", "self._resyncs.clear()", "pass"): "the timers in it are cancelled already, and the informer never runs again",
    ("informers/watching.py", "Watching", "False", "True"): "of `_is_ordered`, which is set right after, in `__post_init__`",
    ("informers/watching.py", "Watching._bookmark", "self._initial.clear()", "pass"): "frees memory; nobody looks at it again",
    ("informers/watching.py", "Watching.receive", "1", "2"): "of `gained`, which is only ever compared with none",
    ("leaderelection/elector.py", "LeaderElector._acquire_once", "self._observed.note(lease) and holder_of(lease)", "((self._observed.note(lease)) or (holder_of(lease)))"): "decides on a log line alone",
    ("leaderelection/elector.py", "LeaderElector._acquire_once", "self._observed.note(lease) and holder_of(lease)", "not (self._observed.note(lease) and holder_of(lease))"): "the same",
    ("leaderelection/elector.py", "LeaderElector._seconds_to_next_try", "remaining > 0", "remaining >= 0"): "a record that ends at this very instant has been taken just before",
    ("leaderelection/elector.py", "LeaderElector._watch", "self._clock.monotonic() - began_at < self._config.retry_period_seconds", "self._clock.monotonic() - began_at <= self._config.retry_period_seconds"): "whether a watch of exactly a retry period was a long one is no promise",
    ("leaderelection/elector.py", "LeaderElector._release_and_log", "await self._lock.release()", "not (await self._lock.release())"): "decides on a log line alone",
    ("leaderelection/elector.py", "_end", "task.exception()", "pass"): "keeps asyncio from reporting an error that was told already",
    ("leaderelection/lock.py", "", "300", "301"): "how long a watch is asked for is a choice, not a promise",
    ("leaderelection/record.py", "Observation.__init__", "self._since = clock.monotonic()", "pass"): "nobody asks for it before a record was noted, which sets it",
    ("leaderelection/record.py", "_transitions", "0", "1"): "of the comparison: 0 is answered with 0 in both branches",
    ("leaderelection/record.py", "_transitions", "transitions >= 0", "transitions > 0"): "the same",
    ("workqueue/queue.py", "WorkQueue.add_after", "pending.when() <= due", "pending.when() < due"): "a timer is replaced by one for the same moment",
    ("workqueue/rate_limiters.py", "", "64", "65"): "both are far beyond the cap of a minute, and far from where a float overflows",
}
"""By file, function, old text and new text."""
# fmt: on
