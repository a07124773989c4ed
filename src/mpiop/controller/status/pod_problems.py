"""Finds the causes that Pods show in their conditions and in the states of their containers."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.status import timestamp
from mpiop.api.types import MPIJob
from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.objects.ssh_script import without_mark
from mpiop.controller.objects.worker_pod import runs_sshd
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import disruption_problem
from mpiop.controller.observe.exit_codes import in_words
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.pod_ends import deadline_problem, memory_problem, runtime_words
from mpiop.controller.observe.rejections import is_rejected, rejected_problem
from mpiop.kube.objects import Object, is_terminating

_SERVING_SECONDS: Final = 10.0
"""An sshd that ends sooner has served nobody, although its pod was Ready for a moment."""
_IMAGE_REASONS: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"})
START_REASONS: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError"})
_NOT_FOUND_EXIT_CODE: Final = 127


def pod_problems(job: MPIJob, observed: Observed) -> Iterator[Problem]:
    """Yield the problems of the workers that are not Ready and of the newest launcher pod."""
    workers = [pod for name, pod in observed.workers.items() if name not in observed.ready_workers]
    everyone = [*workers, observed.launcher_pod] if observed.launcher_pod is not None else workers
    for pod in everyone:
        yield from _waiting(pod)
    yield from ended_worker_problems(job, observed)
    for pod in everyone:
        yield from _crash_loop(pod)


def _waiting(pod: Object) -> Iterator[Problem]:
    """Yield what keeps the containers of a pod from running."""
    scheduled = pods.condition(pod, "PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        yield problem(causes.UNSCHEDULABLE, f"pod {_name(pod)} cannot be scheduled: {scheduled.get('message', '')}")
    if is_terminating(pod):
        if (disrupted := disruption_problem(pod)) is not None:
            yield disrupted
        return
    if pods.is_unreachable(pod) and (unreachable := disruption_problem(pod)) is not None:
        yield unreachable
    for status in pods.init_container_statuses(pod):
        yield from _not_started(pod, status)
        ended = pods.last_end(status) if pods.is_crash_looping(status) else pods.terminated(status)
        if ended.get("exitCode"):
            yield problem(causes.INIT_FAILED, _how_it_ended(pod, status, ended))
    for status in pods.main_container_statuses(pod):
        yield from _not_started(pod, status)


def _not_started(pod: Object, status: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield why a container cannot be started, in the kubelet's words."""
    waiting = pods.waiting(status)
    reason, words = waiting.get("reason"), runtime_words(waiting.get("message") or "") or waiting.get("reason")
    if reason in _IMAGE_REASONS:
        yield problem(causes.IMAGE_PULL, f"pod {_name(pod)} cannot get image {status.get('image', '')}: {words}")
    elif reason == causes.CONFIG_ERROR:
        yield problem(causes.CONFIG_ERROR, f"{_container(pod, status)} cannot be created: {words}")
    elif reason in START_REASONS:
        yield problem(causes.START_ERROR, f"{_container(pod, status)} cannot be started: {words}")


def ended_worker_problems(job: MPIJob, observed: Observed) -> Iterator[Problem]:
    """Yield why workers that are not Ready ended."""
    for name, pod in observed.workers.items():
        if name not in observed.ready_workers:
            yield from _ended(job, observed, pod)


def _ended(job: MPIJob, observed: Observed, pod: Object) -> Iterator[Problem]:
    """Yield why the containers of a worker ended."""
    if is_terminating(pod) or pods.is_evicted(pod):
        return
    if is_rejected(pod):
        yield rejected_problem(pod)
        return
    if (late := deadline_problem(pod)) is not None:
        yield late
        return
    is_running = job.status.is_true(c.CONDITION_RUNNING)
    for status in pods.main_container_statuses(pod):
        ended = pods.last_end(status)
        has_failed = pods.phase(pod) == "Failed" and bool(ended.get("exitCode"))
        if _never_started(ended):
            yield _no_command(job, pod, status, ended)
        elif has_failed and ended.get("reason") == causes.OOM_KILLED:
            yield memory_problem(pod, status.get("name", ""))
        elif has_failed and (observed.published_addresses == "" or _ran_seconds(ended) < _SERVING_SECONDS):
            yield problem(causes.NO_SSHD if runs_sshd(job.worker) else causes.WORKER_ENDED, _how_it_ended(pod, status, ended))
        elif is_running and (has_failed or (pods.phase(pod) == "Succeeded" and runs_sshd(job.worker))):
            yield problem(causes.WORKER_ENDED, _how_it_ended(pod, status, ended))
    status = pod.get("status", {})
    if pods.phase(pod) == "Failed" and status.get("reason") and not pods.main_container_statuses(pod):
        yield problem(causes.WORKER_ENDED, f"worker {_name(pod)} failed: {status['reason']}: {status.get('message', '')}")


def _crash_loop(pod: Object) -> Iterator[Problem]:
    """Yield which container ends over and over, and how it ended last."""
    for status in pods.main_container_statuses(pod):
        if pods.is_crash_looping(status) and not pods.is_finished(pod):
            ended = pods.last_end(status)
            if ended.get("reason") == causes.OOM_KILLED:
                yield memory_problem(pod, status.get("name", ""))
            else:
                reason = causes.START_ERROR if ended.get("reason") in START_REASONS else causes.CRASH_LOOP
                yield problem(reason, _how_it_ended(pod, status, ended))


def _never_started(ended: Mapping[str, Any]) -> bool:
    return ended.get("exitCode") == _NOT_FOUND_EXIT_CODE or ended.get("reason") in START_REASONS


def _no_command(job: MPIJob, pod: Object, status: Mapping[str, Any], ended: Mapping[str, Any]) -> Problem:
    """Return the problem of a worker whose command does not exist, or cannot be started for another reason."""
    message = runtime_words(str(ended.get("message") or ""))
    facts = f"{_container(pod, status)} did not start, {in_words(ended.get('exitCode'))}" + (f": {message}" if message else "")
    is_missing = not message or "no such file" in message or "not found" in message
    return problem(causes.NO_SSHD if is_missing and runs_sshd(job.worker, message) else causes.START_ERROR, facts)


def _how_it_ended(pod: Object, status: Mapping[str, Any], ended: Mapping[str, Any]) -> str:
    reason, message = ended.get("reason") or "Error", runtime_words(without_mark(str(ended.get("message") or "")))
    of_mpirun = pods.role(pod) == c.ROLE_LAUNCHER
    words = in_words(ended.get("exitCode"), of_mpirun=of_mpirun)
    return f"{_container(pod, status)} ended: {words}, {reason}" + (f": {message}" if message else "")


def _ran_seconds(ended: Mapping[str, Any]) -> float:
    started, finished = timestamp(ended.get("startedAt")), timestamp(ended.get("finishedAt"))
    return (finished - started).total_seconds() if started and finished else float("inf")


def _container(pod: Object, status: Mapping[str, Any]) -> str:
    return f"container {status.get('name', '')} of pod {_name(pod)}"


def _name(pod: Object) -> str:
    return pod["metadata"].get("name", "")
