"""The images that the manifests name: built under those names, or taken from the user's registry."""

import os
import re
import sys

from demonstration.cluster import ROOT, Cluster, run_project
from imaging.archive import archived_image

OPERATOR = ROOT / "deploy" / "v2beta1" / "mpi-operator.yaml"
FOLDER = ROOT / "build" / "images"
NAMESPACE = "mpi-operator"
SELECTOR = "app=mpi-operator"
SETTINGS = ("IMAGE_NAME", "RELEASE_VERSION", "PLATFORMS")
USUAL = ("operator", "pi")


def built_archives(*names: str) -> list[str]:
    """Build the images under the names that the manifests have, and return the paths of their archives.

    Args:
        names: Of the catalogue; none means those of the operator and of the example.

    Raises:
        DemoError: They could not be built.
    """
    as_named = {key: value for key, value in os.environ.items() if key not in SETTINGS}
    desired = names or USUAL
    build = (sys.executable, "hack/images", "build", "--save", str(FOLDER), *(f"--only={name}" for name in desired))
    run_project("the images could not be built; the reason is above", *build, environment=as_named)
    return [str(FOLDER / f"{name}.tar") for name in desired]


def apply_operator(cluster: Cluster) -> None:
    """Apply the operator's manifest: as it is if the images are on the nodes, else with what IMAGE_NAME and RELEASE_VERSION specify.

    Raises:
        DemoError: The API server refused it.
    """
    if are_loaded(cluster):
        cluster.kubectl("apply", "-f", str(OPERATOR))
        _restart_if_stale(cluster)
        return
    manifest = OPERATOR.read_text(encoding="utf-8").replace(f"image: {named_image()}", f"image: {desired_image()}")
    cluster.kubectl("apply", "-f", "-", stdin=manifest)


def _restart_if_stale(cluster: Cluster) -> None:
    """Restart the operator if its Pods run another image than the one built last: the name, and so the Deployment, is the same."""
    built, _ = archived_image(FOLDER / "operator.tar")
    path = "jsonpath={.items[*].status.containerStatuses[*].imageID}"
    running = cluster.kubectl("--namespace", NAMESPACE, "get", "pods", "-l", SELECTOR, "-o", path).split()
    if any(not image.endswith(built) for image in running):
        cluster.kubectl("--namespace", NAMESPACE, "rollout", "restart", "deployment/mpi-operator")


def are_loaded(cluster: Cluster) -> bool:
    """Return whether the demo puts the images on the nodes; else these pull them, as IMAGE_NAME and RELEASE_VERSION ask them to."""
    return not cluster.is_current or (cluster.loader is not None and desired_image() == named_image())


def desired_image() -> str:
    """Return the operator's image: the one that IMAGE_NAME and RELEASE_VERSION specify, else the one that the manifest names."""
    repository, _, version = named_image().rpartition(":")
    return f"{os.environ.get('IMAGE_NAME') or repository}:{os.environ.get('RELEASE_VERSION') or version}"


def named_image() -> str:
    """Return the image that the manifest names."""
    [name] = re.findall(r"^ +(?:- )?image: (\S+)$", OPERATOR.read_text(encoding="utf-8"), re.MULTILINE)
    return str(name)
