"""Makes the SSH Secret of a job and notices when it is lost, without the right to list or watch Secrets.

The Secret is made once, and its UID is noted in an annotation of the ConfigMap. It is rechecked with one GET only when it may be missing:
on resume, when the note is gone, and when the creation of a pod takes long, since a pod without its Secret never starts. A lost Secret is
made again unless pods run with the old key: pods with different keys could not reach each other.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mpiop.api.types import MPIJob
from mpiop.clock import Clock
from mpiop.controller import names
from mpiop.controller.errors import PredecessorError, ResourceExistsError, SecretLostError
from mpiop.controller.objects.ssh_secret import KeyPair, build_ssh_secret
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.diff import Create
from mpiop.controller.write.apply import Applier, owner_of
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, annotations_of, creation_time, key_of, uid_of
from mpiop.kube.resources import SECRETS

RECHECK_SECONDS: Final = 30.0
"""How long the creation of a pod may take before its Secret is rechecked, and the time between two rechecks."""


@dataclass(frozen=True, slots=True)
class SshSecrets:
    """Finds, makes and rechecks the Secrets of jobs.

    Attributes:
        new_key_pair: Makes an SSH key pair when a Secret has to be made.
        found: When the Secret of a job was last seen, on the monotonic clock.
    """

    applier: Applier
    new_key_pair: Callable[[], Awaitable[KeyPair]]
    clock: Clock
    found: dict[Key, float]

    async def uid(self, job: MPIJob, observed: Observed, now: datetime) -> str:
        """Return the UID of the job's Secret, which is made if there is none and no pod holds an older key.

        Raises:
            KubeError: It could not be read or created.
            PredecessorError: That of a deleted job of the same name is being deleted.
            ResourceExistsError: An object of somebody else has its name.
            SecretLostError: It is gone while pods run with its key.
        """
        noted = noted_uid(observed)
        if noted and not job.is_resuming and not self._needs_recheck(job.key, observed, now):
            return noted
        holders = [pod for pod in observed.all_pods if pods.has_begun(pod) and not pods.is_finished(pod)]
        if (noted or holders) and (live := await self._find(job)) is not None:
            return uid_of(live)
        if holders:
            raise SecretLostError(job.secret_name, [key_of(pod).name for pod in holders])
        secret = build_ssh_secret(job, await self.new_key_pair())
        made = await self.applier.perform(owner_of(job), Create(SECRETS, key_of(secret), lambda: secret))
        return "" if made is None else uid_of(made)

    async def uid_to_delete(self, job: MPIJob, observed: Observed) -> str:
        """Return the UID of the Secret to delete together with the ConfigMap; "" if there is none. It is asked for: a note may be wrong.

        Raises:
            KubeError: It could not be read.
        """
        if observed.config_map is None:
            return ""
        try:
            live = await self._find(job)
        except (ResourceExistsError, PredecessorError):
            return ""
        return "" if live is None else uid_of(live)

    def wait_seconds(self, job: Key, observed: Observed, now: datetime) -> float | None:
        """Return the seconds until the Secret of a job that may start pods should be rechecked; None if no pod is being created."""
        ages = [_age_seconds(pod, now) for pod in observed.pods_being_created]
        return max(RECHECK_SECONDS - max(ages), self._seconds_to_recheck(job), 1.0) if ages else None

    async def _find(self, job: MPIJob) -> Object | None:
        try:
            live = await self.applier.find_ours(owner_of(job), SECRETS, Key(job.namespace, job.secret_name))
        except StatusError as error:
            if error.is_not_found:
                return None
            raise
        self.found[job.key] = self.clock.monotonic()
        return live

    def _needs_recheck(self, job: Key, observed: Observed, now: datetime) -> bool:
        late = any(_age_seconds(pod, now) >= RECHECK_SECONDS for pod in observed.pods_being_created)
        return late and not self._seconds_to_recheck(job)

    def _seconds_to_recheck(self, job: Key) -> float:
        """Return for how many more seconds the Secret counts as present, because it was seen lately."""
        now = self.clock.monotonic()
        return max(0.0, self.found.get(job, now - RECHECK_SECONDS) + RECHECK_SECONDS - now)


def noted_uid(observed: Observed) -> str:
    """Return the UID of the Secret noted in the ConfigMap, or ""."""
    return annotations_of(observed.config_map).get(names.ANNOTATION_SECRET_UID, "") if observed.config_map else ""


def _age_seconds(pod: Object, now: datetime) -> float:
    created = creation_time(pod)
    return (now - created).total_seconds() if created else 0.0
