"""What is remembered of workers that were deleted."""

from example_children import launcher_pod, stored, worker
from example_jobs import PI
from mpiop.controller import names
from mpiop.controller.observe.deleted_workers import MOST_JOBS, MOST_WORKERS, DeletedWorkers
from mpiop.informers.store import Notification
from mpiop.kube.objects import ControllerId

OURS = names.controller_id(PI.namespace, PI.uid)


def test_a_worker_is_remembered_as_it_was_when_it_went() -> None:
    deleted, first, second = DeletedWorkers(), worker(1), stored(worker(1), "another")
    deleted.pod_changed(Notification(None, first))
    deleted.pod_changed(Notification(first, first))
    deleted.pod_changed(Notification(launcher_pod(), None))
    assert deleted.of(OURS) == {}
    deleted.pod_changed(Notification(first, second))
    assert deleted.of(OURS) == {"pi-worker-1": first}
    deleted.pod_changed(Notification(second, None))
    assert deleted.of(OURS) == {"pi-worker-1": second}


def test_only_some_are_remembered() -> None:
    deleted = DeletedWorkers()
    for index in range(MOST_WORKERS + 1):
        deleted.pod_changed(Notification(worker(index), None))
    assert len(deleted.of(OURS)) == MOST_WORKERS
    assert "pi-worker-0" not in deleted.of(OURS)
    for number in range(MOST_JOBS):
        pod = worker(0)
        pod["metadata"]["ownerReferences"][0]["uid"] = f"other-{number}"
        deleted.pod_changed(Notification(pod, None))
    assert deleted.of(OURS) == {}
    assert deleted.of(ControllerId(*OURS[:3], f"other-{MOST_JOBS - 1}"))
