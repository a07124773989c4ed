"""Checks that a job of the new library is parsed, built, reported, shown and documented; run it after `new_members.library`."""

from dataclasses import replace

from click.testing import CliRunner

from generators.api import api_page
from generators.crd import custom_resource_definition
from mpiop.api import constants as c
from mpiop.api.parse import parse_mpijob
from mpiop.api.validation import validate
from mpiop.client.manifest import manifest
from mpiop.client.spec import JobSpec
from mpiop.client.tags import RankLines, Tagged
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.config_map import build_config_map
from mpiop.controller.objects.launcher_job import build_launcher_template
from mpiop.controller.observe.exit_codes import in_words
from mpiop.kubectl.run import run_verb
from new_members.library import ACME

BUILT = {
    "ACME_HOSTS": "/etc/mpi/hostfile",
    "ACME_SSH_OPTIONS": "-F /etc/mpi-hosts/ssh_config",
    "ACME_SSH": "/etc/mpi-hosts/ssh",
    "ACME_INTERFACE": "eth0",
    "ACME_AGENT": "1",
    "ACME_PIN": "no",
    "ACME_ROOT": "yes",
}


def main() -> None:
    """Fail at the first place that does not know the library."""
    made = manifest(JobSpec(command=["solver"], image="i", ranks=2, mpi="acme", env={"A": "1"}), "pi")
    job = parse_mpijob({**made, "metadata": {**made["metadata"], "namespace": "default", "uid": "u"}})
    assert job.library is ACME
    assert validate(job) == ()
    assert validate(replace(job, mpi_implementation="Acm")) == (
        'spec.mpiImplementation: Unsupported value: "Acm": supported values: "OpenMPI", "Intel", "MPICH", "Acme"',
    )

    container = build_launcher_template(job, BuildOptions(ssh=c.SSH_INJECTED))["spec"]["containers"][0]
    assert container["args"] == ["-n", "2", "--ranks", "--send", "A", "solver"]
    assert {each["name"]: each.get("value") for each in container["env"]}.items() >= BUILT.items()
    assert build_config_map(job, (), BuildOptions())["data"]["hostfile"].startswith("1 on pi-worker-0.")

    assert job.is_rigid
    assert in_words(77, of_mpirun=True) == "exit code 77 (acmerun found no host)"
    assert [*RankLines(ACME).whole([b"rank 7> hello"])] == [Tagged(7, b"hello")]
    assert "acme]" in CliRunner().invoke(run_verb, ["--help"]).output
    assert "`Acme`" in api_page()
    assert "Acme" in str(custom_resource_definition())


if __name__ == "__main__":
    main()
