"""The demo from its first step to its last."""

import shlex
import sys
from collections.abc import Sequence

from demonstration.cluster import NAME, ROOT, Cluster, current_cluster, embedded_cluster, is_current_desired, run_project
from demonstration.following import follow
from demonstration.operator_images import FOLDER, OPERATOR, apply_operator, are_loaded, built_archives, desired_image
from demonstration.screen import DemoError, Screen
from embedded.build import estimated_seconds, missing_parts
from embedded.layout import cache_folder
from embedded.record import Options
from embedded.up import desired_parts
from pacing.forecast import Forecast
from pacing.pace import measured_pace

EXAMPLES = ROOT / "examples" / "v2beta1" / "pi"
PI, PLAIN = "pi", "pi-plain"
JOB = EXAMPLES / f"{PI}.yaml"
SELECTOR = "training.kubeflow.org/job-name"
IMAGES = ("operator", "pi", "agent", "plain-openmpi")
INTERRUPTED = 130
_UP_SECONDS = 12.0
_IMAGES_SECONDS = 90.0
"""With an empty cache, on the machine of `pacing.pace`."""


def main(arguments: list[str]) -> int:
    """Run the demo, or with `down` remove it; return the exit status."""
    if arguments not in ([], ["down"]):
        sys.stderr.write("usage: hack/demo [down]\n")
        return 2
    try:
        if arguments:
            clean_up()
        else:
            tell()
    except DemoError as error:
        for line in (error, *getattr(error, "__notes__", ())):
            sys.stderr.write(f"\ndemo: {line}")
        sys.stderr.write("\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\ndemo: stopped; run it again to go on, or `make demo-down` to remove what it started\n")
        return INTERRUPTED
    return 0


def tell() -> None:
    """Run all steps."""
    is_current = is_current_desired()
    expected = expected_steps(is_current=is_current)
    screen = Screen(len(expected), Forecast(expected, cache_folder() / "demo.json"))
    screen.step("A Kubernetes cluster")
    cluster = current_cluster(screen) if is_current else embedded_cluster(screen)
    try:
        use(cluster, screen)
    except DemoError as error:
        if not is_current:
            error.add_note(f'for kubectl: eval "$(hack/cluster env --name {NAME})"; logs of the cluster: hack/cluster logs --name {NAME}')
        raise


def expected_steps(*, is_current: bool) -> dict[str, float]:
    """Return the steps with the seconds that each takes if none was done here before; the names differ by what is to be built."""
    if is_current:
        return {"context": 1, "images or their names": 20, "operator": 10, "pi on another cluster": 10, "result of one": 1}
    steps = {"cluster": _UP_SECONDS, "images": 3.0}
    if missing := missing_parts(desired_parts(Options())):
        names = ", ".join(part.name for part in missing)
        steps = {f"cluster, with {names} built": _UP_SECONDS + estimated_seconds(missing), "images": 3.0}
    if not all((FOLDER / f"{name}.tar").exists() for name in IMAGES):
        del steps["images"]
        steps["images, built"] = _IMAGES_SECONDS * measured_pace()
    return {**steps, "operator": 8, "pi": 6, "pi in a plain image": 6, "result": 1}


def use(cluster: Cluster, screen: Screen) -> None:
    """Run the steps that need the cluster."""
    screen.step("The images of the operator and of the examples")
    provide_images(cluster, screen)
    screen.step("The operator, by its manifests")
    deploy(cluster, screen)
    screen.step("An MPIJob: examples/v2beta1/pi/pi.yaml")
    run_job(cluster, screen, PI)
    jobs = [PI]
    if not cluster.is_current:
        screen.step(f"The same in an image without ssh, sshd and users: examples/v2beta1/pi/{PLAIN}.yaml")
        run_job(cluster, screen, PLAIN)
        jobs.append(PLAIN)
    screen.step("The result")
    show_result(cluster, screen, jobs)
    suggest(cluster, screen)


def run_job(cluster: Cluster, screen: Screen, job: str) -> None:
    """Run an example's job from a clean start.

    Raises:
        DemoError: It failed.
    """
    if cluster.kubectl("get", "mpijob", job, "--ignore-not-found"):
        screen.line("removing the job of the run before")
        cluster.kubectl("delete", "mpijob", job, "--ignore-not-found", "--cascade=foreground", "--timeout=120s")
    cluster.kubectl("wait", "--for=delete", "pods", "-l", f"{SELECTOR}={job}", "--timeout=120s")
    cluster.kubectl("apply", "-f", str(EXAMPLES / f"{job}.yaml"))
    if follow(cluster, screen, job) == "Failed":
        raise DemoError(f"the job failed; look at: kubectl describe mpijob {job}, and kubectl logs job/{job}-launcher")


def provide_images(cluster: Cluster, screen: Screen) -> None:
    """Build the images and put them on the nodes; on a cluster of the user into which nothing loads them, print where they must be.

    Raises:
        DemoError: They could not be built or loaded.
    """
    if not are_loaded(cluster):
        screen.line(f"the nodes must be able to pull {desired_image()} and what {JOB.relative_to(ROOT)} names")
        screen.line("to use your registry: build with `make images IMAGE_NAME=… RELEASE_VERSION=…`, push, and give the demo the same two")
        return
    if cluster.loader is not None:
        archives = built_archives()
        screen.line(f"loading them into the cluster {cluster.loader.name} with {cluster.loader.program}")
        cluster.loader.load(archives)
        return
    archives = built_archives(*IMAGES)
    otherwise = f"the images could not be loaded; look at: hack/cluster logs --name {NAME} containerd"
    run_project(otherwise, "hack/cluster", "load-image", "--name", NAME, *archives)


def deploy(cluster: Cluster, screen: Screen) -> None:
    """Apply the operator's manifest and wait until it is rolled out.

    Raises:
        DemoError: It was not, within two minutes.
    """
    apply_operator(cluster)
    screen.line(f"applied {OPERATOR.relative_to(ROOT)}")
    try:
        cluster.kubectl("--namespace", "mpi-operator", "rollout", "status", "deployment/mpi-operator", "--timeout=120s")
    except DemoError as error:
        raise DemoError(f"{error}; look at: kubectl --namespace mpi-operator describe pods, and logs deployment/mpi-operator") from error
    screen.line("two replicas are ready, one leads")


def show_result(cluster: Cluster, screen: Screen, jobs: Sequence[str]) -> None:
    """Print the Pods, the launchers' logs and the lines that `kubectl get` has for the jobs."""
    for command in (
        ("get", "pods", "-l", f"{SELECTOR} in ({','.join(jobs)})", "-o", "wide"),
        *(("logs", f"job/{job}-launcher") for job in jobs),
        ("get", "mpijobs"),
    ):
        screen.say(f"\n$ kubectl {shlex.join(command)}")
        screen.block(cluster.kubectl(*command))


def suggest(cluster: Cluster, screen: Screen) -> None:
    """Print what to try next, in five lines."""
    environment = "" if cluster.is_current else f' eval "$(hack/cluster env --name {NAME})";'
    screen.finish()
    screen.say(f"\nDone in {screen.elapsed_seconds:.0f} s. What next:")
    screen.say(f" - your own job: {environment} edit {JOB.relative_to(ROOT)}, then kubectl apply -f it".replace(":  ", ": "))
    image = "--image mpiop.invalid/mpi-pi:openmpi"
    screen.say(f" - in one line:  pipx install '.[tools]', then{environment} kubectl mpi run -n 4 {image} -- hostname")
    screen.say(f" - many runs:    kubectl mpi alloc -n 4 --slots 2 {image}; in its shell: mpiop step -- hostname")
    screen.say(" - logs:         kubectl logs -f job/pi-launcher; kubectl --namespace mpi-operator logs -f deployment/mpi-operator")
    screen.say(" - the end:      make demo-down")


def clean_up() -> None:
    """Take away what the demo made: its cluster, or on the user's own cluster its job.

    Raises:
        DemoError: Something is left.
    """
    if not is_current_desired():
        run_project("the cluster was not removed; the reason is above", "hack/cluster", "down", "--name", NAME)
        return
    screen = Screen(steps=1)
    cluster = current_cluster(screen)
    if cluster.kubectl("get", "crd", "mpijobs.kubeflow.org", "--ignore-not-found"):
        cluster.kubectl("delete", "mpijob", PI, "--ignore-not-found", "--cascade=foreground")
    screen.line(f"the job {PI} is gone; the operator stays, for others may use it")
    screen.line(f"kubectl delete -f {OPERATOR.relative_to(ROOT)} removes it, its CRD, and with that every MPIJob of the cluster")
