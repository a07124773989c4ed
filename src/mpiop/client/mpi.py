"""The entry of the client: submit jobs, find them, run functions on ranks."""

import contextlib
import re
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar, Unpack

from mpiop.client.allocation import PROGRAM, allocation_manifest, wait_until_running
from mpiop.client.allocations import Allocation
from mpiop.client.api import Api, Object
from mpiop.client.errors import ClientError, InvalidError, NotNowError, UnreachableError
from mpiop.client.fields import JobFields, Options, check_names, job_spec
from mpiop.client.files import Files
from mpiop.client.functions import FunctionCall
from mpiop.client.job import Job
from mpiop.client.manifest import manifest
from mpiop.client.spec import JobSpec
from mpiop.client.ssh import Offer, with_ssh
from mpiop.client.type_checks import check_type

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

    Attributes:
        offer: What the operator offers, such as injected ssh; jobs of the same minute ask once.
        kubectl_options: Options that select the same cluster for kubectl.
    """

    def __init__(
        self, *, namespace: str = "", context: str = "", kubeconfig: str = "", api: Api | None = None, **defaults: Unpack[JobFields]
    ) -> None:
        """Use the kubeconfig as kubectl does, or the service account in a Pod.

        Args:
            namespace: Of the jobs; by default that of the context.
            context: Of the kubeconfig; by default the current one.
            kubeconfig: Path; by default $KUBECONFIG or ~/.kube/config.
            api: Used instead of a cluster.
            defaults: Fields of `JobSpec` for all jobs, such as `image`.

        Raises:
            UnreachableError: No cluster is configured.
            InvalidError: A default is not a field of a job.
        """
        check_names(defaults, Options.__optional_keys__)
        if api is None:
            from mpiop.client.cluster import Cluster  # noqa: PLC0415 - urllib3 and TLS take a tenth of a second

            api = Cluster(namespace=namespace, context=context, kubeconfig=kubeconfig)
        self._api, self._defaults, self.offer = api, defaults, Offer(api)
        self.kubectl_options = [f"--{name}={value}" for name, value in (("context", context), ("kubeconfig", kubeconfig)) if value]

    def submit(self, command: str | Sequence[str], *, name: str = "", files: Files | None = None, **fields: Unpack[JobFields]) -> Job:
        """Create a job that runs `command` on `ranks` ranks, and return at once.

        Args:
            command: The program and its arguments. A string is split as by a shell, but no shell runs.
            name: Of the job; by default made from that of the program.
            files: Are in `/upload` on each host, where the ranks then begin.
            fields: The other fields of `JobSpec`.

        Raises:
            InvalidError: A field is unknown, or a value cannot be right; or the API server finds the job invalid.
            ClientError: The API server refused it, or does not answer.
        """
        check_names(fields)
        return self._create(command, name, files, fields)

    def submit_call(self, call: FunctionCall, name: str = "", fields: JobFields | None = None) -> Job:
        """Create the job of a function (see `run`), and return at once."""
        fields = fields or {}
        check_names(fields, remedy="arguments of the function by name go into kwargs={...}")
        return self._create(call.command, name, call.files, {"is_tagged": False} | fields | {"check": call.check})

    def allocate(self, *, name: str = "", files: Files | None = None, idle: int = 0, **fields: Unpack[JobFields]) -> Job:
        """Create an allocation, a job whose launcher holds the workers for steps, and return at once.

        Args:
            name: Of the job.
            files: Are in `/upload` on each host.
            idle: Seconds without a step or a used shell after which it ends; 0 for never.
            fields: The other fields of `JobSpec`; at `time_limit` the allocation ends with success.

        Raises:
            InvalidError: A field is unknown, or a value cannot be right; or the API server finds the job invalid.
            ClientError: The API server refused it, or does not answer.
        """
        check_names(fields)
        return self._create((PROGRAM,), name, files, fields, partial(allocation_manifest, idle=idle))

    @contextmanager
    def allocation(
        self, *, name: str = "", idle: int = 0, report: Callable[[str], None] | None = None, **fields: Unpack[JobFields]
    ) -> Generator[Allocation]:
        """Allocate workers that run functions one after the other, and delete them at the end of the `with` block.

        Steps need kubectl in the PATH, and the right to create `pods/exec`.

        Args:
            name: Of the job.
            idle: Seconds without a step after which it ends, also if this program does not live any more; 0 for never.
            report: Called with each new line of progress until it runs.
            fields: The fields of `JobSpec`.

        Raises:
            JobFailed: It ended before it ran.
            ClientError: It could not be made.
        """
        job = self.allocate(name=name, idle=idle, **fields)
        try:
            wait_until_running(job, report)
            yield Allocation(job, self.kubectl_options)
        finally:
            delete_or_warn(job)

    def _create(
        self,
        command: str | Sequence[str],
        name: str,
        files: Files | None,
        fields: Mapping[str, Any],
        make: Callable[[JobSpec, str], Object] = manifest,
    ) -> Job:
        spec = with_ssh(self.offer, job_spec(command, {**self._defaults, **fields}))
        check_type("name", name, str)
        check_type("files", files, Files | None, "Files, which read_files returns")
        config_map, job = None, make(spec, name)
        if files is not None:
            config_map = self._api.create_config_map(files.config_map(spec.command))
            job = make(replace(spec, files=(config_map["metadata"]["name"], files.names)), name)
        try:
            created = self._api.create_job(job)
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
        """Let a ConfigMap be deleted with a job. The job runs already, so an error here must not keep the caller from following it."""
        name, owned = config_map["metadata"]["name"], {"uid": config_map["metadata"]["uid"], "ownerReferences": [owner_of(job)]}
        try:
            self._api.patch_config_map(name, {"metadata": owned})
        except UnreachableError as error:
            warnings.warn(f"configmap {name} will stay when job {job['metadata']['name']} is deleted: {error}", stacklevel=4)

    def get(self, name: str) -> Job:
        """Return a job by its name, or as kubectl prints that: `mpijob.kubeflow.org/NAME`.

        Raises:
            NotFoundError: There is none of that name.
            InvalidError: No job can have that name.
        """
        found = _NAME.fullmatch(name)
        if found is None:
            raise InvalidError(f"invalid job name {name!r}; see kubectl mpi list")
        return Job(self._api, self._api.job(found[1]))

    def jobs(self, *, everywhere: bool = False) -> Sequence[Job]:
        """Return the jobs of the namespace, or of all."""
        return [Job(self._api, raw) for raw in self._api.jobs(everywhere=everywhere)]

    @contextmanager
    def job(
        self, command: str | Sequence[str], *, name: str = "", files: Files | None = None, **fields: Unpack[JobFields]
    ) -> Generator[Job]:
        """Submit a job that is deleted at the end of the `with` block."""
        submitted = self.submit(command, name=name, files=files, **fields)
        try:
            yield submitted
        finally:
            delete_or_warn(submitted)

    def run(
        self,
        function: Callable[..., _Result],
        *args: Any,
        kwargs: Mapping[str, Any] | None = None,
        name: str = "",
        report: Callable[[str], None] | None = None,
        **fields: Unpack[JobFields],
    ) -> list[_Result]:
        """Call `function(*args, **kwargs)` on every rank, and return the results by rank.

        The image needs Python, of your minor version, and mpi4py. Function, arguments and results travel by cloudpickle, which travels with
        them: what your own modules define is sent, and what is installed must be installed in the image too. The function may use
        `mpi4py.MPI.COMM_WORLD`. Results are returned in the log: at most 8 MiB together; large data belongs on a volume.
        They are pickles: the function and the image are trusted; what the ranks print, and the data that they read, is not.

        Args:
            function: Is called once on each rank.
            args: Its arguments.
            kwargs: Its arguments by name.
            name: Of the job.
            report: Called with each new line of progress until the ranks begin.
            fields: The fields of `JobSpec`.

        Raises:
            JobFailed: The image lacks Python or mpi4py, a rank raised, or results were lost or cannot be unpickled. The
                message has the ranks and the causes, and ends with the end of the log; `results` has the other results by rank.
            ClientError: The job could not be made.
        """
        call = FunctionCall(function, args, kwargs)
        job = self.submit_call(call, name, fields)
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
