"""What the Helm chart shares with manifests/ and the documents: CRD, rights, alerts, and the table of its values."""

import re
from typing import Any

import yaml

from generators.chart_schema import CHART
from generators.chart_values import table_of
from generators.manifests import ROOT, GenerateError, to_yaml

MANIFESTS = ROOT / "manifests"
CLUSTER_SCOPED = frozenset({"priorityclasses"})
"""Resources among the operator's rights that are in no namespace: a Role cannot grant them."""

_ALERTS = re.compile(r"^## Alerts\n.*?^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_README = """\
# The Helm chart of mpiop

<!-- Made by hack/generate from values.yaml; edit that. -->

See [docs/install.md](../../docs/install.md#with-helm) to install, upgrade and remove it. Helm checks all values, and refuses a name that
does not exist and a value of a wrong type, in one sentence each.

## Values

| value | default | |
|---|---|---|
"""


def crd_part() -> str:
    """Return charts/mpiop/files/crd.yaml: the CRD's `spec`, to which the template adds the metadata."""
    _, mark, spec = (MANIFESTS / "base" / "kubeflow.org_mpijobs.yaml").read_text(encoding="utf-8").partition("\nspec:\n")
    return f"# The CRD's part after the metadata, made by hack/generate from hack/generators/mpijob_schema.py.{mark}{spec}"


def rights() -> str:
    """Return charts/mpiop/files/rbac.yaml: the rules of all Roles and ClusterRoles of manifests/, by what they are for.

    Raises:
        GenerateError: A rule has resources with and without a namespace, so that no Role can grant it as a whole.
    """
    files = ("base/cluster-role.yaml", "base/role.yaml", "base/capabilities-reader.yaml", "base/user-cluster-roles.yaml")
    roles = _roles(*files, "components/launcher-logs/cluster-role.yaml", "components/secure-metrics/cluster-roles.yaml")
    operator = roles["mpi-operator"]["rules"]
    scopes = [{resource in CLUSTER_SCOPED for resource in rule["resources"]} for rule in operator]
    if any(len(scope) > 1 for scope in scopes):
        raise GenerateError(f"manifests/base/cluster-role.yaml: split the rule that has {', '.join(sorted(CLUSTER_SCOPED))} and others")
    rules = {
        "operator": [rule for rule, scope in zip(operator, scopes, strict=True) if scope == {False}],
        "operatorClusterScoped": [rule for rule, scope in zip(operator, scopes, strict=True) if scope == {True}],
        "leaderElection": roles["mpi-operator-leader-election"]["rules"],
        "capabilitiesReader": roles["mpi-operator-capabilities-reader"]["rules"],
        "launcherLogs": roles["mpi-operator-launcher-logs"]["rules"],
        "metricsAuth": roles["mpi-operator-metrics-auth"]["rules"],
        "metricsReader": roles["mpi-operator-metrics-reader"]["rules"],
        "users": {
            name: {"labels": role["metadata"]["labels"], "rules": role["rules"]}
            for name, role in roles.items()
            if name.startswith("kubeflow-mpijobs-")
        },
    }
    return f"# Made by hack/generate from the roles in manifests/; edit those.\n{to_yaml(rules)}"


def _roles(*files: str) -> dict[str, Any]:
    objects = [item for file in files for item in yaml.safe_load_all((MANIFESTS / file).read_text(encoding="utf-8"))]
    return {item["metadata"]["name"]: item for item in objects if item["kind"] in {"ClusterRole", "Role"}}


def alerts() -> str:
    """Return charts/mpiop/files/alerts.yaml: the rules that docs/monitoring.md shows.

    Raises:
        GenerateError: It shows none.
    """
    found = _ALERTS.search((ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8"))
    if found is None:
        raise GenerateError("docs/monitoring.md has no YAML below the heading Alerts")
    return f"# Made by hack/generate from docs/monitoring.md; edit that.\n{found[1]}"


def readme() -> str:
    """Return charts/mpiop/README.md."""
    return _README + table_of((CHART / "values.yaml").read_text(encoding="utf-8"))
