"""The operator's flags: those of the reference, with the defaults that the contract names."""

import re
from dataclasses import fields
from typing import Any

import pytest

from mpiop import __version__
from mpiop.cli.flags import GROUPS, SSH_KEY_TYPES, Command, help_text, parse_command, spelling_of
from mpiop.cli.goflags import FlagError
from mpiop.controller.write.ssh_keys import KEY_TYPES
from mpiop.options import Options


def parsed(*arguments: str, **environment: str) -> Command:
    return parse_command(arguments, environment)


def test_without_flags_the_options_are_the_defaults() -> None:
    assert parsed() == Command(answer="", options=Options(), ignored=[])


REFERENCE_FLAGS = [
    ("--master=https://api:6443", "master", "https://api:6443"),
    ("--kubeConfig=/etc/kube", "kubeconfig", "/etc/kube"),
    ("--namespace=team", "namespaces", ("team",)),
    ("--threadiness=3", "threadiness", 3),
    ("--monitoring-port=8081", "monitoring_port", 8081),
    ("--gang-scheduling=volcano", "gang_scheduling", "volcano"),
    ("--lock-namespace=kubeflow", "lock_namespace", "kubeflow"),
    ("--kube-api-qps=50", "kube_api_qps", 50.0),
    ("--kube-api-burst=100", "kube_api_burst", 100),
    ("--controller-queue-rate-limit=20", "queue_rate_limit", 20.0),
    ("--controller-queue-burst=200", "queue_burst", 200),
    ("--cluster-domain=cluster.local", "cluster_domain", "cluster.local"),
]
NEW_FLAGS = [
    ("--kube-config=/etc/kube", "kubeconfig", "/etc/kube"),
    ("--kubeconfig=/etc/kube", "kubeconfig", "/etc/kube"),
    ("--lease-name=other", "lease_name", "other"),
    ("--lease-duration=2s", "lease_duration_seconds", 2.0),
    ("--renew-deadline=1500ms", "renew_deadline_seconds", 1.5),
    ("--retry-period=500ms", "retry_period_seconds", 0.5),
    ("--health-port=0", "health_port", 0),
    ("--log-format=json", "log_format", "json"),
    ("--log-level=warning", "log_level", "warning"),
    ("--ssh-key-type=rsa-3072", "ssh_key_type", "rsa-3072"),
]


@pytest.mark.parametrize(("argument", "option", "value"), REFERENCE_FLAGS + NEW_FLAGS)
def test_a_flag_sets_its_option_and_no_other(argument: str, option: str, value: object) -> None:
    options = parsed(argument).options
    changed = {field.name: getattr(options, field.name) for field in fields(Options) if getattr(options, field.name) != field.default}
    assert changed == {option: value}


SECURE = ["--monitoring-port=9090", "--metrics-secure"]


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        pytest.param(SECURE, {"metrics_secure": True}, id="on"),
        pytest.param([*SECURE, "--metrics-secure=false"], {}, id="off again"),
        pytest.param([*SECURE, "--metrics-cert-dir=/tls"], {"metrics_secure": True, "metrics_cert_dir": "/tls"}, id="with a certificate"),
        pytest.param([*SECURE, "--health-port=0"], {"metrics_secure": True, "health_port": 0}, id="without probes"),
    ],
)
def test_secure_metrics_are_off_until_a_flag_says_so(arguments: list[str], changed: dict[str, Any]) -> None:
    assert parsed(*arguments).options == Options(**({"monitoring_port": 9090} | changed))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--metrics-secure"], "--metrics-secure needs a port to serve metrics on: add --monitoring-port"),
        (["--metrics-secure", "--health-port=0"], "--metrics-secure needs a port to serve metrics on: add --monitoring-port"),
        (["--monitoring-port=9090", "--metrics-cert-dir=/tls"], "--metrics-cert-dir is for HTTPS: add --metrics-secure, or leave it out"),
        (
            ["--monitoring-port=8080", "--metrics-secure"],
            (
                "--metrics-secure and the probes, which stay plain HTTP, cannot share port 8080: "
                "give --monitoring-port or --health-port another"
            ),
        ),
    ],
)
def test_flags_that_would_leave_metrics_in_the_open_or_unserved_are_refused(arguments: list[str], complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        parsed(*arguments)


def test_injected_ssh_for_all_jobs_needs_an_agent() -> None:
    with pytest.raises(ValueError, match=r"^--ssh=Injected needs mpiop-agent: give its image with --agent-image, or leave --ssh out$"):
        parsed("--ssh=Injected", "--agent-image=")


def test_every_option_has_a_flag() -> None:
    settings = [setting for group in GROUPS.values() for setting in group]
    assert sorted(setting.option for setting in settings) == sorted(field.name for field in fields(Options))


def test_the_namespace_comes_from_the_environment_unless_a_flag_says_otherwise() -> None:
    assert parsed(KUBEFLOW_NAMESPACE="team").options.namespaces == ("team",)
    assert parsed(KUBEFLOW_NAMESPACE="team,other").options.namespaces == ("team", "other")
    assert parsed("--namespace=other", KUBEFLOW_NAMESPACE="team,").options.namespaces == ("other",)
    assert not parsed("--namespace=", KUBEFLOW_NAMESPACE="team").options.namespaces
    with pytest.raises(FlagError, match=r"^\$KUBEFLOW_NAMESPACE cannot be 'team,': there must be a name before and after each comma$"):
        parsed(KUBEFLOW_NAMESPACE="team,")


def test_several_namespaces_are_separated_by_commas_and_the_last_flag_wins() -> None:
    assert parsed("--namespace=a, b,a").options.namespaces == ("a", "b")
    assert parsed("--namespace=a", "--namespace=b").options.namespaces == ("b",)
    with pytest.raises(FlagError, match=r"^flag --namespace cannot be 'a,,b': there must be a name before and after each comma$"):
        parsed("--namespace=a,,b")


def test_the_arguments_of_the_reference_s_own_manifest_are_accepted() -> None:
    command = parsed("-alsologtostderr", "--lock-namespace=mpi-operator", "-logtostderr=true", "-stderrthreshold", "INFO", "-vmodule=x=2")
    assert command.options == Options(lock_namespace="mpi-operator")
    assert command.ignored == ["stderrthreshold", "vmodule", "alsologtostderr", "logtostderr"]


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        (["-v=2"], "info"),
        (["-v=4"], "debug"),
        (["--v", "10"], "debug"),
        (["-v=4", "--log-level=error"], "debug"),
        (["-v=1", "--log-level=error"], "error"),
    ],
)
def test_klog_s_verbosity_becomes_a_level(arguments: list[str], level: str) -> None:
    assert parsed(*arguments).options.log_level == level


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("--threadiness=0", "flag --threadiness cannot be '0': it must be at least 1"),
        ("--controller-queue-rate-limit=0", "flag --controller-queue-rate-limit cannot be '0'"),
        ("--controller-queue-burst=0", "flag --controller-queue-burst cannot be '0'"),
        ("--kube-api-qps=-1", "flag --kube-api-qps cannot be '-1'"),
        ("--monitoring-port=http", "flag --monitoring-port cannot be 'http'"),
        ("--lease-duration=15", "flag --lease-duration cannot be '15': must be a duration with its unit"),
        ("--log-level=loud", "flag --log-level cannot be 'loud': it is one of debug, info, warning, error"),
        ("--kube-confg=x", "there is no flag --kube-confg; did you mean --kube-config?"),
    ],
)
def test_what_makes_no_sense_is_refused(argument: str, complaint: str) -> None:
    with pytest.raises(FlagError) as caught:
        parsed(argument)
    assert str(caught.value).startswith(complaint)


def test_the_key_types_are_those_that_can_be_made() -> None:
    assert SSH_KEY_TYPES == KEY_TYPES


@pytest.mark.parametrize("argument", ["--version", "-version", "--version=true"])
def test_version(argument: str) -> None:
    assert parsed(argument).answer == f"mpiop {__version__}" == "mpiop 0.1.0"
    assert not parsed("--version=false").answer


@pytest.mark.parametrize("argument", ["--help", "-h", "-help"])
def test_help_names_every_flag_with_its_default(argument: str) -> None:
    text = parsed(argument).answer
    assert text == help_text()
    for group, settings in GROUPS.items():
        assert f"\n{group}:\n" in text
        for setting in settings:
            assert f"  {spelling_of(setting.flag)}\n" in text
    assert (
        "--lease-duration=DURATION\n        How long the other replicas wait for a leader that went silent; whole seconds (default: 15s)"
        in text
    )
    assert "(default: $KUBEFLOW_NAMESPACE, else all namespaces)" in text
    assert "\n  -v=N\n" in text
    assert "\n  --version\n" in text
    assert max(map(len, text.splitlines())) <= 140
