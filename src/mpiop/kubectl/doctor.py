"""`doctor`: checks whether jobs can run in this cluster, one finding for each check."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from mpiop.api.durations import format_duration
from mpiop.api.gang_schedulers import GANG_SCHEDULERS
from mpiop.api.status import timestamp
from mpiop.client.api import Api
from mpiop.client.errors import ClientError, ForbiddenError, NoClusterError, NotFoundError, UnauthenticatedError
from mpiop.client.manifest import manifest
from mpiop.client.progress import UNSEEN_SECONDS, is_ready
from mpiop.client.spec import JobSpec
from mpiop.client.status import PENDING, is_unseen, status_of
from mpiop.kube.resources import EVENTS, LEASES, MPIJOBS
from mpiop.kubectl.finding import OK, PROBLEM, STYLES, UNKNOWN, Finding
from mpiop.kubectl.migration import definition_and_jobs, webhooks
from mpiop.kubectl.output import printable
from mpiop.kubectl.queues import queue_names
from mpiop.kubectl.rivals import other_operators
from mpiop.kubectl.screen import console
from mpiop.kubectl.session import Session, cluster_options
from mpiop.kubectl.smoke import IMAGE, smoke_problem
from mpiop.kubectl.version import DEFINITION, operators, served_namespaces

_LEASE_SECONDS: Final = 15
_SPECIAL: Final = ("gpu", "rdma", "fpga", "tpu")
_FAILED_PULL: Final = re.compile(r'Failed to pull image "([^"]+)"')


@click.command("doctor")
@click.option("--run", "is_run", is_flag=True, help="Also run a job with two workers to its end, and delete it.")
@click.option("--image", default=IMAGE, show_default=True, help="Image of that job. It must contain Open MPI.")
@click.option("--migrate", "is_migration", is_flag=True, help="Check instead whether mpiop can replace another operator of MPIJobs.")
@cluster_options()
def doctor_verb(session: Session, *, is_run: bool, image: str, is_migration: bool) -> int:
    """Check whether MPI jobs can run here: operator, permissions, quotas, nodes."""

    def job(api: Api) -> Iterator[Finding]:
        problem = smoke_problem(api, image)
        yield Finding(PROBLEM, problem) if problem else Finding(OK, f"a job of image {image} ran on two workers, and was deleted")

    if is_run and is_migration:
        raise click.UsageError("--run and --migrate exclude each other")
    screen, found = console(), list[Finding]()
    for finding in _findings(session, MIGRATION_CHECKS if is_migration else [*CHECKS, *([job] if is_run else [])]):
        found.append(finding)
        screen.print(f"{finding.verdict:<8} ", style=STYLES[finding.verdict], end="")
        # Names and flags in it are others', who could add lines of their own.
        text, advice = (printable(" ".join(part.split())) for part in (finding.text, finding.advice))
        screen.print(text + (f"\n         {advice}" if advice else ""))
    return int(any(finding.verdict == PROBLEM for finding in found))


def _findings(session: Session, checks: Iterable[Callable[[Api], Iterator[Finding]]]) -> Iterator[Finding]:
    """Yield what each check finds, until no other one could find anything."""
    try:
        api = session.api()
        for check in checks:
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
        crd = api.get(DEFINITION)
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


def listing(api: Api) -> Iterator[Finding]:
    """Yield whether MPIJobs can be listed."""
    yield Finding(OK, f"MPIJobs of namespace {api.namespace} can be listed: there are {len(api.jobs())}")


def replicas(api: Api) -> Iterator[Finding]:
    """Yield whether the operator's Pods are ready, and serve the namespace; without a Deployment, the Lease alone shows if one runs."""
    found = operators(api)
    for deployment in found:
        name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
        wanted, ready = deployment["spec"].get("replicas", 1), deployment.get("status", {}).get("readyReplicas", 0)
        verdict = OK if ready >= wanted > 0 else UNKNOWN if ready else PROBLEM
        advice = "" if verdict == OK else f"Check its Pods: kubectl --namespace {namespace} get pods -l app=mpi-operator"
        yield Finding(verdict, f"Deployment {name} in namespace {namespace}: {ready} of {wanted} replicas are ready", advice)
    served = [served_namespaces(deployment) for deployment in found]
    if served and all(names and api.namespace not in names for names in served):
        text = f"no operator serves namespace {api.namespace}, only {', '.join(sorted({name for names in served for name in names}))}"
        yield Finding(PROBLEM, text, "Use one of these, or add yours to --namespace of an operator (chart: watchNamespaces).")


def leader(api: Api) -> Iterator[Finding]:
    """Yield whether an operator leads: its Lease was renewed a moment ago, or is renewed while we watch."""
    leases = _leases(api)
    if not leases:
        yield Finding(PROBLEM, "no operator has ever led here", "Is its Deployment up? kubectl get pods -A -l app=mpi-operator")
    for namespace, spec in leases.items():
        holder, seconds = spec.get("holderIdentity"), _age_of(spec)
        if holder and (0 <= seconds <= spec.get("leaseDurationSeconds", _LEASE_SECONDS) or _is_renewed(api, namespace, spec)):
            text = f"renewed {seconds:.0f} s ago" if seconds >= 0 else "renewed while doctor watched"
            yield Finding(OK, f"the operator in namespace {namespace} leads: {holder}, {text}")
        else:
            renewed, who = timestamp(spec.get("renewTime")), f" by {holder}" if holder else ""
            advice = f"Check its Pods: kubectl --namespace {namespace} get pods -l app=mpi-operator"
            when = f"{format_duration(timedelta(seconds=max(0.0, seconds)))} ago, {renewed:%Y-%m-%d %H:%M:%S} UTC" if renewed else "never"
            yield Finding(PROBLEM, f"no operator leads in namespace {namespace}: its Lease was last renewed{who} {when}", advice)


def _leases(api: Api) -> Mapping[str, Mapping[str, Any]]:
    """Return the specs of the operators' Leases, by namespace."""
    items = api.get(f"{LEASES.path()}?fieldSelector=metadata.name=mpi-operator")["items"]
    return {lease["metadata"]["namespace"]: lease["spec"] for lease in items}


def _age_of(spec: Mapping[str, Any]) -> float:
    """Return the seconds since a Lease was renewed, by our clock; negative if that differs from the operator's."""
    renewed = timestamp(spec.get("renewTime"))
    return float("inf") if renewed is None else (datetime.now(UTC) - renewed).total_seconds()


def _is_renewed(api: Api, namespace: str, spec: Mapping[str, Any]) -> bool:
    """Return whether a Lease is renewed while we watch, whatever the clocks show."""
    for _ in range(_LEASE_SECONDS):
        time.sleep(1)
        if _leases(api).get(namespace, {}).get("renewTime") != spec.get("renewTime"):
            return True
    return False


def creation(api: Api) -> Iterator[Finding]:
    """Yield whether the API server accepts a job, without creating it."""
    api.create_job(manifest(JobSpec(command=["true"], image=IMAGE), ""), is_dry_run=True)
    yield Finding(OK, f"the API server accepts a job in namespace {api.namespace} (dry run)")


def unseen_jobs(api: Api) -> Iterator[Finding]:
    """Yield whether an operator serves the namespace, as far as its jobs show."""
    jobs = api.jobs()
    waiting = [job["metadata"]["name"] for job in jobs if is_unseen(job, UNSEEN_SECONDS)]
    if waiting:
        text = f"no operator has seen these jobs of namespace {api.namespace}: {', '.join(waiting[:3])}"
        command = "kubectl get deployments -A -l app=mpi-operator -o jsonpath='{..args}'"
        yield Finding(
            PROBLEM, text, f"An operator with --namespace or $KUBEFLOW_NAMESPACE serves only the namespaces that these name: {command}"
        )
    elif any(status_of(job).state != PENDING for job in jobs):
        yield Finding(OK, f"an operator has seen the jobs of namespace {api.namespace}")


def rights(api: Api) -> Iterator[Finding]:
    """Yield what the user may do in the namespace."""
    wanted = (
        ("create", MPIJOBS.group, MPIJOBS.plural, "submit jobs"),
        ("list", MPIJOBS.group, MPIJOBS.plural, "list jobs"),
        ("list", "", "pods", "see the progress of a job"),
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
    """Yield how many nodes there are, and what they have in addition to processors."""
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


CHECKS: Final = (definition, listing, replicas, leader, unseen_jobs, rights, creation, quotas, queues, schedulers, nodes, pulls)
MIGRATION_CHECKS: Final = (definition_and_jobs, other_operators, webhooks)
