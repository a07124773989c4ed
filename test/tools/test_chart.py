"""The Helm chart against what it is made from. That `helm` renders and installs it is test/e2e/test_helm.py's to show."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from generators.chart import CLUSTER_SCOPED, rights
from generators.chart_schema import CHART, OF_THE_CHART
from generators.chart_values import table_of, values_of
from generators.manifests import ROOT, GenerateError
from imaging.catalogue import DEFAULT_OPERATOR_REPOSITORY, REGISTRY
from mpiop import __version__
from mpiop.cli.flags import GROUPS
from mpiop.kube import resources
from mpiop.kube.resources import Resource

VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
OWN = SCHEMA["properties"]
# Values that may have more than their defaults: flags, tokens, and what Kubernetes' API has.
OPEN = {"flags", "podMonitor.tokenSecret", "podMonitor.tlsConfig", "serviceMonitor.tlsConfig", "livenessProbe", "readinessProbe"}
OF_KUBERNETES = {"resources", "affinity", "podSecurityContext", "securityContext"}


def paths(tree: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the paths of the values of `tree`, as far as the chart defines them."""
    for name, value in tree.items():
        path = f"{prefix}{name}"
        yield path
        if isinstance(value, dict) and path not in OPEN | OF_KUBERNETES:
            yield from paths(value, f"{path}.")


def described(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the same of a schema."""
    for name, node in schema["properties"].items():
        path = f"{prefix}{name}"
        yield path
        if "properties" in node and path not in OPEN | OF_KUBERNETES:
            yield from described(node, f"{path}.")


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every node of a schema."""
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for node in inner:
        if isinstance(node, dict):
            yield from nodes(node)


def test_schema_and_values_have_the_same_names() -> None:
    assert set(described(SCHEMA)) == set(paths(VALUES))


def test_no_object_of_the_schema_takes_a_name_that_it_does_not_know() -> None:
    loose = [
        node
        for node in nodes(SCHEMA)
        if node.get("type") == "object" and node.get("additionalProperties") is not False and not node.get("additionalProperties")
    ]
    # The values of other charts in Helm's `global`, and whole objects: the release's, and the peers and rules of a NetworkPolicy.
    assert [node.get("properties", {}).keys() for node in loose] == [{"imageRegistry"}, *[set[str]()] * 3]


def test_every_flag_is_a_value_of_its_own_or_can_be_set_by_its_name() -> None:
    flags = {setting.flag.names[0] for settings in GROUPS.values() for setting in settings}
    assert set(OWN["flags"]["properties"]) == flags - OF_THE_CHART
    assert flags >= OF_THE_CHART
    assert OWN["flags"]["properties"]["threadiness"] == {"type": "integer"}
    assert OWN["flags"]["properties"]["log-level"] == {"enum": ["debug", "info", "warning", "error"]}


def test_the_defaults_are_those_of_the_manifests() -> None:
    [deployment] = yaml.safe_load_all((ROOT / "manifests/base/deployment.yaml").read_text(encoding="utf-8"))
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert VALUES["replicas"] == deployment["spec"]["replicas"]
    assert VALUES["podSecurityContext"] == pod["securityContext"]
    for name in ("resources", "securityContext"):
        assert VALUES[name] == container[name]
    for name in ("livenessProbe", "readinessProbe"):
        assert VALUES[name] == {key: value for key, value in container[name].items() if key != "httpGet"}
    [budget] = yaml.safe_load_all((ROOT / "manifests/base/pod-disruption-budget.yaml").read_text(encoding="utf-8"))
    assert VALUES["podDisruptionBudget"]["minAvailable"] == budget["spec"]["minAvailable"]


def test_what_artifact_hub_shows_is_what_the_chart_installs() -> None:
    annotations = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["annotations"]
    images = {each["name"]: each["image"] for each in yaml.safe_load(annotations["artifacthub.io/images"])}
    names = ("mpi-operator", "mpi-operator-agent")
    assert images == {name: f"{REGISTRY}/{name}:v{__version__}" for name in names}
    assert VALUES["image"]["repository"] == DEFAULT_OPERATOR_REPOSITORY
    [crd] = yaml.safe_load(annotations["artifacthub.io/crds"])
    spec = yaml.safe_load((CHART / "files/crd.yaml").read_text(encoding="utf-8"))["spec"]
    assert (crd["kind"], crd["version"]) == (spec["names"]["kind"], spec["versions"][0]["name"])
    assert crd["name"] == f"{spec['names']['plural']}.{spec['group']}"


def test_no_template_has_rules_of_its_own() -> None:
    assert [path.name for path in CHART.glob("templates/*") if "verbs:" in path.read_text(encoding="utf-8")] == []


def test_a_role_gets_all_rights_but_those_to_what_is_in_no_namespace() -> None:
    cluster_role, _ = yaml.safe_load_all((ROOT / "manifests/base/cluster-role.yaml").read_text(encoding="utf-8"))
    rules = yaml.safe_load(rights())
    assert rules["operator"] + rules["operatorClusterScoped"] == cluster_role["rules"]
    used = {resource for rule in cluster_role["rules"] for resource in rule["resources"]}
    known = [each for each in vars(resources).values() if isinstance(each, Resource)]
    assert {each.plural for each in known if not each.namespaced} & used == CLUSTER_SCOPED


TEXT = """
# First line,
# second line
one: 1

section:
  # Of | a pipe
  two: [x]
  three:
    # Deep
    four: {}
"""


def test_the_table_has_a_row_for_each_value_with_a_comment() -> None:
    assert table_of(TEXT).splitlines() == [
        "| `one` | `1` | First line, second line |",
        '| `section.two` | `["x"]` | Of \\| a pipe |',
        "| `section.three.four` | `{}` | Deep |",
    ]


def test_a_value_without_a_comment_is_refused() -> None:
    with pytest.raises(GenerateError, match="bare has no comment"):
        values_of("# Explained\none: 1\n\nbare: 2\n")
