"""The operator's flags: one table, from which the parser, the help and docs/reference/flags.md are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from mpiop import __version__
from mpiop.api.constants import AGENT_DELIVERIES, SSH_MODES
from mpiop.api.gang_schedulers import GANG_SCHEDULERS
from mpiop.cli import goflags
from mpiop.cli.goflags import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NAMES,
    NUMBER,
    Flag,
    FlagError,
    Kind,
    at_least,
    one_of,
    parse_names,
    port,
    text_kind,
)
from mpiop.options import DEFAULT_AGENT_IMAGE, Options
from mpiop.shares import RESERVED

NAMESPACE_VARIABLE: Final = "KUBEFLOW_NAMESPACE"
SSH_KEY_TYPES: Final = ("ecdsa-p521", "ecdsa-p256", "ecdsa-p384", "ed25519", "rsa-3072")
_KLOG_DEBUG: Final = 4


@dataclass(frozen=True, slots=True)
class Setting:
    """A flag that sets the field `option` of `Options`; `shown_default` is its default in words, if the value does not explain itself."""

    flag: Flag
    option: str
    shown_default: str = ""


def _setting(name: str, kind: Kind, text: str, *, option: str = "", shown_default: str = "") -> Setting:
    """Return the setting of a flag with one name; `option` is that name with underscores unless given."""
    return Setting(Flag((name,), kind, text), option or name.replace("-", "_"), shown_default)


GROUPS: Final[Mapping[str, Sequence[Setting]]] = {
    "What it serves": (
        _setting(
            "namespace",
            NAMES,
            "Watch and run only the MPIJobs in these namespaces: NAME,NAME",
            option="namespaces",
            shown_default=f"${NAMESPACE_VARIABLE}, else all namespaces",
        ),
        _setting(
            "threadiness",
            at_least(1, INTEGER),
            f"Number of MPIJobs processed at the same time, plus up to {RESERVED} from namespaces with no other MPIJob in progress",
        ),
        _setting(
            "gang-scheduling",
            text_kind("SCHEDULER"),
            f"Schedule all pods of a job or none: {', '.join(filter(None, GANG_SCHEDULERS))}, or the name of a scheduler with the "
            "coscheduling plugin",
            shown_default="off",
        ),
        _setting(
            "cluster-domain",
            text_kind("DOMAIN"),
            "Domain of the cluster's DNS, appended to the host names of pods, for example cluster.local",
            shown_default="none",
        ),
        _setting(
            "lost-worker-timeout",
            at_least(0, DURATION),
            "How long a launcher may hang after the loss of a worker is known, before its job is restarted; 0 means forever",
            option="lost_worker_timeout_seconds",
        ),
        _setting("ssh-key-type", one_of(*SSH_KEY_TYPES), "Type of the SSH key pair that is created for each job"),
        _setting("ssh", one_of(*SSH_MODES), "Default ssh and sshd of jobs without the annotation: from the image, or mpiop-agent"),
        _setting(
            "agent-image",
            text_kind("IMAGE"),
            "Image of mpiop-agent. If set, kubectl mpi prefers injected ssh; empty: no agent",
            shown_default=DEFAULT_AGENT_IMAGE,
        ),
        _setting(
            "agent-delivery",
            one_of(*AGENT_DELIVERIES),
            "How mpiop-agent gets into a Pod: an init container copies it, or its image is mounted as a volume (Kubernetes 1.35)",
        ),
    ),
    "API server": (
        _setting(
            "master", text_kind("URL"), "Address of the API server; overrides the address in the kubeconfig", shown_default="in-cluster"
        ),
        Setting(
            Flag(("kubeConfig", "kube-config", "kubeconfig"), text_kind("FILE"), "Path of a kubeconfig; overrides $KUBECONFIG"),
            option="kubeconfig",
            shown_default="$KUBECONFIG, else in-cluster",
        ),
        _setting("kube-api-qps", at_least(0, NUMBER), "Maximum requests per second to the API server; 0 means unlimited"),
        _setting("kube-api-burst", at_least(0, INTEGER), "Number of requests that may exceed --kube-api-qps in a burst"),
        _setting(
            "controller-queue-rate-limit",
            at_least(0.001, NUMBER),
            "Maximum retries of failing jobs per second, in each namespace",
            option="queue_rate_limit",
        ),
        _setting(
            "controller-queue-burst",
            at_least(1, INTEGER),
            "Number of retries that may exceed --controller-queue-rate-limit in a burst",
            option="queue_burst",
        ),
    ),
    "Leader election": (
        _setting("lock-namespace", text_kind("NAME"), "Namespace of the Lease that determines the active replica"),
        _setting("lease-name", text_kind("NAME"), "Name of that Lease"),
        _setting(
            "lease-duration",
            DURATION,
            "How long the other replicas wait for a leader that went silent; whole seconds",
            option="lease_duration_seconds",
        ),
        _setting(
            "renew-deadline",
            DURATION,
            "How long the leader works without a successful renewal; shorter than the lease duration",
            option="renew_deadline_seconds",
        ),
        _setting("retry-period", DURATION, "Pause between two renewals, or two attempts to become leader", option="retry_period_seconds"),
    ),
    "Observation": (
        _setting("monitoring-port", port(), "Serve Prometheus metrics at /metrics on this port; 0 disables this"),
        _setting(
            "metrics-secure",
            BOOLEAN,
            "Serve /metrics over HTTPS, and only to clients that the API server authorizes (TokenReview, SubjectAccessReview)",
        ),
        _setting(
            "metrics-cert-dir",
            text_kind("DIR"),
            "Folder with the tls.crt and tls.key of that HTTPS, read again when they change",
            shown_default="a self-signed certificate",
        ),
        _setting("health-port", port(), "Serve /healthz and /readyz on this port; 0 disables this"),
        _setting("log-format", one_of("auto", "json", "text"), "Format of logs; auto is text on a terminal, else json"),
        _setting("log-level", one_of("debug", "info", "warning", "error"), "Lowest level of messages that are logged"),
    ),
    "Process": (_setting("uvloop", BOOLEAN, "Run on uvloop, which takes less processor time than the event loop of asyncio"),),
}

VERBOSITY: Final = Flag(("v",), INTEGER, "klog's verbosity; 4 or more means --log-level=debug")
HELP: Final = Flag(("help", "h"), BOOLEAN, "Print this and exit")
VERSION: Final = Flag(("version",), BOOLEAN, "Print the version and exit")
OTHERS: Final = (VERBOSITY, HELP, VERSION)

_KLOG_TEXTS: Final = ("log_backtrace_at", "log_dir", "log_file", "log_file_max_size", "stderrthreshold", "vmodule")
_KLOG_BOOLEANS: Final = (
    "add_dir_header",
    "alsologtostderr",
    "legacy_stderr_threshold_behavior",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
)
IGNORED: Final = (
    *(Flag((name, name.replace("_", "-")), text_kind("VALUE"), "klog's") for name in _KLOG_TEXTS),
    *(Flag((name, name.replace("_", "-")), BOOLEAN, "klog's") for name in _KLOG_BOOLEANS),
)


@dataclass(frozen=True, slots=True)
class Command:
    """What the command line asks for.

    Attributes:
        answer: Text to print instead of running the operator (--help, --version), or "".
        options: How to run the operator.
        ignored: Names of the flags that are accepted and have no effect.
    """

    answer: str
    options: Options
    ignored: Sequence[str] = ()


def parse_command(arguments: Sequence[str], environment: Mapping[str, str]) -> Command:
    """Read the command line.

    Raises:
        FlagError: It cannot be understood.
    """
    settings = [setting for group in GROUPS.values() for setting in group]
    parsed = goflags.parse(arguments, [*(setting.flag for setting in settings), *OTHERS, *IGNORED])
    values: dict[str, Any] = {setting.option: parsed.values[setting.flag] for setting in settings if setting.flag in parsed.values}
    if "namespaces" not in values:
        values["namespaces"] = _namespaces_of(environment)
    if parsed.value(VERBOSITY, 0) >= _KLOG_DEBUG:
        values["log_level"] = "debug"
    ignored = [flag.names[0] for flag in IGNORED if flag in parsed.values]
    return Command(_answer(parsed), Options(**values), ignored)


def _namespaces_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    text = environment.get(NAMESPACE_VARIABLE, "")
    try:
        return parse_names(text)
    except ValueError as error:
        raise FlagError(f"${NAMESPACE_VARIABLE} cannot be {text!r}: {error}") from error


def _answer(parsed: goflags.Parsed) -> str:
    if parsed.value(HELP, default=False):
        return help_text()
    if parsed.value(VERSION, default=False):
        return f"mpiop {__version__}"
    return ""


def help_text() -> str:
    """Return what --help prints."""
    lines = [
        "mpiop runs MPIJobs (kubeflow.org/v2beta1) on Kubernetes.",
        "",
        "Usage: mpiop [flags]",
        "",
        "A flag is written -name or --name, its value after = or as the next argument; --name=false switches one off.",
    ]
    for title, settings in GROUPS.items():
        lines += ["", f"{title}:"]
        for setting in settings:
            lines += _help_entry(setting.flag, default_of(setting))
    lines += ["", "Others:"]
    for flag in OTHERS:
        lines += _help_entry(flag, "")
    lines += ["", "klog's other flags are accepted and ignored."]
    return "\n".join(lines)


def default_of(setting: Setting) -> str:
    """Return how the help shows the default of `setting`."""
    defaults = {field.name: field.default for field in fields(Options)}
    return setting.shown_default or setting.flag.kind.render(defaults[setting.option])


def spelling_of(flag: Flag) -> str:
    """Return `flag` as it is typed, with the placeholder of its value: `--name=VALUE`."""
    name = f"--{flag.names[0]}" if len(flag.names[0]) > 1 else f"-{flag.names[0]}"
    return name if flag.kind.is_boolean else f"{name}={flag.kind.placeholder}"


def _help_entry(flag: Flag, default: str) -> list[str]:
    suffix = f" (default: {default})" if default else ""
    return [f"  {spelling_of(flag)}", f"        {flag.text}{suffix}"]
