"""`submit`: in which namespace, and from which files."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.client_api import FakeApi, container, stored
from mpiop.client.arguments import LONGEST_ARGUMENT
from mpiop.client.errors import ClientError, ForbiddenError, UnreachableError
from mpiop.kubectl.session import Session

JOB = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
  namespace: other
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: a
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "job.yaml"
    found.write_text(JOB)
    return found


@pytest.mark.parametrize("options", [(), ("-n", "other")])
def test_a_job_is_checked_created_and_followed_in_the_namespace_of_its_file(
    mpi: Any, apis: dict[str, FakeApi], file: Path, options: tuple[str, ...]
) -> None:
    for namespace in ("other", "team"):
        Session(namespace).api()
        apis[namespace].steps = [apis[namespace].stored.clear]
    code, out, err = mpi("submit", "-f", str(file), *options)
    assert (code, out) == (1, "job pi created\n")
    assert "somebody deleted it before it ended" in err
    assert [request[0] for request in apis["other"].requests] == ["create", "check", "create"]
    assert not [fake for namespace, fake in apis.items() if namespace != "other" and fake.requests]


def test_a_file_without_a_namespace_takes_that_of_the_option(mpi: Any, apis: dict[str, FakeApi], file: Path) -> None:
    file.write_text(JOB.replace("  namespace: other\n", ""))
    assert mpi("submit", "-n", "mine", str(file))[0] == 0
    assert list(apis["mine"].stored) == ["pi"]


@pytest.mark.parametrize(
    ("namespace", "sentence"),
    [("other", "metadata.namespace is other, and --namespace is mine: remove one of them"), ("5", "metadata.namespace must be a text")],
)
@pytest.mark.parametrize("options", [(), ("--dry-run", "client")])
def test_two_namespaces_are_refused(
    mpi: Any, apis: dict[str, FakeApi], file: Path, namespace: str, sentence: str, options: tuple[str, ...]
) -> None:
    file.write_text(JOB.replace("other", namespace))
    assert mpi("submit", "-n", "mine", str(file), *options) == (2, "", f"error: {file}:5: {sentence}\n")
    assert apis == {}


@pytest.mark.parametrize(
    ("failing", "error", "end"),
    [
        ("two", ForbiddenError("denied"), "denied; created before that: pi"),
        ("pi", ForbiddenError("denied"), "denied; created before that: none"),
        ("two", UnreachableError("no answer"), "no answer; the job may exist all the same: kubectl mpi list; created before that: pi"),
        ("pi", UnreachableError("no answer"), "no answer; the job may exist all the same: kubectl mpi list"),
    ],
)
def test_what_was_created_before_an_error_is_said(mpi: Any, api: FakeApi, file: Path, failing: str, error: ClientError, end: str) -> None:
    text = JOB.replace("  namespace: other\n", "")
    file.write_text(text + "---\n" + text.replace("name: pi", "name: two"))
    api.answers[f"create {failing}"] = error
    assert mpi("submit", str(file))[2] == f"error: {end}\n"


@pytest.mark.parametrize(
    ("text", "line", "key", "first"),
    [
        (JOB + "kind: MPIJob\n", 13, "kind", 2),
        (JOB.replace("  name: pi\n", "  name: pi\n  name: e\n"), 5, "name", 4),
        (JOB + "            image: a\n            image: b\n", 14, "image", 13),
        (JOB + "---\n" + JOB + "kind: MPIJob\n", 26, "kind", 15),
    ],
)
def test_a_key_that_is_given_twice_is_refused_with_its_line(
    mpi: Any, api: FakeApi, file: Path, text: str, line: int, key: str, first: int
) -> None:
    file.write_text(text)
    code, _, err = mpi("submit", str(file))
    sentence = f"{key} is given twice, first in line {first}: remove one of them"
    assert (code, err, api.requests) == (2, f"error: {file}:{line}: {sentence}\n", [])


def test_an_anchor_that_is_used_twice_is_no_mistake(mpi: Any, apis: dict[str, FakeApi], file: Path) -> None:
    file.write_text(JOB.replace("Launcher:", "Launcher: &pods") + "    Worker: *pods\n---\n---\n")
    assert mpi("submit", str(file))[0] == 0
    assert list(apis["other"].stored["pi"]["spec"]["mpiReplicaSpecs"]) == ["Launcher", "Worker"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("since: 2026-13-45\n", ": invalid YAML: a value is not what it looks like (month must be in 1..12); put it in quotes"),
        (f"a: {'9' * 5000}\n", ": invalid YAML: a value is not what it looks like"),
        ('a: "\\UFFFFFFFF"\n', ": invalid YAML"),
        ("yes: 1\ntrue: 2\n", ":1: the key 'yes' is not a string: put it in quotes"),
        ("a: {1: a, 0x1: b}\n", ":1: the key '1' is not a string: put it in quotes"),
    ],
)
def test_what_yaml_reads_differently_is_refused_with_one_sentence(mpi: Any, file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    code, _, err = mpi("submit", str(file))
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"error: {file}{problem}")


LAUGHS = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 40))
MERGES = "".join(f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 40))
LARGE = "its aliases (*name) make it larger than 3 MiB, which no API server accepts"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(f"a0: &a0 [x]\n{LAUGHS}", f"1: {LARGE}", id="lists of lists"),
        pytest.param(f"a0: &a0 {{x: y}}\n{MERGES}", f"1: {LARGE}", id="merges of merges"),
        pytest.param(f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]\n", f"1: {LARGE}", id="one long text"),
        pytest.param("a: 1\nb: &b\n  c: [*b]\n", "2: this part contains itself by an alias (*name)", id="itself"),
    ],
)
@pytest.mark.parametrize("verb", ["submit", "patch", "defaults"])
def test_aliases_that_never_end_are_refused_with_one_sentence(
    mpi: Any, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch, verb: str, text: str, problem: str
) -> None:
    file.write_text(text)
    if verb == "defaults":
        monkeypatch.setenv("MPIOP_CONFIG", str(file))
    code, _, err = mpi(
        *{"submit": ["submit", str(file)], "patch": ["run", "--image", "i", "--patch", str(file), "--", "./a"], "defaults": ["list"]}[verb]
    )
    assert (code, err, api.requests) == (2, f"error: {file}:{problem}\n", [])


@pytest.mark.parametrize("options", [(), ("--dry-run=client",), ("--dry-run=server",)])
def test_jobs_are_printed_as_kubectl_prints_them(mpi: Any, apis: dict[str, FakeApi], file: Path, options: tuple[str, ...]) -> None:
    assert mpi("submit", str(file), *options, "-o", "name")[1] == "mpijob.kubeflow.org/pi\n"
    assert json.loads(mpi("submit", str(file), "--dry-run=client", "-o", "json")[1])["kind"] == "MPIJob"
    file.write_text(JOB + "---\n" + JOB.replace("name: pi", "name: e"))
    assert "pi" in apis["other"].stored if not options else not apis.get("other", FakeApi()).stored
    apis.clear()
    found = list(yaml.safe_load_all(mpi("submit", str(file), *options, "-o", "yaml")[1]))
    assert [job["metadata"]["name"] for job in found] == ["pi", "e"]


@pytest.mark.parametrize("dry_run", [(), ("--dry-run=client",)], ids=["submitted", "dry run"])
def test_an_argument_that_linux_cannot_pass_on_is_located_and_no_job_is_created(
    mpi: Any, api: FakeApi, tmp_path: Path, dry_run: tuple[str, ...]
) -> None:
    good, bad, text = stored("good"), stored("bad"), "x" * (LONGEST_ARGUMENT + 1)
    container(bad)["args"] = ["a", text]
    file = tmp_path / "jobs.yaml"
    file.write_text("---\n".join(map(yaml.safe_dump, (good, bad))), encoding="utf-8")
    line = next(number for number, found in enumerate(file.read_text().splitlines(), 1) if found.endswith(text))
    code, out, err = mpi("submit", str(file), *dry_run)
    assert (code, out, api.requests) == (2, "", [])
    assert err.startswith(f"error: {file}:{line}: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].args[1] has 131,072 bytes, ")


SCRIPT = "#!/bin/bash\n#SBATCH --job-name=Melt --account=a -n 2\nsrun ./solver\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    found = tmp_path / "job.sbatch"
    found.write_text(SCRIPT)
    return found


def test_a_slurm_script_is_converted_and_may_be_submitted_again(mpi: Any, apis: dict[str, FakeApi], script: Path) -> None:
    Session("team").api()
    for _ in range(2):
        code, out, err = mpi("submit", str(script), "--image", "i", "--cpu", "100m")
        assert (code, bool(re.fullmatch(r"job melt-\w{6} created\n", out))) == (0, True), out
        assert "not converted: #SBATCH --account=a  (no counterpart)" in err
    first, second = apis["team"].stored.values()
    assert first["spec"] == second["spec"]
    assert first["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (SCRIPT, (), "job.sbatch is a Slurm script: give the image of its program with --image"),
        (SCRIPT, ("--image", "i", "--strict"), "1 part of the script cannot be converted"),
        ("#SBATCH --mem=much\nsrun a\n", ("--image", "i"), "job.sbatch: invalid --mem=much"),
        ("#!/bin/sh\n./a\n", ("--image", "i"), "job.sbatch: the script has no srun"),
        ("\n# x\n#SBATCH --array=0-3%2\nsrun a\n", ("--image", "i", "--follow"), "remove --follow and -o"),
        (JOB, ("--cpu", "1", "--image", "i"), "--image, --cpu: only for Slurm scripts, and "),
    ],
)
def test_a_script_that_cannot_be_submitted_creates_nothing(
    mpi: Any, apis: dict[str, FakeApi], script: Path, text: str, options: tuple[str, ...], sentence: str
) -> None:
    script.write_text(text)
    code, out, err = mpi("submit", str(script), *options)
    assert (code, out, sentence in err, [fake.stored for fake in apis.values() if fake.stored]) == (2, "", True, []), err


def test_a_script_from_standard_input_has_the_name_that_slurm_gives_it(
    mpi: Any, apis: dict[str, FakeApi], monkeypatch: pytest.MonkeyPatch
) -> None:
    Session("team").api()
    monkeypatch.setattr("sys.stdin", io.StringIO("#!/bin/sh\nsrun ./a; srun ./b\n"))
    assert mpi("submit", "-", "--image", "i")[0] == 0
    [(name, job)] = apis["team"].stored.items()
    assert (name.startswith("sbatch-"), {"name": "SLURM_JOB_NAME", "value": "sbatch"} in container(job)["env"]) == (True, True)


def test_an_array_without_a_limit_is_created_at_once(mpi: Any, apis: dict[str, FakeApi], script: Path) -> None:
    Session("team").api()
    script.write_text(SCRIPT.replace("-n 2", "-n 2 --array=0-4:2"))
    code, out, _ = mpi("submit", str(script), "--image", "i")
    names = list(apis["team"].stored)
    assert (code, out, [name[-2:] for name in names]) == (0, "".join(f"job {name} created\n" for name in names), ["-0", "-2", "-4"])


def test_an_array_with_a_limit_starts_as_many_jobs(
    mpi: Any, apis: dict[str, FakeApi], script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Session("team").api()
    script.write_text(SCRIPT.replace("-n 2", "-n 2 --array=1-9%3"))

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    code, _, err = mpi("submit", str(script), "--image", "i")
    assert (code, [name[-2:] for name in apis["team"].stored]) == (130, ["-1", "-2", "-3"])
    assert "not started: --array 4,5,6,7,8,9" in err
