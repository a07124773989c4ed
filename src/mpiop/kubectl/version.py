"""`version`: prints the versions of the client, the operator, the MPIJob definition and Kubernetes."""

from collections.abc import Callable, Sequence

import click

from mpiop import __version__
from mpiop.client.api import Api, Object
from mpiop.client.errors import ClientError, ForbiddenError, NotFoundError
from mpiop.client.ssh import Offer
from mpiop.kube.resources import MPIJOBS
from mpiop.kubectl.output import printable
from mpiop.kubectl.screen import console
from mpiop.kubectl.session import Session, cluster_options

DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{MPIJOBS.plural}.{MPIJOBS.group}"
_DEPLOYMENTS = "/apis/apps/v1/deployments?labelSelector=app=mpi-operator"


@click.command("version")
@cluster_options()
def version_verb(session: Session) -> int:
    """Show the versions of the client, the operator, the CRD and Kubernetes.

    Names each version that is missing or that you may not read. Exits with 1 if one is missing or the cluster does not answer.
    """
    screen = console()
    screen.print(f"client      {__version__}")
    parts = {"operator": _operator, "MPIJob": _definition, "Kubernetes": _kubernetes}
    try:
        api = session.api()
    except ClientError as error:
        click.echo(f"error: {printable(str(error))}", err=True)
        return error.exit_code
    is_missing = False
    for title, read in parts.items():
        text, is_known = _read(read, api)
        is_missing |= not is_known
        screen.print(f"{title:<12}{printable(text)}")
    return int(is_missing)


def _read(read: Callable[[Api], str], api: Api) -> tuple[str, bool]:
    """Return what was read, or why it was not, and whether that is normal."""
    try:
        return read(api), True
    except ForbiddenError as error:
        return f"unknown: {error}", True
    except NotFoundError:
        return "not installed", False
    except ClientError as error:
        return f"unknown: {error}", False


def operators(api: Api) -> Sequence[Object]:
    """Return the Deployments of operators.

    Raises:
        ForbiddenError: The user may not list Deployments of all namespaces.
    """
    found: Sequence[Object] = api.get(_DEPLOYMENTS)["items"]
    return found


def served_namespaces(deployment: Object) -> Sequence[str]:
    """Return the namespaces that the flag or the variable of an operator names, as far as its Deployment shows; none means all of them."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    values = [each.get("value", "") for each in container.get("env", ()) if each["name"] == "KUBEFLOW_NAMESPACE"]
    arguments = container.get("args", ())
    for number, argument in enumerate(arguments, start=1):
        name, equals, text = argument.partition("=")
        if name in {"-namespace", "--namespace"}:
            values += [text] if equals else arguments[number : number + 1]
    return [name.strip() for name in (values or [""])[-1].split(",") if name.strip()]


def _operator(api: Api) -> str:
    try:
        found = operators(api)
    except ForbiddenError:  # what the operator publishes is for everybody
        if (offered := Offer(api).read()) is None:
            raise
        return offered.version
    if not found:
        raise NotFoundError("no Deployment of an operator")
    return ", ".join(f"{_image(each)} in namespace {each['metadata']['namespace']}" for each in found)


def _image(deployment: Object) -> str:
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def _definition(api: Api) -> str:
    try:
        versions = api.get(DEFINITION)["spec"]["versions"]
    except ForbiddenError:
        group = api.get(f"/apis/{MPIJOBS.group}")
        return ", ".join(f"{version['groupVersion']}" for version in group["versions"])
    return ", ".join(f"{MPIJOBS.group}/{version['name']}" for version in versions if version["served"])


def _kubernetes(api: Api) -> str:
    return str(api.get("/version")["gitVersion"])
