"""The entry of the client: submit jobs, find them, run functions on ranks."""

import contextlib
import re
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from mpiop.client.api import Api, Object
from mpiop.client.errors import ClientError, InvalidError, NotNowError, UnreachableError
from mpiop.client.files import Files
from mpiop.client.functions import FunctionCall
from mpiop.client.job import Job
from mpiop.client.spec import JobSpec, manifest

_Result = TypeVar("_Result")
_NAME: Final = re.compile(r"(?:mpijobs?(?:\.kubeflow\.org)?/)?([A-Za-z0-9](?:[-.A-Za-z0-9]*[A-Za-z0-9])?)")


class MPI:
    """MPI jobs in a namespace.

    ```python
    mpi = MPI(namespace="team", image="registry.example.com/mpi4py:1")
    job = mpi.submit(["python", "solve.py"], ranks=64, slots=8, gpus=1)
    for line in job.logs(follow=True):
        print(line)
    job.wait(timeout=3600)
    ```
    """

    def __init__(self, *, namespace: str = "", context: str = "", kubeconfig: str = "", api: Api | None = None, **defaults: Any) -> None:
        """Use the kubeconfig as kubectl does, or the service account in a Pod.

        Args:
            namespace: Of the jobs; by default that of the context.
            context: Of the kubeconfig; by default the current one.
            kubeconfig: Path; by default $KUBECONFIG or ~/.kube/config.
            api: Used instead of a cluster.
            defaults: Fields of `JobSpec` for all jobs, such as `image`.

        Raises:
            UnreachableError: No cluster is configured.
        """
        if api is None:
            from mpiop.client.cluster import Cluster  # noqa: PLC0415 - the package kubernetes takes most of a second

            api = Cluster(namespace=namespace, context=context, kubeconfig=kubeconfig)
        self._api, self._defaults = api, defaults

    def submit(self, command: Sequence[str], *, name: str = "", files: Files | None = None, **fields: Any) -> Job:
        """Create a job that runs `command` on `ranks` ranks, and return at once.

        Args:
            command: The program and its arguments.
            name: Of the job; by default made from that of the program.
            files: Are in `/upload` on each host, where the ranks then begin.
            fields: The other fields of `JobSpec`.

        Raises:
            ClientError: It makes no sense, or the API server refused it.
        """
        settings: dict[str, Any] = self._defaults | fields | {"command": list(command)}
        config_map = None
        if files is not None:
            config_map = self._api.create_config_map(files.config_map(JobSpec(**settings).command))
            settings["files"] = (config_map["metadata"]["name"], files.names)
        try:
            created = self._api.create_job(manifest(JobSpec(**settings), name))
        except ClientError as error:
            may_exist = isinstance(error, UnreachableError) and not isinstance(error, NotNowError)
            if config_map is not None and not may_exist:
                with contextlib.suppress(ClientError):  # the first error is the one that helps
                    self._api.delete_config_map(config_map)
            raise
        if config_map is not None:
            self._give(config_map, created)
        return Job(self._api, created)

    def _give(self, config_map: Object, job: Object) -> None:
        """Let a ConfigMap be deleted with a job. The job runs already: that this cannot be done now is no reason to lose sight of it."""
        name, owned = config_map["metadata"]["name"], {"uid": config_map["metadata"]["uid"], "ownerReferences": [owner_of(job)]}
        try:
            self._api.patch_config_map(name, {"metadata": owned})
        except UnreachableError as error:
            warnings.warn(f"configmap {name} will stay when job {job['metadata']['name']} is deleted: {error}", stacklevel=3)

    def get(self, name: str) -> Job:
        """Return a job by its name, or as kubectl prints that: `mpijob.kubeflow.org/NAME`.

        Raises:
            NotFoundError: There is none of that name.
            InvalidError: No job can have that name.
        """
        found = _NAME.fullmatch(name)
        if found is None:
            raise InvalidError(f"{name!r} is no name of a job: write one as kubectl mpi list shows it")
        return Job(self._api, self._api.job(found[1]))

    def jobs(self, *, everywhere: bool = False) -> Sequence[Job]:
        """Return the jobs of the namespace, or of all."""
        return [Job(self._api, raw) for raw in self._api.jobs(everywhere=everywhere)]

    @contextmanager
    def job(self, command: Sequence[str], *, name: str = "", **fields: Any) -> Generator[Job]:
        """Submit a job that is deleted at the end of the `with` block."""
        submitted = self.submit(command, name=name, **fields)
        try:
            yield submitted
        finally:
            delete_or_warn(submitted)

    def run(
        self,
        function: Callable[..., _Result],
        *args: Any,
        name: str = "",
        report: Callable[[str], None] | None = None,
        **fields: Any,
    ) -> list[_Result]:
        """Call `function(*args)` on every rank, and return the results by rank.

        The image needs Python and mpi4py. The function travels by cloudpickle, so its Python must have the minor version of yours. It may
        use `mpi4py.MPI.COMM_WORLD`. Results come back by the log: at most 8 MiB together; large data belongs on a volume.
        They are pickles: the function and the image are trusted; what the ranks print, and the data that they read, is not.
        `report` is called with each new line of progress until the ranks begin.

        Raises:
            JobFailed: A rank raised: the message has its number and its traceback. Results were lost: the message has their ranks, and
                `results` those that arrived.
            ClientError: The job could not be made.
        """
        call = FunctionCall(function, args)
        fields = {"is_tagged": False} | fields
        job = self.submit(call.command, name=name, files=call.files, **fields)
        try:
            job.wait_for_output(report)
            for line in job.logs(follow=True):
                call.read(line)
            return call.results(job)
        finally:
            delete_or_warn(job)


def delete_or_warn(job: Job) -> None:
    """Delete a job. While the API server does not answer this is a warning, so that results or an earlier error are not lost."""
    try:
        job.delete()
    except UnreachableError as error:
        warnings.warn(f"job {job.name} was not deleted: {error}", stacklevel=2)


def owner_of(job: Object) -> Object:
    """Return the reference by which an object is deleted with the job."""
    metadata = job["metadata"]
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": metadata["name"], "uid": metadata["uid"]}
