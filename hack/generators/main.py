"""The command `hack/generate`."""

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from generators.api import api_page
from generators.causes import causes_page
from generators.chart import alerts, crd_part, readme, rights
from generators.chart_schema import values_schema
from generators.compatibility import compatibility_page
from generators.conditions import conditions_page
from generators.crd import custom_resource_definition
from generators.dashboard import dashboard
from generators.flags import flags_page
from generators.labels import labels_page
from generators.manifests import ROOT, GenerateError, deployment_file, is_current, to_yaml
from generators.openapi import KUBERNETES, renew_snapshot
from reliability.page import invariants_page

_EXAMPLE = "examples/v2beta1/tensorflow-benchmarks"


@dataclass(frozen=True)
class Generated:
    """A generated file, relative to the root of the repository.

    Attributes:
        path: Of the file.
        render: Returns its text.
        is_current: Returns whether a text is up to date where `render` cannot run, for want of kubectl; None: it always can.
    """

    path: str
    render: Callable[[], str]
    is_current: Callable[[str], bool] | None = None


def _crd_file() -> str:
    return "# Made by hack/generate from hack/generators/mpijob_schema.py; edit that.\n" + to_yaml(custom_resource_definition())


def _copy_of(path: str) -> str:
    return f"# A copy of {path}, made by hack/generate.\n" + (ROOT / path).read_text(encoding="utf-8")


# In the order in which they depend on each other.
FILES = (
    Generated("manifests/base/kubeflow.org_mpijobs.yaml", _crd_file),
    Generated(f"{_EXAMPLE}.yaml", lambda: _copy_of(f"{_EXAMPLE}/tensorflow-benchmarks.yaml")),
    Generated("deploy/v2beta1/mpi-operator.yaml", deployment_file, is_current),
    Generated("charts/mpiop/files/crd.yaml", crd_part),
    Generated("charts/mpiop/files/rbac.yaml", rights),
    Generated("charts/mpiop/files/alerts.yaml", alerts),
    Generated("charts/mpiop/files/dashboard.json", dashboard),
    Generated("deploy/grafana-dashboard.json", dashboard),
    Generated("charts/mpiop/values.schema.json", values_schema),
    Generated("charts/mpiop/README.md", readme),
    Generated("docs/compatibility.md", compatibility_page),
    Generated("docs/reference/api.md", api_page),
    Generated("docs/reference/causes.md", causes_page),
    Generated("docs/reference/conditions.md", conditions_page),
    Generated("docs/reference/flags.md", flags_page),
    Generated("docs/reference/invariants.md", invariants_page),
    Generated("docs/reference/labels.md", labels_page),
)


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 0, 1 for files out of date, 2 for what went wrong."""
    parser = argparse.ArgumentParser(prog="hack/generate", description="Write every generated file of the repository.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not as it would be written")
    parser.add_argument("--pod-types", action="store_true", help=f"first renew the types of pod templates from Kubernetes {KUBERNETES}")
    options = parser.parse_args(arguments)
    try:
        if options.pod_types:
            renew_snapshot()
        return _check() if options.check else _write()
    except GenerateError as error:
        sys.stderr.write(f"hack/generate: {error}\n")
        return 2


def _write() -> int:
    for generated in FILES:
        path = ROOT / generated.path
        text = generated.render()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {generated.path}")
    return 0


def _check() -> int:
    stale = [generated.path for generated in FILES if not _is_current(generated)]
    for path in stale:
        sys.stderr.write(f"{path}: not up to date; run hack/generate and check the difference\n")
    return 1 if stale else 0


def _is_current(generated: Generated) -> bool:
    path = ROOT / generated.path
    if not path.exists():
        return False
    text = path.read_text(encoding="utf-8")
    if generated.is_current is not None and (not generated.is_current(text) or shutil.which("kubectl") is None):
        return generated.is_current(text)
    return generated.render() == text
