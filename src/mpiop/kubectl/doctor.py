"""`doctor`: whether jobs can run here, check by check."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

import click

from mpiop.api.gang_schedulers import GANG_SCHEDULERS
from mpiop.api.status import timestamp
from mpiop.client.api import Api
from mpiop.client.errors import ClientError, ForbiddenError, NoClusterError, NotFoundError, UnauthenticatedError
from mpiop.client.progress import UNSEEN_SECONDS, is_ready
from mpiop.client.status import PENDING, is_unseen, status_of
from mpiop.kube.resources import EVENTS, LEASES, MPIJOBS
from mpiop.kubectl.output import printable
from mpiop.kubectl.queues import queue_names
from mpiop.kubectl.session import Session, cluster_options, console

OK, PROBLEM, UNKNOWN = "ok", "problem", "unknown"
_STYLES: Final = {OK: "green", PROBLEM: "red", UNKNOWN: "yellow"}
_SPECIAL: Final = ("gpu", "rdma", "fpga", "tpu")
_FAILED_PULL: Final = re.compile(r'Failed to pull image "([^"]+)"')


class Finding(NamedTuple):
    """The result of a check: what was found, and what to do about it."""

    verdict: str
    text: str
    advice: str = ""


@click.command("doctor")
@cluster_options()
def doctor_verb(session: Session) -> int:
    """Check whether MPI jobs can run here: operator, rights, quotas, nodes."""
    screen, found = console(), list(_findings(session))
    for finding in found:
        screen.print(f"{finding.verdict:<8} ", style=_STYLES[finding.verdict], end="")
        screen.print(printable(finding.text) + (f"\n         {finding.advice}" if finding.advice else ""))
    return int(any(finding.verdict == PROBLEM for finding in found))


def _findings(session: Session) -> Iterator[Finding]:
    """Yield what each check finds, until no other one could find anything."""
    try:
        api = session.api()
        for check in CHECKS:
            yield from _checked(check, api)
    except (NoClusterError, UnauthenticatedError) as error:
        yield Finding(PROBLEM, str(error))


def _checked(check: Callable[[Api], Iterator[Finding]], api: Api) -> Iterator[Finding]:
    try:
        yield from check(api)
    except (NoClusterError, UnauthenticatedError):
        raise
    except ForbiddenError as error:
        yield Finding(UNKNOWN, f"you may not look: {error}")
    except ClientError as error:
        yield Finding(PROBLEM, str(error))
    except (LookupError, TypeError):
        yield Finding(PROBLEM, f"{check.__name__}: the server does not answer as an API server does", "Check server in the kubeconfig.")


def definition(api: Api) -> Iterator[Finding]:
    """Yield whether the cluster knows MPIJobs, and whose definition it is."""
    try:
        crd = api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{MPIJOBS.plural}.{MPIJOBS.group}")
    except NotFoundError:
        yield Finding(PROBLEM, "the cluster does not know MPIJobs", "Install the operator.")
        return
    except ForbiddenError:
        api.jobs()
        yield Finding(OK, "the cluster knows MPIJobs")
        return
    versions = [version["name"] for version in crd["spec"]["versions"] if version["served"]]
    if MPIJOBS.version not in versions:
        advice = f"Install a definition that has {MPIJOBS.version}."
        yield Finding(PROBLEM, f"the cluster serves MPIJobs as {', '.join(versions)} only", advice)
        return
    columns = {column["name"] for version in crd["spec"]["versions"] for column in version.get("additionalPrinterColumns", ())}
    if "State" in columns:
        yield Finding(OK, f"the cluster knows MPIJobs, version {MPIJOBS.version}")
    else:
        yield Finding(UNKNOWN, "the definition of MPIJobs is that of another operator", "Apply ours for the columns STATE and WORKERS.")


def leader(api: Api) -> Iterator[Finding]:
    """Yield whether an operator leads."""
    leases = api.get(f"{LEASES.path()}?fieldSelector=metadata.name=mpi-operator")["items"]
    if not leases:
        yield Finding(PROBLEM, "no operator has ever led here", "Is its Deployment up? kubectl get pods -A -l app=mpi-operator")
    for lease in leases:
        spec, namespace = lease["spec"], lease["metadata"]["namespace"]
        renewed = timestamp(spec.get("renewTime"))
        seconds = (datetime.now(UTC) - renewed).total_seconds() if renewed else float("inf")
        if spec.get("holderIdentity") and seconds <= spec.get("leaseDurationSeconds", 15):
            yield Finding(OK, f"the operator in namespace {namespace} leads: {spec['holderIdentity']}")
        else:
            advice = f"Look at its Pods: kubectl --namespace {namespace} get pods -l app=mpi-operator"
            yield Finding(PROBLEM, f"no operator leads in namespace {namespace}: its lease was last renewed {renewed or 'never'}", advice)


def unseen_jobs(api: Api) -> Iterator[Finding]:
    """Yield whether an operator serves the namespace, as far as its jobs show."""
    jobs = api.jobs()
    waiting = [job["metadata"]["name"] for job in jobs if is_unseen(job, UNSEEN_SECONDS)]
    if waiting:
        text = f"no operator has seen these jobs of namespace {api.namespace}: {', '.join(waiting[:3])}"
        command = "kubectl get deployments -A -l app=mpi-operator -o jsonpath='{..args}'"
        yield Finding(PROBLEM, text, f"An operator with --namespace or $KUBEFLOW_NAMESPACE serves that namespace only: {command}")
    elif any(status_of(job).state != PENDING for job in jobs):
        yield Finding(OK, f"an operator has seen the jobs of namespace {api.namespace}")


def rights(api: Api) -> Iterator[Finding]:
    """Yield what the user may do in the namespace."""
    wanted = (
        ("create", MPIJOBS.group, MPIJOBS.plural, "submit jobs"),
        ("list", MPIJOBS.group, MPIJOBS.plural, "list jobs"),
        ("list", "", "pods", "see where a job stands"),
        ("get", "", "pods/log", "read logs"),
        ("create", "", "configmaps", "use --upload"),
        ("create", "", "pods/exec", "use shell, exec and cp"),
    )
    for verb, group, resource, purpose in wanted:
        if api.may(verb, group, resource):
            yield Finding(OK, f"you may {verb} {resource} in namespace {api.namespace}")
        else:
            advice = f"You need it to {purpose}: ask for the ClusterRole kubeflow-mpijobs-edit in namespace {api.namespace}."
            yield Finding(PROBLEM, f"you may not {verb} {resource} in namespace {api.namespace}", advice)


def quotas(api: Api) -> Iterator[Finding]:
    """Yield quotas that are used up."""
    for quota in api.get(f"/api/v1/namespaces/{api.namespace}/resourcequotas")["items"]:
        status = quota.get("status", {})
        full = [name for name, hard in status.get("hard", {}).items() if status.get("used", {}).get(name) == hard]
        name = quota["metadata"]["name"]
        if full:
            yield Finding(PROBLEM, f"quota {name} is used up: {', '.join(full)}", "Delete old jobs (kubectl mpi cleanup), or ask for more.")
        else:
            yield Finding(OK, f"quota {name} has room")


def nodes(api: Api) -> Iterator[Finding]:
    """Yield how many nodes there are, and what they have beside processors."""
    items = api.get("/api/v1/nodes")["items"]
    ready = [node for node in items if is_ready(node)]
    verdict = OK if ready else PROBLEM
    yield Finding(verdict, f"{len(ready)} of {len(items)} nodes are ready")
    special = {name for node in ready for name in node["status"].get("allocatable", {}) if any(word in name for word in _SPECIAL)}
    yield Finding(OK, f"nodes offer {', '.join(sorted(special))}" if special else "no node offers GPUs or RDMA devices")


def queues(api: Api) -> Iterator[Finding]:
    """Yield the queues of Kueue in the namespace, if Kueue is there."""
    names = queue_names(api)
    if names:
        yield Finding(OK, f"queues of Kueue: {', '.join(names)}")
    elif names is not None:
        yield Finding(UNKNOWN, f"Kueue has no queue in namespace {api.namespace}")


def schedulers(api: Api) -> Iterator[Finding]:
    """Yield the gang schedulers whose PodGroups the cluster knows."""
    groups = {group["name"] for group in api.get("/apis")["groups"]}
    found = [row.title for row in GANG_SCHEDULERS.values() if not row.is_native and row.apis[0][0].group in groups]
    if found:
        yield Finding(OK, f"PodGroups of gang schedulers: {', '.join(found)}")
    else:
        yield Finding(OK, "no gang scheduler: the Pods of a job are scheduled one by one")


def pulls(api: Api) -> Iterator[Finding]:
    """Yield the images that could not be pulled lately."""
    events = api.get(f"{EVENTS.path(api.namespace)}?fieldSelector=reason=Failed")["items"]
    images = {found[1]: None for event in events if (found := _FAILED_PULL.match(event.get("message", "")))}
    if images:
        advice = "Correct the name, or add the pull secret of the registry (imagePullSecrets); then: kubectl mpi why JOB."
        yield Finding(PROBLEM, f"lately in namespace {api.namespace}, images could not be pulled: {', '.join(images)}", advice)
    else:
        yield Finding(OK, f"lately no image pull has failed in namespace {api.namespace}")


CHECKS: Final = (definition, leader, unseen_jobs, rights, quotas, queues, schedulers, nodes, pulls)
