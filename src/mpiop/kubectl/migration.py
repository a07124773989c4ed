"""`doctor --migrate`: what to do before mpiop replaces the Training Operator or Kubeflow's MPI operator."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mpiop.api.fields import as_mapping
from mpiop.api.parse import ParseError, parse_mpijob
from mpiop.api.spec_fields import SPEC, SPEC_FIELDS
from mpiop.api.types import MPIJob
from mpiop.api.validation import validate
from mpiop.client.api import Api, Object
from mpiop.client.errors import ForbiddenError, NotFoundError
from mpiop.client.status import status_of
from mpiop.kube.resources import MPIJOBS
from mpiop.kubectl.finding import NOTE, OK, PROBLEM, UNKNOWN, Finding
from mpiop.kubectl.version import DEFINITION

_CRD: Final = f"{MPIJOBS.plural}.{MPIJOBS.group}"
_SHOWN: Final = 3
"""Jobs that a finding names, and jobs with a finding of their own."""
_SPEC_NAMES: Final = {"runPolicy", "mpiReplicaSpecs", *(row.name for row in SPEC_FIELDS[SPEC])}


def definition_and_jobs(api: Api) -> Iterator[Finding]:
    """Yield whether the API server will accept mpiop's CRD, and the jobs that mpiop cannot run."""
    try:
        crd = api.get(DEFINITION)
    except NotFoundError:
        yield Finding(OK, f"there is no CRD {_CRD} yet: installing mpiop creates it")
        return
    served = {version["name"] for version in crd["spec"]["versions"] if version["served"]}
    if old := [version for version in crd.get("status", {}).get("storedVersions", ()) if version != MPIJOBS.version]:
        text = f"CRD {_CRD} lists {', '.join(old)} in status.storedVersions, so the API server will refuse mpiop's CRD"
        yield Finding(PROBLEM, text, f"Save your MPIJobs, then delete the CRD, which deletes all MPIJobs: kubectl delete crd {_CRD}")
    else:
        yield Finding(OK, f"CRD {_CRD} stores only {MPIJOBS.version}: mpiop's CRD can replace it")
    for version in old:
        if version in served:
            yield from _old_jobs(api, version)
        else:
            yield Finding(NOTE, f"the CRD does not serve {version}, so doctor cannot list the MPIJobs that are stored as {version}")
    if MPIJOBS.version in served:
        yield from _edits([job for job in _all_jobs(api) if not status_of(job).is_finished])


def _old_jobs(api: Api, version: str) -> Iterator[Finding]:
    jobs: Sequence[Object] = api.get(f"/apis/{MPIJOBS.group}/{version}/{MPIJOBS.plural}")["items"]
    if jobs:
        more = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
        text = f"mpiop cannot serve the MPIJobs of version {version}: {', '.join(map(_full_name, jobs[:_SHOWN]))}{more}"
        command = f"kubectl get {MPIJOBS.plural}.{version}.{MPIJOBS.group} --all-namespaces -o yaml >mpijobs-{version}.yaml"
        yield Finding(PROBLEM, text, f"Let them end, and save them: {command}")
        yield from _edits(jobs)


def _all_jobs(api: Api) -> Sequence[Object]:
    try:
        return api.jobs(everywhere=True)
    except ForbiddenError:
        return api.jobs()


def _edits(jobs: Sequence[Object]) -> Iterator[Finding]:
    found = [(job, errors) for job in jobs if (errors := obstacles(job))]
    for job, errors in found[:_SHOWN]:
        advice = f"Edit its manifest, and check it: kubectl apply --dry-run=server -f {job['metadata']['name']}.yaml"
        yield Finding(PROBLEM, f"MPIJob {_full_name(job)} is not valid in {MPIJOBS.version}: {'; '.join(errors)}", advice)
    if len(found) > _SHOWN:
        yield Finding(
            PROBLEM, f"{len(found) - _SHOWN} more MPIJobs are not valid in {MPIJOBS.version}", "Edit these first, and repeat this check."
        )


def obstacles(job: Object) -> Sequence[str]:
    """Return why mpiop cannot run a job of any version, one phrase for each field."""
    unknown = [f"spec.{name}: unknown field" for name in as_mapping(job.get("spec")) or {} if name not in _SPEC_NAMES]
    try:
        parsed = parse_mpijob(job)  # type: ignore[arg-type]  # anything
    except ParseError as error:
        return [*unknown, *error.errors]
    return [*unknown, *validate(parsed), *_commands(parsed)]


def _commands(job: MPIJob) -> Iterator[str]:
    """Yield the commands that only work where ranks start by `kubectl exec`."""
    for role, replica_spec in (("Launcher", job.launcher), ("Worker", job.worker)):
        containers: Sequence[Mapping[str, Any]] = replica_spec.template.get("spec", {}).get("containers", ()) if replica_spec else ()
        path = f"spec.mpiReplicaSpecs.{role}.template.spec.containers[0]"
        for container in containers[:1]:
            words: Sequence[str] = [*(container.get("command") or ()), *(container.get("args") or ())]
            if any("/etc/mpi/kubexec.sh" in word for word in words):
                yield f"{path}: /etc/mpi/kubexec.sh does not exist, remove --mca plm_rsh_agent"
            if role == "Worker" and words[:1] == ["sleep"]:
                yield f"{path}.command: sleep starts no sshd, remove it"


def _full_name(job: Object) -> str:
    return f"{job['metadata'].get('namespace', '')}/{job['metadata']['name']}"


def webhooks(api: Api) -> Iterator[Finding]:
    """Yield the webhooks that see each MPIJob, and those whose server is gone."""
    found = False
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        for configuration in api.get(f"/apis/admissionregistration.k8s.io/v1/{kind}")["items"]:
            name = configuration["metadata"]["name"]
            for webhook in configuration.get("webhooks", ()):
                if any(_is_of_mpijobs(rule) for rule in webhook.get("rules", ())):
                    found = True
                    yield _webhook_finding(api, webhook, f"kubectl delete {kind.removesuffix('s')} {name}")
    if not found:
        yield Finding(OK, "no webhook checks or changes MPIJobs")


def _is_of_mpijobs(rule: Object) -> bool:
    wanted = {"apiGroups": MPIJOBS.group, "apiVersions": MPIJOBS.version, "resources": MPIJOBS.plural}
    return all({"*", "*/*", value} & set(rule.get(field, ())) for field, value in wanted.items())


def _webhook_finding(api: Api, webhook: Object, delete: str) -> Finding:
    service = webhook["clientConfig"].get("service")
    if service is None:
        return Finding(
            NOTE, f"webhook {webhook['name']} at {webhook['clientConfig'].get('url')} sees each MPIJob", "Keep its server running."
        )
    name = f"{service['namespace']}/{service['name']}"
    try:
        api.get(f"/api/v1/namespaces/{service['namespace']}/services/{service['name']}")
    except NotFoundError:
        verdict = NOTE if webhook.get("failurePolicy") == "Ignore" else PROBLEM
        result = "is skipped" if verdict == NOTE else "makes the API server refuse each MPIJob"
        return Finding(
            verdict, f"webhook {webhook['name']} {result}, because Service {name} does not exist", f"Delete the webhook: {delete}"
        )
    except ForbiddenError as error:
        return Finding(UNKNOWN, f"webhook {webhook['name']} sees each MPIJob, and you may not read its Service: {error}")
    return Finding(OK, f"webhook {webhook['name']} of Service {name} sees each MPIJob")
