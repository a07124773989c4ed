"""The words that labels of metrics may have: statuses, Pods and webhooks hold any text, and each new word would be a series for ever."""

from typing import Final

OTHER: Final = "Other"
_BACKOFF: Final = "BackoffLimitExceeded"
_STATES: Final = "New Starting Running Suspended Queued Restarting Succeeded Failed"
# The keys of mpiop.controller.causes.CAUSES; a test compares them.
_CAUSES: Final = """
    ValidationError AnnotationIgnored ResourceExists PredecessorExists QuotaExceeded Forbidden WriteFailed ChangedBack SecondOperator
    SecretLost GangApiMissing Unschedulable ImagePull CreateContainerConfigError StartError InitContainerFailed NoSshd WorkerEnded
    CrashLoopBackOff OOMKilled NodeLost Disrupted WorkerDeleted WorkerDeadlineExceeded WorkerRejected ScaledDown
    StuckTerminating Unreadable FailedMount FailedCreatePodSandBox Unhealthy FailedCreate Unhandled SchedulingGated
"""
_ENDS: Final = f"MPIJobFailed MPIJobEvicted LauncherJobNotFound ReachedMaxRestarts {_BACKOFF} DeadlineExceeded PodFailurePolicy"
# Of Pods and containers. Source: kubernetes pkg/kubelet (lifecycle, eviction, preemption, nodeshutdown), containerd CRI.
_POD_ENDS: Final = """
    Error Completed ContainerCannotRun ContainerStatusUnknown Evicted NodeAffinity NodeShutdown Terminated Shutdown Preempting
    UnexpectedAdmissionError TopologyAffinityError OutOfcpu OutOfmemory OutOfpods OutOfephemeral-storage Unknown
"""
_REASONS: Final = frozenset(f"{_STATES} {_CAUSES} {_ENDS} {_POD_ENDS}".split())
# metav1.StatusReason.
_ANSWERS: Final = """
    NoAnswer Unauthorized Forbidden NotFound AlreadyExists Conflict Gone Invalid ServerTimeout StoreReadError Timeout TooManyRequests
    BadRequest MethodNotAllowed NotAcceptable RequestEntityTooLarge UnsupportedMediaType InternalError Expired ServiceUnavailable
"""
_REFUSALS: Final = frozenset(_ANSWERS.split())
_CODES: Final = frozenset(map(str, range(400, 600)))


def reason_label(reason: str) -> str:
    """Return the state of a job, or the reason of its end or restart; "Other" for words that are not known."""
    head, slash, rest = reason.partition("/")
    if slash and head == _BACKOFF:
        return f"{_BACKOFF}/{_known(rest)}"
    return _known(reason)


def refusal_label(reason: str) -> str:
    """Return the API server's reason of a refusal, or the code of an answer without one; "Other" for others, such as a webhook's own."""
    return reason if reason in _REFUSALS or reason in _CODES else OTHER


def _known(word: str) -> str:
    return word if word in _REASONS else OTHER
